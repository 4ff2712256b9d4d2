"""Capture: posted items become raw items, once, with nothing refused in silence.

Reads: raw_item (identities), emission, project rules. Writes: raw_item, session, project.
Audits: capture_receipt, in the same transaction. Verify: stored + duplicates + refused = seen.
No model and no queue on this path. Knows nothing about HTTP or transcript formats.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any

from django.db import OperationalError, connection, transaction

from memory.attribution import Registry, project_rows
from memory.envelope import SessionEnd, kept_end, kept_misses, kept_range, kept_words
from memory.identities import Known
from memory.intake import Incoming, Invalid, Prepared, Refusal, judge
from memory.ledger import came_from_us
from memory.models import AccessKey, CaptureReceipt, Principal
from memory.text.clean import clean_text
from memory.text.identity import sha256
from memory.text.private import strip_private
from memory.text.secrets import redact

#: Items and bytes of one post.
BATCH_ITEMS_MAX = 500
BATCH_BYTES_MAX = 8 * 1024 * 1024

#: Characters of a refused body that the receipt keeps.
REFUSED_CHARACTERS_MAX = 160

#: Characters of the sources of a post that are kept.
SOURCES_CHARACTERS_MAX = 200

#: Tries when concurrent posts of the same items stand in each other's way.
DEADLOCK_TRIES_MAX = 3


@dataclass(frozen=True)
class Outcome:
    """What became of one item: an id (new or known), or a reason."""

    id: int | None = None
    duplicate: bool = False
    refused: str | None = None
    detail: str = ""


@dataclass(frozen=True)
class CaptureReport:
    """Counts of one post, the receipt's id, and an outcome per item in the order posted."""

    stored: int
    duplicates: int
    refused: dict[str, int]
    redacted: dict[str, int]
    receipt: int | None
    outcomes: tuple[Outcome, ...]


def capture(
    items: Sequence[Incoming | Invalid],
    *,
    owner: Principal,
    now: datetime,
    key: AccessKey | None = None,
    session_end: SessionEnd | None = None,
    client_range: Mapping[str, Any] | None = None,
    client: Mapping[str, str] | None = None,
    misses: Sequence[Mapping[str, str]] = (),
    dry_run: bool = False,
    known: Known | None = None,
) -> CaptureReport:
    """Store what is new of these items for `owner`; each item is judged alone.

    A re-post answers the first row's id. `client_range`, `client` and `misses` are what the client
    says of itself (memory.envelope), kept on the receipt. `dry_run` judges and stores nothing;
    `known` then carries what earlier dry posts would have stored.
    """
    started = time.monotonic()
    registry = Registry.load()
    judged = [judge(index, item, registry=registry, now=now) for index, item in enumerate(items)]
    if dry_run:
        settled = _settle(judged, Known() if known is None else known, owner=owner)
        return _report(judged, *settled[:2])
    session_end = kept_end(session_end)
    told = {
        "session_end": asdict(session_end) if session_end else {},
        "client_range": kept_range(client_range),
        "client": kept_words(client),
        "misses": kept_misses(misses),
    }
    for attempt in range(DEADLOCK_TRIES_MAX):
        try:
            with transaction.atomic():
                outcomes, refusals = _store(judged, owner=owner, now=now)
                if session_end:
                    _end_session(owner, session_end, now=now)
                report = _report(judged, outcomes, refusals)
                receipt = _receipt(
                    report, refusals, owner=owner, key=key, source=_sources(items), now=now,
                    told=told, started=started,
                )  # fmt: skip
                return replace(report, receipt=receipt.pk)
        except OperationalError as error:
            deadlock = getattr(error.__cause__, "sqlstate", "") == "40P01"
            if not deadlock or attempt == DEADLOCK_TRIES_MAX - 1:
                raise
    raise AssertionError("unreachable")


#: One item to store: the id it will have, the item, and the id of a near duplicate.
Row = tuple[int, Prepared, int | None]


def _store(
    judged: Sequence[Prepared | Refusal], *, owner: Principal, now: datetime
) -> tuple[dict[int, Outcome], list[Refusal]]:
    """Settle identities and insert what is new; outcomes by index, and every refusal."""
    outcomes, refusals, rows = _settle(judged, Known(), owner=owner)
    if not rows:
        return outcomes, refusals
    ids = dict(zip((id_ for id_, _, _ in rows), _reserve(len(rows)), strict=True))
    rows = [(ids[id_], one, ids.get(near, near) if near else None) for id_, one, near in rows]
    outcomes = {
        index: replace(outcome, id=ids.get(outcome.id, outcome.id)) if outcome.id else outcome
        for index, outcome in outcomes.items()
    }
    return _insert(rows, outcomes, owner=owner, now=now), refusals


