"""The values that every transcript adapter yields, and the tally of one reading.

Knows nothing about any client's format, about files, or about the database.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections import Counter as CounterOf
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, Union

#: What a file can hold; the record knows more kinds, which come in by other doors.
Kind = Literal["turn", "document", "event", "synthesis"]


@dataclass(frozen=True)
class Turn:
    """One piece of visible words, as it will become a raw item.

    `occurred_at` is aware UTC or None (then `metadata["time_problem"]` says why). `locator` says
    where in its source it stands: `line` from 1, `start` and `end` as byte offsets for JSONL.
    """

    source: str
    kind: Kind
    role: str
    body: str
    session: str = ""
    cwd: str = ""
    project: str | None = None
    record_id: str | None = None
    occurred_at: datetime | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    locator: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Skip:
    """Something that was understood and is not a turn: `reason` is a word that can be counted."""

    reason: str
    line: int = 0
    path: str = ""


@dataclass(frozen=True)
class BadLine:
    """A line that could not be read, with its number from 1 and why."""

    line: int
    reason: str
    path: str = ""


Item = Union[Turn, Skip, BadLine]


@dataclass
class Reading:
    """What one pass over one file found; it fills while the items are drawn.

    `owner` is the name of the principal whose record it is read for, "" where nobody said.
    `offset` is the byte after the last line whose items have all been drawn: the place where the
    next pass may begin. A half-written last line is never behind it.
    """

    source: str | None = None
    path: str = ""
    owner: str = ""
    session: str = ""
    lines: int = 0
    turns: int = 0
    skipped: CounterOf[str] = field(default_factory=Counter)
    bad_lines: list[BadLine] = field(default_factory=list)
    offset: int = 0
    restarted: bool = False
    incomplete: bool = False

    def count(self, item: Item) -> Item:
        """Tally one item and hand it on."""
        if isinstance(item, Turn):
            self.turns += 1
            self.session = self.session or item.session
        elif isinstance(item, Skip):
            self.skipped[item.reason] += 1
        else:
            self.bad_lines.append(item)
        return item


def text_hash(text: str) -> str:
    """A short, stable name of a text: the first 32 hex digits of its sha256."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:32]


def word(value: Any) -> str:
    """`value` when it is a string, else the empty string: rows of other versions hold anything."""
    return value if isinstance(value, str) else ""


def stem_of(name: str) -> str:
    """The name of a file without its folders and its last suffix."""
    return os.path.splitext(os.path.basename(name))[0]


def fields(value: Any) -> dict[str, Any]:
    """`value` when it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def named(listed: str) -> frozenset[str]:
    """The words of one string as a set, for tables of type names."""
    return frozenset(listed.split())


def texts(content: Any, kinds: tuple[str, ...] = ("text",)) -> list[str]:
    """The text blocks of a message's content, whether it is one string or a list of blocks."""
    if isinstance(content, str):
        return [content]
    found: list[str] = []
    for block in content if isinstance(content, list) else []:
        if isinstance(block, str):
            found.append(block)
        elif isinstance(block, dict) and block.get("type") in kinds:
            found.append(word(block.get("text")))
    return found
