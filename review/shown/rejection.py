"""What a page shows of one refusal: the text that it was made from, and what was decided about it.

Reads: rejection_decision, episode_turn, raw_item. Bodies are read in pieces, never whole. Knows
nothing about how a refusal is decided (`review.rejections`).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import QuerySet
from django.db.models.functions import Left

from memory import gate
from memory.llm.ports import Passage
from memory.models import EpisodeTurn, GateRejection, RawItem, RejectionDecision
from memory.web.marks import Piece, highlight
from review.grounding import find
from review.shown.rejections import Refusal, refusals

#: Passages of a unit that are shown beside a refusal.
# Why: an episode has fewer but for the longest; its own page has them all.
PASSAGES_MAX = 60

#: Characters of a passage that are read to look for the quote.
# Why: sixty of these are read at once by a server with little memory.
PASSAGE_CHARACTERS_MAX = 20_000

#: Characters shown around a quote, and half of what is shown of a passage without one.
AROUND_CHARACTERS = 300


@dataclass(frozen=True)
class Said:
    """A passage of the unit, as pieces: the quote where it stands, else its beginning."""

    item: int
    role: str
    occurred_at: datetime
    start: int | None
    end: int | None
    pieces: tuple[Piece, ...]

    @property
    def query(self) -> str:
        return "" if self.start is None else f"?start={self.start}&end={self.end}"


@dataclass(frozen=True)
class Opened:
    """One refusal with what it was made from and what was decided about it, latest first."""

    refusal: Refusal
    unit: str
    passages: tuple[Said, ...]
    more: bool
    found: bool
    exactly: bool
    history: tuple[RejectionDecision, ...]


def opened(row: GateRejection) -> Opened:
    """One refusal, a row of `decided`, with the passages of its unit and the quote marked in it."""
    (refusal,) = refusals([row])
    passages, more = _passages(row)
    hit = find(refusal.candidate.source_ref, passages, refusal.candidate)
    grounded = hit if isinstance(hit, gate.Grounded) else None
    exact = isinstance(gate.ground(refusal.candidate, passages), gate.Grounded)
    decisions = RejectionDecision.objects.filter(rejection=row).select_related("principal")
    return Opened(
        refusal=refusal,
        unit=refusal.unit,
        passages=tuple(_said(passage, grounded) for passage in passages),
        more=more,
        found=grounded is not None,
        exactly=exact,
        history=tuple(decisions.order_by("-pk")[:PASSAGES_MAX]),
    )


def _passages(row: GateRejection) -> tuple[list[Passage], bool]:
    """The beginnings of the unit's raw items, and whether there are more of them."""
    columns = ("pk", "role", "said", "occurred_at", "kind")
    items: QuerySet[Any] = RawItem.objects.as_pipeline().filter(pk=row.raw_item_id)
    if row.episode_id:
        turns = EpisodeTurn.objects.filter(episode=row.episode_id).order_by("position")
        ids = list(turns.values_list("raw_item", flat=True)[: PASSAGES_MAX + 1])
        items = RawItem.objects.as_pipeline().filter(pk__in=ids).order_by("occurred_at", "pk")
    rows = list(items.annotate(said=Left("body", PASSAGE_CHARACTERS_MAX)).values_list(*columns))
    return [Passage(*one) for one in rows[:PASSAGES_MAX]], len(rows) > PASSAGES_MAX


def _said(passage: Passage, grounded: gate.Grounded | None) -> Said:
    here = grounded if grounded and grounded.passage.item_id == passage.item_id else None
    spans = [(here.start, here.end)] if here else []
    return Said(
        item=passage.item_id,
        role=passage.role or passage.kind,
        occurred_at=passage.occurred_at,
        start=here.start if here else None,
        end=here.end if here else None,
        pieces=tuple(highlight(passage.body, spans, AROUND_CHARACTERS)),
    )
