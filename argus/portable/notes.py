"""A note of a foreign file, through the write gate: it comes in when our record bears it out.

Reads: raw_item, note. Writes: note, evidence, search_text. Audits: gate_rejection.
Of the file nothing is believed but the words: the span is looked for, confidence and level start
anew, who sees it follows the raw item, and the model that it names stands as the file's word.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction

from argus.portable.lines import Names, moment, number, text, texts
from memory import gate, rejected
from memory.attribution import Registry
from memory.llm.ports import Candidate, Passage, Usage
from memory.making import ITEM_KINDS, Unit, make_note, write_rejections
from memory.models import Evidence, GateRejection, Note, Principal, Project, RawItem
from memory.models.note import MEMORY_KINDS
from memory.models.record import CONFIDENTIALITIES, strictest
from memory.searchtexts import index_notes
from memory.text.identity import sha256

#: What stands as the model asked on a note that was imported, and as the origin of its evidence.
IMPORTED = "import"

#: What a dry run says of a note whose raw items would only come in with it.
UNSEEN = "not looked at"

#: Edges of one note that are looked at.
EDGES_MAX = 100

#: Keywords and tags of one note, and characters of each.
WORDS_MAX, WORD_CHARACTERS_MAX = 50, 100

#: Characters of the name of a model or a prompt.
MODEL_CHARACTERS_MAX = 120


@dataclass(frozen=True)
class Came:
    """What became of a note: "made", "known", "retired", UNSEEN, or a reason of the gate."""

    outcome: str
    id: UUID | None = None


def bring(
    told: dict[str, Any], names: Names, *, me: Principal, now: datetime, dry_run: bool = False
) -> Came:
    """Make the note of this object, if it is live, grounded and new. One transaction."""
    if told.get("deleted_at") or ((end := moment(told.get("valid_to"))) and end <= now):
        return Came("retired")
    candidate = _candidate(told)
    spans = _spans(told.get("evidence"), names)
    rows = RawItem.objects.visible_to(me).filter(owner=me, pk__in=[pk for pk, _ in spans])
    items = {row.pk: row for row in rows.select_related("owner")}
    spans = [(pk, edge) for pk, edge in spans if pk in items]
    if not spans:
        # In a dry run what would come in with the file is not there to be looked at.
        return Came(UNSEEN if dry_run else "grounding")
    if (known := _known(candidate, items, me)) is not None:
        return Came("known", known)
    judged = _judge(candidate, spans, items, me)
    with transaction.atomic():
        if isinstance(judged, gate.Rejection):
            _refuse(judged, items[spans[0][0]], now=now, dry_run=dry_run)
            return Came(judged.reason)
        if dry_run:
            return Came("made")
        return Came("made", _make(told, judged, spans, items, now=now))


def _candidate(told: dict[str, Any]) -> Candidate:
    kind = text(told.get("memory_kind"))
    importance = number(told.get("importance"))
    return Candidate(
        title=_line(told.get("title")),
        content=text(told.get("content")),
        source_ref="",
        importance=0.5 if importance is None else importance,
        keywords=_words(told.get("keywords")),
        tags=_words(told.get("tags")),
        context=text(told.get("context"))[: gate.CONTENT_CHARACTERS_MAX],
        memory_kind=kind if kind in MEMORY_KINDS else "semantic",
    )


def _line(value: Any) -> str:
    return " ".join(text(value).split())


def _words(value: Any) -> tuple[str, ...]:
    return tuple(_line(one)[:WORD_CHARACTERS_MAX] for one in texts(value)[:WORDS_MAX])


def _spans(evidence: Any, names: Names) -> list[tuple[int, dict[str, Any]]]:
    """The edges that lead to raw items which this file brought, with their items' ids here."""
    found = []
    for edge in evidence[:EDGES_MAX] if isinstance(evidence, list) else ():
        if isinstance(edge, dict) and (here := names.get("raw_item", edge.get("item"))):
            found.append((int(here), edge))
    return found


def _known(candidate: Candidate, items: dict[int, RawItem], me: Principal) -> UUID | None:
    """The note of mine that says this of one of these raw items, gone or not: what was retired here
    does not come back by a file."""
    same = Note.objects.visible_to(me).filter(owner=me, evidence__raw_item__in=list(items))
    same = same.filter(content_key=gate.content_key(candidate.content))
    found: UUID | None = same.values_list("pk", flat=True).first()
    return found


