"""Grounding: which words of the record bear a refused candidate out, as a person reads them. Pure.

Knows nothing about where passages come from, or about what becomes of a candidate.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, get_args

from memory import gate
from memory.errors import RefusedError
from memory.llm.ports import Candidate, MemoryKind, Passage
from memory.text.words import meaningful

#: Characters of the words that a person names as evidence.
# Why: evidence is the place that says it; a whole document bears everything and nothing out.
# Calibrate: lengths of the quotes of notes that nobody calls wrong.
EVIDENCE_CHARACTERS_MAX = 2_000

#: Kinds of memory that a note may be of.
KINDS: tuple[str, ...] = get_args(MemoryKind)

_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Words:
    """Where a person says that the record bears a candidate out: the words, in this raw item of the
    unit or (0) in any. Without words the whole item; `title` in place of one that does not fit."""

    quote: str = ""
    item: int = 0
    title: str = ""


def candidate_of(said: Mapping[str, Any]) -> Candidate:
    """The candidate as its row keeps it: what was a secret in it is not there any more. Rows of
    another shape are read as a distiller's reply is: what is no text, number or word is none."""
    kind = said.get("memory_kind")
    return Candidate(
        title=_text(said.get("title")),
        content=_text(said.get("content")),
        source_ref=_text(said.get("source_ref")),
        importance=_importance(said.get("importance")),
        keywords=_words(said.get("keywords")),
        tags=_words(said.get("tags")),
        context=_text(said.get("context")),
        memory_kind=kind if kind in KINDS else "semantic",
    )


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _words(value: object) -> tuple[str, ...]:
    if not isinstance(value, list | tuple):
        return ()
    return tuple(word for word in value if isinstance(word, str))


def _importance(value: object) -> float:
    """A number between 0 and 1; 0.0 for what is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0.0
    # Compared before it is converted: an int may be larger than any float.
    return float(min(1, max(0, value)))


def borne_out(candidate: Candidate, passages: Iterable[Passage], words: Words) -> gate.Grounded:
    """The span of the record that a candidate stands on. Pure. Raises RefusedError without one."""
    among = [one for one in passages if words.item in (0, one.item_id)]
    if not among:
        raise RefusedError("that raw item is not in the unit", reason="grounding")
    quote = words.quote.strip()
    if not quote and words.item:
        whole = among[0]
        if len(whole.body) > EVIDENCE_CHARACTERS_MAX:
            raise RefusedError("that text is long: name the words in it that say so", "grounding")
        return _whole(candidate, whole)
    found = find(quote or candidate.source_ref, among, candidate)
    if isinstance(found, gate.Rejection):
        raise RefusedError(f"{found.detail}: name the words of the record that say so", "grounding")
    if found.end - found.start > EVIDENCE_CHARACTERS_MAX:
        raise RefusedError(f"evidence has {EVIDENCE_CHARACTERS_MAX} characters at most")
    return found


def find(
    quote: str, passages: Iterable[Passage], candidate: Candidate
) -> gate.Grounded | gate.Rejection:
    """Look for a quote as the gate does, then as a person reads: letter case and marks aside."""
    among = list(passages)
    quoted = replace(candidate, source_ref=quote[:EVIDENCE_CHARACTERS_MAX])
    exact = gate.ground(quoted, among)
    spoken = _WORD.findall(quoted.source_ref)
    if isinstance(exact, gate.Grounded) or meaningful(quote) < gate.QUOTE_TOKENS_MIN or not spoken:
        return exact
    pattern = re.compile(r"\b" + r"\W+".join(map(re.escape, spoken)) + r"\b", re.IGNORECASE)
    for passage in sorted(among, key=lambda one: (one.occurred_at, one.item_id)):
        if match := pattern.search(passage.body):
            return gate.Grounded(quoted, passage, match.start(), match.end())
    return exact


def _whole(candidate: Candidate, passage: Passage) -> gate.Grounded:
    body = passage.body
    start = len(body) - len(body.lstrip())
    end = len(body.rstrip())
    if meaningful(body) < gate.QUOTE_TOKENS_MIN:
        raise RefusedError("that text is too short to bear anything out", reason="grounding")
    return gate.Grounded(candidate, passage, start, end)
