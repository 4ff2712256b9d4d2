"""Prompt recall: the few notes that answer a prompt, or silence, with the reason for either.

Reads: note, raw_item, by `recall.search`. Writes: emission. Audits: injection, for every call,
refusals and zero hits included, in the same transaction as the emission. Verify: nothing injected
is below the floors on its row.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from memory.llm.choice import embedder
from memory.models import Principal
from memory.text.tongue import tongue
from recall.block import BLOCK_CHARACTERS_MAX, render
from recall.calibration import InForce, in_force
from recall.floors import Floors, Source, told
from recall.gates import Asked, ask
from recall.injections import record
from recall.reranking import Reranking, shown_to_reranker
from recall.results import as_json, fold, read, second_opinion
from recall.scoring import Hit, weigh_all
from recall.search import Past, Searched, search
from recall.where import NO_FACTS, Facts, Where, where
from recall.withheld import withhold

#: Notes and turns put before an agent for one prompt, when nothing else is asked for.
# Why: on dialogues five hits hold .77 of the evidence and ten .83: twice to read for little more.
# Calibrate: right notes at rank six and below against false injections, `manage.py eval`.
NOTES_MAX = 5

#: The most of them that a caller may ask for.
# Why: in a block of 8,000 characters each of them has 400.
NOTES_ASKED_MAX = 20


@dataclass(frozen=True)
class Recalled:
    """What goes back: an outcome word, the block, the hits in it, and all that was weighed.

    `floors` are what was judged by, `floors_told` the same as people and the ledger read them: with
    the cosine that the prompt's tongue asks for.
    """

    outcome: str
    text: str = ""
    hits: tuple[Hit, ...] = ()
    weighed: tuple[Hit, ...] = ()
    omitted: int = 0
    asked: Asked = Asked("")
    floors: Mapping[Source, Floors] = field(default_factory=dict)
    floors_told: Mapping[Source, Mapping[str, float]] = field(default_factory=dict)
    calibration: int | None = None
    searched: Searched | None = None
    reranking: Reranking = Reranking()
    milliseconds: float = 0.0
    injection: int | None = None

    @property
    def notes(self) -> tuple[Hit, ...]:
        return tuple(hit for hit in self.hits if hit.source == "note")

    @property
    def turns(self) -> tuple[Hit, ...]:
        return tuple(hit for hit in self.hits if hit.source == "turn")

    def as_json(self, *, explain: bool = False) -> dict[str, Any]:
        """The reply; with `explain` every number of what went out and of what did not."""
        degraded = self.searched.degraded if self.searched else {}
        places = {id(hit): rank for rank, hit in enumerate(self.hits, start=1)}
        shown = {
            name: [as_json(hit, places[id(hit)], explain=explain) for hit in hits]
            for name, hits in (("notes", self.notes), ("turns", self.turns))
        }
        reply = {
            "outcome": self.outcome,
            "gate": self.asked.gate,
            "detail": self.asked.detail or "; ".join(f"{k}: {why}" for k, why in degraded.items()),
            "text": self.text,
            **shown,
            "omitted": self.omitted,
            "degraded": list(degraded),
            "reranked": self.reranking.reranked,
            "floors": {source: dict(one) for source, one in self.floors_told.items()},
            "milliseconds": self.milliseconds,
            "injection": self.injection,
        }
        return reply | (self._explained() if explain else {})

    def _explained(self) -> dict[str, Any]:
        shown = {(hit.source, hit.key): hit for hit in self.hits}
        # What went out was folded and read since it was weighed.
        told = [(shown.get((hit.source, hit.key)), hit) for hit in self.weighed]
        return {
            "weighed": [
                (out or hit).as_json(rank=rank, injected=out is not None)
                | {"title": hit.facts.get("title", "")}
                for rank, (out, hit) in enumerate(told, start=1)
            ],
            "words": list(self.searched.question.words) if self.searched else [],
            "calibration": self.calibration,
            "reranking": self.reranking.as_json(),
            "timings": dict(self.searched.milliseconds) if self.searched else {},
        }


@dataclass(frozen=True)
class Wanted:
    """What a caller may ask for beside the words."""

    notes: int = NOTES_MAX
    characters: int = BLOCK_CHARACTERS_MAX
    floor: float | None = None
    project: str = ""
    past: Past | None = None

    def as_json(self) -> dict[str, Any]:
        """What was asked for other than usual, for the ledger."""
        told: dict[str, Any] = {"notes": self.notes, "characters": self.characters}
        if self.floor is not None:
            told["floor"] = self.floor
        if self.project:
            told["project"] = self.project
        if self.past:
            told |= self.past.as_json()
        return told


USUAL = Wanted()


def recall_notes(
    prompt: str,
    *,
    principal: Principal,
    now: datetime,
    session: str = "",
    cwd: str = "",
    facts: Facts = NO_FACTS,
    wanted: Wanted = USUAL,
) -> Recalled:
    """Notes for a prompt, best first, and a turn where no note answers.

    `wanted.floor` replaces the machine's floor of the final score; `wanted.project` leaves out what
    is not of that project; `wanted.past` asks what held then.
    """
    recalled, here, rules = _recall(
        prompt,
        principal=principal,
        now=now,
        session=session,
        cwd=cwd,
        facts=facts,
        wanted=wanted,
    )
    injection = record(
        "prompt",
        here,
        principal=principal,
        now=now,
        query=recalled.asked.text,
        gate=recalled.asked.gate,
        outcome=recalled.outcome,
        hits=recalled.hits,
        weighed=recalled.weighed,
        floors=recalled.floors_told,
        rules=rules,
        options=wanted.as_json() | {"reranking": recalled.reranking.as_json()},
        searched=recalled.searched,
        omitted=recalled.omitted,
        text=recalled.text,
        milliseconds=recalled.milliseconds,
    )
    return replace(recalled, injection=injection)


def preview_notes(
    prompt: str,
    *,
    principal: Principal,
    now: datetime,
    session: str = "",
    cwd: str = "",
    facts: Facts = NO_FACTS,
    wanted: Wanted = USUAL,
) -> Recalled:
    """What `recall_notes` would put before an agent now, for a person to look at: no agent gets it,
    so that neither the ledger nor what counts as said by Argus has a row of it."""
    recalled, _, _ = _recall(
        prompt,
        principal=principal,
        now=now,
        session=session,
        cwd=cwd,
        facts=facts,
        wanted=wanted,
    )
    return recalled


def _recall(
    prompt: str,
    *,
    principal: Principal,
    now: datetime,
    session: str,
    cwd: str,
    facts: Facts,
    wanted: Wanted,
) -> tuple[Recalled, Where, InForce]:
    """All of a recall but its rows, with the place that asked and the rules it went by."""
    started = time.perf_counter()
    here = where(principal=principal, session=session, cwd=cwd, facts=facts)
    asked = ask(prompt)
    model = embedder().name
    rules = in_force(model)
    floors = rules.floors
    if wanted.floor is not None:
        score = wanted.floor
        floors = {source: replace(one, score=score) for source, one in floors.items()}
    recalled = Recalled(
        "gated",
        asked=asked,
        floors=floors,
        floors_told=told(floors, model, tongue(asked.text)),
        calibration=rules.calibration,
    )
    if not asked.gate:
        recalled = _search(recalled, here, wanted, rules, principal=principal, now=now)
    return replace(recalled, milliseconds=_since(started)), here, rules


def _search(
    so_far: Recalled,
    here: Where,
    wanted: Wanted,
    rules: InForce,
    *,
    principal: Principal,
    now: datetime,
) -> Recalled:
    """Search, weigh, and keep what clears the floors, each statement once, notes first."""
    asked = so_far.asked
    project = here.named(wanted.project)
    if wanted.project and project is None:
        return replace(so_far, outcome="no_hits")
    searched = search(
        asked.text,
        principal=principal,
        now=now,
        past=wanted.past,
        project=project,
        here=here.project_id,
        silent=here.names,
        ranker=rules.ranker,
    )
    alike = here.named_alike(here.project)
    weighed = weigh_all(searched, so_far.floors, project=here.project, now=now, alike=alike)
    weighed = withhold(
        weighed,
        principal=principal,
        now=now,
        session=here.session,
        silenced=searched.silenced,
        prompt=True,
        past=wanted.past is not None,
    )
    clear = [hit for hit in weighed if not (hit.withheld or hit.judged.refused)]
    best = _notes_first(fold(clear))
    past = wanted.past is not None
    many = max(wanted.notes, shown_to_reranker(prompt=True))
    asker: dict[str, Any] = {"principal": principal, "here": here.project_id}
    top = read(best[:many], searched, **asker, now=now, past=past)
    top, reranking = second_opinion(searched, top, **asker, prompt=True)
    top = _notes_first(top)
    block = render([hit.facts for hit in top[: wanted.notes]], characters=wanted.characters)
    hits = tuple(top[place] for place in block.included)
    return replace(
        so_far,
        outcome=_outcome(weighed, top, hits),
        text=block.text,
        hits=hits,
        weighed=tuple(weighed),
        omitted=block.omitted,
        searched=searched,
        reranking=reranking,
    )


def _outcome(weighed: Sequence[Hit], top: Sequence[Hit], hits: Sequence[Hit]) -> str:
    if hits:
        return "injected"
    if top:
        return "too_long"
    return "below_floor" if weighed else "no_hits"


def _notes_first(hits: Sequence[Hit]) -> list[Hit]:
    """What was distilled and judged before what was only said, each in its order."""
    return sorted(hits, key=lambda hit: hit.source != "note")


def _since(started: float) -> float:
    return round((time.perf_counter() - started) * 1000, 2)
