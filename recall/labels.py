"""Questions that somebody labelled, as calibration needs them: what is found, and what is right.

Reads: note, evidence, raw_item, injection, feedback. Two ways: questions of a file, asked now
without any floor; and the ledger, where people said of injected notes whether they were useful.
The same questions make what a ranker is trained on. Writes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import numpy as np

from memory.errors import InfraError, RefusedError
from memory.llm.choice import embedder
from memory.models import Evidence as Edge
from memory.models import Feedback, Injection, Principal, RawItem
from memory.text.tongue import tongue
from recall.floors import SOURCES, Evidence, above
from recall.found import Found
from recall.gates import ask
from recall.proposal import FITTED_MAX, Labelled, Seen
from recall.search import search
from recall.training import Example
from recall.where import where

#: Injections with feedback that are read, the latest.
LEDGER_MAX = 5_000

#: Fields of a line.
FIELDS = {"question", "evidence", "answerable", "project"}

#: All questions are of one memory; training makes its folds within it.
GROUP = "own"

#: What feedback says of a hit.
RIGHT = {"useful": True, "wrong": False, "never": False}


@dataclass(frozen=True)
class Question:
    """A question; `evidence` are ids of notes or raw items, or words that a right one holds;
    `project` is the name of the one that it is asked from."""

    text: str
    evidence: tuple[str, ...] = ()
    project: str = ""


def read(lines: Iterable[str], name: str) -> list[Question]:
    """Questions from JSON lines: {"question", "evidence": [...]} or {"question", "answerable":
    false}, each with "project" when it is asked from one. Raises RefusedError naming the line."""
    found = []
    for number, line in enumerate(lines, start=1):
        if line.strip():
            try:
                found.append(_question(json.loads(line)))
            except ValueError as error:
                raise RefusedError(f"{name}:{number}: {error}") from None
    return found


def _question(row: Any) -> Question:
    if not isinstance(row, dict) or not isinstance(row.get("question"), str):
        raise ValueError('no "question" in an object')
    if unknown := sorted(row.keys() - FIELDS):
        raise ValueError(f"{unknown[0]!r} is not known here: {', '.join(sorted(FIELDS))}")
    evidence = row.get("evidence", [])
    if not isinstance(evidence, list):
        raise ValueError("evidence must be a list of ids or texts")
    if bool(evidence) != row.get("answerable", True):
        raise ValueError('a question needs evidence, or "answerable": false and none')
    project = row.get("project") or ""
    return Question(row["question"], tuple(str(one) for one in evidence), str(project))


def label(questions: Sequence[Question], *, principal: Principal, now: datetime) -> list[Labelled]:
    """What recall finds for each question before any floor, and which of it is right. A question
    that a gate refuses finds nothing."""
    return [_labelled(one, principal=principal, now=now) for one in questions]


def _labelled(question: Question, *, principal: Principal, now: datetime) -> Labelled:
    asked = ask(question.text)
    if asked.gate:
        return Labelled(question.text, bool(question.evidence), ())
    searched = search(
        asked.text, principal=principal, now=now, silent=where(principal=principal).names
    )
    if why := searched.degraded.get("semantic"):
        # Floors chosen on the words alone would hold for the meaning, too.
        raise InfraError(f"no floor can be judged without the embedder: {why}")
    spoken, model = tongue(asked.text), searched.question.model
    found = [
        one
        for source in SOURCES
        for one in [each for each in searched.found if each.source == source][:FITTED_MAX]
    ]
    right = _right(found, question.evidence, principal)
    hits = tuple(
        Seen(one.source, _evidence(one, model, spoken, question.project), yes)
        for one, yes in zip(found, right, strict=True)
    )
    return Labelled(question.text, bool(question.evidence), hits)


def examples(
    questions: Sequence[Question], *, principal: Principal, now: datetime
) -> list[Example]:
    """What a ranker is trained on: of every question with an answer the features of its candidates,
    for each source by itself, because each is ordered by itself."""
    made = []
    for question in questions:
        asked = ask(question.text)
        if asked.gate or not question.evidence:
            continue
        searched = search(
            asked.text, principal=principal, now=now, silent=where(principal=principal).names
        )
        for source in SOURCES:
            found = [one for one in searched.found if one.source == source]
            right = np.array(_right(found, question.evidence, principal), dtype=np.bool_)
            if right.any():
                rows = [one.row for one in found if one.row is not None]
                made.append(Example(np.stack(rows), right, int(right.sum()), GROUP))
    return made


def useful(principal: Principal) -> list[Question]:
    """Prompts of the ledger whose notes were called useful, as questions to be asked anew."""
    rows = (
        Feedback.objects.filter(principal=principal, injection__isnull=False)
        .order_by("pk")
        .values_list("injection__query", "note", "verdict")
    )
    notes: dict[str, set[str]] = {}
    for query, note, verdict in rows:
        held = notes.setdefault(query, set())
        (held.add if verdict == "useful" else held.discard)(str(note))
    return [Question(query, tuple(sorted(held))) for query, held in notes.items() if held]


def _evidence(one: Found, model: str, spoken: str, project: str) -> Evidence:
    keyword = one.tracks.get("keyword")
    return Evidence(
        above(one.cosine, model, spoken),
        keyword.score if keyword else 0.0,
        one.coverage,
        one.fused,
        here=bool(project) and one.facts["project__name"] == project,
    )


def _right(found: Sequence[Found], evidence: Sequence[str], principal: Principal) -> list[bool]:
    """Which hits bear the evidence: by their id, by an item that they cite, or by its words."""
    if not evidence:
        return [False] * len(found)
    notes = [one.key for one in found if isinstance(one.key, UUID)]
    items = [one.key for one in found if isinstance(one.key, int)]
    bodies: Mapping[Any, str] = dict(
        RawItem.objects.visible_to(principal).filter(pk__in=items).values_list("pk", "body")
    )
    cited: dict[Any, set[str]] = {}
    for note, item in Edge.objects.filter(note__in=notes).values_list("note", "raw_item"):
        cited.setdefault(note, set()).add(str(item))
    wanted = set(evidence)
    right = []
    for one in found:
        names = {str(one.key), *cited.get(one.key, ())}
        text = bodies.get(one.key) or f"{one.facts.get('title')}\n{one.facts.get('content')}"
        right.append(bool(names & wanted) or any(words in text for words in evidence))
    return right


def from_ledger(principal: Principal) -> list[Labelled]:
    """Injections of which people said whether their notes were useful. One with a useful note has
    an answer; one with wrong notes alone has none. What nobody spoke of is left out."""
    model = embedder().name
    rows = (
        Feedback.objects.filter(principal=principal, injection__model_asked=model)
        .order_by("pk")
        .values_list("injection", "note", "verdict")
    )
    said: dict[int, dict[str, bool]] = {}
    for injection, note, verdict in rows:
        if verdict in RIGHT:
            said.setdefault(injection, {})[str(note)] = RIGHT[verdict]
        else:
            said.get(injection, {}).pop(str(note), None)
    newest = sorted((pk for pk, notes in said.items() if notes), reverse=True)[:LEDGER_MAX]
    injections = Injection.objects.visible_to(principal).filter(pk__in=newest).order_by("pk")
    return [
        Labelled(query, any(seen.right for seen in hits), hits)
        for pk, query, kept in injections.values_list("pk", "query", "hits")
        if (hits := tuple(_kept(kept, said[pk], model, tongue(query))))
    ]


def _kept(
    hits: Sequence[Mapping[str, Any]], said: Mapping[str, bool], model: str, spoken: str
) -> Iterable[Seen]:
    """The hits of a row that somebody spoke of; rows of an older time lack the numbers."""
    for hit in hits:
        if hit.get("note") in said and hit.get("coverage") is not None:
            keyword = hit.get("tracks", {}).get("keyword", {}).get("score", 0.0)
            yield Seen(
                "note",
                Evidence(
                    above(hit.get("cosine"), model, spoken),
                    keyword,
                    hit["coverage"],
                    hit["score"],
                    here=hit.get("boost", 1.0) > 1.0,
                ),
                said[hit["note"]],
            )
