"""Ask every question of the engine and of the baselines, and judge what came back.

Reads what recall reads; writes what recall writes, in a throwaway database. Verify: the numbers of
the report follow from the predictions alone. Knows nothing about formats or printing.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tqdm import tqdm

from memory.llm.choice import embedder
from memory.llm.ports import Origin
from memory.models import Principal
from recall.evaluation.baselines import BASELINES
from recall.evaluation.dataset import Question
from recall.evaluation.engine import Found, injected, rank_texts
from recall.evaluation.ground import Ground
from recall.evaluation.metrics import DEPTH_MAX, SHALLOW_MAX, average, mark, percentile, share
from recall.evaluation.offtopic import PROMPTS

#: Hits asked for and written to the predictions; beyond what is judged, for whoever looks why.
HITS_KEPT_MAX = 20

#: Questions with an answer for which it is asked, too, what an agent would be given; spread evenly.
# Why: it is a second search; two hundred tell the rate to three points.
INJECTIONS_ASKED_MAX = 200

#: The category of our own prompts, about nothing in memory.
OFF_TOPIC = "off topic"

assert HITS_KEPT_MAX >= DEPTH_MAX


@dataclass(frozen=True)
class Prediction:
    """One question with all that was ranked for it, and what would go before an agent; each hit
    as the names that it stands for."""

    question: Question
    argus: Sequence[tuple[frozenset[str], Found]]
    injected: Sequence[frozenset[str]] | None
    baselines: Mapping[str, Sequence[tuple[frozenset[str], float]]]
    milliseconds: float

    def hits(self, ranker: str) -> list[frozenset[str]]:
        """What one ranker found, best first, as the names that each hit stands for."""
        if ranker == "argus":
            return [names for names, _ in self.argus]
        if ranker == "argus_with_floors":
            return [names for names, found in self.argus if found.cleared]
        return [names for names, _ in self.baselines[ranker]]

    def as_json(self) -> dict[str, Any]:
        """One line of the predictions file."""
        asked = self.question
        return {
            "question": asked.text,
            "pool": asked.pool,
            "category": asked.category,
            "kind": asked.kind,
            "facts": [sorted(fact) for fact in asked.facts],
            "argus": [
                {
                    "ids": sorted(names),
                    "keys": list(found.keys),
                    "score": round(found.score, 6),
                    "cleared": found.cleared,
                }
                for names, found in self.argus
            ],
            "injected": None if self.injected is None else [sorted(one) for one in self.injected],
            "baselines": {
                name: [{"ids": sorted(ids), "score": round(score, 6)} for ids, score in ranked]
                for name, ranked in self.baselines.items()
            },
            "milliseconds": self.milliseconds,
        }


@dataclass(frozen=True)
class Evaluation:
    """The report as JSON has it, and what it follows from."""

    report: Mapping[str, Any]
    predictions: Sequence[Prediction] = field(repr=False)


def evaluate(
    questions: Sequence[Question],
    ground: Ground,
    *,
    principal: Principal,
    labels: Mapping[str, str],
    progress: bool = False,
) -> Evaluation:
    """Every question, then prompts about something else. Raises InfraError without an embedder."""
    step = max(1, -(-sum(bool(one.facts) for one in questions) // INJECTIONS_ASKED_MAX))
    bar = tqdm(questions, desc="ask", disable=None if progress else True, leave=False)
    asked = [
        _ask(question, ground, principal, give=not question.facts or at % step == 0)
        for at, question in enumerate(bar)
    ]
    strange = [
        _ask(Question(pool, prompt, category=OFF_TOPIC), ground, principal, give=True)
        for pool, prompt in _strange(sorted(ground.shelves), len(questions))
    ]
    answerable = [one for one in asked if one.question.facts]
    sorts = {
        name: text.sort
        for shelf in ground.shelves.values()
        for text in shelf.texts
        for name in ground.named(text.key)
    }
    silence = {
        "no_answer": _false_injections([one for one in asked if not one.question.facts]),
        "off_topic": _false_injections(strange),
    }
    times = [one.milliseconds for one in answerable]
    report = {
        "argus": {
            **_judge(answerable, "argus"),
            "by_kind": _by_kind(answerable, sorts),
            "p50_ms": percentile(times, 50),
            "p95_ms": percentile(times, 95),
        },
        "argus_with_floors": {
            **_judge(answerable, "argus_with_floors"),
            "injection": _injections(answerable),
            "false_injection": silence,
        },
        "baselines": {name: _judge(answerable, name) for name in BASELINES},
        "labels": dict(labels),
        "embedder": embedder().name,
        **ground.counts,
    }
    return Evaluation(report, [*asked, *strange])


def _strange(pools: Sequence[str], at_most: int) -> list[tuple[str, str]]:
    """Off-topic prompts, dealt out to the pools in turn."""
    return [
        (pools[at % len(pools)], prompt) for at, prompt in enumerate(PROMPTS[:at_most]) if pools
    ]


def _ask(question: Question, ground: Ground, principal: Principal, *, give: bool) -> Prediction:
    """All rankers for one question, and with `give` what an agent that asks it would be given."""
    found: list[Found] = []
    begin = time.perf_counter()
    # Where nothing is right, no order is better than another.
    if question.facts:
        found = rank_texts(
            question.text,
            principal=principal,
            project=question.pool,
            now=ground.now,
            depth=HITS_KEPT_MAX,
        )
    took = round((time.perf_counter() - begin) * 1000, 2)
    put = None
    if give:
        keys = injected(question.text, principal=principal, project=question.pool, now=ground.now)
        put = [ground.named(*one) for one in keys]
    return Prediction(
        question,
        [(ground.named(*one.keys), one) for one in found],
        put,
        _baselines(question, ground) if question.facts else {},
        took,
    )


def _baselines(question: Question, ground: Ground) -> dict[str, list[tuple[frozenset[str], float]]]:
    shelf = ground.shelves[question.pool]
    vector = embedder().embed_query(question.text, origin=Origin("eval"))
    return {
        name: [
            (ground.named(text.key), score)
            for text, score in shelf.rank(scores(shelf, question.text, vector), HITS_KEPT_MAX)
        ]
        for name, scores in BASELINES.items()
    }


def _judge(asked: Sequence[Prediction], ranker: str) -> dict[str, Any]:
    """The means over all questions, and by category."""
    by_category: dict[str, list[Prediction]] = {}
    for one in asked:
        by_category.setdefault(one.question.category or "all", []).append(one)
    return {
        **_means(asked, ranker),
        "by_category": {name: _means(by_category[name], ranker) for name in sorted(by_category)},
    }


def _means(asked: Sequence[Prediction], ranker: str) -> dict[str, Any]:
    marks = (mark(one.hits(ranker), one.question.facts) for one in asked)
    return {"questions": len(asked), **average(marks)}


def _by_kind(asked: Sequence[Prediction], sorts: Mapping[str, str]) -> dict[str, Any]:
    """The means by kind of what answers, and how much of the five best places each kind took.

    A prior above 1 for a kind would be right where its questions do worse than their share of the
    places explains.
    """
    places = Counter(
        next((sorts[name] for name in sorted(names) if name in sorts), "unknown")
        for one in asked
        for names, _ in one.argus[:SHALLOW_MAX]
    )
    kinds = {one.question.kind for one in asked} | set(places)
    return {
        kind: {
            **_means([one for one in asked if one.question.kind == kind], "argus"),
            "share_of_five": share(places[kind], places.total()),
        }
        for kind in sorted(kinds)
    }


def _injections(asked: Sequence[Prediction]) -> dict[str, Any]:
    """Of questions with an answer: how many brought anything up, and how many something right."""
    given = [(one.injected, one.question.facts) for one in asked if one.injected is not None]
    some = sum(bool(hits) for hits, _ in given)
    right = sum(any(names & fact for names in hits for fact in facts) for hits, facts in given)
    return {
        "asked": len(given),
        "injected": some,
        "right": right,
        "rate": share(some, len(given)),
        "right_rate": share(right, len(given)),
    }


def _false_injections(asked: Sequence[Prediction]) -> dict[str, Any]:
    """Of prompts that nothing answers: how many brought something up all the same."""
    bad = sum(bool(one.injected) for one in asked)
    return {"asked": len(asked), "injected": bad, "rate": share(bad, len(asked))}
