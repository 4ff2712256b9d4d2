"""A person's words below the line, wherever the page that they stand on goes."""

from __future__ import annotations

from pathlib import Path

import pytest

from exporter.folder import Folder
from exporter.place import Place, around_vault
from memory.access import principal
from memory.models import Principal
from memory.retire import revive
from memory.text.region import MARKER
from tests import factories as make
from tests.exporter.exports import LATER, gone, jot, look_anew, note, replace, run, tree, where

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("vault", "local")]


@pytest.fixture
def alice() -> Principal:
    return principal("alice")


def words(vault: Path) -> dict[str, str]:
    """What stands below the line of each file that has something there."""
    below = {path: data.decode().partition(f"{MARKER}\n")[2] for path, data in tree(vault).items()}
    return {path: text for path, text in below.items() if text.strip()}


def change(path: Path, old: str, new: str) -> None:
    """A person changes our part of a page."""
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


@pytest.mark.parametrize(
    ("kept", "double", "whole"),
    [
        ("Do not deploy this on Friday.\n", "deploy this\n", "{kept}{double}"),
        ("No.\n", "No\n", "{kept}{double}"),
        ("One.\nTwo.\nThree.\n", "Two.\n", "{kept}"),
        ("Two.", "One.\nTwo.\nThree.\n", "{double}"),
        ("One.\nTwo.\n", "One.\nThree.\n", "{kept}{double}"),
    ],
)
def test_when_two_become_one_both_stay(
    vault: Path, alice: Principal, kept: str, double: str, whole: str
) -> None:
    one, two = note(alice, "Kept"), note(alice, "Double", when=make.at(9))
    run()
    jot(where(vault, one), kept)
    jot(where(vault, two), double)
    replace(one, two, "duplicate")
    run()
    assert words(vault) == {"shop/Kept.md": whole.format(kept=kept, double=double)}


