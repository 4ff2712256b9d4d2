"""An episode as a person reads it: its turns and borders, and everything that came of it.

Reads: episode, raw_item, segment_check, attribution, note, dedup_verdict, gate_rejection, claim,
distill_failure, llm_call, injection. Writes nothing. Who may see what comes as a word for querysets
(`Sight`); knows nothing about pages.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import Any, Protocol, TypeVar

from django.db.models import (
    Count,
    Exists,
    IntegerField,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
)
from django.db.models.functions import Coalesce

from memory.errors import NotFound
from memory.lexical import hashed, query_terms
from memory.models import (
    Attribution,
    Claim,
    DedupVerdict,
    DistillFailure,
    Episode,
    GateRejection,
    Injection,
    LlmCall,
    Note,
    Posting,
    Principal,
    RawItem,
    SegmentCheck,
)
from memory.querysets import OwnerQuerySet, read

#: Turns shown at once.
TURNS_SHOWN_MAX = 200

#: Characters of a turn that are shown; the page of the item has all of them.
TURN_CHARACTERS_MAX = 2_000

#: Rows of each other kind that are shown.
# Why: an episode has a handful of each; what has hundreds is looked at in its own list.
ROWS_SHOWN_MAX = 50

#: Words of a search for what was said: each is a look into the index.
SEARCH_TERMS_MAX = 8

#: Minutes before and after the distilling in which its model calls are looked for.
# Why: the calls are in the books by time; a unit of many windows takes minutes.
CALL_MINUTES = 60

# Why SQL, here and below: the page of an episode asks a dozen times, and each of these takes longer
# to put together by a queryset than to ask.

#: An episode, whose it is (`whose`) and the name of its project (`place`). Parameter: which.
EPISODE = """
SELECT memory_episode.*,
    (SELECT p.name FROM memory_principal p WHERE p.id = memory_episode.owner_id) AS whose,
    (SELECT p.name FROM memory_project p WHERE p.id = memory_episode.project_id) AS place
FROM memory_episode WHERE {seen} AND id = %s
"""

#: The episodes of a session, the nearest in time first. Parameters: owner, source, session, the
#: moment, how many.
SESSION = """
SELECT id, started_at, first_item_id, turn_count FROM memory_episode
WHERE {seen} AND owner_id = %s AND source = %s AND session = %s
ORDER BY abs(extract(epoch FROM started_at - %s)), id LIMIT %s
"""

#: The turns of an episode. Parameters: the episode, the first place, how many.
TURNS = f"""
SELECT memory_rawitem.id, role, kind, occurred_at, flags, near_duplicate_of_id,
    left(body, {TURN_CHARACTERS_MAX}) AS head, length(body) AS characters, placed.position
