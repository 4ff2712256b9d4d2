"""What an evaluation asks: items that can be found, and questions that say which ones are right.

Pure values. Knows nothing about file formats, databases or engines.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from memory.errors import RefusedError
from memory.models.record import Kind

#: The category of questions that nothing in memory answers.
NO_ANSWER = "no answer"


class DatasetProblem(RefusedError):
    """A data set cannot be read. The message names the file, the line and what is wrong."""


@dataclass(frozen=True)
class Item:
    """One thing to capture. `name` is unique in its pool, and what evidence refers to."""

    pool: str
    name: str
    text: str
    occurred_at: datetime
    kind: Kind = "turn"
    source: str = "eval"
    role: str = "user"
    session: str = ""
    speaker: str = ""

    @property
    def full_name(self) -> str:
        """The name among all pools."""
        return f"{self.pool}/{self.name}"

    @property
    def sort(self) -> str:
        """What the table by kind calls it: a bookmark is a document by kind alone."""
        return "bookmark" if self.source == "bookmark" else self.kind


@dataclass(frozen=True)
class Question:
    """A question to one pool. Each fact is the set of names any of which bears it out: full names.

    Without facts there is no answer, and whatever is put before an agent is a false injection.
    """

    pool: str
    text: str
    facts: tuple[frozenset[str], ...] = ()
    category: str = ""
    kind: str = ""


@dataclass(frozen=True)
class Dataset:
    """Items and questions of one file.

    `distil`: the whole pipeline runs, else raw items alone are ranked. `labels`: category -> words
    for people. `left_out`: what was not asked, by reason.
    """

    name: str
    items: tuple[Item, ...]
    questions: tuple[Question, ...]
    distil: bool = True
    labels: Mapping[str, str] = field(default_factory=dict)
    left_out: Mapping[str, int] = field(default_factory=dict)

    def first(self, limit: int | None) -> Dataset:
        """The first `limit` questions, with the pools that they ask; all without a limit."""
        if limit is None or limit >= len(self.questions):
            return self
        asked = self.questions[:limit]
        pools = {question.pool for question in asked}
        return replace(
            self,
            questions=asked,
            items=tuple(item for item in self.items if item.pool in pools),
            left_out={**self.left_out, "beyond the limit": len(self.questions) - limit},
        )
