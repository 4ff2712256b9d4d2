"""Passages: every window of words of some texts, and which of them another text holds.

`shingles` samples, because it is asked at each post; this forgets nothing, because it is asked
whether words that were to go are gone. Pure. Knows nothing about where the texts stand.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from unicodedata import normalize

from memory.text.folding import INVISIBLE
from memory.text.shingles import SHINGLE_CHARS, number
from memory.text.shingles import spread as spread_

#: Windows that are kept, at most; of more than that every second is, or every fourth, ...
# Why: a set of a million numbers takes about 100 MB.
WINDOWS_MAX = 1_000_000

#: A text shorter than a window is looked for inside of others when it has so many words and
#: characters, ...
# Why: "go on" stands everywhere, and proves nothing wherever it is found.
# Calibrate: what the proof of a purge calls elsewhere, read by eye.
SHORT_WORDS_MIN = 3
SHORT_CHARACTERS_MIN = 12

#: ... or when one of its words has so many characters, or so many with letters and digits in it.
# Why: a key or a password is a word that nobody says by chance.
KEY_CHARACTERS_MIN = 16
MIXED_CHARACTERS_MIN = 6

#: Any other of so many words is looked for as the whole of a text; a single plain one not at all.
# Why: "done" and "ok" are values of ours in every table.
WHOLE_WORDS_MIN = 2


_UNSEEN = re.compile("[{}]+".format("".join(f"{run[0]}-{run[1]}" for run in INVISIBLE)))


@dataclass
class Passages:
    """Windows by number. `firsts`: the words that any of them begins with. `short`: texts of a
    window or less, by their number of words, in the same numbers; `whole`: those that count only
    where a text says nothing else. `every`: one window in so many is known. `left_out`: texts that
    nothing can tell from anybody's. `shortest`: characters of the shortest that is known."""

    windows: set[int] = field(default_factory=set)
    firsts: set[str] = field(default_factory=set)
    short: dict[int, set[int]] = field(default_factory=dict)
    whole: set[int] = field(default_factory=set)
    every: int = 1
    left_out: int = 0
    shortest: int = SHORT_CHARACTERS_MIN

    def add(self, text: str, *, short: bool = True) -> None:
        """Know the windows of this text from now on. `short`: also the whole of it, where it has no
        more words than a window."""
        units, ends = spread(text)
        if not units:
            return
        if len(ends) == 1 and len(units) <= SHINGLE_CHARS:
            if short:
                self._add_short(units)
            return
        for start, end in enumerate(ends):
            one = number(" ".join(units[start:end]))
            if one % self.every == 0:
                self.windows.add(one)
                self.firsts.add(units[start])
        while len(self.windows) > WINDOWS_MAX:
            self.every *= 2
            self.windows = {one for one in self.windows if one % self.every == 0}

    def _add_short(self, units: list[str]) -> None:
        text = " ".join(units)
        if _telling(units, text):
            self.short.setdefault(len(units), set()).add(number(text))
            self.firsts.add(units[0])
        elif len(units) >= WHOLE_WORDS_MIN:
            self.whole.add(number(text))
        else:
            self.left_out += 1
            return
        # Without the spaces: scripts that have none are spread with them.
        self.shortest = min(self.shortest, sum(map(len, units)))

    def in_text(self, text: str) -> set[int]:
        """Which of the windows stand in this text."""
        # Why: most texts of a row are a word, a number or a hash, and hardly a window is one word.
        if len(text) < self.shortest or (1 not in self.short and text.isascii() and text.isalnum()):
            return set()
        units, ends = spread(text)
        firsts, windows = self.firsts, self.windows
        found: set[int] = set()
        if self.whole and len(units) <= SHINGLE_CHARS:
            found = {number(" ".join(units))} & self.whole
        for start in [at for at, unit in enumerate(units) if unit in firsts]:
            if start < len(ends):
                one = number(" ".join(units[start : ends[start]]))
                if one in windows:
                    found.add(one)
            for length, known in self.short.items():
                if start + length <= len(units):
                    one = number(" ".join(units[start : start + length]))
                    if one in known:
                        found.add(one)
        return found

    def without(self, numbers: Collection[int]) -> Passages:
        """The same but for these."""
        gone = set(numbers)
        short = {length: known - gone for length, known in self.short.items()}
        return replace(self, windows=self.windows - gone, short=short, whole=self.whole - gone)

    def only(self, numbers: Collection[int]) -> Passages:
        """These of them alone."""
        kept = set(numbers)
        short = {length: known & kept for length, known in self.short.items()}
        return replace(self, windows=self.windows & kept, short=short, whole=self.whole & kept)

    def long(self) -> Passages:
        """The whole windows alone."""
        return replace(self, short={}, whole=set())

    def shorts(self) -> int:
        """How many are less than a window."""
        return len(self.whole) + sum(map(len, self.short.values()))

    def __bool__(self) -> bool:
        return bool(self.windows) or self.shorts() > 0


def spread(text: str) -> tuple[list[str], list[int]]:
    """A text's words and windows, of whatever characters it was written: what a Mac composes
    otherwise, and what nobody sees, makes no other word."""
    if not text.isascii():
        text = _UNSEEN.sub("", normalize("NFKC", text))
    return spread_(text)


def _telling(units: list[str], text: str) -> bool:
    """Whether so few words are a thing that somebody said, wherever they stand."""
    if len(units) >= SHORT_WORDS_MIN and len(text) >= SHORT_CHARACTERS_MIN:
        return True
    return any(
        len(unit) >= KEY_CHARACTERS_MIN
        or (
            len(unit) >= MIXED_CHARACTERS_MIN
            and any(map(str.isdigit, unit))
            and any(map(str.isalpha, unit))
        )
        for unit in units
    )


def known(numbers: Iterable[int]) -> Passages:
    """Passages of which nothing but their numbers is known: every word may begin one."""
    return Passages(windows=set(numbers), firsts=_Everything())


class _Everything(set[str]):
    """A set that holds each word."""

    def __contains__(self, word: object) -> bool:
        return True
