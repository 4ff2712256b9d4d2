"""What a person does in the vault, and what an export then leaves alone."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from exporter.disk import Astray
from memory.access import principal
from memory.models import Principal, StageRun
from memory.text.region import MARKER
from tests.exporter.exports import gone, jot, look_anew, note, rows, run, tree, where

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("vault", "local")]


@pytest.fixture
def alice() -> Principal:
    return principal("alice")


# What a person does.


def test_an_edit_outside_notes_is_a_conflict_and_stays(vault: Path, alice: Principal) -> None:
    one = note(alice, "One")
    run()
    path = where(vault, one)
    path.write_text(path.read_text().replace("# One", "# One, and more"))
    before = path.read_bytes()
    for _ in range(2):
        report = run()
        assert report.conflicts == 1
        assert [trouble.path for trouble in report.troubles] == ["shop/One.md"]
        assert "## Notes" in report.troubles[0].fix
        assert path.read_bytes() == before
    assert rows(action="conflict") == [("conflict", "shop/One.md")]
    path.write_text(path.read_text() + "More.\n")
    run()
    assert len(rows(action="conflict")) == 1  # What is below the line is no other conflict.
    path.write_text(path.read_text().replace("and more", "and even more"))
    run()
    assert len(rows(action="conflict")) == 2
    path.unlink()
    report = run()
    assert (report.conflicts, report.written) == (0, 1)


def test_a_conflict_is_settled_by_moving_the_words_below(vault: Path, alice: Principal) -> None:
    one = note(alice, "One")
    run()
    path = where(vault, one)
    ours = path.read_text()
    path.write_text("Mine.\n" + ours)
    assert run().conflicts == 1
    path.write_text(ours + "Mine.\n")
    assert run().conflicts == 0
    assert path.read_text() == ours + "Mine.\n"


def test_a_changed_file_of_a_note_that_is_gone_stays(vault: Path, alice: Principal) -> None:
    one = note(alice, "One")
    run()
    path = where(vault, one)
    path.write_text(path.read_text().replace("# One", "# Mine"))
    gone(one)
    for _ in range(2):
        report = run()
        assert (report.conflicts, list(tree(vault))) == (1, ["shop/One.md"])
        assert "gone" in report.troubles[0].why


def test_a_person_s_own_file_is_never_touched(vault: Path, alice: Principal) -> None:
    own = {"shop/One.md": b"# mine\n", "shop/one.MD": b"x", "Daily/2026.md": b"y", "a.png": b"\0"}
    for name, data in own.items():
        (vault / name).parent.mkdir(parents=True, exist_ok=True)
        (vault / name).write_bytes(data)
    one = note(alice, "One")
    report = run()
    assert report.conflicts == 0
    assert where(vault, one).name == f"One ~{one.pk.hex[:8]}.md"
    gone(one)
    run()
    assert tree(vault) == own


def test_an_own_file_in_the_place_of_ours_is_a_conflict(vault: Path, alice: Principal) -> None:
    one = note(alice, "One")
    run()
    where(vault, one).write_text("I wrote this instead.\n")
    report = run()
    assert [trouble.path for trouble in report.troubles] == ["shop/One.md"]
    assert where(vault, one).read_text() == "I wrote this instead.\n"


def test_a_file_that_was_moved_comes_back_with_its_words(vault: Path, alice: Principal) -> None:
    one = note(alice, "One")
    run()
    path = where(vault, one)
    jot(path, "Mine.\n")
    (vault / "Archive").mkdir()
    path.rename(vault / "Archive" / "renamed.md")
    report = run()
    assert (report.renamed, report.written) == (1, 0)
    assert path.read_text().endswith("Mine.\n")
    assert list((vault / "Archive").iterdir()) == []


def test_a_copy_is_the_person_s(vault: Path, alice: Principal) -> None:
    one = note(alice, "One")
    run()
    shutil.copy(where(vault, one), vault / "copy.md")
    (vault / "copy.md").write_text((vault / "copy.md").read_text() + "Of the copy.\n")
    before = (vault / "copy.md").read_bytes()
    look_anew(vault)
    run()
    gone(one)
    run()
    run()
    assert tree(vault) == {"copy.md": before}


def test_a_moved_file_does_not_leave_another_one_s_place_empty(
    vault: Path, alice: Principal
) -> None:
    one, two = note(alice, "One"), note(alice, "Two")
    run()
    jot(where(vault, one), "Of one.\n")
    jot(where(vault, two), "Of two.\n")
    # Somebody swaps the two.
    here, there = where(vault, one), where(vault, two)
    here.rename(vault / "spare.md")
    there.rename(here)
    (vault / "spare.md").rename(there)
    assert run().conflicts == 0
    assert run().written == 0
    assert len(tree(vault)) == 3
    for each, words in ((one, "Of one.\n"), (two, "Of two.\n")):
        text = where(vault, each).read_text()
        assert str(each.pk) in text and text.endswith(f"{MARKER}\n{words}")


def test_a_name_that_a_person_changed_in_case_alone_stays(vault: Path, alice: Principal) -> None:
    one = note(alice, "One")
    run()
    where(vault, one).rename(vault / "shop" / "ONE.md")
    report = run()
    assert (report.renamed, report.conflicts) == (0, 0)
    assert set(tree(vault)) == {"shop/ONE.md", "shop/_index.md"}
    assert run().written == 0


def test_a_line_end_that_an_editor_took_off_is_no_change(vault: Path, alice: Principal) -> None:
    one = note(alice, "One")
    run()
    path = where(vault, one)
    path.write_bytes(path.read_bytes().removesuffix(b"\n"))
    before = path.read_bytes()
    assert (run().conflicts, path.read_bytes()) == (0, before)


# Links.


def test_a_linked_project_folder_is_a_conflict(vault: Path, alice: Principal) -> None:
    outside = vault.parent / "outside"
    outside.mkdir()
    vault.mkdir()
    (vault / "shop").symlink_to(outside)
    note(alice, "One")
    note(alice, "Two", project=None)
    for _ in range(2):
        report = run()
        assert (report.conflicts, report.pending) == (1, 2)
        assert report.troubles[0].path == "shop"
        assert list(outside.iterdir()) == []
        assert (vault / "_unattributed/Two.md").exists()
    assert len(rows(action="conflict")) == 1
    (vault / "shop").unlink()
    assert run().written == 2


@pytest.mark.parametrize("broken", [True, False])
def test_a_linked_file_is_a_conflict(vault: Path, alice: Principal, broken: bool) -> None:
    one = note(alice, "One")
    run()
    outside = vault.parent / "outside.md"
    path = where(vault, one)
    if not broken:
        outside.write_bytes(path.read_bytes())
    path.unlink()
    path.symlink_to(outside)
    report = run()
    assert [trouble.path for trouble in report.troubles] == ["shop/One.md"]
    assert path.is_symlink()
    assert not broken or not outside.exists()


def test_a_linked_folder_inside_is_not_followed(vault: Path, alice: Principal) -> None:
    one = note(alice, "One")
    run()
    outside = vault.parent / "outside"
    outside.mkdir()
    where(vault, one).rename(outside / "One.md")
    (vault / "sub").symlink_to(outside)
    assert run().written == 1
    assert (outside / "One.md").exists()


def test_a_linked_argus_folder_stops_the_export(vault: Path, alice: Principal) -> None:
    outside = vault.parent / "outside"
    outside.mkdir()
    vault.mkdir()
    (vault / ".argus").symlink_to(outside)
    note(alice, "One")
    with pytest.raises(Astray):
        run()
    assert list(outside.iterdir()) == [] and tree(vault) == {}
    assert StageRun.objects.get(stage="export").status == "failed"


def test_a_pipe_holds_nothing_up(vault: Path, alice: Principal) -> None:
    (vault / "shop").mkdir(parents=True)
    os.mkfifo(vault / "shop" / "One.md")
    one = note(alice, "One")
    run()
    assert where(vault, one).name != "One.md"
