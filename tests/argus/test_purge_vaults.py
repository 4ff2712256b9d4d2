"""A purge of one person's, where the vault in force is nobody's or another's."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pytest

from exporter import export as exporting
from exporter.place import Place, around_vault
from memory.access import principal
from memory.models import Evidence, Injection, Principal, PurgeProof, RawItem
from memory.proof import unfinished
from tests import factories
from tests.argus.purging import run
from tests.llm.conftest import configure, server

__all__ = ["configure", "server"]

HERS = "The zanzibarium ledger is kept in Postgres since the second of March."
HIS = "A caravan to Timbuktu leaves from the northern gate every Thursday morning."

pytestmark = pytest.mark.django_db


def item_of(owner: Principal, said: str) -> str:
    """The id of a raw item that a note of theirs is of."""
    made = factories.note(owner, said)
    return str(Evidence.objects.filter(note=made).values_list("raw_item", flat=True)[0])


@pytest.fixture
def hers(tmp_path: Path, configure: Callable[..., None]) -> tuple[Path, str]:
    """Alice's vault with a page in it, and the raw item of that; no vault is in force."""
    item = item_of(principal("alice"), HERS)
    with around_vault(Place(tmp_path / "Hers", "alice")):
        exporting.export(clock=factories.clock(factories.at(days=30)))
    home = tmp_path / "home"
    home.mkdir()
    configure(model_url=None, model=None, vault=None, principal="bob", home=home)
    return tmp_path / "Hers", item


@pytest.mark.parametrize("in_force", [False, True], ids=["no vault", "another's"])
def test_a_purge_of_what_was_never_exported_is_whole(
    hers: tuple[Path, str], in_force: bool
) -> None:
    item = item_of(principal("bob"), HIS)
    with around_vault(Place(hers[0], "bob")) if in_force else nullcontext():
        code, told = run("--raw", item, "--yes", "--reason", "asked to")
        assert (code, told["proved"], told["files"]["why"]) == (0, True, ""), told
        assert unfinished() == []
        # One that was cut off before its files knows by its proof whose it was.
        last = PurgeProof.objects.filter(ledger=told["purge"]).latest("pk")
        last.pk, last.files_pending, last._state.adding = None, True, True
        last.save()
        assert unfinished() == [told["purge"]]
        code, told = run("--finish")
        assert code == 0 and unfinished() == [], told


def test_a_purge_that_another_vault_keeps_waiting_is_finished_in_its_own(
    hers: tuple[Path, str], configure: Callable[..., None], tmp_path: Path
) -> None:
    vault, item = hers
    configure(principal="alice")
    his = tmp_path / "His"
    item_of(principal("bob"), HIS)
    with around_vault(Place(his, "bob")):
        exporting.export(clock=factories.clock(factories.at(days=31)))
    with around_vault(Place(his, "alice")):
        code, told = run("--raw", item, "--yes", "--reason", "asked to")
    assert code == 3 and unfinished() == [told["purge"]]
    way = "ARGUS_PRINCIPAL=alice ARGUS_VAULT=FOLDER manage.py purge --finish"
    assert way in told["files"]["why"] and "the vault in force is bob's" in told["files"]["why"]
    with around_vault(Place(vault, "alice")):
        code, told = run("--finish")
    assert code == 0 and unfinished() == [], told
    assert not [one for one in vault.rglob("*.md") if "zanzibarium" in one.read_text()]


def test_a_purge_of_a_note_alone_waits_for_the_vault_of_whose_note_it_was(
    hers: tuple[Path, str], configure: Callable[..., None], tmp_path: Path
) -> None:
    """What it was made of is another's, and stays theirs."""
    bob, vault = principal("bob"), hers[0]
    (item,) = factories.turns(principal("alice"), [HIS], session="caravan")
    note = factories.note(bob, HIS, evidence=item)
    Injection.objects.create(owner=bob, mode="notes", outcome="hit", query=HIS)
    with around_vault(Place(tmp_path / "His", "bob")):
        exporting.export(clock=factories.clock(factories.at(days=31)))
    with around_vault(Place(vault, "alice")):
        code, told = run("--note", str(note.pk), "--yes", "--reason", "asked to")
    assert (code, told["scanned"]["of"], told["files"]["pending"]) == (3, [bob.pk], True)
    assert "ARGUS_PRINCIPAL=bob ARGUS_VAULT=FOLDER" in told["files"]["why"]
    assert told["rows"]["memory_injection (emptied)"] == 1
    assert RawItem.objects.as_pipeline().filter(pk=item.pk).exists()
    with around_vault(Place(tmp_path / "His", "bob")):
        run("--finish")
    assert unfinished() == []
    assert not [one for one in (tmp_path / "His").rglob("*.md") if "Timbuktu" in one.read_text()]
