"""What a purge leaves in the vault, and what comes back from there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from exporter.folder import Folder
from exporter.place import Place, _put, around_vault, folders
from exporter.purge import FILES, QUOTES, Swept, bring_up
from memory.access import principal
from memory.files import capture_files
from memory.models import Emission, Note, RawItem
from memory.text.region import MARKER
from tests import factories as make
from tests.exporter.exports import jot, note, run, tree, where
from tests.memory.books import purge

pytestmark = pytest.mark.django_db

SAID = "The zanzibarium ledger is kept in Postgres since the second of March."


@contextmanager
def no_vault(settings: Any, who: str) -> Iterator[None]:
    """No vault is put, and none is in the settings, where this one is in force."""
    token = _put.set(None)
    settings.ARGUS = settings.ARGUS.model_copy(update={"vault": None, "principal": who})
    try:
        yield
    finally:
        _put.reset(token)


@pytest.fixture
def gone(vault: Path) -> Iterator[tuple[Note, bytes]]:
    """A note that was exported with words of a person below it, and then purged; its file's bytes.
    Beside it stays a note of the same project."""
    alice = principal("alice")
    one = note(alice, "Zanzibarium", SAID)
    note(alice, "The port of staging", "The staging server listens on port 8443.")
    run()
    jot(where(vault, one), "\nMine: ask Otto.\n")
    data = where(vault, one).read_bytes()
    purge(list(one.evidence.values_list("raw_item_id", flat=True)))
    yield one, data


def test_it_removes_the_file_and_every_mention_and_keeps_a_persons_words(
    vault: Path, gone: tuple[Note, bytes]
) -> None:
    assert folders() == (vault,)
    swept = bring_up([FILES], None)
    assert (swept.vault, swept.pending, swept.why, swept.history) == (str(vault), False, "", False)
    left = tree(vault)
    assert not [path for path, data in left.items() if b"anzibarium" in data or "anzibar" in path]
    kept = [data for data in left.values() if b"ask Otto" in data]
    assert kept == [b"\nMine: ask Otto.\n"], "alone, of a page that nobody may know any more"
    assert any(b"port 8443" in data for data in left.values())
    again = bring_up([], None)
    assert not again.pending and tree(vault) == left


def test_it_waits_while_another_has_the_vault_in_hand(
    vault: Path, gone: tuple[Note, bytes]
) -> None:
    with Folder.hold(vault, "alice"):
        swept = bring_up([FILES], None)
    assert swept.pending and swept.why
    assert not bring_up([FILES], None).pending
    assert not any(b"anzibarium" in data for data in tree(vault).values())


def test_it_waits_for_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with around_vault(Place(tmp_path / "away", "alice")):
        assert folders() == ()
        swept = bring_up([FILES], None)
        assert (swept.vault, swept.pending) == (str(tmp_path / "away"), True)
        assert "is not there: make it, or set ARGUS_VAULT" in swept.why, "the fix is named"
        assert not bring_up([QUOTES], None).pending, "nothing was ever written there"
    assert not (tmp_path / "away").exists()


def test_who_has_no_file_waits_for_no_vault(vault: Path, settings: Any) -> None:
    """Others may have one, in force or not: that is no matter of theirs."""
    alice, bob = principal("alice"), principal("bob")
    one = note(alice, "Zanzibarium", SAID)
    run()
    before = tree(vault)
    # Something that an export would do, were there one.
    note(alice, "The port of staging", "The staging server listens on port 8443.")
    assert bring_up([QUOTES], [bob.pk]) == Swept()
    with around_vault(Place(vault, "bob")):
        assert bring_up([QUOTES], [bob.pk]) == Swept(), "in force as his, signed by her"
    assert tree(vault) == before and where(vault, one).is_file()
    with no_vault(settings, "alice"):
        assert bring_up([QUOTES], [bob.pk]) == Swept()
        assert "no ARGUS_VAULT is set" in bring_up([QUOTES], [alice.pk]).why


def test_files_of_another_vault_wait_for_it_and_the_way_there_is_named(
    vault: Path, tmp_path: Path, gone: tuple[Note, bytes], settings: Any
) -> None:
    alice, bob = principal("alice"), principal("bob")
    way = "ARGUS_PRINCIPAL=alice ARGUS_VAULT=FOLDER manage.py purge --finish"
    note(bob, "The port of bob", "The server of bob listens on port 8444.")
    with around_vault(Place(tmp_path / "His", "bob")):
        run()
        for tables in ([FILES], [QUOTES]):
            swept = bring_up(tables, [alice.pk])
            assert swept.pending and "the vault in force is bob's" in swept.why
            assert way in swept.why and "delete" not in swept.why
        both = bring_up([FILES], [alice.pk, bob.pk])
        assert not both.pending, "one is his"
        assert way in both.why and "ARGUS_PRINCIPAL=bob" not in both.why, "hers is told, too"
        assert bring_up([], [alice.pk, bob.pk]).why == "", "of no file there is nothing to tell"
        assert bring_up([FILES], None).why == "", "whose it was is not known"
    with around_vault(Place(tmp_path / "His", "alice")):
        swept = bring_up([FILES], [alice.pk])
        assert swept.pending and "the vault in force is bob's" in swept.why
        assert way in swept.why and "delete" not in swept.why
        both = bring_up([FILES], [alice.pk, bob.pk])
        assert way in both.why and way.replace("alice", "bob") in both.why
    with around_vault(Place(tmp_path / "away", "bob")):
        both = bring_up([FILES], [alice.pk, bob.pk])
        assert both.pending and "is not there: make it" in both.why, "his own is first"
        assert way in bring_up([FILES], [alice.pk]).why
    with no_vault(settings, "bob"):
        swept = bring_up([FILES], [alice.pk])
        assert swept.pending and way in swept.why
    assert any(b"anzibarium" in data for data in tree(vault).values()), "hers is as it was"
    assert not bring_up([FILES], [alice.pk]).pending, "by the way that was named"
    assert not any(b"anzibarium" in data for data in tree(vault).values())


def test_it_says_that_git_remembers(vault: Path, gone: tuple[Note, bytes]) -> None:
    (vault / ".git").mkdir()
    assert bring_up([FILES], None).history


def test_a_copy_of_its_file_is_no_news_though_its_words_are(
    vault: Path, gone: tuple[Note, bytes], tmp_path: Path
) -> None:
    """What Argus wrote is known by its `argus_id` and by the samples of what it put out, which are
    numbers; whoever says the same in words of their own is listened to."""
    one, data = gone
    bring_up([FILES], None)
    assert Emission.objects.filter(reference=str(one.pk)).exists()
    before = RawItem.objects.as_pipeline().count()
    copies = tmp_path / "copies"
    copies.mkdir()
    (copies / "copy.md").write_bytes(data.split(MARKER.encode())[0])
    capture_files([copies], owner=principal("alice"))
    assert RawItem.objects.as_pipeline().count() == before
    make.turns(principal("alice"), [SAID], session="again", start=make.at(days=41))
    assert RawItem.objects.as_pipeline().count() == before + 1
