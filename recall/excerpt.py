"""The part of a long text that a question is about: whole sentences, the fittest ones. Pure."""

from __future__ import annotations

from collections.abc import Collection

from memory.text.sentences import sentences
from memory.text.stem import stem
from memory.text.words import words

#: Characters of an excerpt.
# Why: about what a note has; a turn that must be read whole has a page of its own.
# Calibrate: answers that stand in a turn and not in its excerpt.
EXCERPT_CHARACTERS_MAX = 480

#: Characters of a text in which the fittest sentence is looked for.
# Why: a pasted log of a megabyte must not keep a prompt waiting.
LOOKED_AT_CHARACTERS_MAX = 8_000

#: Characters in which a space is looked for, where a piece of a sentence may begin.
# Why: longer than a word, and than most paths.
WORD_CHARACTERS_MAX = 40

ELLIPSIS = "…"


def excerpt(text: str, asked: Collection[str], *, characters: int = EXCERPT_CHARACTERS_MAX) -> str:
    """At most so many characters: the text itself when it fits, else its sentence with most of the
    asked stems and what follows, cut at a word; what is left out is marked."""
    text = text.strip()
    if len(text) <= characters:
        return text
    room = characters - 2 * len(ELLIPSIS)
    best = _fittest(text[:LOOKED_AT_CHARACTERS_MAX], frozenset(asked), room)
    cut = text[best : best + room]
    if best + room < len(text):
        head, space, _ = cut.rpartition(" ")
        cut = (head if space and len(head) > room // 2 else cut) + ELLIPSIS
    return f"{ELLIPSIS}{cut}" if best else cut


def _fittest(text: str, asked: frozenset[str], room: int) -> int:
    """Where the sentence begins that has most of what is asked; in one that is longer than there is
    room, the piece of it that has."""
    spans = sentences(text)
    if not spans:
        return 0
    best = max(spans, key=lambda span: (_held(span.text, asked), -span.start))
    if len(best.text) <= room or not asked:
        return best.start
    starts = [_word(text, at) for at in range(best.start, best.end, max(room // 2, 1))]
    starts[0] = best.start

    def fitness(at: int) -> tuple[int, int, int]:
        # Of pieces that have the same, the one that goes on for some words after it.
        here = text[at : min(at + room, best.end)]
        return _held(here, asked), _held(here[: room * 3 // 4], asked), -at

    return max(starts, key=fitness)


def _word(text: str, at: int) -> int:
    """The next word's beginning, where one is near: scripts without spaces are cut anywhere."""
    space = text.find(" ", at, at + WORD_CHARACTERS_MAX)
    return space + 1 if space >= 0 else at


def _held(text: str, asked: frozenset[str]) -> int:
    return len(asked.intersection(map(stem, words(text))))
