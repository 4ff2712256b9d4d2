"""A small sample of a text's word windows, by which a copy of a part of it is known again.

Which windows are kept depends on their words alone, never on their place, so that a quotation keeps
the windows of its source. Knows nothing about where the numbers are stored.
"""

from __future__ import annotations

import re
from functools import lru_cache
from zlib import adler32, crc32

#: Words, and characters in scripts without spaces, of one window.
# Why: eight words in the same order are a copy, hardly a coincidence.
SHINGLE_WORDS = 8
SHINGLE_CHARS = 24

#: One window in so many is kept.
# Why: the sample of a 500 character text has some 20 numbers, of an 8,000 character block some 300.
# Calibrate: a copied sentence of 20 words should share at least two numbers with its source.
SAMPLE_RATIO = 4

#: Words whose fate is remembered.
# Why: a session repeats its words, and asking anew costs four times what looking up does.
WORDS_CACHED_MAX = 32_768

_WORD = re.compile(r"[^\W_]+")

# Scripts without spaces (Thai, Lao, Tibetan, Burmese, Khmer, kana, Han): a character is a unit.
_UNSPACED = "\u0e00-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_CHARACTER = re.compile("[" + _UNSPACED + "]")
_UNIT = re.compile(r"[" + _UNSPACED + r"]|(?:[^\W_" + _UNSPACED + r"])+")


def shingles(text: str) -> list[int]:
    """Return the distinct sampled windows as signed 64-bit numbers, at least one for a text with a
    word in it.

    A text shorter than a window is one window. Case, punctuation and spacing do not count, nor does
    what stands around a passage: in a text of two scripts each part keeps its windows.
    """
    units, ends = spread(text)
    if not units:
        return []
    starts = [index for index in range(len(ends)) if _opens(units[index])]
    if not starts:
        # Why: a text without a sampled word would be a text that nobody finds; its smallest window
        # stands for it.
        return [min(number(" ".join(units[index:end])) for index, end in enumerate(ends))]
    return list(dict.fromkeys(number(" ".join(units[index : ends[index]])) for index in starts))


def spread(text: str) -> tuple[list[str], list[int]]:
    """A text's words (characters in scripts without spaces), and where the window ends that begins
    at each of the first of them: all windows there are, one at least."""
    low = text.lower()
    if low.isascii() or not _CHARACTER.search(low):
        units = _WORD.findall(low)
        ends = [index + SHINGLE_WORDS for index in range(max(1, len(units) - SHINGLE_WORDS + 1))]
    else:
        units = _UNIT.findall(low)
        ends = _ends(units)
    return units, ends


def number(window: str) -> int:
    """A window, its words with a space between each two, as a signed 64-bit number."""
    # Why not a digest: nobody gains by a collision, and this is the path that must be fast.
    raw = window.encode("utf-8", "replace")
    return (crc32(raw) << 32 | adler32(raw)) - (1 << 63)


@lru_cache(maxsize=WORDS_CACHED_MAX)
def _opens(unit: str) -> bool:
    """Whether windows that begin with this word are kept."""
    return crc32(unit.encode("utf-8", "replace")) % SAMPLE_RATIO == 0


def _ends(units: list[str]) -> list[int]:
    """Where the window that begins at each unit ends, while there is a whole one (one at least)."""
    full = SHINGLE_WORDS * SHINGLE_CHARS
    weights = [SHINGLE_WORDS if _CHARACTER.match(unit) else SHINGLE_CHARS for unit in units]
    ends: list[int] = []
    end, weight = 0, 0
    for index in range(len(units)):
        while weight < full and end < len(units):
            weight += weights[end]
            end += 1
        if weight < full and index:
            break
        ends.append(end)
        weight -= weights[index]
    return ends