FROM memory_rawitem JOIN memory_episodeturn placed ON placed.raw_item_id = memory_rawitem.id
WHERE {{seen}} AND placed.episode_id = %s AND placed.position >= %s
ORDER BY placed.position LIMIT %s
"""

#: The notes of an episode. Parameters: the episode, how many.
NOTES = """
SELECT id, title, deleted_at, retired_reason, memory_kind, confidence FROM memory_note
WHERE {seen} AND episode_id = %s ORDER BY valid_from, id LIMIT %s
"""

#: The verdicts about some notes. Parameters: the notes twice, how many.
VERDICTS = """
SELECT id, note_id, target_id, verdict, status, similarity FROM memory_dedupverdict
WHERE {seen} AND (note_id = ANY(%s) OR target_id = ANY(%s)) ORDER BY id DESC LIMIT %s
"""

#: What the gate refused, with the last decision about each. Parameters: the episode, how many.
REJECTIONS = """
SELECT memory_gaterejection.id, candidate, memory_gaterejection.reason, last.action, last.name
FROM memory_gaterejection LEFT JOIN LATERAL (
    SELECT d.action, p.name FROM memory_rejectiondecision d
    JOIN memory_principal p ON p.id = d.principal_id
    WHERE d.rejection_id = memory_gaterejection.id ORDER BY d.id DESC LIMIT 1
) last ON true
WHERE {seen} AND episode_id = %s ORDER BY memory_gaterejection.id DESC LIMIT %s
"""

#: What was put before the agent in a session. Parameters: owner, session, how many.
INJECTIONS = """
SELECT id, mode, outcome, note_ids, turn_ids, characters, created_at FROM memory_injection
WHERE {seen} AND owner_id = %s AND session = %s ORDER BY id DESC LIMIT %s
"""

#: Failures of a unit, latest first, without the replies. Parameters: the unit, how many.
FAILURES = """
SELECT id, created_at, kind, error FROM memory_distillfailure WHERE unit = %s
ORDER BY id DESC LIMIT %s
"""

#: The looks for a border before these raw items.
CHECKS = "SELECT * FROM memory_segmentcheck WHERE raw_item_id = ANY(%s) ORDER BY raw_item_id, id"

Rows = TypeVar("Rows", bound=OwnerQuerySet)


class Sight(Protocol):
    """What somebody sees of owned rows (memory.web.viewer.Viewer.rows)."""

    def __call__(self, rows: Rows, /) -> Rows: ...


@dataclass(frozen=True)
class Turn:
    """A turn with the beginning of its body, and the looks for a border before it."""

    item: RawItem
    head: str
    length: int
    position: int
    checks: tuple[SegmentCheck, ...]

    @property
    def cut(self) -> bool:
        return self.length > len(self.head)

    @cached_property
    def fired(self) -> bool:
        return any(check.fired for check in self.checks)


@dataclass(frozen=True)
class Made:
    """A note of the episode with the verdicts in which it is the newer or the older one."""

    note: Note
    verdicts: tuple[DedupVerdict, ...]


@dataclass(frozen=True)
class Timeline:
    """All of it but what is folded away. `after`: the looks for the border behind its last turn,
    where that is shown."""

    episode: Episode
    session: tuple[Episode, ...]
    turns: tuple[Turn, ...]
    after: tuple[SegmentCheck, ...]
    earlier: int | None
    later: int | None
    made: tuple[Made, ...]
    rejections: tuple[GateRejection, ...]
    parked: Claim | None
    failures: tuple[DistillFailure, ...]
    injections: tuple[Injection, ...]


def told(rows: QuerySet[Episode]) -> QuerySet[Episode]:
    """Episodes with how many notes they made that live (`notes_live`) or ever did (`notes_made`),
    and whether they are parked (`parked`)."""
    notes = Note.objects.as_pipeline().filter(episode=OuterRef("pk")).order_by()
    counted = notes.values("episode").annotate(n=Count("pk"))
    retired = counted.filter(deleted_at__isnull=False)
    return rows.annotate(
        notes_made=Coalesce(Subquery(counted.values("n"), IntegerField()), 0),
        notes_gone=Coalesce(Subquery(retired.values("n"), IntegerField()), 0),
        parked=Exists(_parked(OuterRef("unit_key"))),
    )


def _parked(unit: Any) -> QuerySet[Claim]:
    return Claim.objects.filter(stage="distill", unit=unit, parked_at__isnull=False)


def in_state(rows: Any, state: str) -> Any:
    """Of these episodes those that are `pending`, `parked`, `distilled`, `barren` (distilled
    without a note) or `late`."""
    parked = Exists(_parked(OuterRef("unit_key")))
    if state == "parked":
        return rows.filter(parked, distilled_at__isnull=True)
    if state == "pending":
        return rows.filter(~parked, distilled_at__isnull=True)
    if state == "late":
        return rows.filter(late=True)
    done = rows.filter(distilled_at__isnull=False)
    if state == "barren":
        return done.filter(~Exists(Note.objects.as_pipeline().filter(episode=OuterRef("pk"))))
    return done


def named(rows: Any, text: str) -> Any:
    """Episodes whose session, folder or project has this in its name."""
    return rows.filter(
        Q(session__icontains=text) | Q(cwd__icontains=text) | Q(project__name__icontains=text)
    )


def saying(rows: Any, text: str) -> Any:
    """Episodes with a turn that says each of these words, by the search index: a turn that is not
    indexed yet is not found."""
    terms = query_terms(text)[:SEARCH_TERMS_MAX]
    if not terms:
        return rows.none()
    turns = RawItem.objects.as_pipeline().all()
    # Named, so that the index by owner is of use; the episodes are narrowed to who may see them.
    owners = Principal.objects.values("pk")
    for term in terms:
        holding = Posting.objects.as_pipeline().filter(
            owner__in=owners, raw=True, term=hashed(term)
        )
        turns = turns.filter(text__id__in=holding.values("text_id"))
    return rows.filter(pk__in=turns.values("placed__episode"))


def timeline(pk: int, *, sight: Sight, first: int = 0) -> Timeline:
    """The episode with what came of it, turns from position `first` on. Raises NotFound."""
    episode = found(pk, sight)
    session = _session(episode, sight)
    turns, more = _turns(episode, sight, first)
    following = next((one for one in session if one.started_at > episode.started_at), None)
    checks = _checks([turn.pk for turn in turns] + ([following.first_item_id] if following else []))
    after = checks[following.first_item_id] if following and not more else []
    return Timeline(
        episode=episode,
        session=tuple(session),
        turns=tuple(
            Turn(one, one.head, one.characters, one.position, tuple(checks[one.pk]))
            for one in turns
        ),
        after=tuple(after),
        earlier=max(0, first - TURNS_SHOWN_MAX) if first else None,
        later=first + TURNS_SHOWN_MAX if more else None,
        made=_made(episode, sight),
        rejections=tuple(
            read(sight(GateRejection.objects.all()), REJECTIONS, episode.pk, ROWS_SHOWN_MAX)
        ),
        parked=None if episode.distilled_at else _parked(episode.unit_key).first(),
        failures=tuple(DistillFailure.objects.raw(FAILURES, [episode.unit_key, ROWS_SHOWN_MAX])),
        injections=tuple(_injections(episode, sight)),
    )


def found(pk: int, sight: Sight) -> Episode:
    """The episode with what EPISODE tells beside it. Raises NotFound."""
    rows: list[Episode] = read(sight(Episode.objects.all()), EPISODE, pk)
    if not rows:
        raise NotFound(f"no episode {pk}")
    return rows[0]


def attributions(episode: Episode) -> list[Attribution]:
    """How it came to its project, step by step."""
    return list(episode.attributions.select_related("project").order_by("pk")[:ROWS_SHOWN_MAX])


def _session(episode: Episode, sight: Sight) -> list[Episode]:
    """The episodes of the same session, in order; of very long ones those around this one."""
    if not episode.session:
        return [episode]
    whose = (episode.owner_id, episode.source, episode.session)
    near = read(sight(Episode.objects.all()), SESSION, *whose, episode.started_at, ROWS_SHOWN_MAX)
    return sorted(near, key=lambda one: (one.started_at, one.pk))


def _turns(episode: Episode, sight: Sight, first: int) -> tuple[list[Any], bool]:
    items = sight(RawItem.objects.all())
    found = read(items, TURNS, episode.pk, first, TURNS_SHOWN_MAX + 1)
    return found[:TURNS_SHOWN_MAX], len(found) > TURNS_SHOWN_MAX


def _checks(items: Sequence[int]) -> defaultdict[int, list[SegmentCheck]]:
    found: defaultdict[int, list[SegmentCheck]] = defaultdict(list)
    for check in SegmentCheck.objects.raw(CHECKS, [list(items)]):
        found[check.raw_item_id].append(check)
    return found


def _made(episode: Episode, sight: Sight) -> tuple[Made, ...]:
    notes = read(sight(Note.objects.all()), NOTES, episode.pk, ROWS_SHOWN_MAX)
    ids = [note.pk for note in notes]
    of: defaultdict[Any, list[DedupVerdict]] = defaultdict(list)
    judged = sight(DedupVerdict.objects.all())
    for verdict in read(judged, VERDICTS, ids, ids, ROWS_SHOWN_MAX * 2) if ids else ():
        for note in {verdict.note_id, verdict.target_id} & set(ids):
            of[note].append(verdict)
    return tuple(Made(note, tuple(of[note.pk])) for note in notes)


def calls(episode: Episode, sight: Sight) -> list[LlmCall]:
    """Calls of models for this unit: in the runs that left something, and around the distilling."""
    left = (
        sight(GateRejection.objects.all()).filter(episode=episode),
        sight(Note.objects.all()).filter(episode=episode),
        DistillFailure.objects.filter(unit=episode.unit_key),
    )
    runs = {run for rows in left for run in rows.values_list("run", flat=True)[:ROWS_SHOWN_MAX]}
    where = Q(run__in=runs - {None})
    if episode.distilled_at:
        around = timedelta(minutes=CALL_MINUTES)
        span = (episode.distilled_at - around, episode.distilled_at + around)
        where |= Q(created_at__range=span, stage="distill")
    rows = LlmCall.objects.filter(where, unit=episode.unit_key).order_by("-pk")
    return list(rows[:ROWS_SHOWN_MAX])


def _injections(episode: Episode, sight: Sight) -> list[Injection]:
    """What was put before the agent in this session, latest first."""
    if not episode.session:
        return []
    put = sight(Injection.objects.all())
    return read(put, INJECTIONS, episode.owner_id, episode.session, ROWS_SHOWN_MAX)
