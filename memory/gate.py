"""The write gate: a candidate becomes a note only when the record bears it out. Pure.

Order: shape, rejected, poison, grounding, title, injection, secret. The verifier, which asks a
model, comes after and lives in `memory.making`. Knows nothing about where candidates come from or
where they go, or where what a person refused is kept (`memory.rejected` reads it).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any
from zlib import crc32

from memory.llm.ports import Candidate, Passage
from memory.text.identity import sha256
from memory.text.poison import instruction, poison
from memory.text.secrets import redact
from memory.text.shingles import shingles
from memory.text.words import meaningful, normalise

#: Characters of a title.
TITLE_CHARACTERS_MAX = 80

#: Characters of a note's content.
# Why: a note is one fact; longer texts are copies of the record.
# Calibrate: length of notes that people open against those that they never do.
CONTENT_CHARACTERS_MAX = 2_000

#: Meaningful tokens of a quote below which it bears nothing out.
# Why: "the" stands in every text; a quote must be found because it was said.
QUOTE_TOKENS_MIN = 2

#: Windows of a rejected fact from which on it is known again by them, and not by its key alone.
# Why: in a short statement one other word is another fact; eight windows are some forty words.
# Tried with one word changed: nine windows in ten are left in 30 texts of a hundred, of 14 words
# (which have two windows) as of 32; in longer ones more often, and there a word matters less.
# Calibrate: refusals with the reason `rejected` that people accept after all.
WINDOWS_MIN = 8

#: Share of a rejected fact's windows that a candidate has to hold to say it again.
# Why: a word put before or after it changes none; one word in fifty changes a tenth.
# Calibrate: with WINDOWS_MIN.
WINDOWS_SHARE_MIN = 0.9

_NUMBER = re.compile(r"[^\W_]*\d[^\W_]*")


@dataclass(frozen=True)
class Grounded:
    """A candidate with the span that bears it out: passage.body[start:end] is the quote."""

    candidate: Candidate
    passage: Passage
    start: int
    end: int

    @property
    def quote(self) -> str:
        return self.passage.body[self.start : self.end]


@dataclass(frozen=True)
class Rejection:
    """A refused candidate: the reason is a word to count, the detail is for a person."""

    candidate: Candidate
    reason: str
    detail: str = ""

    def as_json(self) -> dict[str, Any]:
        """The candidate for its row; what it may not say is not kept there either."""
        fields = asdict(self.candidate)
        return {name: _redacted(value) for name, value in fields.items()}


@dataclass(frozen=True)
class Unwanted:
    """A rejected fact as the gate sees it: hashes, and who never wants to learn it, since when."""

    key: str
    windows: frozenset[int]
    by: str
    since: datetime

    def __str__(self) -> str:
        return f"{self.by} refused to learn this at {self.since:%Y-%m-%d %H:%M}Z"


def judge(
    candidate: Candidate, passages: Sequence[Passage], *, unwanted: Sequence[Unwanted] = ()
) -> Grounded | Rejection:
    """Refuse the candidate, or ground it in the earliest passage that holds its quote."""
    if not candidate.content.strip() or not candidate.title.strip():
        return Rejection(candidate, "shape", "a note needs a title and content")
    if len(candidate.content) > CONTENT_CHARACTERS_MAX:
        return Rejection(candidate, "shape", f"{len(candidate.content)} characters of content")
    if fact := said_again(candidate.content, unwanted):
        return Rejection(candidate, "rejected", str(fact))
    if what := poison(candidate.content, "assistant"):
        return Rejection(candidate, "poison", what)
    grounded = ground(candidate, passages)
    if isinstance(grounded, Rejection):
        return grounded
    if len(candidate.title) > TITLE_CHARACTERS_MAX:
        return Rejection(candidate, "title", f"{len(candidate.title)} characters")
    if what := instruction(f"{wording(candidate)}\n{grounded.quote}"):
        return Rejection(candidate, "injection", what)
    if found := redact(wording(candidate)).counts:
        return Rejection(candidate, "secret", ", ".join(sorted(found)))
    return grounded


def harmful(candidate: Candidate, quote: str) -> Rejection | None:
    """What makes a note of it a risk, whatever else it was refused for: it reads like an error, or
    like an order to an agent. `judge` stops at the first fault and may not have looked.
    """
    if what := poison(candidate.content, "assistant"):
        return Rejection(candidate, "poison", what)
    if what := instruction(f"{wording(candidate)}\n{quote}"):
        return Rejection(candidate, "injection", what)
    return None


def wording(candidate: Candidate) -> str:
    """All that a note of this candidate would say, as one text."""
    words = " ".join((*candidate.keywords, *candidate.tags))
    return f"{candidate.title}\n{candidate.content}\n{candidate.context}\n{words}"


def ground(candidate: Candidate, passages: Sequence[Passage]) -> Grounded | Rejection:
    """Find the quote as a span of one passage, whitespace aside; earliest passage first."""
    quoted = candidate.source_ref.split()
    if meaningful(candidate.source_ref) < QUOTE_TOKENS_MIN:
        return Rejection(candidate, "grounding", "the quote is too short to bear anything out")
    pattern = re.compile(r"\s+".join(map(re.escape, quoted)))
    for passage in sorted(passages, key=lambda p: (p.occurred_at, p.item_id)):
        if match := pattern.search(passage.body):
            return Grounded(candidate, passage, match.start(), match.end())
    joined = "\n".join(passage.body for passage in passages)
    spans_turns = len(passages) > 1 and pattern.search(joined)
    return Rejection(
        candidate,
        "grounding",
        "the quote runs over two turns" if spans_turns else "no passage holds the quote",
    )


def said_again(content: str, unwanted: Sequence[Unwanted]) -> Unwanted | None:
    """The rejected fact that this content says again: word for word, or nearly all of it."""
    if not unwanted:
        return None
    key, held = content_key(content), frozenset(windows(content))
    for fact in unwanted:
        long = len(fact.windows) >= WINDOWS_MIN
        nearly = WINDOWS_SHARE_MIN * len(fact.windows)
        if fact.key == key or (long and len(fact.windows & held) >= nearly):
            return fact
    return None


def content_key(content: str) -> str:
    """What two notes share that say the same but for case, spacing and marks."""
    return sha256(normalise(content))


def windows(content: str) -> list[int]:
    """Word windows by which a statement is known again inside another one, as signed 64-bit
    numbers; those of a statement with other figures in it are others, wherever the figures stand.
    """
    figures = sorted(set(_NUMBER.findall(content.lower())))
    salt = crc32(" ".join(figures).encode("utf-8", "replace")) if figures else 0
    return [window ^ salt for window in shingles(content)]


def _redacted(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_redacted(one) for one in value]
    return redact(value).text if isinstance(value, str) else value
