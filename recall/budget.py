"""What fits into so many characters of JSON: whole pieces in order, and how many do not. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

#: Characters that an answer has when nothing else is asked for, and the least and the most of it.
# Why: what a client passes on whole; below some hundred there is no room for the note itself.
ANSWER_CHARACTERS = 8_000
ANSWER_CHARACTERS_MIN = 500
ANSWER_CHARACTERS_MAX = 100_000


@dataclass
class Budget:
    """Characters that are left, and how many pieces of each kind did not fit."""

    left: int
    omitted: dict[str, int] = field(default_factory=dict)

    def take(self, piece: Any) -> bool:
        """Spend what the piece costs; False when it does not fit, and nothing is spent."""
        cost = size(piece) + 1
        if cost > self.left:
            return False
        self.left -= cost
        return True

    def fit(self, kind: str, pieces: Iterable[Any]) -> list[Any]:
        """The pieces that fit, in order; one that does not is left out whole and counted."""
        kept = []
        for piece in pieces:
            if self.take(piece):
                kept.append(piece)
            else:
                self.omit(kind)
        return kept

    def omit(self, kind: str, count: int = 1) -> None:
        """Count pieces that were left out."""
        self.omitted[kind] = self.omitted.get(kind, 0) + count


def size(value: Any) -> int:
    """Characters of a value as the API writes it."""
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")))
