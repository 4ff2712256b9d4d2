"""The write gate: a candidate becomes a note only when the record bears it out. Pure.

Order: shape, poison, grounding, title, injection, secret. The verifier, which asks a model, comes
after and lives in distill. Knows nothing about where candidates come from or where they go.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from memory.llm.ports import Candidate, Passage
from memory.text.poison import instruction, poison
from memory.text.secrets import redact
from memory.text.words import meaningful

#: Characters of a title.
TITLE_CHARACTERS_MAX = 80

#: Characters of a note's content.
# Why: a note is one fact; longer texts are copies of the record.
# Calibrate: length of notes that people open against those that they never do.
CONTENT_CHARACTERS_MAX = 2_000

#: Meaningful tokens of a quote below which it bears nothing out.
# Why: "the" stands in every text; a quote must be found because it was said.
QUOTE_TOKENS_MIN = 2


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


def judge(candidate: Candidate, passages: Sequence[Passage]) -> Grounded | Rejection:
    """Refuse the candidate, or ground it in the earliest passage that holds its quote."""
    text = f"{candidate.title}\n{candidate.content}"
    if not candidate.content.strip() or not candidate.title.strip():
        return Rejection(candidate, "shape", "a note needs a title and content")
    if len(candidate.content) > CONTENT_CHARACTERS_MAX:
        return Rejection(candidate, "shape", f"{len(candidate.content)} characters of content")
    if what := poison(candidate.content, "assistant"):
        return Rejection(candidate, "poison", what)
    grounded = ground(candidate, passages)
    if isinstance(grounded, Rejection):
        return grounded
    if len(candidate.title) > TITLE_CHARACTERS_MAX:
        return Rejection(candidate, "title", f"{len(candidate.title)} characters")
    words = " ".join((*candidate.keywords, *candidate.tags))
    if what := instruction(f"{text}\n{candidate.context}\n{words}\n{grounded.quote}"):
        return Rejection(candidate, "injection", what)
    if found := redact(f"{text}\n{candidate.context}\n{words}").counts:
        return Rejection(candidate, "secret", ", ".join(sorted(found)))
    return grounded


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


def _redacted(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_redacted(one) for one in value]
    return redact(value).text if isinstance(value, str) else value
