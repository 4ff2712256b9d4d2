"""A note's links, computed and shown, never stored: evidence, siblings, chain, neighbours.

Reads: note, evidence, raw_item, dedup_verdict, feedback. Every linked note and turn is one that may
go to the reader: visible, and not silenced. Short by default: what costs room is shown when it is
asked for, and no more is read than could be shown.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Q

from memory.errors import NotFound, RefusedError
from memory.llm.thresholds import threshold
from memory.models import DedupVerdict, Evidence, Note, RawItem
from memory.tracks import nearest
from recall import states
from recall.budget import ANSWER_CHARACTERS, Budget, size
from recall.feedback import feedback_of
from recall.reader import Reader
from recall.search import Past
from recall.surroundings import SLACK_CHARACTERS, surround

#: Neighbours shown of a note.
NEIGHBOURS_MAX = 5

#: Siblings shown of a note.
SIBLINGS_MAX = 20

#: Steps followed along refine and supersede, each way.
CHAIN_STEPS_MAX = 20

#: Verdicts of a chain that are read, the latest first.
# Why: an answer holds fewer; a note that swallowed hundreds of others must not cost their reading.
CHAIN_VERDICTS_MAX = 200

#: Characters that a piece of evidence has in JSON at least.
# Why: its keys alone have more, so what is read by it is never less than would fit.
EVIDENCE_CHARACTERS_MIN = 100

#: What of a raw item is read for a piece of evidence and what stands around it.
ITEM_READ = ("kind", "role", "source", "session", "occurred_at", "owner_id")

#: What is shown of a note only when asked for, in this order; `all` stands for the lot.
EXPANSIONS = ("surroundings", "chain", "siblings", "neighbours")


def open_note(
    note_id: UUID,
    *,
    who: Reader,
    now: datetime,
    expand: Collection[str] = (),
    characters: int = ANSWER_CHARACTERS,
    past: Past | None = None,
) -> dict[str, Any]:
    """A note: what it says, whether it holds (`state`), what stands in its place, what the reader
    said of it, and the words that bear it out; with `expand` more of EXPANSIONS.

    The answer has about so many `characters` of JSON; the note itself is always whole, and
    `omitted` counts what did not fit. With `past`, `believed` says what Argus took it for then.
    A note that the reader silenced opens, too: a person must see what to take back. What goes to an
    agent goes through `recall.opened`. Raises NotFound, also for somebody else's note, and
    RefusedError.
    """
    if unknown := sorted(set(expand) - {*EXPANSIONS, "all"}):
        allowed = ", ".join((*EXPANSIONS, "all"))
        raise RefusedError(f"cannot expand {', '.join(unknown)}: allowed are {allowed}")
    wanted = EXPANSIONS if "all" in expand else tuple(one for one in EXPANSIONS if one in expand)
    pool = Note.objects.visible_to(who.principal, mates=who.mates)
    note = pool.select_related("project").filter(pk=note_id).first()
    if note is None:
        raise NotFound(f"no note {note_id}")
    (told,) = states.stale([{"id": note.pk}], who=who, now=now)
    opened: dict[str, Any] = {
        **_short(note),
        "context": note.context,
        "importance": note.importance,
        "confidence": note.confidence,
        "tags": note.tags,
        "valid_from": note.valid_from.isoformat(),
        "valid_to": note.valid_to.isoformat() if note.valid_to else None,
        "deleted_at": note.deleted_at.isoformat() if note.deleted_at else None,
        "retired_reason": note.retired_reason,
        "model": note.model_real,
        "state": told["state"],
        "replaced_by": told["replaced_by"],
        **_believed(note, past),
        "feedback": [said.as_json() for said in _feedback(note, who)],
    }
    budget = Budget(characters - size(opened) - SLACK_CHARACTERS)
    edges, items = _borne_out(note, who, budget)
    opened["evidence"] = budget.fit("evidence", _evidence(edges, items))
    if "surroundings" in wanted:
        _surround(opened["evidence"], items, who=who, budget=budget)
    links: Mapping[str, Callable[[], Any]] = {
        "chain": lambda: _chain(note, who),
        "siblings": lambda: _siblings(note, who, now),
        "neighbours": lambda: _neighbours(note, who, now),
    }
    for name in wanted:
        if name in links:
            opened[name] = budget.fit(name, links[name]())
    more = [one for one in EXPANSIONS if one not in wanted]
    return {**opened, "expandable": more, "omitted": budget.omitted}


def _believed(note: Note, past: Past | None) -> dict[str, Any]:
    if past is None:
        return {}
    row = {name: getattr(note, name) for name in states.STATE_COLUMNS}
    state = states.believed(row, as_of=past.as_of, known_at=past.known_at)
    return {"believed": {**past.as_json(), "state": state}}


def _feedback(note: Note, who: Reader) -> list[Any]:
    return list(feedback_of([note.pk], principal=who.principal).get(note.pk, []))


def _short(note: Note) -> dict[str, Any]:
    return {
        "id": str(note.pk),
        "title": note.title,
        "content": note.content,
        "project": note.project.name if note.project else None,
        "said_by": note.said_by,
    }


def _borne_out(
    note: Note, who: Reader, budget: Budget
) -> tuple[list[Evidence], dict[int | None, RawItem]]:
    """The first edges that the reader may see, and their raw items, without their text. The words
    of an edge are the note's own: they are shown although another note of that turn is silenced."""
    seen = RawItem.objects.visible_to(who.principal, mates=who.mates)
    edges = note.evidence.filter(raw_item__in=seen.filter(cited__note=note).values("pk"))
    most = max(budget.left, 0) // EVIDENCE_CHARACTERS_MIN
    kept = list(edges.order_by("pk")[:most])
    if len(kept) == most and (more := edges.count() - most):
        budget.omit("evidence", more)
    items = seen.filter(pk__in={edge.raw_item_id for edge in kept}).only(*ITEM_READ)
    return kept, {item.pk: item for item in items}