def _settle(
    judged: Sequence[Prepared | Refusal], known: Known, *, owner: Principal
) -> tuple[dict[int, Outcome], list[Refusal], list[Row]]:
    """What each item is: known, an echo of ours, or new. New ones get negative ids for now."""
    refusals = [one for one in judged if isinstance(one, Refusal)]
    prepared = [one for one in judged if isinstance(one, Prepared)]
    if prepared:
        known.look_up(prepared, owner=owner)
    unknown = [one for one in prepared if known.find(one) is None]
    echoes = came_from_us([one.body for one in unknown], owner=owner)
    echoed = {one.index for one, echo in zip(unknown, echoes, strict=True) if echo}
    refusals += [Refusal(one.index, "derived", one.body) for one in unknown if one.index in echoed]

    rows: list[Row] = []
    outcomes = {r.index: Outcome(refused=r.reason, detail=r.detail) for r in refusals}
    for one in prepared:
        if one.index in echoed:
            continue
        if (id_ := known.find(one)) is not None:
            outcomes[one.index] = Outcome(id=id_, duplicate=True)
            continue
        id_ = -1 - len(known.identities)
        rows.append((id_, one, known.near.get(one.near_key)))
        known.add(id_, one)
        outcomes[one.index] = Outcome(id=id_)
    return outcomes, refusals, rows


COLUMNS = (
    ("id", "bigint"), ("owner_id", "bigint"), ("visibility", "text"), ("confidentiality", "text"),
    ("source", "text"), ("kind", "text"), ("role", "text"), ("body", "text"), ("session", "text"),
    ("cwd", "text"), ("project_id", "bigint"), ("project_method", "text"), ("record_id", "text"),
    ("occurred_at", "timestamptz"), ("captured_at", "timestamptz"), ("metadata", "jsonb"),
    ("locator", "jsonb"), ("flags", "jsonb"), ("sha256", "text"), ("dedup_key", "text"),
    ("copy_key", "text"), ("near_key", "text"), ("near_duplicate_of_id", "bigint"),
)  # fmt: skip

# Why one JSON array: it is made and read in C; arrays by column cost more than the insert itself.
INSERT_SQL = (
    f"INSERT INTO memory_rawitem ({', '.join(name for name, _ in COLUMNS)})"
    f" SELECT * FROM json_to_recordset(%s::json)"
    f" AS new({', '.join(f'{name} {kind}' for name, kind in COLUMNS)})"
    " ON CONFLICT DO NOTHING RETURNING id"
)


def _insert(
    rows: Sequence[Row],
    outcomes: dict[int, Outcome],
    *,
    owner: Principal,
    now: datetime,
) -> dict[int, Outcome]:
    """Insert these rows and their sessions; what another post stored meanwhile is a duplicate."""
    _touch_sessions([one for _, one, _ in rows], owner=owner, now=now)
    projects = project_rows(one.attributed for _, one, _ in rows)
    # A near copy of an item of this very post comes after it: another post may have been faster
    # with that item, and a raw item cannot be mended afterwards.
    own = {id_ for id_, _, _ in rows}
    settled: dict[int, int | None] = {}
    for wave in ([r for r in rows if r[2] not in own], [r for r in rows if r[2] in own]):
        pointed = [(id_, one, settled.get(near, near) if near else near) for id_, one, near in wave]
        settled |= _write(pointed, projects, owner=owner, now=now)
    lost = {one.index for id_, one, _ in rows if id_ in settled}
    # Twins in this post of a row that was lost are that row, too.
    return {
        index: replace(
            outcome,
            id=settled.get(outcome.id, outcome.id) if outcome.id else None,
            duplicate=outcome.duplicate or index in lost,
        )
        for index, outcome in outcomes.items()
    }


def _write(
    rows: Sequence[Row], projects: Mapping[str, int], *, owner: Principal, now: datetime
) -> dict[int, int | None]:
    """Insert these rows; of those that another post stored first, their id here and there."""
    if not rows:
        return {}
    # The same order in every post keeps concurrent posts of the same items from deadlock, also
    # when they name another session: words and time are what copies share.
    digests = {id_: sha256(one.body) for id_, one, _ in rows}
    ordered = sorted(rows, key=lambda row: (digests[row[0]], row[1].occurred_at, row[1].dedup_key))
    values = [
        (
            id_, owner.pk, one.item.visibility, one.item.confidentiality, one.item.source,
            one.item.kind, one.item.role, one.body, one.item.session, one.item.cwd,
            projects.get(one.attributed.name or ""), one.attributed.method, one.item.record_id,
            one.occurred_at.isoformat(), now.isoformat(), one.item.metadata, one.item.locator,
            one.flags, digests[id_], one.dedup_key, one.copy_key, one.near_key,
            near,
        )
        for id_, one, near in ordered
    ]  # fmt: skip
    with connection.cursor() as cursor:
        names = [name for name, _ in COLUMNS]
        new = [dict(zip(names, row, strict=True)) for row in values]
        cursor.execute(INSERT_SQL, [json.dumps(new)])
        stored = {id_ for (id_,) in cursor.fetchall()}
    lost = {id_: one for id_, one, _ in rows if id_ not in stored}
    if not lost:
        return {}
    known = Known()
    known.look_up(list(lost.values()), owner=owner)
    return {id_: known.find(one) for id_, one in lost.items()}


