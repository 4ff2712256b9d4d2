"""What a purge leaves in the vault, and what comes back from there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from exporter.folder import Folder
from exporter.place import Place, around_vault, folders
from exporter.purge import FILES, Swept, bring_up
from memory.access import principal
from memory.files import capture_files
from memory.models import Emission, Note, RawItem
from memory.text.region import MARKER
from tests import factories as make
from tests.exporter.exports import jot, note, run, tree, where
from tests.memory.books import purge

pytestmark = pytest.mark.django_db

SAID = "The zanzibarium ledger is kept in Postgres since the second of March."


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
    swept = bring_up([FILES])
    assert (swept.vault, swept.pending, swept.why, swept.history) == (str(vault), False, "", False)
    left = tree(vault)
    assert not [path for path, data in left.items() if b"anzibarium" in data or "anzibar" in path]
    kept = [data for data in left.values() if b"ask Otto" in data]
    assert kept == [b"\nMine: ask Otto.\n"], "alone, of a page that nobody may know any more"
    assert any(b"port 8443" in data for data in left.values())
    again = bring_up([])
    assert not again.pending and tree(vault) == left


def test_it_waits_while_another_has_the_vault_in_hand(
    vault: Path, gone: tuple[Note, bytes]
) -> None:
    with Folder.hold(vault, "alice"):
        swept = bring_up([FILES])
    assert swept.pending and swept.why
    assert not bring_up([FILES]).pending
    assert not any(b"anzibarium" in data for data in tree(vault).values())


def test_it_waits_for_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with around_vault(Place(tmp_path / "away", "alice")):
        assert folders() == ()
        told = Swept(
            str(tmp_path / "away"), pending=True, why="the folder of the vault is not there"
        )
        assert bring_up([FILES]) == told
        assert not bring_up(["memory_evidence"]).pending, "nothing was ever written there"
    assert not (tmp_path / "away").exists()


def test_it_says_that_git_remembers(vault: Path, gone: tuple[Note, bytes]) -> None:
    (vault / ".git").mkdir()
    assert bring_up([FILES]).history


def test_a_copy_of_its_file_is_no_news_though_its_words_are(
    vault: Path, gone: tuple[Note, bytes], tmp_path: Path
) -> None:
    """What Argus wrote is known by its `argus_id` and by the samples of what it put out, which are
    numbers; whoever says the same in words of their own is listened to."""
    one, data = gone
    bring_up([FILES])
    assert Emission.objects.filter(reference=str(one.pk)).exists()
    before = RawItem.objects.as_pipeline().count()
    copies = tmp_path / "copies"
    copies.mkdir()
    (copies / "copy.md").write_bytes(data.split(MARKER.encode())[0])
    capture_files([copies], owner=principal("alice"))
    assert RawItem.objects.as_pipeline().count() == before
    make.turns(principal("alice"), [SAID], session="again", start=make.at(days=41))
    assert RawItem.objects.as_pipeline().count() == before + 1
