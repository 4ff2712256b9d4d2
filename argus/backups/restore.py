"""Restore: a backup becomes the database, or nothing happens.

Reads: the file. Writes: everything. Audits: act, in the database that comes back, before it does.
The backup is loaded into a database beside the real one, as the owner, and looked at from all
sides: rows and hashes, triggers, rights, numbers. Only then do the two change names, in one
transaction. From the beginning until then nobody writes into the old one. Killed at any moment, the
old one stands or the new one does; what is left over is swept like any throwaway database
(`argus.scratch`). Verify: the conditions in `_faults`.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import psycopg
from django.conf import settings
from django.core.management import call_command
from django.db import connection, connections
from django.db.migrations.loader import MigrationLoader
from psycopg import sql
from tqdm import tqdm

from argus.backups import archive, clients, inventory
from argus.backups import since as taken
from argus.backups.since import Carried, Purged
from argus.backups.swap import MAINTENANCE, held, swap
from argus.backups.told import LOST, RestoreReport, counted
from argus.owner import EXTENSIONS, OwnerProblem, as_owner
from argus.scratch import (
    MARK,
    NAME_CHARACTERS_MAX,
    connected,
    drop,
    extend,
    owner_of,
    pointed,
    sweep,
)
from memory import returned
from memory.access import principal
from memory.acts import record_act, tidy_reason
from memory.errors import ArgusError, RefusedError
from memory.guards import FROZEN, READ_ONLY, missing_triggers
from memory.models import PurgeProof

#: Tables that a migrated database without a word of anybody's has rows in.
FURNITURE = (
    "auth_group", "auth_group_permissions", "auth_permission", "django_content_type",
    "django_migrations", "django_q_schedule", "django_session",
)  # fmt: skip


class Unfaithful(ArgusError):
    """What came back is not what went in; the database is as it was."""


def restore(
    path: Path,
    *,
    now: datetime,
    force: bool = False,
    dry_run: bool = False,
    progress: bool = False,
    reason: str = "",
) -> RestoreReport:
    """Put the content of a backup in the place of the database's. `dry_run`: look at both, no more.

    Raises Broken for a file that is not whole; RefusedError for one of a newer Argus or server;
    where it is done, also for a database with content when not `force`, and while somebody else is
    connected; OwnerProblem; ProgramFailed and Unfaithful, after which the old content stands.
    """
    started = time.monotonic()
    reason = tidy_reason(reason)
    checked = archive.check(path)
    manifest = checked.manifest
    connection.ensure_connection()  # The embedded server starts by this.
    real = owner_of(dict(connection.settings_dict))
    with connected(real) as at:
        _fits(manifest, at)
        lost = _content(at)
        away = _taken_away(at, manifest) if dry_run else Carried()
    if lost and not (force or dry_run):
        told = counted(dict(list(lost.items())[:3]))
        raise RefusedError(f"the database is not empty ({told}): --force puts the backup there")
    report = RestoreReport(
        file=str(path), made_at=manifest["made_at"], tables=len(manifest["tables"]),
        rows=sum(table["rows"] for table in manifest["tables"].values()),
        replaced={name: lost[name] for name in LOST if name in lost},
        dry_run=dry_run, needs_force=dry_run and bool(lost) and not force,
    )  # fmt: skip
    if dry_run:
        return _with(report, away)
    connections.close_all()
    with _beside(real) as name, held(real, name) as keeper:
        if not force and _content(keeper):
            raise RefusedError("somebody wrote into the database meanwhile: it stays")
        _load(path, {**real, "NAME": name}, manifest, progress=progress)
        migrated = _furnish(name, manifest)
        with connected({**real, "NAME": name}) as at:
            # Nobody writes into the old one any more.
            carried = taken.carry(taken.look(keeper, taken.known(at)), at)
        detail = {"made_at": manifest["made_at"], "rows": report.rows,
                  "sha256": checked.dump_sha256}  # fmt: skip
        with pointed(name):
            carried = replace(carried, purges=tuple(map(_what_is_back, carried.purges)))
            detail["purged_since"] = [
                {"number": one.number, "back": one.back} for one in carried.purges
            ]
            detail["rights_since"] = [asdict(one) for one in carried.rights]
            record_act(principal(), "restore", "database", now=now, reason=reason, detail=detail)
        swap(real, name, keeper)
    seconds = round(time.monotonic() - started, 2)
    return replace(
        _with(report, carried), migrated=migrated, seconds=seconds,
        rights_since=carried.rights, unknown_logins=carried.unknown,
    )  # fmt: skip


def _what_is_back(purged: Purged) -> Purged:
    """This purge with its raw items that are back in the database at hand."""
    row = PurgeProof.objects.filter(ledger=purged.number).order_by("pk").last()
    back = None if row is None else returned.back(row)
    return replace(purged, back=None if back is None else tuple(back))


def _taken_away(at: psycopg.Connection, manifest: dict[str, Any]) -> Carried:
    """What was taken away in the database at hand, as far as the manifest tells."""
    known = manifest.get("taken", {})
    return taken.look(at, known, made_at=manifest["made_at"]).told()


def _with(report: RestoreReport, taken_away: Carried) -> RestoreReport:
    return replace(
        report, purged_since=taken_away.purges, forbidden_since=taken_away.facts,
        revoked_since=taken_away.keys,
    )  # fmt: skip


def _fits(manifest: dict[str, Any], at: psycopg.Connection) -> None:
    """Raises RefusedError when this code or this server cannot hold the backup, before it is there
    to be held."""
    known = {".".join(key) for key in MigrationLoader(None).disk_migrations}
    if unknown := sorted(set(manifest["migrations"]) - known):
        raise RefusedError(
            f"the backup was made by a newer Argus, or one of other parts: this one has no "
            f"migration {unknown[0]}. Restore it with the Argus that made it"
        )
    for function in manifest["closed"]:
        _signature(function)
    ours, theirs = at.info.server_version // 10_000, int(manifest["server"].split(".")[0])
    if ours < theirs:
        raise RefusedError(
            f"the backup is of PostgreSQL {theirs} and this server is {ours}: use one of {theirs} "
            "or newer"
        )
    clients.matching("pg_restore", ours)
    rows = at.execute("SELECT name FROM pg_available_extensions").fetchall()
    if lacking := sorted(set(manifest["extensions"]) - {name for (name,) in rows}):
        raise RefusedError(
            f"this server lacks the extension {', '.join(lacking)}, which the backup uses: install "
            "it there"
        )


def _content(at: psycopg.Connection) -> dict[str, int]:
    """Rows that somebody would miss, by table, what people know of first."""
    found = {}
    for (name,) in at.execute(inventory.TABLES).fetchall():
        if name not in FURNITURE:
            query = sql.SQL("SELECT count(*) FROM public.{}").format(sql.Identifier(name))
            row = at.execute(query).fetchone()
            if row is not None and row[0]:
                found[name] = row[0]
    return dict(sorted(found.items(), key=lambda one: (one[0] not in LOST, -one[1])))


@contextmanager
def _beside(real: dict[str, Any]) -> Iterator[str]:
    """An empty database of the owner's; its name. What is called so afterwards is dropped."""
    name = f"{real['NAME'][:NAME_CHARACTERS_MAX]}{MARK}{secrets.token_hex(6)}"
    with connected({**real, "NAME": MAINTENANCE}) as maintenance:
        with connected(real) as keeper:
            sweep(keeper, real["NAME"])
        try:
            maintenance.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        except psycopg.errors.InsufficientPrivilege:
            user = maintenance.info.user
            raise OwnerProblem(
                f"The role {user!r} may not make a database: ALTER ROLE {user} CREATEDB, as a "
                "superuser."
            ) from None
        try:
            yield name
        finally:
            # After the change of names this is the old content.
            connections.close_all()
            drop(maintenance, name)


