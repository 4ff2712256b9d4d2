"""What a restore did, or would do, for people and for machines.

Knows nothing about how it is done.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from argus.backups.rights import Right, by_name
from argus.backups.since import Purged
from memory.text.seen import one_line

#: What is counted of the content that goes, as people call it.
LOST = {"memory_rawitem": "raw items", "memory_note": "notes", "auth_user": "users"}

#: Purges, and people, that are named for a person; `--json` and the act have all.
PURGES_TOLD_MAX = 10
NAMES_TOLD_MAX = 20


@dataclass(frozen=True)
class RestoreReport:
    """What came back, and what it took the place of; of a dry run, what would, and whether that
    `needs_force`, as the database has content. `purged_since`, `forbidden_since` (facts),
    `revoked_since` (keys), `rights_since`: what was taken away in the old database and the backup
    does not know. `unknown_logins`: who may log in again, and the old database does not know. The
    last two are None of a dry run, which does not see who is in the backup."""

    file: str
    made_at: str
    rows: int
    tables: int
    migrated: int = 0
    replaced: dict[str, int] = field(default_factory=dict)
    purged_since: tuple[Purged, ...] = ()
    forbidden_since: int = 0
    revoked_since: int = 0
    rights_since: tuple[Right, ...] | None = None
    unknown_logins: tuple[str, ...] | None = None
    dry_run: bool = False
    needs_force: bool = False
    seconds: float = 0.0


def lines(report: RestoreReport) -> str:
    """The report for people."""
    verb = "would restore" if report.dry_run else "restored"
    told = [
        f"{verb} {report.rows:,} rows in {report.tables} tables from {report.file}, as of "
        f"{report.made_at}"
    ]
    if report.replaced:
        told.append(f"in the place of {counted(report.replaced)}")
    if report.needs_force:
        told.append("the database is not empty: that needs --force")
    if report.migrated:
        told.append(f"brought up to this Argus by {report.migrated} migrations")
    told += _purged(report)
    if report.forbidden_since:
        told.append(
            f"forbidden since, and not to be learned either: {report.forbidden_since} facts"
        )
    if report.revoked_since:
        told.append(f"revoked since, and revoked again: {report.revoked_since} keys")
    told += _rights(report)
    if not report.dry_run:
        told.append(
            "start `up`; everybody logs in again, with the password of then; `export` writes the "
            "vault anew"
        )
    return "\n".join(told)


def _rights(report: RestoreReport) -> Iterator[str]:
    """Who could do more when the backup was made, and who may log in again."""
    if report.dry_run:
        yield "logins and rights that were taken away since are told when it is done"
    if report.rights_since:
        said = _some(by_name(report.rights_since), "; ")
        yield f"taken away since, and taken away again: {said}"
    if report.unknown_logins:
        yield (
            "may log in again, and the database that went knew nothing of them: "
            f"{_some(report.unknown_logins, ', ')} (person remove NAME)"
        )


def _some(names: Sequence[str], between: str) -> str:
    """The first of these, each in one line, and how many more there are."""
    shown = [one_line(one) for one in names[:NAMES_TOLD_MAX]]
    if (more := len(names) - len(shown)) > 0:
        shown.append(f"and {more} more")
    return between.join(shown)


def _purged(report: RestoreReport) -> Iterator[str]:
    """What was purged since the backup was made, and how it goes again."""
    for one in report.purged_since[:PURGES_TOLD_MAX]:
        told = one_line(f"purged since, {one.number} by {one.by} at {one.at[:16]} ({one.reason})")
        if report.dry_run:
            yield f"{told}: {one.hashes:,} texts"
        elif one.back is None:
            yield f"{told}: what of it is back is not known: purge --matching REGEX looks for it"
        elif one.back:
            ids = " ".join(map(str, one.back))
            yield f"{told}: back now, purge --raw {ids} (--all-owners, where they are another's)"
        else:
            yield f"{told}: none of its raw items is back"
    if (more := len(report.purged_since) - PURGES_TOLD_MAX) > 0:
        yield f"... and {more} purges more (--json names all)"


def counted(rows: dict[str, int]) -> str:
    return ", ".join(f"{count:,} {LOST.get(name, name)}" for name, count in rows.items())
