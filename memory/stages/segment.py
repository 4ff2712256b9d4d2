"""Segment: the turns of a session, in time order, become closed episodes.

Reads: session, raw_item (turns). Writes: episode, episode_turn, turn_vector, centroid, session.
Audits: segment_check for every border looked at, attribution for every episode.
Verify: every turn lies in one episode at most; a closed episode never changes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import F, Max

from memory import claims
from memory.attribution import (
    GLOBAL,
    Attributed,
    Registry,
    attribute,
    majority,
    nearest_centroid,
)
from memory.audit import Clock, stage
from memory.backlog import Backlog
from memory.borders import Border, Cut, Turn, cut
from memory.errors import InfraError
from memory.llm.choice import embedder
from memory.llm.ports import Origin
from memory.llm.thresholds import threshold
from memory.llm.vectors import mean
from memory.models import (
    Attribution,
    Centroid,
    Episode,
    EpisodeTurn,
    RawItem,
    SegmentCheck,
    Session,
    StageRun,
)
from memory.models.record import VISIBILITIES, strictest
from memory.querysets import OwnedQuerySet
from memory.text.identity import sha256
from memory.turnvectors import stored, turn_vectors

#: Sessions claimed at once.
SESSIONS_A_CLAIM = 20

#: Sessions looked at for claiming at once.
SESSIONS_LOOKED_AT = 200

#: Unplaced turns of one session read at once; the rest follows in the next round.
# Why: a chat of years is one session, and its bodies must not all lie in memory.
SESSION_TURNS_MAX = 2_000

#: Rules from whose episodes a project's centroid learns; its own guesses are not among them.
LEARNS_FROM = frozenset({"explicit", "path", "git", "basename"})


@dataclass(frozen=True)
class SegmentReport:
    """Sessions looked at, turns placed, episodes closed; tails still open; late episodes."""

    sessions: int = 0
    turns: int = 0
    episodes: int = 0
    open: int = 0
    late: int = 0
    not_checked: int = 0
    pending: int = 0
    transient_failures: int = 0
    reasons: dict[str, int] | None = None


@stage
def segment(
    run: StageRun, *, clock: Clock, limit: int | None, until: datetime | None
) -> SegmentReport:
    """Close every episode that can be closed, in all sessions with unplaced turns."""
    backlog = Backlog(run, clock=clock, limit=limit, until=until)
    total: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    looked: set[int] = set()

    def waiting() -> list[str]:
        rows = Session.objects.filter(pending=True).exclude(pk__in=looked)
        ids = rows.order_by("last_captured_at").values_list("pk", flat=True)[:SESSIONS_LOOKED_AT]
        return [f"session:{pk}" for pk in ids]

    def work(held: list[claims.Held]) -> Counter[str]:
        looked.add(_session_id(held[0]))
        more = True
        while more:
            backlog.pulse()
            # Counted at once: what is written stays, also when a later part is put back.
            done, why, more = segment_session(run, held[0], now=clock(), pulse=backlog.pulse)
            total.update(done)
            reasons.update(why)
        return Counter()

    total.update(backlog.work_off(waiting, work, at_once=SESSIONS_A_CLAIM))
    left = max(0, pending(clock()) - total["open"])
    return SegmentReport(**total, pending=left, reasons=dict(reasons))


def pending(now: datetime) -> int:
    """Sessions with turns that no episode has."""
    return Session.objects.filter(pending=True).count()


def _session_id(held: claims.Held) -> int:
    return int(held.unit.partition(":")[2])


def segment_session(
    run: StageRun, held: claims.Held, *, now: datetime, pulse: Callable[[], None]
) -> tuple[Counter[str], Counter[str], bool]:
    """Place turns of one session: what was done, why episodes ended, and whether turns are left
    that were not read. The vectors are made before the transaction."""
    session = Session.objects.select_related("owner").get(pk=_session_id(held))
    items = list(_unplaced(session)[: SESSION_TURNS_MAX + 1])
    more = len(items) > SESSION_TURNS_MAX
    model = embedder().name
    origin = Origin("segment", f"session:{session.pk}", run_id=run.pk, pulse=pulse)
    turns, not_checked = _with_vectors(run, items[:SESSION_TURNS_MAX], origin, now=now)
    counts: Counter[str] = Counter(not_checked=not_checked)
    reasons: Counter[str] = Counter()
    with transaction.atomic():
        locked = Session.objects.select_for_update().get(pk=session.pk)
        closed_until = _closed_until(session)
        late = [t for t in turns if closed_until and t.occurred_at < closed_until]
        shift = threshold(model, "topic_shift")
        for part, is_late in ((late, True), (turns[len(late) :], False)):
            # While turns are left to read, the end of what was read is not the end of the session.
            ended, at = (None, part[-1].occurred_at) if more and part else (locked.ended_at, now)
            before = None if is_late else closed_until
            done = cut(part, now=at, ended_at=ended, topic_shift=shift, closed_until=before)
            _write_checks(run, done.borders, model=model, now=now)
            for piece in done.cuts:
                _write_episode(run, session, piece, late=is_late, model=model, now=now)
                counts.update(turns=len(piece.turns), episodes=1, late=int(is_late))
                reasons[piece.reason] += 1
        if more and counts["episodes"]:
            return counts, reasons, True
        # Turns that came while we worked are unplaced, too, whatever we saw.
        unplaced = _unplaced(session).exists()
        Session.objects.filter(pk=session.pk).update(pending=unplaced)
        counts.update(sessions=1, open=int(unplaced))
        claims.finish(held)
    return counts, reasons, False


def _unplaced(session: Session) -> OwnedQuerySet:
    """Turns of the session that no episode has, in time order; without what they say."""
    return (
        RawItem.objects.as_pipeline()
        .filter(owner=session.owner, source=session.source, session=session.key, kind="turn")
        .filter(placed__isnull=True)
        .select_related("project")
        .defer("body", "metadata", "locator", "flags")
        .order_by("occurred_at", "id")
    )


def _closed_until(session: Session) -> datetime | None:
    closed = Episode.objects.as_pipeline().filter(
        owner=session.owner, source=session.source, session=session.key
    )
    until: datetime | None = closed.aggregate(until=Max("ended_at"))["until"]
    return until


def _with_vectors(
    run: StageRun, items: Sequence[RawItem], origin: Origin, *, now: datetime
) -> tuple[list[Turn], int]:
    """Turns with their vectors; how many have none. With the embedder away it goes on without."""
    try:
        known = turn_vectors(run, items, embedder(), origin, now=now)
    except InfraError:
        known = stored(items, embedder())
    turns = [
        Turn(
            item=item,
            occurred_at=item.occurred_at,
            captured_at=item.captured_at,
            vector=known.get(item.pk),
        )
        for item in items
    ]
    return turns, sum(turn.vector is None for turn in turns)


def _write_checks(run: StageRun, borders: Sequence[Border], *, model: str, now: datetime) -> None:
    SegmentCheck.objects.bulk_create(
        [
            SegmentCheck(
                raw_item=border.item,
                check_kind=border.kind,
                score=border.score,
                threshold=border.threshold,
                fired=border.fired,
                outcome=border.outcome,
                model=model if border.kind == "topic" else "",
                run=run,
                created_at=now,
            )
            for border in borders
        ],
        ignore_conflicts=True,
    )


def _write_episode(
    run: StageRun, session: Session, piece: Cut, *, late: bool, model: str, now: datetime
) -> None:
    items = [turn.item for turn in piece.turns]
    first, last = items[0], items[-1]
    vector = mean([turn.vector for turn in piece.turns if turn.vector is not None])
    attributed, audit = _attribute(session, items, vector, model=model, now=now)
    key = sha256(f"{session.owner_id}|{session.source}|{session.key}|{first.dedup_key}")
    episode = Episode.objects.create(
        owner=session.owner,
        visibility=min((i.visibility for i in items), key=VISIBILITIES.index),
        confidentiality=strictest(i.confidentiality for i in items),
        source=session.source,
        session=session.key,
        unit_key=f"episode:{key[:32]}",
        first_item=first,
        last_item=last,
        turn_count=len(items),
        started_at=first.occurred_at,
        ended_at=last.occurred_at,
        boundary_reason=piece.reason,
        boundary_score=piece.score,
        late=late,
        project_id=audit["project_id"],
        project_method=attributed.method,
        project_confidence=attributed.confidence,
        cwd=audit["cwd"],
        run=run,
        created_at=now,
    )
    EpisodeTurn.objects.bulk_create(
        [EpisodeTurn(episode=episode, raw_item=i, position=n) for n, i in enumerate(items)]
    )
    Attribution.objects.create(
        episode=episode,
        method=attributed.method,
        confidence=attributed.confidence,
        run=run,
        created_at=now,
        **audit,
    )
    if vector and audit["project_id"] and attributed.method in LEARNS_FROM:
        _learn(session, audit["project_id"], vector, model=model, now=now)


def _attribute(
    session: Session,
    items: Sequence[RawItem],
    vector: list[float] | None,
    *,
    model: str,
    now: datetime,
) -> tuple[Attributed, dict[str, Any]]:
    """The episode's project, and the columns of its audit row."""
    cwds = Counter(item.cwd for item in items if item.cwd)
    registry = Registry.load()
    # A project that was merged since capture counts as the one it went into.
    names = [
        registry.names.get(i.project.name, i.project.name) if i.project else None for i in items
    ]
    methods = [item.project_method for item in items]
    attributed, turns = majority(zip(names, methods, strict=True))
    cwd = cwds.most_common(1)[0][0] if cwds else ""
    # A name that was given may be right against its folder, but a person should see it.
    here = attribute(registry, cwd=cwd).name if attributed.method == "explicit" else None
    audit: dict[str, Any] = {
        "cwd": cwd,
        "cwd_mismatch": len(turns) > 1 or here not in (None, attributed.name),
        "turns": turns,
        "project_id": registry.canonical(
            next(
                (
                    item.project_id
                    for item, name in zip(items, names, strict=True)
                    if name and name == attributed.name
                ),
                None,
            )
        ),
    }
    if attributed.name or vector is None:
        return attributed, audit
    rows = {
        row.project.name: row
        for row in Centroid.objects.filter(owner=session.owner, model=model)
        .exclude(project__name=GLOBAL)
        .select_related("project")
    }
    found = nearest_centroid(vector, {name: row.vector for name, row in rows.items()})
    if found is None:
        return attributed, audit
    row = rows[found.name]
    floor = threshold(model, "centroid_floor")
    audit |= {
        "model": model,
        "score": found.score,
        "threshold": floor,
        "runner_up": found.runner_up,
        "runner_up_score": found.runner_up_score,
        "centroid_episodes": row.episodes,
        "centroid_age_seconds": (now - row.updated_at) / timedelta(seconds=1),
    }
    if found.score < floor:
        return attributed, audit
    name = registry.names.get(found.name, found.name)
    return Attributed(name, "centroid", round(found.score, 4)), audit | {
        "project_id": registry.canonical(row.project_id)
    }


def _learn(
    session: Session, project_id: int, vector: Sequence[float], *, model: str, now: datetime
) -> None:
    """Move the project's centroid towards this episode: a running mean, one step an episode."""
    row, _ = Centroid.objects.select_for_update().get_or_create(
        owner=session.owner,
        project_id=project_id,
        model=model,
        defaults={"vector": list(vector), "episodes": 0, "updated_at": now},
    )
    weighted = zip(row.vector, vector, strict=True)
    moved = [(old * row.episodes + new) / (row.episodes + 1) for old, new in weighted]
    Centroid.objects.filter(pk=row.pk).update(
        vector=moved, episodes=F("episodes") + 1, updated_at=now
    )