def _load(path: Path, target: dict[str, Any], manifest: dict[str, Any], *, progress: bool) -> None:
    """Feed the dump to pg_restore, and compare what is there then. Raises Unfaithful."""
    with connected(target) as at:
        extend(at, dict.fromkeys(manifest["extensions"], True))
        program = clients.matching("pg_restore", at.info.server_version // 10_000)
    with (
        tqdm(
            total=manifest["dump"]["bytes"], unit="B", unit_scale=True, leave=False,
            disable=None if progress else True,
        ) as bar,
        clients.running(
            program, "--no-owner", "--no-acl", "--no-comments", "--exit-on-error",
            at=target, reads=True,
        ) as feed,
    ):  # fmt: skip
        archive.check(path, _Fed(feed, bar))
    with connected(target) as at, at.transaction():
        there = inventory.take(at, app=settings.ARGUS_APP_ROLE)
    if other := inventory.other_tables(manifest["tables"], there.tables):
        raise Unfaithful(f"what came back is not what went in: {'; '.join(other[:5])}")


class _Fed:
    """A pipe that tells a bar how much went through it."""

    def __init__(self, pipe: Any, bar: Any) -> None:
        self._pipe, self._bar = pipe, bar

    def write(self, block: bytes, /) -> int:
        self._bar.update(len(block))
        written: int = self._pipe.write(block)
        return written


def _furnish(name: str, manifest: dict[str, Any]) -> int:
    """Bring the loaded database up to this Argus, with its rights; how many migrations that took.

    Raises Unfaithful when something that guards the record does not stand.
    """
    with pointed(name):
        with as_owner(), connection.cursor() as cursor:
            # Why: everybody may call a new function, and pg_restore told nobody's rights.
            for function in manifest["closed"]:
                cursor.execute(f"REVOKE ALL ON FUNCTION {_signature(function)} FROM PUBLIC")
        call_command("migrate", verbosity=0)
        with as_owner():
            connection.ensure_connection()
            with connection.cursor() as cursor:
                cursor.execute("ANALYZE")
            faults = _faults(manifest)
            with connection.cursor() as cursor:
                cursor.execute("SELECT count(*) FROM django_migrations")
                applied: int = cursor.fetchone()[0]
    if faults:
        raise Unfaithful(f"what came back does not stand as it should: {'; '.join(faults[:5])}")
    return applied - len(manifest["migrations"])


def _signature(function: str) -> str:
    """A function of the manifest, as it may stand in a statement. Raises Broken for anything else.

    Why: the manifest is a file of somebody's.
    """
    name, _, types = function.partition("(")
    plain = "".join(types.rstrip(")").split()).replace(",", "").replace("[]", "").replace("_", "")
    if not name.isidentifier() or not function.endswith(")") or not plain.isalnum() | (plain == ""):
        raise archive.Broken(f"{function!r} is no function")
    return function


def _faults(manifest: dict[str, Any]) -> list[str]:
    """What guards the record and does not stand. As the owner, in the loaded database."""
    app = settings.ARGUS_APP_ROLE
    found = [f"the trigger {one} is missing" for one in missing_triggers(connection)]
    at = connection.connection
    assert at is not None
    for table in (*FROZEN, *READ_ONLY):
        row = at.execute(
            "SELECT has_table_privilege(%s, %s, 'DELETE, TRUNCATE')",
            [app, table],
        ).fetchone()
        if row is None or row[0]:
            found.append(f"the application may delete from {table}")
    found += [f"the next number of {table} is taken" for table in inventory.behind(at)]
    lacking = {name for name, needed in EXTENSIONS.items() if needed} - set(manifest["extensions"])
    found += [f"the extension {name} is missing" for name in sorted(lacking)]
    with connection.cursor() as cursor:
        cursor.execute("SELECT app || '.' || name FROM django_migrations")
        same = sorted(one for (one,) in cursor.fetchall()) == manifest["migrations"]
    rights = sorted(one for (one,) in at.execute(inventory.RIGHTS, [app]).fetchall())
    if same and rights != manifest["rights"]:
        other = sorted(set(rights) ^ set(manifest["rights"]))
        found.append(f"rights differ: {'; '.join(other[:3])}")
    return found
