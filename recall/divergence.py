"""How much a context shows in an answer: by the words that only it had, or by how a model begins.

Pure. Knows nothing about injections, models or who asks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memory.lexical import query_terms

#: Words of a text that nobody had said before, from which on an answer can show that it was used.
# Why: one word that comes again is chance.
# Calibrate: share of looks that are `untold`.
TELLING_WORDS_MIN = 3

#: Of those, words that must come again in the answer, and their share of the text's.
# Why: an answer of a page shares a word with any note of the same work. Tried on chat between two
# people: 6 % of foreign answers pass and 30 % of right ones of one to three words, which is what
# makes this a rate to compare weeks by and no truth about one answer.
# Calibrate: answers that followed a note against answers of other sessions.
SHARED_WORDS_MIN = 2
SHARED_WORDS_SHARE_MIN = 0.2

#: Least probability of anything.
# Why: what a server does not list is unlikely, not impossible.
PROBABILITY_MIN = 1e-6


@dataclass(frozen=True)
class Shared:
    """Of the words that only this text had: how many there are, how many the answer has."""

    telling: int
    found: int

    @property
    def share(self) -> float:
        return self.found / self.telling

    @property
    def used(self) -> bool:
        return self.found >= SHARED_WORDS_MIN and self.share >= SHARED_WORDS_SHARE_MIN


@dataclass(frozen=True)
class Overlap:
    """What is shared, by the name of the text; texts that could not show are not in it."""

    texts: Mapping[str, Shared]

    @property
    def told(self) -> bool:
        """Whether any text could have shown."""
        return bool(self.texts)

    @property
    def score(self) -> float:
        return max((one.share for one in self.texts.values()), default=0.0)

    @property
    def used(self) -> bool:
        return any(one.used for one in self.texts.values())

    def as_json(self) -> dict[str, dict[str, float]]:
        return {
            name: {"telling": one.telling, "found": one.found, "used": one.used}
            for name, one in self.texts.items()
        }


def compare(
    texts: Mapping[str, str],
    *,
    known: Sequence[str],
    reply: str,
    common: Callable[[frozenset[str]], frozenset[str]] = lambda words: frozenset(),
) -> Overlap:
    """How much of what only these texts say stands in the reply.

    `known` was said before (the prompt, the session so far): its words tell nothing, nor do those
    that `common` names among the rest.
    """
    said = frozenset().union(*map(stems, known)) if known else frozenset[str]()
    own = {name: stems(text) - said for name, text in texts.items()}
    everyday = common(frozenset().union(*own.values())) if own else frozenset[str]()
    answer = stems(reply)
    telling = {name: words - everyday for name, words in own.items()}
    return Overlap(
        {
            name: Shared(len(words), len(words & answer))
            for name, words in telling.items()
            if len(words) >= TELLING_WORDS_MIN
        }
    )


def stems(text: str) -> frozenset[str]:
    """The distinct stemmed words of a text, without stop words."""
    return frozenset(query_terms(text))


def reply_of(turns: Sequence[tuple[str, str]]) -> str:
    """The answer at the head of these (role, text) turns: what the assistant says until somebody
    else speaks; what stands before its first word (the prompt itself, by its clock) is not in."""
    said: list[str] = []
    for role, text in turns:
        if role == "assistant":
            said.append(text)
        elif said:
            break
    return "\n".join(said)


@dataclass(frozen=True)
class Compared:
    """Two openings: divergence of each pair of tokens in nats, and how many begin alike."""

    nats: tuple[float, ...]
    alike: int

    @property
    def mean(self) -> float:
        return sum(self.nats) / len(self.nats) if self.nats else 0.0

    def as_json(self) -> dict[str, Any]:
        return {"nats": [round(one, 4) for one in self.nats], "alike": self.alike}


def divergence(
    given: Sequence[Mapping[str, float]], without: Sequence[Mapping[str, float]]
) -> Compared:
    """Kullback-Leibler divergence of `given` from `without`, token by token, over what both have.

    Each token is a mapping of its likeliest values to natural log-probabilities.
    """
    pairs = list(zip(given, without, strict=False))
    alike = 0
    for one, other in pairs:
        if max(one, key=one.__getitem__) != max(other, key=other.__getitem__):
            break
        alike += 1
    return Compared(tuple(_divergence(one, other) for one, other in pairs), alike)


def _divergence(p: Mapping[str, float], q: Mapping[str, float]) -> float:
    values = sorted({*p, *q})
    ps, qs = _spread(p, values), _spread(q, values)
    return max(0.0, sum(one * math.log(one / other) for one, other in zip(ps, qs, strict=True)))


def _spread(listed: Mapping[str, float], values: Sequence[str]) -> list[float]:
    """Probabilities of these values and, last, of all the rest; they sum to 1.

    What is not listed shares what the list leaves, each no more than the least that is listed.
    """
    chances = {value: math.exp(number) for value, number in listed.items()}
    left = max(PROBABILITY_MIN, 1.0 - sum(chances.values()))
    unlisted = sum(value not in chances for value in values)
    each = max(PROBABILITY_MIN, min(min(chances.values()), left / (unlisted + 1)))
    found = [max(PROBABILITY_MIN, chances.get(value, each)) for value in values]
    found.append(max(PROBABILITY_MIN, left - each * unlisted))
    whole = sum(found)
    return [one / whole for one in found]