def test_words_that_were_added_meanwhile_do_not_double(
    vault: Path, alice: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = note(alice, "Old")
    run()
    path = where(vault, old)
    jot(path, "Mine.\n")
    new = note(alice, "New", when=make.at(days=2))
    replace(old, new)
    real = Folder.remove

    def late(self: Folder, *args: object) -> set[str]:
        if path.exists():
            jot(path, "More.\n")
        # Whatever it is called with is passed on.
        return real(self, *args)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(Folder, "remove", late)
        assert run().pending == 1
    run()
    assert words(vault) == {"shop/New.md": "Mine.\nMore.\n"}


def test_words_wait_for_an_heir_that_is_left_alone(vault: Path, alice: Principal) -> None:
    one, two = note(alice, "Kept"), note(alice, "Double", when=make.at(9))
    run()
    jot(where(vault, two), "Mine.\n")
    change(where(vault, one), "# Kept", "# Kept!")
    replace(one, two, "duplicate")
    for _ in range(2):
        report = run()
        assert (report.conflicts, report.pending) == (1, 1)
        assert words(vault) == {"shop/Double.md": "Mine.\n"}
    change(where(vault, one), "# Kept!", "# Kept")
    assert run().pending == 0
    assert words(vault) == {"shop/Kept.md": "Mine.\n"}


def test_who_changed_a_page_that_was_replaced_is_told_where_the_words_go(
    vault: Path, alice: Principal
) -> None:
    one = note(alice, "One")
    run()
    jot(where(vault, one), "Mine.\n")
    change(where(vault, one), "# One", "# One!")
    replace(one, note(alice, "Two", when=make.at(days=2)))
    (trouble,) = run().troubles
    assert trouble.path == "shop/One.md"
    assert "those below ## Notes too, to shop/Two.md" in trouble.fix
    assert words(vault) == {"shop/One.md": "Mine.\n"}


def test_words_on_a_hub_stay_when_its_oldest_note_goes(vault: Path, alice: Principal) -> None:
    said = "The staging database of the harbour listens on port"
    notes = [note(alice, f"Port {at}", f"{said} {at} {said}", when=make.at(at)) for at in range(6)]
    run()
    (hub,) = (vault / "shop/_hubs").iterdir()
    jot(hub, "Of all of them.\n")
    # Its middle, too.
    gone(notes[0])
    gone(next(one for one in notes[1:] if one.title == hub.stem or one is notes[1]))
    run()
    (path,) = words(vault)
    assert path.startswith("shop/_hubs/")


def test_an_editor_that_brings_its_links_up_to_date_changes_nothing(
    vault: Path, alice: Principal
) -> None:
    said = "The staging database of the harbour listens on port"
    notes = [note(alice, f"Port {at}", f"{said} {at} {said}", when=make.at(at)) for at in range(4)]
    run()
    before = tree(vault)
    jot(where(vault, notes[1]), "Mine.\n")
    for named in ("Archive/Port 0", "Port 0", "Other/Renamed", "Renamed"):
        (vault / named).parent.mkdir(exist_ok=True)
        lies = vault / (f"{named}.md" if "/" in named else f"Deep/{named}.md")
        lies.parent.mkdir(exist_ok=True)
        where(vault, notes[0]).rename(lies)
        for path in vault.rglob("*.md"):
            path.write_text(path.read_text().replace("[[shop/Port 0|", f"[[{named}|"))
        report = run()
        assert (report.conflicts, report.renamed) == (0, 1)
        assert tree(vault) == before | {"shop/Port 1.md": before["shop/Port 1.md"] + b"Mine.\n"}


def test_a_project_that_comes_back_is_where_it_was(vault: Path, alice: Principal) -> None:
    one = note(alice, "One")
    run()
    jot(vault / "shop/_index.md", "About the shop.\n")
    gone(one)
    run()
    assert set(tree(vault)) == {"_retired/index.md"}
    note(alice, "Fresh", when=make.at(days=20))
    run()
    assert set(tree(vault)) == {"shop/Fresh.md", "shop/_index.md"}
    assert words(vault) == {"shop/_index.md": "About the shop.\n"}


def test_a_clock_that_ran_backwards_leaves_nothing_behind(vault: Path, alice: Principal) -> None:
    one, _ = note(alice, "One", when=make.at(days=5)), note(alice, "Two", when=make.at(days=5))
    run()
    jot(where(vault, one), "Mine.\n")
    jot(vault / "shop/_index.md", "Of the index.\n")
    before = tree(vault)
    run(make.at(days=1))
    assert len(words(vault)) == 2
    run(LATER)
    assert tree(vault) == before


def test_lines_that_end_another_way_are_no_change(vault: Path, alice: Principal) -> None:
    one = note(alice, "One")
    run()
    jot(where(vault, one), "Mine.\n")
    path = where(vault, one)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    before = path.read_bytes()
    look_anew(vault)
    report = run()
    assert (report.conflicts, path.read_bytes()) == (0, before)
    new = note(alice, "Three", when=make.at(days=2))
    replace(one, new)
    run()
    assert where(vault, new).read_bytes().endswith(MARKER.encode() + b"\nMine.\r\n")


def test_a_page_with_very_many_sources_and_tags_is_known_as_ours(
    vault: Path, alice: Principal
) -> None:
    one = note(alice, "Big", tags=[f"tag{at}-" + "x" * 60 for at in range(1200)])
    run()
    jot(where(vault, one), "Mine.\n")
    assert run().conflicts == 0
    new = note(alice, "New", when=make.at(days=2))
    replace(one, new)
    assert run().conflicts == 0
    assert words(vault) == {"shop/New.md": "Mine.\n"}


def test_two_folders_of_one_person_each_keep_their_words(
    vault: Path, alice: Principal, tmp_path: Path
) -> None:
    other = tmp_path / "Other"
    one, two, three = (note(alice, title) for title in ("One", "Two", "Three"))
    run()
    for each in (one, two, three):
        jot(where(vault, each), f"Here, of {each.title}.\n")
    jot(vault / "shop/_index.md", "Here, of all.\n")
    with around_vault(Place(other, "alice")):
        run()
        jot(other / "shop/Two.md", "There, of Two.\n")
        replace(one, note(alice, "New", when=make.at(days=2)))
        gone(two)
        gone(three)
        run()
        assert list(words(other).values()) == ["There, of Two.\n"]
    run()
    here = ["Here, of One.\n", "Here, of Three.\n", "Here, of Two.\n", "Here, of all.\n"]
    assert sorted(words(vault).values()) == here
    assert words(vault)["shop/New.md"] == "Here, of One.\n"
    report = run()
    assert (report.written, report.renamed, report.retired, report.removed) == (0, 0, 0, 0)
    revive(two.pk)
    run()
    assert words(vault)["shop/Two.md"] == "Here, of Two.\n"
    with around_vault(Place(other, "alice")):
        run()
        assert words(other) == {"shop/Two.md": "There, of Two.\n"}
    assert sorted(words(vault).values()) == here
