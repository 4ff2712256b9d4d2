"""Passages: every window of words of some texts, and which of them another text holds.

`shingles` samples, because it is asked at each post; this forgets nothing, because it is asked
whether words that were to go are gone. Pure. Knows nothing about where the texts stand.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Set
from dataclasses import dataclass, field, replace
from unicodedata import normalize

from memory.errors import RefusedError
from memory.text.folding import INVISIBLE
from memory.text.numbers import Numbers
from memory.text.shingles import SHINGLE_CHARS, number
from memory.text.shingles import spread as spread_

#: Windows that are known at once. All of them are, or none: a sample would leave what it has not.
# Why: a purge has four such sets at once, of 8 bytes a window. It is some 300 MB of text.
WINDOWS_MAX = 50_000_000

#: Numbers that are kept as a set of Python's; of more, and of more words, there is one that takes
#: a tenth of the memory and three times as long.
# Why: a set of a million numbers takes about 100 MB.
QUICK_MAX = 1_000_000

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


#: The numbers of one kind.
Known = set[int] | Numbers


@dataclass
class Passages:
    """Windows by number. `firsts`: the words that any of them begins with. `short`: texts of a
    window or less, by their number of words, in the same numbers; `whole`: those that count only
    where a text says nothing else. `left_out`: texts that nothing can tell from anybody's.
    `shortest`: characters of the shortest that is known."""

    windows: Known = field(default_factory=set)
    firsts: set[str] = field(default_factory=set)
    short: dict[int, Known] = field(default_factory=dict)
    whole: Known = field(default_factory=set)
    left_out: int = 0
    shortest: int = SHORT_CHARACTERS_MIN

    def add(self, text: str, *, short: bool = True) -> None:
        """Know the windows of this text from now on. `short`: also the whole of it, where it has no
        more words than a window. Raises RefusedError where they are more than can be known."""
        units, ends = spread(text)
        if not units:
            return
        if len(ends) == 1 and len(units) <= SHINGLE_CHARS:
            if short:
                self._add_short(units)
            return
        self.windows.update(number(" ".join(units[at:end])) for at, end in enumerate(ends))
        self._begins(units[: len(ends)])
        self.windows = _bounded(self.windows)

    def _add_short(self, units: list[str]) -> None:
        text = " ".join(units)
        if _telling(units, text):
            self.short.setdefault(len(units), set()).update([number(text)])
            self.short[len(units)] = _bounded(self.short[len(units)])
            self._begins(units[:1])
        elif len(units) >= WHOLE_WORDS_MIN:
            self.whole.update([number(text)])
            self.whole = _bounded(self.whole)
        else:
            self.left_out += 1
            return
        # Without the spaces: scripts that have none are spread with them.
        self.shortest = min(self.shortest, sum(map(len, units)))

    def _begins(self, words: Iterable[str]) -> None:
        self.firsts.update(words)
        if len(self.firsts) > QUICK_MAX:
            self.firsts = _Everything()

    def in_text(self, text: str) -> set[int]:
        """Which of the windows stand in this text."""
        # Why: most texts of a row are a word, a number or a hash, and hardly a window is one word.
        if len(text) < self.shortest or (1 not in self.short and text.isascii() and text.isalnum()):
            return set()
        units, ends = spread(text)
        firsts, windows = self.firsts, self.windows
        found: set[int] = set()
        if self.whole and len(units) <= SHINGLE_CHARS:
            one = number(" ".join(units))
            found = {one} if one in self.whole else found
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

    def covers(self, text: str) -> bool:
        """Whether this text says something, and nothing that is not known."""
        units, ends = spread(text)
        if len(ends) == 1 and len(units) <= SHINGLE_CHARS:
            one = number(" ".join(units))
            return one in self.whole or any(one in known for known in self.short.values())
        return bool(units) and all(
            number(" ".join(units[at:end])) in self.windows for at, end in enumerate(ends)
        )

    def without(self, numbers: Collection[int]) -> Passages:
        """The same but for these."""
        gone = numbers if isinstance(numbers, Set) else set(numbers)
        return self._each(lambda known: _without(known, gone))

    def only(self, numbers: Collection[int]) -> Passages:
        """These of them alone."""
        kept = numbers if isinstance(numbers, Set) else set(numbers)
        return self._each(lambda known: _only(known, kept))

    def _each(self, change: Callable[[Known], Known]) -> Passages:
        short = {length: change(known) for length, known in self.short.items()}
        return replace(self, windows=change(self.windows), short=short, whole=change(self.whole))

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


def _bounded(known: Known) -> Known:
    """The same, in the way that so many are kept. Raises RefusedError where they are too many."""
    many = known.most if isinstance(known, Numbers) else len(known)
    if many > WINDOWS_MAX and len(known) > WINDOWS_MAX:
        raise RefusedError(
            f"more than {WINDOWS_MAX:,} words would go at once, and nothing could look for so many"
            " and prove them gone: purge a part first, by --session, --project or --raw"
        )
    return Numbers(known) if isinstance(known, set) and many > QUICK_MAX else known


def _without(known: Known, gone: Set[int]) -> Known:
    if isinstance(known, Numbers):
        return known.without(gone)
    return {one for one in known if one not in gone}


def _only(known: Known, kept: Set[int]) -> Known:
    if isinstance(known, Numbers):
        return known.only(kept)
    return {one for one in known if one in kept}


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

    def update(self, *words: Iterable[str]) -> None:
        """Nothing: it has them."""

    def __contains__(self, word: object) -> bool:
        return True
