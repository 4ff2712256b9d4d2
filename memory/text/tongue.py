"""Which kind of tongue a prompt is in, as far as an embedder trained on English must know.

A guess from letters and function words. Knows nothing about embedders or floors.
"""

from __future__ import annotations

from memory.text.stopwords import ENGLISH, GERMAN
from memory.text.words import words

#: Kinds: English, another tongue in Latin letters, any other script.
TONGUES = ("english", "latin", "script")

#: Share of other letters from which a text is of their script.
# Why: a Chinese question names its tools in Latin letters, an English one quotes a word of Chinese.
# Calibrate: prompts of mixed script, by the tongue that a reader calls them.
SCRIPT_SHARE_MIN = 0.3


def tongue(text: str) -> str:
    """Return one of TONGUES; a text without a sign of any other is English."""
    letters = [char for char in text if char.isalpha()]
    others = sum(not _latin(char) for char in letters)
    if letters and others >= SCRIPT_SHARE_MIN * len(letters):
        return "script"
    said = set(words(text))
    english, german = len(said & (ENGLISH - GERMAN)), len(said & (GERMAN - ENGLISH))
    accented = any(not char.isascii() for char in letters)
    return "latin" if german > english or (accented and not english) else "english"


def _latin(char: str) -> bool:
    return char < "\u0250" or "\u1e00" <= char <= "\u1eff"
