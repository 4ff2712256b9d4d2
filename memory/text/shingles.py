"""A small sample of a text's word windows, by which a copy of a part of it is known again.

Which windows are kept depends on their words alone, never on their place, so that a quotation keeps
the windows of its source. Knows nothing about where the numbers are stored.
"""

from __future__ import annotations

import hashlib
import re
from zlib import crc32

#: Words, and characters in scripts without spaces, of one window.
# Why: eight words in the same order are a copy, hardly a coincidence.
SHINGLE_WORDS = 8
SHINGLE_CHARS = 24

#: One window in so many is kept.
# Why: the sample of a 500 character text has some 20 numbers, of an 8,000 character block some 300.
# Calibrate: a copied sentence of 20 words should share at least two numbers with its source.
SAMPLE_RATIO = 4

_WORD = re.compile(r"[^\W_]+")
#: Mean length of a word from which the script is one without spaces.
_DENSE_CHARS_MIN = 12


def shingles(text: str) -> list[int]:
    """Return the distinct sampled windows as signed 64-bit numbers, at least one for a text with a
    word in it.

    A text shorter than a window is one window. Case, punctuation and spacing do not count.
    """
    units, size, glue = _WORD.findall(text.lower()), SHINGLE_WORDS, " "
    if units and sum(map(len, units)) > _DENSE_CHARS_MIN * len(units) and not text.isascii():
        units, size, glue = list("".join(units)), SHINGLE_CHARS, ""
    if not units:
        return []
    last = max(1, len(units) - size + 1)
    starts = [
        index
        for index in range(last)
        if crc32(units[index].encode("utf-8", "replace")) % SAMPLE_RATIO == 0
    ]
    if not starts:
        # Why: a text without a sampled word would be a text that nobody finds; its smallest window
        # stands for it.
        return [min(_number(glue.join(units[index : index + size])) for index in range(last))]
    return list(dict.fromkeys(_number(glue.join(units[index : index + size])) for index in starts))


def _number(window: str) -> int:
    digest = hashlib.blake2b(window.encode("utf-8", "replace"), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)
