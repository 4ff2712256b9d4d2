"""How notes are made: a unit, what a distiller proposed for it, the gate, notes with evidence.

Shared by the stage `distill`, by `memory.redistill`, and by whoever accepts what the gate refused.
Reads: episode, episode_turn, raw_item. Writes: note, evidence.
Audits: gate_rejection. Knows nothing about runs that wait, claims or parking.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from memory import gate, rejected
from memory.errors import ContentError
from memory.llm.choice import verifier
from memory.llm.ports import Check, Draft, Origin, Passage, Usage
from memory.models import Episode, Evidence, GateRejection, Note, RawItem, StageRun
from memory.retire import retire, revive
from memory.text.identity import sha256
from memory.text.words import normalise
from memory.verdicts import CONFIDENCE_START

#: Detail of a candidate whose check came to nothing.
UNREAD = "the verifier's answer could not be read"

#: Kinds of raw items that are units of their own. An image has no text to quote.
ITEM_KINDS = ("document", "event", "synthesis")

#: Characters of the raw text around a quote from which a verifier answers.
# Why: the answer stands near the quote; a whole item may have a million characters.
# Calibrate: share of true notes refused as unsupported, with the window doubled.
VERIFY_CHARACTERS_MAX = 8_000

#: Namespace of note ids, so that the same note has the same id after a rebuild.
NOTE_NAMESPACE = uuid.UUID("6f0b7f9e-6d0c-5b0f-9b0e-0a2d3c4e5f60")


@dataclass(frozen=True)
class Unit:
    """What is distilled at once, with what its notes inherit."""

    key: str
    passages: tuple[Passage, ...]
    items: dict[int, RawItem]
    source: Episode | RawItem

    @property
    def episode(self) -> Episode | None:
        return self.source if isinstance(self.source, Episode) else None

    @property
    def raw_item(self) -> RawItem | None:
        return self.source if isinstance(self.source, RawItem) else None


@dataclass(frozen=True)
class Judged:
    """What came of one draft: grounded candidates with their check, and refusals."""

    kept: tuple[tuple[gate.Grounded, Check | None], ...]
    refused: tuple[gate.Rejection, ...]


def load(name: str, *, undistilled: bool = False) -> Unit | None:
    """The unit of this name as it stands now, or None when there is none.

    `undistilled`: None as well when it was distilled meanwhile.
    """
    kind, _, key = name.partition(":")
    source: Episode | RawItem | None
    if kind == "episode":
        episodes = Episode.objects.as_pipeline().select_related("owner").filter(unit_key=name)
        if undistilled:
            episodes = episodes.filter(distilled_at__isnull=True)
        source = episodes.first()
        items = (
            [turn.raw_item for turn in source.turns.select_related("raw_item")] if source else []
        )
    else:
        rows = RawItem.objects.as_pipeline().select_related("owner").filter(pk=int(key))
        if undistilled:
            rows = rows.filter(distilled__isnull=True)
        source = rows.first()
        items = [source] if source else []
    if source is None:
        return None
    passages = tuple(Passage(i.pk, i.role, i.body, i.occurred_at, i.kind) for i in items)
    return Unit(name, passages, {item.pk: item for item in items}, source)


def judge(draft: Draft, unit: Unit, origin: Origin) -> Judged:
    """Every candidate through the gate, then through self-questioning where a model is set.

    One answer that cannot be read costs its candidate; raises ContentError when none could be.
    """
    kept: list[tuple[gate.Grounded, Check | None]] = []
    refused: list[gate.Rejection] = []
    unread: ContentError | None = None
    answered = False
    asks = verifier(origin.confidentiality)
    said = [candidate.content for candidate in draft.candidates]
    unwanted = rejected.among(unit.source.owner_id, said)
    for candidate in draft.candidates:
        grounded = gate.judge(candidate, unit.passages, unwanted=unwanted)
        if isinstance(grounded, gate.Rejection):
            refused.append(grounded)
            continue
        try:
            check = asks.verify(candidate, _around(grounded), origin=origin) if asks else None
        except ContentError as error:
            unread = error
            refused.append(gate.Rejection(candidate, "unsupported", UNREAD))
            continue
        answered = True
        if check is not None and not check.supported:
            detail = f"asked: {check.question} - the text answers: {check.answer}"
            refused.append(gate.Rejection(candidate, "unsupported", detail))
            continue
        kept.append((grounded, check))
    if unread and not answered:
        raise unread
    return Judged(tuple(kept), tuple(refused))


def _around(grounded: gate.Grounded) -> str:
    """The raw text around the quote, as much of it as a verifier reads."""
    body = grounded.passage.body
    spare = max(0, VERIFY_CHARACTERS_MAX - (grounded.end - grounded.start))
    start = max(0, grounded.start - spare // 2)
    return body[start : max(grounded.end, start + VERIFY_CHARACTERS_MAX)]


def make_note(
    unit: Unit,
    grounded: gate.Grounded,
    usage: Usage,
    *,
    check: Check | None,
    run: StageRun | None,
    now: datetime,
) -> tuple[Note, Evidence]:
    """A note of the unit and the edge to the span that bears it out; neither is saved yet.

    `usage` names the model and the prompt; the note's id is made of those, the unit, the span and
    the content, so that the same note is the same row after a rebuild.
    """
    candidate, item = grounded.candidate, unit.items[grounded.passage.item_id]
    note = Note(
        id=note_id(unit, grounded, usage),
        owner=unit.source.owner,
        visibility=unit.source.visibility,
        confidentiality=unit.source.confidentiality,
        memory_kind=candidate.memory_kind,
        title=candidate.title.strip(),
        content=candidate.content,
        context=candidate.context,
        keywords=list(candidate.keywords),
        tags=list(candidate.tags),
        importance=min(max(candidate.importance, 0.0), 1.0),
        confidence=CONFIDENCE_START,
        said_by=item.role or item.kind if item.kind == "turn" else item.kind,
        locator=item.locator,
        project_id=unit.source.project_id,
        episode=unit.episode,
        raw_item=unit.raw_item,
        session=item.session,
        unit_key=unit.key,
        content_key=sha256(normalise(candidate.content)),
        question=check.question if check else "",
        answer=check.answer if check else "",
        model_asked=usage.model_asked,
        model_real=usage.model_real,
        prompt_version=usage.prompt_version,
        valid_from=item.occurred_at,
        created_at=now,
        run=run,
    )
    edge = Evidence(
        note=note,
        raw_item=item,
        quote=grounded.quote,
        start=grounded.start,
        end=grounded.end,
        sha256=sha256(grounded.quote),
        created_at=now,
    )
    return note, edge


def note_id(unit: Unit, grounded: gate.Grounded, usage: Usage) -> uuid.UUID:
    """The id that the note made of this has, whenever it is made."""
    item = unit.items[grounded.passage.item_id]
    span = f"{item.dedup_key}:{grounded.start}:{grounded.end}"
    parts = (unit.key, usage.prompt_version, span, grounded.candidate.content)
    return uuid.uuid5(NOTE_NAMESPACE, "|".join(parts))


def replace_notes(unit: Unit, pairs: Collection[tuple[Note, Evidence]], *, now: datetime) -> int:
    """Write the unit's notes and retire those it no longer has; how many are new.

    Nothing made leaves what was there before, and so is left what a person accepted. Call inside
    the transaction that says the unit is done.
    """
    made: dict[uuid.UUID, tuple[Note, Evidence]] = {}
    for note, edge in pairs:
        made.setdefault(note.pk, (note, edge))
    before = Note.objects.as_pipeline().filter(unit_key=unit.key)
    known = set(before.values_list("pk", flat=True))
    own = set(before.filter(accepted__isnull=True).values_list("pk", flat=True))
    if made and (gone := own - set(made)):
        retire(gone, reason="redistilled", now=now)
    for back in before.filter(pk__in=made, retired_reason="redistilled"):
        revive(back.pk)
    fresh = [pair for pk, pair in made.items() if pk not in known]
    Note.objects.bulk_create([note for note, _ in fresh])
    Evidence.objects.bulk_create([edge for _, edge in fresh])
    return len(fresh)


def write_rejections(
    unit: Unit,
    refused: Sequence[gate.Rejection],
    usage: Usage,
    *,
    run: StageRun | None,
    now: datetime,
) -> None:
    """Keep what the gate refused, with its reason."""
    GateRejection.objects.bulk_create(
        GateRejection(
            owner=unit.source.owner,
            episode=unit.episode,
            raw_item=unit.raw_item,
            reason=one.reason,
            detail=one.detail,
            candidate=one.as_json(),
            model_asked=usage.model_asked,
            model_real=usage.model_real,
            prompt_version=usage.prompt_version,
            run=run,
            created_at=now,
        )
        for one in refused
    )
