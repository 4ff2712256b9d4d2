"""What the owner of a vault may not see, or not see any more, does not lie in it."""

from __future__ import annotations

from dataclasses import replace as changed
from pathlib import Path
from typing import Literal

import pytest

from exporter.disk import Astray
from exporter.place import Place, around_vault
from memory.access import principal
from memory.models import Group, Note, Principal
from tests import factories as make
from tests.exporter.exports import gone, jot, note, replace, run, tree, where
from tests.memory.books import purge

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("vault", "local")]

Retired = Literal["remove", "keep"]

SECRET = "The harbour is sold in May"


@pytest.fixture
def alice() -> Principal:
    return principal("alice")


def holds(vault: Path, words: str) -> list[str]:
    """Where these words stand, in a name or in a file."""
    return [path for path, data in tree(vault).items() if words in path + data.decode()]


def only_words(vault: Path) -> list[str]:
    """What is in files without a front matter."""
    return [data.decode() for data in tree(vault).values() if not data.startswith(b"---")]


def forget(one: Note) -> None:
    purge([edge.raw_item_id for edge in one.evidence.all() if edge.raw_item_id])


@pytest.mark.parametrize("retired", ["remove", "keep"])
@pytest.mark.parametrize("words", ["", "My word.\n"])
def test_a_note_of_a_group_that_was_left_goes(vault: Path, retired: Retired, words: str) -> None:
    alice, bob, _ = make.three()
    one = note(bob, SECRET, visibility="team")
    note(alice, "Her own")
    with around_vault(changed(Place(vault, "alice"), retired=retired)):
        run()
        jot(where(vault, one), words)
        Group.objects.get(name="pair").members.remove(alice)
        run()
        assert holds(vault, SECRET) == []
        assert only_words(vault) == ([words] if words else [])
        assert (run().written, run().conflicts) == (0, 0)


@pytest.mark.parametrize("retired", ["remove", "keep"])
def test_a_note_that_is_too_confidential_by_now_goes(
    vault: Path, alice: Principal, retired: Retired
) -> None:
    one = note(alice, SECRET, confidentiality="restricted")
    place = changed(Place(vault, "alice"), retired=retired, confidentiality="restricted")
    with around_vault(place):
        run()
        jot(where(vault, one), "My word.\n")
    with around_vault(changed(place, confidentiality="internal")):
        run()
    assert holds(vault, SECRET) == [] and only_words(vault) == ["My word.\n"]


def test_what_rests_goes_as_well_when_it_may_not_be_seen_any_more(vault: Path) -> None:
    alice, bob, _ = make.three()
    one = note(bob, SECRET, visibility="team")
    run()
    jot(where(vault, one), "My word.\n")
    gone(one)
    run()
    assert len(holds(vault, SECRET)) == 1
    Group.objects.get(name="pair").members.remove(alice)
    run()
    assert holds(vault, SECRET) == [] and only_words(vault) == ["My word.\n"]


def test_a_note_that_was_retired_and_then_purged_goes_at_once(
    vault: Path, alice: Principal
) -> None:
    one = note(alice, SECRET)
    note(alice, "Another")
    run()
    jot(where(vault, one), "My word.\n")
    gone(one)
    run()
    assert len(holds(vault, SECRET)) == 1
    forget(one)
    run()
    assert holds(vault, SECRET) == [] and only_words(vault) == ["My word.\n"]


# Why often: which note a hub is named after is settled by chance where all are alike.
@pytest.mark.parametrize("nth", range(8))
def test_no_page_that_rests_names_a_purged_note(vault: Path, alice: Principal, nth: int) -> None:
    said = "The staging database of the harbour listens on port"
    notes = [note(alice, f"Port {at}", f"{said} {at} {said}", when=make.at(at)) for at in range(4)]
    secret = note(alice, SECRET, f"{said} 99 {said}", when=make.at(9))
    run()
    (hub,) = (vault / "shop/_hubs").iterdir()
    assert SECRET in where(vault, notes[0]).read_text() and SECRET in hub.read_text()
    for path in (where(vault, notes[0]), hub, vault / "shop/_index.md"):
        jot(path, "My word.\n")
    for one in notes:
        gone(one)
    gone(secret)
    run()
    assert len([path for path in tree(vault) if path.startswith("_retired/")]) == 3
    forget(secret)
    run()
    assert holds(vault, SECRET) == []
    assert sum(data.endswith(b"My word.\n") for data in tree(vault).values()) == 3


def test_a_changed_copy_of_a_purged_page_is_told_every_time(vault: Path, alice: Principal) -> None:
    one = note(alice, SECRET)
    note(alice, "Another")
    run()
    text = where(vault, one).read_text()
    (vault / "copy.md").write_text(text.replace("# The", "# Note: the"))
    forget(one)
    for _ in range(3):
        assert [trouble.path for trouble in run().troubles] == ["copy.md"]


def test_a_vault_is_not_shared(vault: Path, alice: Principal) -> None:
    note(alice, "Her own")
    run()
    before = tree(vault)
    note(principal("bob"), "His own")
    with around_vault(Place(vault, "bob")), pytest.raises(Astray, match="ARGUS_VAULT"):
        run()
    assert tree(vault) == before


def test_an_heir_does_not_bring_back_what_was_purged(vault: Path, alice: Principal) -> None:
    old = note(alice, "Deploy from main")
    run()
    jot(where(vault, old), "Ask Mel first.\n")
    new = note(alice, SECRET, when=make.at(days=2))
    replace(old, new)
    run()
    forget(new)
    run()
    assert holds(vault, SECRET) == []
    assert only_words(vault) == ["Ask Mel first.\n"]
