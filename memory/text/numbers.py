"""A set of 64-bit numbers in as little memory as they have bytes: what a set of Python's has ten
times. Pure. Knows nothing about what the numbers are of.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Set
from typing import cast

#: Bits by which a number finds the part that it lies in; the others tell it from its neighbours.
# Why: 4,096 parts, so that one of a hundred million numbers has 25,000 and is put in order at once.
PART_BITS = 52

#: Numbers that came and are in no order yet, at least, before they are put into one.
LOOSE_MIN = 1_000_000


class Numbers(Set[int]):
    """Signed 64-bit numbers, 8 bytes each. Grows by `update` alone; goes over them in order."""

    def __init__(self, numbers: Iterable[int] = ()) -> None:
        #: In order, each once. An array here is never changed: other sets may have it, too.
        self._parts: dict[int, array[int]] = {}
        self._loose: dict[int, array[int]] = {}
        self._waiting = 0
        self._count = 0
        self.update(numbers)

    def update(self, numbers: Iterable[int]) -> None:
        """Have these as well."""
        for one in numbers:
            try:
                self._loose[one >> PART_BITS].append(one)
            except KeyError:
                self._loose[one >> PART_BITS] = array("q", (one,))
            self._waiting += 1
            # Why by how many there are: put in order at each million, a hundred million would be
            # gone over a hundred times.
            if self._waiting >= LOOSE_MIN and self._waiting >= self._count // 2:
                self._order()

    def _order(self) -> None:
        for at, loose in self._loose.items():
            known = self._parts.get(at, ())
            self._parts[at] = array("q", sorted({*known, *loose}))
            self._count += len(self._parts[at]) - len(known)
        self._loose, self._waiting = {}, 0

    @property
    def most(self) -> int:
        """How many there are, or more: what came twice counts twice until it is put in order."""
        return self._count + self._waiting

    def __contains__(self, number: object) -> bool:
        if self._waiting:
            self._order()
        # Whoever asks has numbers: a check would cost more than the look.
        one = cast("int", number)
        try:
            part = self._parts[one >> PART_BITS]
            return part[bisect_left(part, one)] == one
        except (KeyError, IndexError):
            return False

    def __len__(self) -> int:
        self._ordered()
        return self._count

    def __iter__(self) -> Iterator[int]:
        parts = self._ordered()
        for at in sorted(parts):
            yield from parts[at]

    def without(self, gone: Iterable[int]) -> Numbers:
        """The same but for these. A part that has none of them is not copied."""
        theirs, made = _numbers(gone), Numbers()
        made._parts = dict(self._ordered())
        for at, part in theirs._ordered().items():
            if at in made._parts:
                out = set(part)
                left = [one for one in made._parts[at] if one not in out]
                if len(left) < len(made._parts[at]):
                    made._parts[at] = array("q", left)
        made._count = sum(map(len, made._parts.values()))
        return made

    def only(self, kept: Iterable[int]) -> Numbers:
        """These of them alone."""
        mine, made = self._ordered(), Numbers()
        for at, part in _numbers(kept)._ordered().items():
            if both := set(part).intersection(mine.get(at, ())):
                made._parts[at] = array("q", sorted(both))
        made._count = sum(map(len, made._parts.values()))
        return made

    def _ordered(self) -> dict[int, array[int]]:
        if self._waiting:
            self._order()
        return self._parts


def _numbers(some: Iterable[int]) -> Numbers:
    return some if isinstance(some, Numbers) else Numbers(some)
