"""What an export tells of again and again until it is settled, and when it looks at all anew."""

from __future__ import annotations

import shutil
from dataclasses import replace as replaced
from pathlib import Path
from uuid import uuid4

import pytest

from exporter import hubs, mark, names, wanted
from exporter.document import Link
from exporter.folder import KEPT, Folder
from exporter.links import members
from exporter.moves import Last, Log
from exporter.pages import hub_page
from exporter.place import place
from exporter.report import ExportReport
from memory.access import principal
from memory.models import Principal
from memory.text.region import MARKER, OURS
from tests import factories as make
from tests.exporter.exports import (
    LATER,
    gone,
    jot,
    look_anew,
    note,
    replace,
    run,
    tree,
    where,
)
from tests.exporter.vaults import put

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("vault", "local")]


@pytest.fixture
def alice() -> Principal:
    return principal("alice")


def test_a_person_s_own_file_in_the_way_is_told_every_time(vault: Path, alice: Principal) -> None:
    (vault / "shop").mkdir(parents=True)
    (vault / "shop/_index.md").write_text("Mine.\n")
    note(alice, "One")
    for _ in range(3):
        report = run()
        assert [trouble.path for trouble in report.troubles] == ["shop/_index.md"]
        assert report.conflicts == 1
    (vault / "shop/_index.md").unlink()
    assert run().conflicts == 0
    assert (run().conflicts, run().written) == (0, 0)


def test_a_page_of_another_database_is_told(vault: Path, alice: Principal) -> None:
    one = note(alice, "One")
    run()
    other = where(vault, one).read_text().replace(str(one.pk), "0" * 8 + str(one.pk)[8:])
    (vault / "shop/Later.md").write_text(other)
    (vault / "mine.md").write_text("---\nargus_id: what I call it\n---\nMine.\n")
    look_anew(vault)
    for _ in range(2):
        (trouble,) = run().troubles
        assert trouble.path == "shop/Later.md" and "another database" in trouble.why
    assert (vault / "shop/Later.md").read_text() == other


def test_a_line_that_is_missing_is_named(vault: Path, alice: Principal) -> None:
    one = note(alice, "One")
    run()
    path = where(vault, one)
    path.write_text(path.read_text().replace(MARKER, "Mine."))
    (trouble,) = run().troubles
    assert "missing" in trouble.why and MARKER in trouble.fix


def test_no_fix_costs_what_stands_below_the_line(vault: Path, alice: Principal) -> None:
    one = note(alice, "One")
    run()
    path = where(vault, one)
    path.write_text(path.read_text().replace("# One", "# Two") + "Mine.\n")
    (trouble,) = run().troubles
    fix = trouble.fix
    assert fix.index("copy them, those below ## Notes too") < fix.index("delete the file")


@pytest.mark.parametrize(
    ("module", "name"),
    [
        (hubs, "CLUSTER_MEMBERS_MIN"),
        (hubs, "CLUSTER_SHARE_MAX"),
        (names, "NAME_BYTES_MAX"),
        (wanted, "RELATED_MAX"),
    ],
)
def test_whoever_calibrates_what_makes_pages_gets_new_ones(
    alice: Principal, monkeypatch: pytest.MonkeyPatch, module: object, name: str
) -> None:
    note(alice, "One")
    before = mark.fingerprint(place(), alice, now=LATER)
    assert mark.fingerprint(place(), alice, now=LATER) == before
    monkeypatch.setattr(module, name, getattr(module, name) / 2)
    assert mark.fingerprint(place(), alice, now=LATER) != before


def test_a_folder_that_a_person_made_stays(vault: Path, alice: Principal) -> None:
    one = note(alice, "One")
    run()
    (vault / "Archive").mkdir()
    where(vault, one).rename(vault / "Archive/One.md")
    run()
    assert (vault / "Archive").is_dir() and "shop/One.md" in tree(vault)


def test_who_calls_a_note_of_their_own_so_keeps_it(vault: Path, alice: Principal) -> None:
    one = note(alice, "One")
    run()
    where(vault, one).unlink()
    own = f"---\nargus_id: {one.pk}\n---\nMine alone.\n"
    (vault / "mine.md").write_text(own)
    report = run()
    assert (report.conflicts, report.written) == (0, 1)
    assert (vault / "mine.md").read_text() == own and "shop/One.md" in tree(vault)


def test_a_page_that_a_backup_brings_back_goes_again(vault: Path, alice: Principal) -> None:
    one = note(alice, "One")
    note(alice, "Two")
    run()
    path = where(vault, one)
    data = path.read_bytes()
    gone(one)
    run()
    assert run().unchanged == 2
    path.write_bytes(data)
    assert run().removed == 1 and not path.exists()
    assert run().unchanged == 2


# Whether it looks at all of it.


def looked(vault: Path) -> tuple[int, ExportReport]:
    """An export; whether it went the long way, and its report."""
    kept = vault / OURS / KEPT
    before = kept.stat().st_mtime_ns
    report = run()
    return kept.stat().st_mtime_ns != before, report


