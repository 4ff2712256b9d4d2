"""Pages that rest say what their rows say by now, and keep a person's words."""

from __future__ import annotations

from dataclasses import replace as changed
from pathlib import Path

import pytest

from exporter.folder import KEPT
from exporter.health import health
from exporter.place import Place, around_vault
from memory.access import principal
from memory.models import Evidence, Group, Note, Principal
from memory.text.region import MARKER, OURS
from tests import factories as make
from tests.exporter.exports import gone, jot, look_anew, note, replace, rows, run, tree, where
from tests.memory.books import purge

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("vault", "local")]

SECRET = "The harbour is sold in May"


@pytest.fixture
def alice() -> Principal:
    return principal("alice")


def holds(vault: Path, words: str) -> list[str]:
    """Where these words stand, in a name or in a file."""
    return [path for path, data in tree(vault).items() if words in path + data.decode()]


def forget(one: Note) -> None:
    """Purge what a note was taken from first."""
    purge([edge.raw_item_id for edge in one.evidence.order_by("pk")[:1] if edge.raw_item_id])


def taken_in(alice: Principal) -> tuple[Note, Note]:
    """A note, and its duplicate, whose evidence it will have, too."""
    one = note(alice, SECRET, SECRET)
    two = note(alice, "Two", "What becomes of the harbour is settled.", when=make.at(9))
    return one, two


@pytest.mark.parametrize("words", ["", "My word.\n"])
def test_a_quote_that_is_purged_leaves_the_page_with_one_export(
    vault: Path, alice: Principal, words: str
) -> None:
    with around_vault(changed(Place(vault, "alice"), retired="remove" if words else "keep")):
        one, two = taken_in(alice)
        note(alice, "Another")
        run()
        replace(two, one, "duplicate")
        run()
        jot(where(vault, two), words)
        gone(two)
        run()
        assert holds(vault, SECRET) == ["_retired/Two.md"]
        forget(one)
        assert Note.objects.as_pipeline().filter(pk=two.pk).exists()
        report = run()
        assert holds(vault, SECRET) == []
        assert (report.retired, report.conflicts) == (1, 0)
        text = (vault / "_retired/Two.md").read_text()
        assert text.endswith(f"{MARKER}\n{words}") and "What becomes of the harbour" in text
        assert rows(key=str(two.pk))[-1] == ("retired", "_retired/Two.md")
        before = tree(vault)
        assert (run().retired, tree(vault)) == (0, before)


def test_the_words_of_a_group_that_was_left_leave_a_page_that_rests(vault: Path) -> None:
    alice, bob, _ = make.three()
    (said,) = make.turns(bob, [SECRET], session="b", visibility="team")
    one = note(alice, "One", "What becomes of the harbour is settled.")
    Evidence.objects.create(
        note=one, raw_item=said, quote=SECRET, start=0, end=len(SECRET), sha256="0"
    )
    run()
    jot(where(vault, one), "My word.\n")
    gone(one)
    run()
    assert holds(vault, SECRET) == ["_retired/One.md"]
    Group.objects.get(name="pair").members.remove(alice)
    run()
    assert holds(vault, SECRET) == []
    assert where(vault, one).read_text().endswith("My word.\n")


def test_code_that_looks_like_our_links_stays_in_a_page_that_rests(
    vault: Path, alice: Principal
) -> None:
    code = "```text\n- [[Alpha|a]]\n- [[Beta]]\nHub: [[x]]\nkeep\n```"
    one = note(alice, "One", code)
    run()
    assert code in where(vault, one).read_text()
    jot(where(vault, one), "My word.\n")
    gone(one)
    run()
    assert code in (vault / "_retired/One.md").read_text()


def test_a_page_that_rests_leads_nowhere(vault: Path, alice: Principal) -> None:
    said = "The staging database of the harbour listens on port"
    notes = [note(alice, f"Port {at}", f"{said} {at} {said}", when=make.at(at)) for at in range(4)]
    run()
    (hub,) = (vault / "shop/_hubs").iterdir()
    for path in (hub, vault / "shop/_index.md", *(where(vault, one) for one in notes)):
        assert "[[" in path.read_text()
        jot(path, f"Mine, of {path.stem}.\n")
    for one in notes:
        gone(one)
    run()
    resting = tree(vault)
    assert len(resting) == 6 and all(path.startswith("_retired/") for path in resting)
    for name, data in resting.items():
        text = data.decode()
        assert "[[" not in text and "## Members" not in text, name
        assert "\n\n\n" not in text and text.count("Mine, of ") == 1
    hubs = [data.decode() for data in resting.values() if b'kind: "hub"' in data]
    assert len(hubs) == 1 and f"\n# {hub.stem}\n" in hubs[0] and 'project: "shop"' in hubs[0]


def test_a_page_that_rests_and_was_changed_is_told_until_it_is_settled(
    vault: Path, alice: Principal
) -> None:
    one = note(alice, "One")
    note(alice, "Another")
    run()
    jot(where(vault, one), "My word.\n")
    gone(one)
    run()
    path = vault / "_retired/One.md"
    ours = path.read_bytes()
    path.write_bytes(ours.replace(b"# One", b"# Mine"))
    for _ in range(2):
        (trouble,) = run().troubles
        assert trouble.path == "_retired/One.md" and "gone" in trouble.why
        assert b"# Mine" in path.read_bytes()
    path.write_bytes(ours)
    assert run().conflicts == 0
    assert path.read_bytes() == ours
    # Made their own, as they were told to.
    path.write_text("My word.\n")
    run()
    kept = (vault / OURS / KEPT).stat().st_mtime_ns
    assert (run().conflicts, run().unchanged) == (0, 2)
    assert (vault / OURS / KEPT).stat().st_mtime_ns == kept
    assert path.read_text() == "My word.\n"


def test_the_number_of_files_stays_while_nothing_changes(vault: Path, alice: Principal) -> None:
    notes = [note(alice, f"Number {at}") for at in range(4)]
    run()
    for one in notes[:2]:
        jot(where(vault, one), "Mine.\n")
        gone(one)
    run()
    counted = len(tree(vault))
    for _ in range(2):
        assert (run().unchanged, health().files) == (counted, counted) == (5, 5)
    look_anew(vault)
    assert (run().unchanged, health().files) == (counted, counted)
    # Whoever takes one away has it no more; nothing brings it back.
    where(vault, notes[0]).unlink()
    for _ in range(2):
        assert (run().unchanged, health().files) == (counted - 1, counted - 1)