def _evidence(
    edges: Collection[Evidence], items: Mapping[int | None, RawItem]
) -> Iterator[dict[str, Any]]:
    for edge in edges:
        if (item := items.get(edge.raw_item_id)) is not None:
            yield {
                "raw_item": edge.raw_item_id,
                "quote": edge.quote,
                "start": edge.start,
                "end": edge.end,
                "role": item.role,
                "source": item.source,
                "session": item.session,
                "occurred_at": item.occurred_at.isoformat(),
            }


def _surround(
    evidence: list[dict[str, Any]],
    items: Mapping[int | None, RawItem],
    *,
    who: Reader,
    budget: Budget,
) -> None:
    """Put the turns around it beside each piece of evidence; once, when several are of one turn."""
    shown: set[int] = set()
    for edge in evidence:
        if edge["raw_item"] in shown or not budget.take({"before": [], "after": []}):
            continue
        shown.add(edge["raw_item"])
        item = items[edge["raw_item"]]
        edge["before"], edge["after"] = surround(item, who=who, budget=budget)


def _siblings(note: Note, who: Reader, now: datetime) -> list[dict[str, Any]]:
    """Live notes that stand on the same raw items."""
    items = Evidence.objects.filter(note=note, raw_item__isnull=False).values("raw_item")
    pool = who.notes().live(now).select_related("project")
    found = pool.filter(evidence__raw_item__in=items).exclude(pk=note.pk).distinct()
    return [_short(one) for one in found.order_by("valid_from", "pk")[:SIBLINGS_MAX]]


def _chain(note: Note, who: Reader) -> list[dict[str, Any]]:
    """What this note replaced and what replaced it, oldest verdict first; of a long one what is
    next to the note."""
    seen: set[UUID] = {note.pk}
    edge: set[UUID] = {note.pk}
    rows: dict[int, DedupVerdict] = {}
    for _ in range(CHAIN_STEPS_MAX):
        found = (
            DedupVerdict.objects.as_pipeline()
            .filter(Q(note__in=edge) | Q(target__in=edge), target__isnull=False)
            .exclude(pk__in=rows)
        )
        left = CHAIN_VERDICTS_MAX - len(rows)
        fresh = {row.pk: row for row in found.defer("reasoning").order_by("-pk")[:left]}
        if not fresh:
            break
        rows |= fresh
        edge = {pk for row in fresh.values() for pk in (row.note_id, row.target_id) if pk} - seen
        seen |= edge
    # The opened note itself is one of them, whatever was said of it.
    pool = Note.objects.visible_to(who.principal, mates=who.mates)
    pool = pool.exclude(pk__in=set(who.notes_out) - {note.pk})
    visible = {one.pk: one for one in pool.select_related("project").filter(pk__in=seen)}
    return [
        {
            "verdict": row.verdict,
            "status": row.status,
            "new": _short(visible[row.note_id]),
            "old": _short(visible[row.target_id]),
        }
        for row in sorted(rows.values(), key=lambda row: row.pk)
        if row.note_id in visible and row.target_id in visible
    ]


def _neighbours(note: Note, who: Reader, now: datetime) -> list[dict[str, Any]]:
    """Live notes near in meaning, above what counts as related for this embedder."""
    if note.embedding is None:
        return []
    pool = who.notes().live(now).exclude(pk=note.pk)
    floor = threshold(note.embedding_model, "related")
    found = nearest(pool, note.embedding, note.embedding_model, depth=NEIGHBOURS_MAX)
    rows = pool.select_related("project").in_bulk([key for key, _ in found])
    return [
        {**_short(rows[key]), "similarity": round(near, 4)}
        for key, near in found
        if near >= floor and key in rows
    ]
