"""English stems by Porter's algorithm (1980), for words that are plain ASCII letters.

Anything else (identifiers, numbers, other scripts) is its own stem. Knows nothing about queries or
indexes: both must simply use it alike.
"""

from __future__ import annotations

import re
from functools import lru_cache

_C = "[^aeiou][^aeiouy]*"
_V = "[aeiouy][aeiou]*"
_MEASURE_1 = re.compile(f"^({_C})?{_V}{_C}")
_MEASURE_IS_1 = re.compile(f"^({_C})?{_V}{_C}({_V})?$")
_MEASURE_2 = re.compile(f"^({_C})?{_V}{_C}{_V}{_C}")
_VOWEL = re.compile(f"^({_C})?[aeiouy]")
_SHORT = re.compile(f"^{_C}[aeiouy][^aeiouwxy]$")
_DOUBLE = re.compile(r"([^aeiouylsz])\1$")

_STEP_2 = {
    "ational": "ate", "tional": "tion", "enci": "ence", "anci": "ance", "izer": "ize",
    "bli": "ble", "alli": "al", "entli": "ent", "eli": "e", "ousli": "ous", "ization": "ize",
    "ation": "ate", "ator": "ate", "alism": "al", "iveness": "ive", "fulness": "ful",
    "ousness": "ous", "aliti": "al", "iviti": "ive", "biliti": "ble", "logi": "log",
}  # fmt: skip
_STEP_3 = {
    "icate": "ic", "ative": "", "alize": "al", "iciti": "ic", "ical": "ic", "ful": "", "ness": "",
}  # fmt: skip
_STEP_4 = (
    "ement", "ance", "ence", "able", "ible", "ment", "ant", "ent", "ism", "ate", "iti", "ous",
    "ive", "ize", "al", "er", "ic", "ou",
)  # fmt: skip
_STEPS_2 = sorted(_STEP_2, key=len, reverse=True)
_STEPS_3 = sorted(_STEP_3, key=len, reverse=True)

#: Stems kept in memory.
# Why: talk about code uses a few ten thousand words; each kept one costs 100 bytes.
# Calibrate: cache_info() on a real corpus should show hits above 95 %.
STEMS_CACHED_MAX = 65_536


@lru_cache(maxsize=STEMS_CACHED_MAX)
def stem(word: str) -> str:
    """Return the stem of a lower-case word; short or not plain letters: the word itself."""
    if len(word) < 4 or not word.isascii() or not word.isalpha():
        return word
    word = _endings(_plural(word))
    word = _replace(word, _STEPS_2, _STEP_2)
    word = _replace(word, _STEPS_3, _STEP_3)
    return _tidy(_long(word))


def _plural(word: str) -> str:
    if word.endswith(("sses", "ies")):
        return word[:-2]
    if word.endswith("s") and not word.endswith("ss"):
        return word[:-1]
    return word


def _endings(word: str) -> str:
    """Take off -eed, -ed and -ing, mend what is left, and turn a last y into i."""
    if word.endswith("eed"):
        if _MEASURE_1.match(word[:-3]):
            word = word[:-1]
    else:
        for ending in ("ed", "ing"):
            rest = word[: -len(ending)]
            if word.endswith(ending) and _VOWEL.match(rest):
                if rest.endswith(("at", "bl", "iz")) or _SHORT.match(rest):
                    word = rest + "e"
                else:
                    word = rest[:-1] if _DOUBLE.search(rest) else rest
                break
    if word.endswith("y") and _VOWEL.match(word[:-1]):
        word = word[:-1] + "i"
    return word


def _replace(word: str, endings: list[str], table: dict[str, str]) -> str:
    for ending in endings:
        if word.endswith(ending):
            rest = word[: -len(ending)]
            return rest + table[ending] if _MEASURE_1.match(rest) else word
    return word


def _long(word: str) -> str:
    for ending in _STEP_4:
        if word.endswith(ending):
            rest = word[: -len(ending)]
            return rest if _MEASURE_2.match(rest) else word
    if word.endswith(("sion", "tion")) and _MEASURE_2.match(word[:-3]):
        return word[:-3]
    return word


def _tidy(word: str) -> str:
    if word.endswith("e"):
        rest = word[:-1]
        if _MEASURE_2.match(rest) or (_MEASURE_IS_1.match(rest) and not _SHORT.match(rest)):
            word = rest
    if word.endswith("ll") and _MEASURE_2.match(word):
        word = word[:-1]
    return word
