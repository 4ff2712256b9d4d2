"""Cuts the passages of one unit into windows that fit one model call. Pure.

Turns are cut between turns, documents at headings; only what is too long by itself is cut
further, at the best border inside it. Every piece is a verbatim range of its passage.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from memory.llm.ports import Passage
from memory.llm.remote.tokens import BYTES_PER_TOKEN, estimate

#: Tokens of evidence in one call.
# Why: small local models lose the middle of long prompts, and many are served with 8k of context.
# Calibrate: notes kept per 1,000 tokens of evidence, by window size.
DISTILL_TOKENS_MAX = 5_000

# Borders, best first: Markdown headings, paragraphs, lines, sentences, words.
_BORDERS = (r"\n(?=#{1,6} )", r"\n\s*\n", r"\n", r"(?<=[.!?。！？])\s*", r"\s")


@dataclass(frozen=True)
class Extract:
    """A verbatim range of a passage; `number` is the passage's place in its unit, from 1."""

    number: int
    passage: Passage
    text: str


def windows(
    passages: Sequence[Passage], tokens_max: int = DISTILL_TOKENS_MAX
) -> list[list[Extract]]:
    """Group a unit's passages, in order, into windows of at most `tokens_max` estimated tokens."""
    found: list[list[Extract]] = []
    room = 0
    for number, passage in enumerate(passages, start=1):
        for text in _pieces(passage.body, tokens_max):
            size = estimate(text)
            if size > room:
                found.append([])
                room = tokens_max
            found[-1].append(Extract(number, passage, text))
            room -= size
    return found


def _pieces(text: str, tokens_max: int, borders: Sequence[str] = _BORDERS) -> Iterator[str]:
    """The text in ranges that fit, cut at the best border that there is."""
    if estimate(text) <= tokens_max:
        if text.strip():
            yield text
        return
    if not borders:
        # No border at all (a wall of base64): by length, dense scripts counted as one a character.
        step = tokens_max if not text.isascii() else tokens_max * BYTES_PER_TOKEN
        for start in range(0, len(text), step):
            yield text[start : start + step]
        return
    pending = ""
    for part in _split(text, borders[0]):
        if estimate(pending + part) <= tokens_max:
            pending += part
            continue
        if pending.strip():
            yield pending
        pending = ""
        if estimate(part) <= tokens_max:
            pending = part
        else:
            yield from _pieces(part, tokens_max, borders[1:])
    if pending.strip():
        yield pending


def _split(text: str, border: str) -> Iterator[str]:
    """The text cut after each border, nothing lost."""
    start = 0
    for match in re.finditer(border, text):
        if match.end() > start:
            yield text[start : match.end()]
            start = match.end()
    yield text[start:]
