"""A restore: the same rows under the same guards, or the database as it was."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import connection, connections, transaction
from django.db.utils import ProgrammingError
from django.utils import timezone

from argus import postgres
from argus.backups import archive, backup, clients, inventory, since
from argus.backups import restore as restoring
from argus.backups.restore import Unfaithful, restore
from argus.backups.told import RestoreReport
from argus.owner import as_owner
from argus.scratch import connected, leftovers, owner_of
from memory.access import create_key, principal, revoke_key
from memory.errors import RefusedError
from memory.guards import FROZEN
from memory.models import AccessKey, Act, PurgeLedger, PurgeProof, RawItem, RejectedFact
from memory.rejected import forbid
from tests import cluster, factories
from tests.memory import books
from tests.memory.conftest import configure, local, server

__all__ = ["configure", "local", "server"]

#: Rows that the acts of backup and restore add, each in its own database.
TOLD = ("memory_act",)


def held() -> inventory.Inventory:
    with connected(owner_of(dict(connection.settings_dict))) as at, at.transaction():
        return inventory.take(at, app=postgres.APP)


def contents(of: inventory.Inventory) -> dict[str, object]:
    return {name: one for name, one in of.tables.items() if name not in TOLD}


def names() -> set[str]:
    at = {**owner_of(dict(connection.settings_dict)), "NAME": "postgres"}
    with connected(at) as maintenance:
        rows = maintenance.execute(
            "SELECT datname FROM pg_database WHERE starts_with(datname, %s)",
            [connection.settings_dict["NAME"]],
        )
        return {name for (name,) in rows}


@pytest.fixture
def empty(clone_db: str, template_db: str) -> Iterator[str]:
    """Another database, migrated and without a row of anybody's: the new home."""
    name = cluster.clone(template_db)
    yield name
    cluster.drop(name)


@pytest.fixture
def kept(clone_db: str, tmp_path: Path, local) -> tuple[Path, inventory.Inventory]:
    """A backup of a database with a row in every frozen table, and what that held."""
    principal()
    books.fill()
    create_key(owner="alice", scopes=["recall"])
    before = held()
    path = tmp_path / "a.backup"
    backup.back_up(path, by=principal(), now=factories.at(days=9))
    return path, before