def test_an_own_file_where_ours_was_once_costs_nothing(vault: Path, alice: Principal) -> None:
    one, two = note(alice, "One"), note(alice, "Two")
    note(alice, "Three")
    run()
    data = where(vault, one).read_bytes()
    gone(one)
    gone(two)
    run()
    (vault / "shop/One.md").write_text("Mine.\n")
    (vault / "shop/Two.md").write_bytes(data.replace(b"# One", b"# A copy"))
    assert not looked(vault)[0]
    (vault / "shop/One.md").write_bytes(data)
    anew, report = looked(vault)
    assert anew and report.removed == 1


@pytest.mark.parametrize("settle", ["undo", "delete", "move", "change more", "write below"])
def test_what_is_left_alone_is_told_again_without_looking(
    vault: Path, alice: Principal, settle: str
) -> None:
    one = note(alice, "One")
    (vault / "shop").mkdir(parents=True)
    (vault / "shop/_index.md").write_text("Mine.\n")
    run()
    path = where(vault, one)
    ours = path.read_text()
    path.write_text(ours.replace("# One", "# Mine"))
    first = run()
    assert first.conflicts == 2
    anew, report = looked(vault)
    assert not anew and report == replaced(first, unchanged=0)
    if settle == "undo":
        path.write_text(ours)
    elif settle == "delete":
        path.unlink()
    elif settle == "move":
        path.rename(vault / "shop/Moved.md")
    elif settle == "change more":
        path.write_text(ours.replace("# One", "# Mine, and more"))
    else:
        path.write_text(ours.replace("# One", "# Mine") + "Below.\n")
    anew, report = looked(vault)
    assert anew and report.conflicts == (1 if settle in ("undo", "delete") else 2)
    assert not looked(vault)[0]


def test_what_waits_and_what_is_barred_is_told_again_without_looking(
    vault: Path, alice: Principal
) -> None:
    one, two = note(alice, "Kept"), note(alice, "Double", when=make.at(9))
    note(alice, "Else", project=make.project("blog"))
    run()
    jot(where(vault, two), "Mine.\n")
    path = where(vault, one)
    ours = path.read_text()
    path.write_text(ours.replace("# Kept", "# Kept!"))
    replace(one, two, "duplicate")
    shutil.rmtree(vault / "blog")
    (vault / "blog").symlink_to(vault.parent)
    first = run()
    assert (first.conflicts, first.pending) == (2, 3)
    anew, report = looked(vault)
    assert not anew and (report.conflicts, report.pending) == (2, 3)
    assert {one.path for one in report.troubles} == {"blog", "shop/Kept.md"}
    (vault / "blog").unlink()
    assert looked(vault)[1].written == 2
    path.write_text(ours)
    anew, report = looked(vault)
    assert anew and report.pending == report.conflicts == 0
    assert path.read_text().endswith("Mine.\n")


def test_a_page_is_not_made_anew_for_the_order_of_people(
    alice: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = mark.fingerprint(place(), alice, now=LATER)
    monkeypatch.setattr(mark, "mates_of", lambda one: (2, 1))
    other = mark.fingerprint(place(), alice, now=LATER)
    monkeypatch.setattr(mark, "mates_of", lambda one: (1, 2))
    assert mark.fingerprint(place(), alice, now=LATER) == other != before


def test_a_hub_that_left_names_no_note_that_left(vault: Path, alice: Principal) -> None:
    """Where a note was once another one may lie by now: the words go where that one is."""
    old, new = str(uuid4()), str(uuid4())
    last = {
        new: Last("shop/Plan.md", "written", "0"), old: Last("shop/Plan.md", "removed", "0"),
    }  # fmt: skip
    key = f"hub:{old}"
    page = hub_page("Plans", key, "shop", [Link("shop/Plan", "Plan")])
    put(vault, "shop/_hubs/Plans.md", page.decode())
    with Folder.hold(vault) as folder:
        assert members(folder.scan(), Log(last), folder, {key}) == {key: [new]}


def test_code_that_looks_like_a_link_is_no_change_when_a_page_moves(
    vault: Path, alice: Principal
) -> None:
    said = "The staging database of the harbour listens on port"
    code = f"{said} 1 {said}\n```text\n- [[Archive/Alpha|a]]\n[[Alpha|b]]\n```"
    alpha = note(alice, "Alpha", f"{said} 1 {said}")
    one = note(alice, "One", code)
    run()
    path = where(vault, one)
    text = path.read_text()
    assert "- [[shop/Alpha|Alpha]]" in text
    (vault / "Archive").mkdir()
    where(vault, alpha).rename(vault / "Archive/Alpha.md")
    path.write_text(text.replace("[[shop/Alpha|", "[[Archive/Alpha|"))
    assert run().conflicts == 0
    assert path.read_text() == text
