"""A second opinion on an order: a reranker reads query and texts together, when one is set.

The order that it was given stands whenever there is none, and whenever it fails: that is said, with
the reason, and is no error. Asks a server, so never inside a transaction. Knows nothing about
tracks, floors or what a hit is.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from django.conf import settings

from memory.errors import Confidential, ContentError, InfraError
from memory.llm.calls import may_leave
from memory.llm.choice import reranker
from memory.llm.ports import Origin
from memory.models.record import strictest

T = TypeVar("T")

#: Hits that a reranker is shown, best first; the rest keeps its order behind them.
# Why: what it costs is linear, text-embeddings-inference takes 32 texts at once as it comes, and
# the right answer is rarely below thirty.
# Calibrate: recall@5 and milliseconds with a reranker in use, by halving and doubling.
RERANKED_MAX = 30

#: Confidentiality of what is asked.
# Why: the same as where a query goes to an embedder at a URL.
QUERY_CONFIDENTIALITY = "internal"


@dataclass(frozen=True)
class Reranking:
    """Whether the order is the reranker's, and why not; `scores` by place in the new order, None
    for what it was not shown."""

    reranked: bool = False
    why: str = ""
    model: str = ""
    shown: int = 0
    withheld: int = 0
    milliseconds: float = 0.0
    scores: tuple[float | None, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """What replies and the ledger say; scores stand with their hits."""
        return {
            "reranked": self.reranked,
            "why": self.why,
            "model": self.model,
            "shown": self.shown,
            "withheld": self.withheld,
            "milliseconds": self.milliseconds,
        }


def rerank(
    query: str,
    hits: Sequence[T],
    *,
    text: Callable[[T], str],
    confidentiality: Callable[[T], str],
    prompt: bool = False,
) -> tuple[list[T], Reranking]:
    """The hits in the reranker's order, with what became of asking it.

    `prompt`: an agent waits; the reranker is asked only where the settings say so. A hit whose text
    may not leave is not shown and keeps its place. Never raises for a reranker's sake; ties keep
    their order.
    """
    model = reranker()
    if model is None:
        return list(hits), Reranking(why="no reranker is set")
    if prompt and not settings.ARGUS.rerank_prompts:
        return list(hits), Reranking(why="off for prompts", model=model.name)
    ahead = hits[:RERANKED_MAX]
    places = [place for place, hit in enumerate(ahead) if may_leave(confidentiality(hit))]
    withheld = len(ahead) - len(places)
    if len(places) < 2:
        why = "fewer than two texts that may leave" if withheld else "fewer than two texts"
        return list(hits), Reranking(why=why, model=model.name, withheld=withheld)
    shown = [ahead[place] for place in places]
    level = strictest([QUERY_CONFIDENTIALITY, *map(confidentiality, shown)])
    started = time.perf_counter()
    why, scores = "", list[float]()
    try:
        texts = [text(hit) for hit in shown]
        scores = model.rerank(query, texts, origin=Origin("recall", confidentiality=level))
    except (InfraError, ContentError, Confidential) as error:
        why = str(error)
    took = round((time.perf_counter() - started) * 1000, 2)
    given = dict(zip(places, scores, strict=True)) if not why else {}
    order = reorder(len(hits), given)
    said = Reranking(
        reranked=not why,
        why=why,
        model=model.name,
        shown=len(shown),
        withheld=withheld,
        milliseconds=took,
        scores=tuple(given.get(place) for place in order),
    )
    return [hits[place] for place in order], said


def shown_to_reranker(*, prompt: bool) -> int:
    """How many hits must be read whole, because a reranker will read them; 0 without one."""
    asked = reranker() is not None and (settings.ARGUS.rerank_prompts or not prompt)
    return RERANKED_MAX if asked else 0


def reorder(count: int, scores: Mapping[int, float]) -> list[int]:
    """Old places in new order: those with a score share out their own places, best first."""
    best_first = iter(sorted(scores, key=lambda place: (-scores[place], place)))
    return [next(best_first) if place in scores else place for place in range(count)]