def test_it_brings_every_row_back_into_an_empty_home_under_the_same_guards(
    kept: tuple[Path, inventory.Inventory], empty: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, before = kept
    furnish = restoring._furnish

    def while_somebody_sweeps(name: str, manifest: dict[str, Any]) -> int:
        assert leftovers() == [], "it is no dead one's"
        return furnish(name, manifest)

    monkeypatch.setattr(restoring, "_furnish", while_somebody_sweeps)
    with cluster.using(empty):
        report = restore(path, now=factories.at(days=10), reason="A new machine.")
        after = held()
        assert contents(after) == contents(before)
        assert report.rows == before.rows and not report.replaced and report.migrated == 0
        assert after.rights == before.rights and after.closed == before.closed
        assert any("argus_purge" in one for one in after.closed)
        act = Act.objects.get(verb="restore")
        assert (act.kind, act.reason) == ("database", "A new machine.")
        _append_only()
        _no_old_ledger_row_lets_a_delete_pass()
        # The next rows get numbers of their own.
        fresh = factories.turns(principal("alice"), ["Said after the restore."], session="after")
        assert fresh[0].pk == RawItem.objects.as_pipeline().order_by("-pk").values("pk")[0]["pk"]
        assert names() == {empty}, "nothing is left beside it"


def _append_only() -> None:
    with connection.cursor() as cursor:
        for table in FROZEN:
            with pytest.raises(ProgrammingError), transaction.atomic():
                cursor.execute(f"DELETE FROM {table}")
    with as_owner(), connection.cursor() as cursor:
        for table in ("memory_rawitem", "memory_note", "memory_act"):
            for verb in (f"DELETE FROM {table}", f"TRUNCATE {table} CASCADE"):
                with pytest.raises(ProgrammingError, match="append-only"), transaction.atomic():
                    cursor.execute(verb)


def _no_old_ledger_row_lets_a_delete_pass() -> None:
    """Transaction ids begin again in a new cluster: an old purge's may be ours."""
    forged = (
        "INSERT INTO memory_purgeledger (actor, reason, counts, hashes, files_pending, created_at,"
        " xact, xact_at) SELECT actor, reason, counts, hashes, files_pending, created_at,"
        " pg_current_xact_id(), xact_at FROM memory_purgeledger LIMIT 1"
    )
    with (
        as_owner(),
        connection.cursor() as cursor,
        pytest.raises(ProgrammingError, match="append-only"),
        transaction.atomic(),
    ):
        cursor.execute(forged)
        assert cursor.rowcount == 1
        cursor.execute("DELETE FROM memory_rawitem")


def test_it_puts_nothing_over_what_is_there_unless_told_to(
    kept: tuple[Path, inventory.Inventory], capsys: pytest.CaptureFixture[str]
) -> None:
    path, before = kept
    factories.turns(principal("alice"), ["Said after the backup."], session="after")
    spare = factories.document(principal("alice"), "A page that goes after the backup.")
    # One of the two purges since took what the backup holds.
    taken = RawItem.objects.as_pipeline().exclude(pk=spare.pk).order_by("pk")[0]
    books.purge([spare.pk])
    number: int = books.purge([taken.pk])["ledger"]
    with as_owner(), connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO memory_purgeledger (actor, reason, counts, hashes, files_pending,"
            " created_at) VALUES ('a', '', '{\"rebuild\": {}}', '[]', false, now())"
        )
    _proved(number)
    alice = principal("alice")
    forbid("Nothing of this sort.", owner=alice, by=alice, now=factories.at(days=10))
    revoke_key(AccessKey.objects.get().prefix, now=factories.at(days=9, minutes=1))
    now = held()
    with pytest.raises(CommandError, match="the database is not empty .*--force") as error:
        call_command("restore", str(path))
    assert error.value.returncode == 1
    call_command("restore", str(path), "--dry-run")
    looked = capsys.readouterr().out
    assert looked.startswith("would restore ") and "in the place of " in looked
    assert "the database is not empty: that needs --force" in looked
    call_command("restore", str(path), "--force", "--dry-run", "--json")
    told = json.loads(capsys.readouterr().out)
    assert told["dry_run"] and told["replaced"]["memory_rawitem"] > 0 and not told["needs_force"]
    # What the backup knows of is no news, whatever its clock said.
    assert [one["number"] for one in told["purged_since"]] == [number - 1, number]
    assert (told["forbidden_since"], told["revoked_since"]) == (1, 1)
    assert held() == now
    call_command("restore", str(path), "--force", "--no-progress")
    said = capsys.readouterr().out
    # What was taken away stays so, and what is back is named.
    others = inventory.other_tables(before.tables, held().tables)
    assert [one.split()[0].removeprefix("memory_") for one in others] == [
        "accesskey", "act", "purgeledger", "purgeproof", "rejectedfact",
    ]  # fmt: skip
    assert said.count("purged since, ") == 2
    (line,) = (one for one in said.splitlines() if f"purged since, {number} by alice at " in one)
    assert f"(asked to): back now, purge --raw {taken.pk} (--all-owners" in line
    act = Act.objects.get(verb="restore")
    assert [one["back"] for one in act.detail["purged_since"]] == [None, [taken.pk]]
    assert PurgeProof.objects.get(ledger_id=number).proved
    assert "forbidden since, and not to be learned either: 1 facts" in said
    assert "revoked since, and revoked again: 1 keys" in said
    assert not AccessKey.objects.filter(revoked_at=None).exists()
    assert books.purge([taken.pk])["ledger"] > number, "under a number of its own"
    # Of another house, which has numbers of its own, nothing of all this is taken over.
    with connected(owner_of(dict(connection.settings_dict))) as at:
        theirs = replace(since.look(at, {}), born=None)
        assert len(theirs.told().purges) > 2 and since.carry(theirs, at) == since.Carried()
    assert names() == {connection.settings_dict["NAME"]}


SAID = "We keep the ledger of this house in Postgres for good reasons."


def _carried(report: RestoreReport) -> list[tuple[int, tuple[int, ...] | None]]:
    """The purges that a restore carried over, each with the raw items that are back; each is in the
    ledger, with its proof, and the database takes a next one."""
    found = [(one.number, one.back) for one in report.purged_since]
    numbers = {number for number, _ in found}
    assert numbers <= set(PurgeLedger.objects.values_list("pk", flat=True))
    assert numbers == set(
        PurgeProof.objects.filter(ledger__in=numbers).values_list("ledger", flat=True)
    )
    for _, back in found:
        assert back and books.purge(list(back))["ledger"] not in numbers
    return found


def _proved(ledger: int) -> None:
    PurgeProof.objects.create(
        ledger_id=ledger, proved=True, created_at=timezone.now(),
        scanned={"of": [principal("alice").pk], "twins": []},
    )  # fmt: skip


def test_a_purge_that_ran_while_the_backup_began_is_carried_over(
    clone_db: str, tmp_path: Path
) -> None:
    """It began before, and ended after. A clock would tell the first alone."""
    alice = principal("alice")
    (item,) = factories.turns(alice, [SAID])
    owner = owner_of(dict(connection.settings_dict))
    with connected(owner) as running:
        running.execute("BEGIN")
        row = running.execute(
            "SELECT argus_purge(%s, 'alice', 'asked to') ->> 'ledger'", [[item.pk]]
        ).fetchone()
        assert row is not None
        backup.back_up(tmp_path / "a.backup", by=alice, now=timezone.now())
        running.execute("COMMIT")
    _proved(int(row[0]))
    report = restore(tmp_path / "a.backup", now=timezone.now(), force=True)
    assert _carried(report) == [(int(row[0]), (item.pk,))]


def test_a_purge_is_carried_over_whatever_the_clock_of_the_backup_said(
    clone_db: str, tmp_path: Path
) -> None:
    alice = principal("alice")
    (item,) = factories.turns(alice, [SAID])
    ahead = timezone.now() + timedelta(minutes=5)
    backup.back_up(tmp_path / "a.backup", by=alice, now=ahead)
    ledger: int = books.purge([item.pk])["ledger"]
    forbid("Nothing of this sort.", owner=alice, by=alice, now=timezone.now())
    _proved(ledger)
    looked = restore(tmp_path / "a.backup", now=timezone.now(), force=True, dry_run=True)
    assert [one.number for one in looked.purged_since] == [ledger] and looked.forbidden_since == 1
    report = restore(tmp_path / "a.backup", now=timezone.now(), force=True)
    assert report.forbidden_since == 1 and _carried(report) == [(ledger, (item.pk,))]


def test_a_purge_that_ends_before_the_house_is_locked_is_carried_over(
    clone_db: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice = principal("alice")
    (item,) = factories.turns(alice, [SAID])
    backup.back_up(tmp_path / "a.backup", by=alice, now=timezone.now())
    beside, purged = restoring._beside, []

    @contextmanager
    def after_a_purge(real: dict[str, Any]) -> Iterator[str]:
        purged.append(books.purge([item.pk])["ledger"])
        _proved(purged[0])
        connections.close_all()
        with beside(real) as name:
            yield name

    monkeypatch.setattr(restoring, "_beside", after_a_purge)
    report = restore(tmp_path / "a.backup", now=timezone.now(), force=True)
    assert _carried(report) == [(purged[0], (item.pk,))]


def test_a_number_that_two_houses_gave_is_no_reason_to_forget_a_purge(
    clone_db: str, empty: str, tmp_path: Path
) -> None:
    """One house in two places, each with a purge, a proof and a fact of its own."""
    alice = principal("alice")
    here, there = factories.turns(alice, [SAID, "The other turn of this house stays here."])
    first, second = tmp_path / "first.backup", tmp_path / "second.backup"
    backup.back_up(first, by=alice, now=timezone.now())
    ledger: int = books.purge([here.pk])["ledger"]
    _proved(ledger)
    forbid("Nothing of this sort.", owner=alice, by=alice, now=timezone.now())
    backup.back_up(second, by=alice, now=timezone.now())
    with cluster.using(empty):
        restore(first, now=timezone.now())
        alice = principal("alice")
        assert books.purge([there.pk])["ledger"] == ledger
        _proved(ledger)
        forbid("Nothing of that sort.", owner=alice, by=alice, now=timezone.now())
        report = restore(second, now=timezone.now(), force=True)
        assert report.forbidden_since == 1 and RejectedFact.objects.as_pipeline().count() == 2
        assert _carried(report) == [(ledger + 1, (there.pk,))]
        assert PurgeProof.objects.filter(ledger=ledger).count() == 1


def test_it_leaves_the_old_content_whatever_goes_wrong(
    kept: tuple[Path, inventory.Inventory], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, _ = kept
    factories.turns(principal("alice"), ["Said after the backup."], session="after")
    now, good = held(), path.read_bytes()
    name = connection.settings_dict["NAME"]

    def stands() -> bool:
        return held() == now and names() == {name}

    # The file is cut off, or changed.
    path.write_bytes(good[: len(good) // 2])
    with pytest.raises(archive.Broken):
        restore(path, now=factories.at(), force=True)
    path.write_bytes(good)
    # The programs fail in the middle: the dump is of another kind behind its first bytes.
    _forged(path, good)
    with pytest.raises(clients.ProgramFailed, match="pg_restore failed"):
        restore(path, now=factories.at(), force=True)
    assert stands()
    path.write_bytes(good)
    # What came back is not what went in.
    with monkeypatch.context() as patch:
        patch.setattr(inventory, "other_tables", lambda was, now: ["memory_note has 3 rows"])
        with pytest.raises(Unfaithful, match="memory_note has 3 rows"):
            restore(path, now=factories.at(), force=True)
    assert stands()
    # Killed when all but the names was done.
    with monkeypatch.context() as patch:
        patch.setattr(restoring, "swap", _killed)
        with pytest.raises(KeyboardInterrupt):
            restore(path, now=factories.at(), force=True)
    assert stands()
    # Nobody can be told who restored it.
    with monkeypatch.context() as patch:
        patch.setattr(restoring, "principal", _killed)
        with pytest.raises(KeyboardInterrupt):
            restore(path, now=factories.at(), force=True)
    assert stands()
    # Somebody is connected, at the beginning or in the end.
    with (
        psycopg.connect(cluster.address(name), application_name="a worker"),
        pytest.raises(RefusedError, match="in use .1 of a worker."),
    ):
        restore(path, now=factories.at(), force=True)
    with monkeypatch.context() as patch:
        late: list[psycopg.Connection] = []
        patch.setattr(restoring, "_furnish", _while(restoring._furnish, name, late))
        with pytest.raises(RefusedError, match="in use .1 of a late one."):
            restore(path, now=factories.at(), force=True)
    late[0].close()
    assert stands() and leftovers() == []


def _while(real: Any, name: str, late: list[psycopg.Connection]) -> Any:
    """Somebody comes while the backup is loaded: they read, and their word is not taken."""

    def furnish(beside: str, manifest: dict[str, Any]) -> int:
        at = psycopg.connect(cluster.address(name), application_name="a late one", autocommit=True)
        late.append(at)
        at.execute("SET lock_timeout = '100ms'")
        assert at.execute("SELECT count(*) FROM memory_rawitem").fetchone() is not None
        with pytest.raises(psycopg.errors.LockNotAvailable):
            at.execute("INSERT INTO memory_principal (name, created_at) VALUES ('late', now())")
        applied: int = real(beside, manifest)
        return applied

    return furnish


def _killed(*args: object) -> None:
    raise KeyboardInterrupt


def _forged(path: Path, good: bytes) -> None:
    manifest = archive.check(path).manifest
    with archive.writing(path, force=True) as out:
        out.write(good[512:700] + bytes(5_000))
        out.finish(manifest)


def test_it_refuses_what_this_argus_or_this_server_cannot_hold(
    kept: tuple[Path, inventory.Inventory],
) -> None:
    path, _ = kept
    good, manifest = path.read_bytes(), archive.check(path).manifest
    dump = good[512 : 512 + manifest["dump"]["bytes"]]
    changes: dict[str, dict[str, Any]] = {
        "no migration memory.9999_later": {
            "migrations": [*manifest["migrations"], "memory.9999_later"]
        },
        "is of PostgreSQL 99 and this server": {"server": "99.1"},
        "'f.1; DROP TABLE x. FROM' is no function": {"closed": ["f(1; DROP TABLE x) FROM"]},
        "lacks the extension postgis": {"extensions": {**manifest["extensions"], "postgis": "3"}},
    }
    for said, change in changes.items():
        with archive.writing(path, force=True) as out:
            out.write(dump)
            out.finish({**manifest, **change})
        with pytest.raises(RefusedError, match=said):
            restore(path, now=factories.at(), force=True)


def test_it_lets_nobody_run_a_statement_by_a_manifest(
    kept: tuple[Path, inventory.Inventory],
) -> None:
    for hostile in ("f() FROM PUBLIC; DROP TABLE x; --", "f", "f(", 'f"(text)', "f(a;b)"):
        with pytest.raises(archive.Broken, match="is no function"):
            restoring._signature(hostile)
    assert restoring._signature("argus_purge(bigint[],text,text)")