def _reserve(count: int) -> list[int]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT nextval(pg_get_serial_sequence('memory_rawitem', 'id'))"
            " FROM generate_series(1, %s)",
            [count],
        )
        return [id_ for (id_,) in cursor.fetchall()]


SESSION_SQL = """
INSERT INTO memory_session AS s (owner_id, source, key, last_turn_at, last_captured_at, pending,
                                 ended_reason)
SELECT %s, source, key, at, %s, true, ''
FROM unnest(%s::text[], %s::text[], %s::timestamptz[]) AS new(source, key, at)
ON CONFLICT (owner_id, source, key) DO UPDATE SET pending = true,
    last_turn_at = greatest(s.last_turn_at, excluded.last_turn_at),
    last_captured_at = greatest(s.last_captured_at, excluded.last_captured_at)
"""


def _touch_sessions(stored: Sequence[Prepared], *, owner: Principal, now: datetime) -> None:
    """Mark the sessions of these turns as having something to segment."""
    latest: dict[tuple[str, str], datetime] = {}
    for one in stored:
        if one.item.kind == "turn":
            at = (one.item.source, one.item.session)
            latest[at] = max(latest.get(at, one.occurred_at), one.occurred_at)
    if not latest:
        return
    sources, keys = zip(*sorted(latest), strict=True)
    times = [latest[at] for at in sorted(latest)]
    with connection.cursor() as cursor:
        cursor.execute(SESSION_SQL, [owner.pk, now, list(sources), list(keys), times])


def _end_session(owner: Principal, end: SessionEnd, *, now: datetime) -> None:
    """Note that the session ended; segment closes its tail when no later turn came."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE memory_session SET ended_at = %s, ended_reason = %s, pending = true"
            " WHERE owner_id = %s AND key = %s",
            [now, end.reason, owner.pk, end.session],
        )


def _report(
    judged: Sequence[Prepared | Refusal], outcomes: dict[int, Outcome], refusals: Sequence[Refusal]
) -> CaptureReport:
    redacted: Counter[str] = Counter()
    for one in judged:
        if isinstance(one, Prepared):
            redacted.update(one.flags.get("redacted", {}))
    ordered = tuple(outcomes[index] for index in range(len(judged)))
    duplicates = sum(one.duplicate for one in ordered)
    return CaptureReport(
        stored=len(ordered) - duplicates - len(refusals),
        duplicates=duplicates,
        refused=dict(Counter(one.reason for one in refusals)),
        redacted=dict(redacted),
        receipt=None,
        outcomes=ordered,
    )


def _sources(items: Sequence[Incoming | Invalid]) -> str:
    """Where the items say they come from, refused ones too; for the receipt."""
    named = ", ".join(sorted({item.source[:64] for item in items if isinstance(item, Incoming)}))
    return redact(clean_text(named)[0]).text[:SOURCES_CHARACTERS_MAX]


def _receipt(
    report: CaptureReport,
    refusals: Sequence[Refusal],
    *,
    owner: Principal,
    key: AccessKey | None,
    source: str,
    now: datetime,
    told: Mapping[str, Any],
    started: float,
) -> CaptureReceipt:
    return CaptureReceipt.objects.create(
        owner=owner,
        key=key,
        source=source,
        seen=len(report.outcomes),
        stored=report.stored,
        duplicates=report.duplicates,
        refused=report.refused,
        refusals=[
            {
                "index": one.index,
                "reason": one.reason,
                "detail": redact(clean_text(one.detail)[0]).text[:200],
                "sha256": sha256(text),
                "excerpt": redact(clean_text(text)[0]).text[:REFUSED_CHARACTERS_MAX],
            }
            for one in refusals
            # Not even in the hash: that of a short text tells it to whoever guesses.
            for text in [strip_private(one.text)[0]]
        ],
        redacted=report.redacted,
        **told,
        milliseconds=round((time.monotonic() - started) * 1000),
        created_at=now,
    )
