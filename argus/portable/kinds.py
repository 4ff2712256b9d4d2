"""What a person owns, as objects of an export: which rows, in which order, with which fields.

Reads: every table with rows of a person. Writes: nothing.
Raw items, notes and projects have a form of their own, by which they come in again; the rest is
each row as it is, under the names of its columns. Left out: what is made again from these (vectors,
search texts, episodes' places), what belongs to the house, and keys.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime
from itertools import chain
from typing import Any
from uuid import UUID

from django.db.models import Model, Q, QuerySet

from exporter.models import ExportedFile
from memory.models import (
    Act,
    CaptureReceipt,
    Decision,
    DedupVerdict,
    Episode,
    Evidence,
    Feedback,
    GateRejection,
    Injection,
    Note,
    Pin,
    Principal,
    Project,
    Proposal,
    RawItem,
    RejectedFact,
    RejectionDecision,
    TaskEvent,
    TaskItem,
)
from memory.text.identity import dedup_key
from review.models import Card, Draw, Rating

#: Rows read at once.
ROWS_AT_ONCE = 500

#: Columns that no export carries: vectors, and whose the row is, which the head of the file says.
UNTOLD = frozenset({"owner", "embedding", "embedding_model", "embedded_at", "run"})

#: What a person owns and an export leaves out, and why.
LEFT_OUT = {
    "AccessKey": "a key is a door of this house",
    "Calibration": "floors belong to this house's embedder",
    "Centroid": "made again from the episodes",
    "Collection": "made again from the texts",
    "DistillFailure": "attempts of this house's models",
    "Emission": "samples by which this house knows its own words again",
    "Finding": "what this house found wrong with itself",
    "Posting": "made again from the texts",
    "SearchText": "made again from the texts",
    "Session": "state of the pipeline; the raw items name their sessions",
    "Term": "made again from the texts",
}

Rows = Callable[[Principal], QuerySet[Any]]


def _owned(model: Any) -> Rows:
    return lambda me: model.objects.visible_to(me).filter(owner=me)


def _mine(model: Any, column: str = "principal") -> Rows:
    return lambda me: model.objects.filter(**{column: me})


#: Kinds that are their rows, in the order in which they stand behind the notes.
PLAIN: dict[str, Rows] = {
    "feedback": lambda me: Feedback.objects.filter(principal=me).select_related("project"),
    "pin": _mine(Pin),
    "rejected_fact": _owned(RejectedFact),
    "verdict": _owned(DedupVerdict),
    "decision": _mine(Decision, "verdict__owner"),
    "rejection": _owned(GateRejection),
    "rejection_decision": _mine(RejectionDecision, "rejection__owner"),
    "proposal": _owned(Proposal),
    "task": _owned(TaskItem),
    "task_event": _mine(TaskEvent, "item__owner"),
    "injection": _owned(Injection),
    "rating": _mine(Rating),
    "card": _mine(Card),
    "draw": _mine(Draw),
    "episode": _owned(Episode),
    "receipt": _owned(CaptureReceipt),
    "file": _owned(ExportedFile),
    "act": _mine(Act),
}


def everything(me: Principal) -> Iterator[dict[str, Any]]:
    """All that this principal owns, an object each, in bounded memory: projects, raw items, notes,
    then the rest. Call inside one transaction, so that it is one moment."""
    for project in _rows(_projects(me)):
        yield _project(project)
    for item in _rows(_owned(RawItem)(me).select_related("project")):
        yield _raw_item(item)
    for notes in _paged(_owned(Note)(me).select_related("project").defer("embedding")):
        yield from _notes(notes, me)
    for kind, rows in PLAIN.items():
        for row in _rows(rows(me)):
            told = plain(row)
            if "kind" in told:  # An act is of a kind, too, and a file.
                told["its_kind"] = told.pop("kind")
            yield {"kind": kind, **told, **(_place(row) if kind == "feedback" else {})}


def _place(said: Feedback) -> dict[str, Any]:
    """The project for which it was said, by its name: numbers are of this house."""
    return {"project": said.project.name if said.project else None}


def _rows(rows: QuerySet[Any]) -> Iterator[Any]:
    """All rows by their keys."""
    return chain.from_iterable(_paged(rows))


def _paged(rows: QuerySet[Any]) -> Iterator[list[Any]]:
    """All rows by their keys, some at once. Why not a cursor: a pooler may not keep one."""
    last: Any = None
    while True:
        further = rows if last is None else rows.filter(pk__gt=last)
        page = list(further.order_by("pk")[:ROWS_AT_ONCE])
        if page:
            yield page
        if len(page) < ROWS_AT_ONCE:
            return
        last = page[-1].pk


def plain(row: Model) -> dict[str, Any]:
    """A row under the names of its columns, but for those UNTOLD."""
    return {
        field.attname: _value(getattr(row, field.attname))
        for field in row._meta.concrete_fields
        if field.name not in UNTOLD
    }


def _value(value: Any) -> Any:
    if isinstance(value, (datetime, date)):
        return value.isoformat()
    if isinstance(value, UUID):
        return str(value)
    return [_value(one) for one in value] if isinstance(value, list) else value


def _projects(me: Principal) -> QuerySet[Project]:
    """The entries of the registry under which something of theirs stands."""
    items = RawItem.objects.visible_to(me).filter(owner=me, project__isnull=False)
    notes = Note.objects.visible_to(me).filter(owner=me, project__isnull=False)
    return (
        Project.objects.filter(
            Q(pk__in=items.values("project")) | Q(pk__in=notes.values("project"))
        )
        .select_related("merged_into")
        .prefetch_related("aliases", "paths")
    )


def _project(project: Project) -> dict[str, Any]:
    return {
        "kind": "project",
        "name": project.name,
        "origin": project.origin,
        "aliases": sorted(one.name for one in project.aliases.all()),
        "paths": sorted(one.prefix for one in project.paths.all()),
        "merged_into": project.merged_into.name if project.merged_into else None,
    }


def _raw_item(item: RawItem) -> dict[str, Any]:
    """A raw item. `timed`: it had an instant of its own, which is part of what it is known by."""
    bare = dedup_key(item.session, None, item.role, item.body)
    return {
        "kind": "raw_item", "id": item.pk, "item": item.kind, "source": item.source,
        "role": item.role, "session": item.session, "cwd": item.cwd,
        "project": item.project.name if item.project else None, "record_id": item.record_id,
        "occurred_at": item.occurred_at.isoformat(), "timed": item.dedup_key != bare,
        "captured_at": item.captured_at.isoformat(), "visibility": item.visibility,
        "confidentiality": item.confidentiality, "metadata": item.metadata,
        "locator": item.locator, "flags": item.flags, "sha256": item.sha256, "body": item.body,
    }  # fmt: skip


def _notes(notes: Sequence[Note], me: Principal) -> Iterator[dict[str, Any]]:
    """Notes with what bears them out; of somebody else's text the quote alone, and none of one that
    is not shown to them any more."""
    rows = Evidence.objects.filter(note__in=notes).select_related("raw_item").order_by("pk")
    edges: dict[UUID, list[Evidence]] = defaultdict(list)
    for row in rows.defer("raw_item__body"):
        edges[row.note_id].append(row)
    told = [one for some in edges.values() for one in some]
    items = _seen(RawItem, {one.raw_item_id for one in told}, me)
    parents = _seen(Note, {one.parent_id for one in told}, me)
    for note in notes:
        plainly = plain(note)
        plainly["project"] = note.project.name if note.project else None
        del plainly["project_id"]
        plainly["evidence"] = [
            {
                "item": one.raw_item_id if _of(one, me) else None,
                "note": str(one.parent_id) if one.parent_id else None,
                "start": one.start, "end": one.end, "origin": one.origin,
                "quote": one.quote if one.raw_item_id in items or one.parent_id in parents else "",
            }
            for one in edges[note.pk]
        ]  # fmt: skip
        yield {"kind": "note", **plainly}


def _of(edge: Evidence, me: Principal) -> bool:
    return edge.raw_item is not None and edge.raw_item.owner_id == me.pk


def _seen(model: Any, ids: set[Any], me: Principal) -> set[Any]:
    """Those of these ids that are shown to them."""
    return set(model.objects.visible_to(me).filter(pk__in=ids).values_list("pk", flat=True))
