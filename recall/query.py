"""Query: a question asked on purpose. Both sources, best first; floors are told, not enforced.

Reads: note, raw_item, by `recall.search`. Writes: emission. Audits: injection (mode query), for
every call, in the same transaction as the emission. Verify: every result is one that the asker may
see, and none that it asked never to see again.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from memory.llm.choice import embedder
from memory.models import Principal
from memory.text.clean import clean_text
from memory.text.secrets import redact
from memory.text.tongue import tongue
from recall.block import line
from recall.budget import ANSWER_CHARACTERS, Budget
from recall.calibration import InForce, in_force
from recall.floors import SOURCES, Source, told
from recall.gates import without_private
from recall.injections import record
from recall.reranking import Reranking, shown_to_reranker
from recall.results import as_json, fold, read, second_opinion
from recall.scoring import Hit, weigh_all
from recall.search import Past, Searched, search
from recall.where import NO_FACTS, Facts, Where, where
from recall.withheld import withhold

#: Results of a query when nothing else is asked for.
# Why: on dialogues these hold .83 of the evidence; who asks on purpose reads more than five, and
# asks for more where it is not among them.
# Calibrate: recall@10 of `manage.py eval` against the characters of an answer.
LIMIT = 10

#: The most of them that a caller may ask for.
# Why: a search keeps sixty of a source, and folding makes them fewer.
LIMIT_MAX = 50

#: Characters of a question; what comes after is not searched for.
# Why: as of a prompt: what is asked stands at the start or is short.
QUERY_CHARACTERS_MAX = 4_000


@dataclass(frozen=True)
class Answered:
    """The results in order, what did not fit, and everything that was weighed."""

    hits: tuple[Hit, ...]
    weighed: tuple[Hit, ...]
    omitted: int
    searched: Searched
    floors_told: Mapping[Source, Mapping[str, float]]
    reranking: Reranking
    milliseconds: float
    injection: int | None = None

    def as_json(self, *, explain: bool = False) -> dict[str, Any]:
        """The reply; with `explain` every number, which count to no budget."""
        reply: dict[str, Any] = {
            "results": [
                as_json(hit, rank, explain=explain) for rank, hit in enumerate(self.hits, start=1)
            ],
            "omitted": self.omitted,
            "degraded": list(self.searched.degraded),
            "detail": "; ".join(f"{k}: {why}" for k, why in self.searched.degraded.items()),
            "reranked": self.reranking.reranked,
            "floors": {source: dict(one) for source, one in self.floors_told.items()},
            "milliseconds": self.milliseconds,
            "injection": self.injection,
        }
        if explain:
            reply["words"] = list(self.searched.question.words)
            reply["timings"] = dict(self.searched.milliseconds)
            reply["reranking"] = self.reranking.as_json()
        return reply


def recall_query(
    question: str,
    *,
    principal: Principal,
    now: datetime,
    session: str = "",
    cwd: str = "",
    facts: Facts = NO_FACTS,
    project: str = "",
    sources: Sequence[Source] = SOURCES,
    limit: int = LIMIT,
    characters: int = ANSWER_CHARACTERS,
    past: Past | None = None,
) -> Answered:
    """Notes and turns for a question, best first, each statement once, at most `limit`."""
    started = time.perf_counter()
    here = where(principal=principal, session=session, cwd=cwd, facts=facts)
    # Redacted before it is cut: half a secret looks like none.
    text = without_private(clean_text(question)[0]).strip()[: 2 * QUERY_CHARACTERS_MAX]
    text = redact(text).text[:QUERY_CHARACTERS_MAX]
    model = embedder().name
    rules = in_force(model)
    only = here.named(project)
    searched = search(
        text,
        principal=principal,
        now=now,
        past=past,
        project=only,
        here=here.project_id,
        silent=here.names,
        # A project that nobody has holds nothing.
        sources=sources if only or not project else (),
        ranker=rules.ranker,
    )
    alike = here.named_alike(here.project)
    weighed = weigh_all(searched, rules.floors, project=here.project, now=now, alike=alike)
    weighed = withhold(
        weighed,
        principal=principal,
        now=now,
        silenced=searched.silenced,
        prompt=False,
        past=past is not None,
    )
    folded = fold([hit for hit in weighed if not hit.withheld])
    many = max(limit, shown_to_reranker(prompt=False))
    asker: dict[str, Any] = {"principal": principal, "here": here.project_id}
    top = read(folded[:many], searched, **asker, now=now, past=past is not None)
    top, reranking = second_opinion(searched, top, **asker, prompt=False)
    hits = _fitting(top[:limit], characters)
    answered = Answered(
        hits,
        tuple(weighed),
        len(folded) - len(hits),
        searched,
        told(rules.floors, model, tongue(text)),
        reranking,
        round((time.perf_counter() - started) * 1000, 2),
    )
    options = {
        "limit": limit, "sources": list(sources), "project": project,
        **(past.as_json() if past else {}),
    }  # fmt: skip
    injection = _record(answered, text, here, rules, options, principal=principal, now=now)
    return replace(answered, injection=injection)


def _record(
    answered: Answered,
    text: str,
    here: Where,
    rules: InForce,
    options: Mapping[str, Any],
    *,
    principal: Principal,
    now: datetime,
) -> int:
    return record(
        "query",
        here,
        principal=principal,
        now=now,
        query=text,
        outcome="answered" if answered.hits else "no_hits",
        hits=answered.hits,
        weighed=answered.weighed,
        floors=answered.floors_told,
        rules=rules,
        options={**options, "reranking": answered.reranking.as_json()},
        searched=answered.searched,
        omitted=answered.omitted,
        text="\n".join(line(hit.facts) for hit in answered.hits),
        milliseconds=answered.milliseconds,
    )


def _fitting(hits: Sequence[Hit], characters: int) -> tuple[Hit, ...]:
    """The hits whose results fit whole, in order: what the reply holds is what the ledger says."""
    budget = Budget(characters)
    return tuple(hit for hit in hits if budget.take(as_json(hit, len(hits), explain=False)))
