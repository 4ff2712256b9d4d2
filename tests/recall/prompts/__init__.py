"""Two labelled sets of prompts for each of two memories: off-topic ones and on-topic ones.

Written from what the memories were made of, not from what the engine returns. An off-topic prompt
is one that no note of the memory helps with, however much its words are those of the work; an
on-topic prompt says what a right note holds. Every second prompt is held out: floors are chosen on
the first half only. Deterministic; knows nothing about the engine.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass

#: Prompts of one set.
PROMPTS = 200

#: Why one number everywhere: the same prompts for everybody, today and tomorrow.
SEED = 20260317


@dataclass(frozen=True)
class Prompt:
    """What is typed, where, of which kind it is, and what a right note holds ("": nothing)."""

    text: str
    kind: str
    project: str = ""
    holds: tuple[str, ...] = ()
    held_out: bool = False

    @property
    def answerable(self) -> bool:
        return bool(self.holds)

    def answered_by(self, text: str) -> bool:
        """Whether a text holds one of the strings that a right note holds."""
        return any(one in text for one in self.holds)


def drawn(lines: Iterable[str], count: int, *, salt: str) -> list[str]:
    """`count` of these lines, always the same ones, in an order of their own."""
    distinct = list(dict.fromkeys(lines))
    assert len(distinct) >= count, f"{salt}: {len(distinct)} lines, {count} wanted"
    return random.Random(f"{SEED}{salt}").sample(distinct, count)


def halved(prompts: Iterable[Prompt]) -> list[Prompt]:
    """The same prompts; every second one of each kind is held out."""
    seen: dict[str, int] = {}
    marked = []
    for one in prompts:
        place = seen[one.kind] = seen.get(one.kind, 0) + 1
        marked.append(Prompt(one.text, one.kind, one.project, one.holds, held_out=place % 2 == 0))
    return marked