def _judge(
    candidate: Candidate, spans: list[tuple[int, dict[str, Any]]], items: dict[int, RawItem],
    me: Principal,
) -> gate.Grounded | gate.Rejection:  # fmt: skip
    """The write gate, for the first quote that this house's record holds."""
    unwanted = rejected.among(me.pk, [candidate.content])
    judged: gate.Grounded | gate.Rejection | None = None
    for pk, edge in spans:
        quoted = Candidate(**{**vars(candidate), "source_ref": text(edge.get("quote"))})
        judged = gate.judge(quoted, [_passage(items[pk])], unwanted=unwanted)
        if isinstance(judged, gate.Grounded):
            return _at(judged, edge)
        if judged.reason != "grounding":
            return judged
    assert judged is not None
    return judged


def _passage(item: RawItem) -> Passage:
    return Passage(item.pk, item.role, item.body, item.occurred_at, item.kind)


def _at(grounded: gate.Grounded, edge: dict[str, Any]) -> gate.Grounded:
    """The span that the file names, where the same words do stand there; else the first."""
    start, end = edge.get("start"), edge.get("end")
    if not isinstance(start, int) or not isinstance(end, int) or not 0 <= start < end:
        return grounded
    if grounded.passage.body[start:end] == grounded.quote:
        return gate.Grounded(grounded.candidate, grounded.passage, start, end)
    return grounded


def _refuse(refused: gate.Rejection, item: RawItem, *, now: datetime, dry_run: bool) -> None:
    """Keep what the gate refused, once."""
    before = GateRejection.objects.as_pipeline().filter(
        owner=item.owner, raw_item=item, reason=refused.reason, candidate=refused.as_json()
    )
    if not dry_run and not before.exists():
        unit = Unit(f"{IMPORTED}:{item.pk}", (), {item.pk: item}, item)
        write_rejections(unit, [refused], Usage(IMPORTED, IMPORTED), run=None, now=now)


def _make(
    told: dict[str, Any], grounded: gate.Grounded, spans: list[tuple[int, dict[str, Any]]],
    items: dict[int, RawItem], *, now: datetime,
) -> UUID:  # fmt: skip
    item = items[grounded.passage.item_id]
    # Not the unit of the item: distilling that anew says nothing of what was imported.
    unit = Unit(f"{IMPORTED}:{item.pk}", (grounded.passage,), {item.pk: item}, item)
    usage = Usage(IMPORTED, _as_told(told, "model_real"), _as_told(told, "prompt_version"))
    note, edge = make_note(unit, grounded, usage, check=None, run=None, now=now)
    if item.kind not in ITEM_KINDS:
        note.raw_item = None
    goes = text(told.get("confidentiality"))
    if goes in CONFIDENTIALITIES:
        note.confidentiality = strictest([note.confidentiality, goes])
    if since := _since(told, items):
        note.valid_from = since
    note.valid_to = moment(told.get("valid_to"))
    note.project = _project(text(told.get("project"))) or note.project
    edges = [edge, *_further(note, spans, items, grounded)]
    for one in edges:
        one.origin, one.created_at = IMPORTED, now
    note.save(force_insert=True)
    Evidence.objects.bulk_create(edges)
    index_notes(only=[note.pk])
    return note.pk


def _project(name: str) -> Project | None:
    """The project that is called so here, if there is one: an alias, and one that was merged, is
    the project that it is read as, as it is for capture."""
    called = Registry.load().names.get(name, name)
    found: Project | None = Project.objects.filter(name=called).first()
    return found


def _as_told(told: dict[str, Any], name: str) -> str:
    """The model or prompt that the file names: as its word, never as one that answered here."""
    return f"{IMPORTED}: {_line(told.get(name))[:MODEL_CHARACTERS_MAX]}".rstrip(": ")


def _since(told: dict[str, Any], items: dict[int, RawItem]) -> datetime | None:
    """When the file says that it was true, if that is when one of its raw items was said."""
    said = moment(told.get("valid_from"))
    return said if said in {item.occurred_at for item in items.values()} else None


def _further(
    note: Note, spans: list[tuple[int, dict[str, Any]]], items: dict[int, RawItem],
    main: gate.Grounded,
) -> list[Evidence]:  # fmt: skip
    """The other edges that this house's record holds."""
    found: dict[tuple[int, int, int], Evidence] = {}
    for pk, edge in spans:
        quoted = Candidate(**{**vars(main.candidate), "source_ref": text(edge.get("quote"))})
        grounded = gate.ground(quoted, [_passage(items[pk])])
        if isinstance(grounded, gate.Rejection):
            continue
        at = _at(grounded, edge)
        if (pk, at.start, at.end) != (main.passage.item_id, main.start, main.end):
            found[pk, at.start, at.end] = Evidence(
                note=note, raw_item=items[pk], quote=at.quote, start=at.start, end=at.end,
                sha256=sha256(at.quote),
            )  # fmt: skip
    return list(found.values())
