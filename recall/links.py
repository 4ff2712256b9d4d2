"""A note's links, computed and shown, never stored: evidence, siblings, chain, neighbours.

Reads: note, evidence, raw_item, dedup_verdict, feedback. Every linked note and turn is one the
reader may see. Short by default: what costs room is shown when it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Q

from memory.errors import NotFound, RefusedError
from memory.llm.thresholds import threshold
from memory.models import DedupVerdict, Evidence, Note, Principal, RawItem
from memory.tracks import nearest
from recall import states
from recall.budget import ANSWER_CHARACTERS, Budget, size
from recall.feedback import feedback_of
from recall.surroundings import SLACK_CHARACTERS, surround

#: Neighbours shown of a note.
NEIGHBOURS_MAX = 5

#: Steps followed along refine and supersede, each way.
CHAIN_STEPS_MAX = 20

#: What is shown of a note only when asked for, in this order; `all` stands for the lot.
EXPANSIONS = ("surroundings", "chain", "siblings", "neighbours")


def open_note(
    note_id: UUID,
    *,
    principal: Principal,
    now: datetime,
    expand: Collection[str] = (),
    characters: int = ANSWER_CHARACTERS,
    as_of: datetime | None = None,
    known_at: datetime | None = None,
) -> dict[str, Any]:
    """A note: what it says, whether it holds (`state`), what stands in its place, what the reader
    said of it, and the words that bear it out; with `expand` more of EXPANSIONS.

    The answer has about so many `characters` of JSON; the note itself is always whole, and
    `omitted` counts what did not fit. With `as_of` or `known_at`, `believed` says what Argus took
    it for then. Raises NotFound, also for somebody else's note, and RefusedError.
    """
    if unknown := sorted(set(expand) - {*EXPANSIONS, "all"}):
        allowed = ", ".join((*EXPANSIONS, "all"))
        raise RefusedError(f"cannot expand {', '.join(unknown)}: allowed are {allowed}")
    wanted = EXPANSIONS if "all" in expand else tuple(one for one in EXPANSIONS if one in expand)
    note = Note.objects.visible_to(principal).select_related("project").filter(pk=note_id).first()
    if note is None:
        raise NotFound(f"no note {note_id}")
    (told,) = states.stale([{"id": note.pk}], principal=principal, now=now)
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
        **_believed(note, as_of=as_of, known_at=known_at, now=now),
        "feedback": [said.as_json() for said in _feedback(note, principal)],
    }
    budget = Budget(characters - size(opened) - SLACK_CHARACTERS)
    items: dict[int | None, RawItem] = {row.pk: row for row in _items(note, principal)}
    opened["evidence"] = budget.fit("evidence", _evidence(note, items))
    if "surroundings" in wanted:
        _surround(opened["evidence"], items, principal=principal, budget=budget)
    links: Mapping[str, Callable[[], Any]] = {
        "chain": lambda: _chain(note, principal),
        "siblings": lambda: _siblings(note, principal, now),
        "neighbours": lambda: _neighbours(note, principal, now),
    }
    for name in wanted:
        if name in links:
            opened[name] = budget.fit(name, links[name]())
    more = [one for one in EXPANSIONS if one not in wanted]
    return {**opened, "expandable": more, "omitted": budget.omitted}


def _believed(
    note: Note, *, as_of: datetime | None, known_at: datetime | None, now: datetime
) -> dict[str, Any]:
    if as_of is None and known_at is None:
        return {}
    then, known = as_of or now, known_at or now
    row = {name: getattr(note, name) for name in states.STATE_COLUMNS}
    return {
        "believed": {
            "as_of": then.isoformat(),
            "known_at": known.isoformat(),
            "state": states.believed(row, as_of=then, known_at=known),
        }
    }


def _feedback(note: Note, principal: Principal) -> list[Any]:
    return list(feedback_of([note.pk], principal=principal).get(note.pk, []))


def _short(note: Note) -> dict[str, Any]:
    return {
        "id": str(note.pk),
        "title": note.title,
        "content": note.content,
        "project": note.project.name if note.project else None,
        "said_by": note.said_by,
    }


def _items(note: Note, principal: Principal) -> Any:
    """The raw items that bear the note out, without their text."""
    return RawItem.objects.visible_to(principal).filter(cited__note=note).defer("body").distinct()


def _evidence(note: Note, items: Mapping[int | None, RawItem]) -> Iterator[dict[str, Any]]:
    for edge in note.evidence.order_by("pk"):
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
    principal: Principal,
    budget: Budget,
) -> None:
    """Put the turns around it beside each piece of evidence; once, when several are of one turn."""
    shown: set[int] = set()
    for edge in evidence:
        if edge["raw_item"] in shown or not budget.take({"before": [], "after": []}):
            continue
        shown.add(edge["raw_item"])
        item = items[edge["raw_item"]]
        edge["before"], edge["after"] = surround(item, principal=principal, budget=budget)


def _siblings(note: Note, principal: Principal, now: datetime) -> list[dict[str, Any]]:
    """Live notes that stand on the same raw items."""
    items = Evidence.objects.filter(note=note, raw_item__isnull=False).values("raw_item")
    pool = Note.objects.visible_to(principal).live(now).select_related("project")
    found = pool.filter(evidence__raw_item__in=items).exclude(pk=note.pk).distinct()
    return [_short(one) for one in found.order_by("valid_from", "pk")[:CHAIN_STEPS_MAX]]


def _chain(note: Note, principal: Principal) -> list[dict[str, Any]]:
    """What this note replaced and what replaced it, oldest verdict first."""
    seen: set[UUID] = {note.pk}
    edge: set[UUID] = {note.pk}
    rows: dict[int, DedupVerdict] = {}
    for _ in range(CHAIN_STEPS_MAX):
        found = (
            DedupVerdict.objects.as_pipeline()
            .filter(Q(note__in=edge) | Q(target__in=edge), target__isnull=False)
            .exclude(pk__in=rows)
        )
        fresh = {row.pk: row for row in found}
        if not fresh:
            break
        rows |= fresh
        edge = {pk for row in fresh.values() for pk in (row.note_id, row.target_id) if pk} - seen
        seen |= edge
    visible = {
        one.pk: one
        for one in Note.objects.visible_to(principal).select_related("project").filter(pk__in=seen)
    }
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


def _neighbours(note: Note, principal: Principal, now: datetime) -> list[dict[str, Any]]:
    """Live notes near in meaning, above what counts as related for this embedder."""
    if note.embedding is None:
        return []
    pool = Note.objects.visible_to(principal).live(now).exclude(pk=note.pk)
    floor = threshold(note.embedding_model, "related")
    found = nearest(pool, note.embedding, note.embedding_model, depth=NEIGHBOURS_MAX)
    rows = pool.select_related("project").in_bulk([key for key, _ in found])
    return [
        {**_short(rows[key]), "similarity": round(near, 4)}
        for key, near in found
        if near >= floor and key in rows
    ]
