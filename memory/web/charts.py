"""Where the lines and bars of a chart stand: numbers in, geometry out; templates draw it as SVG.

Every chart carries the numbers it was drawn from, so that a page can put a table behind it. Pure;
knows nothing about what is counted, and nothing about colours: those are classes of the stylesheet.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

#: Size of a sparkline, in the units of its picture.
# Why: a fortnight of days in a cell of a table, eight units a day.
SPARK_WIDTH = 112
SPARK_HEIGHT = 24

#: What is left free at the rim of a sparkline, so that its line is not cut.
SPARK_RIM = 2

#: Size of a histogram, in the units of its picture.
# Why: at the width of a phone a unit is three quarters of a pixel, and its words can still be read.
PLOT_WIDTH = 480
PLOT_HEIGHT = 172

#: What is left free around the bars: for two lines of words above, for the scale below.
PLOT_TOP = 32
PLOT_BOTTOM = 20
PLOT_RIM = 8

#: Bars of a histogram.
# Why: some ten units each: seen apart on a phone, and still a shape.
BARS = 40

#: Numbers of a scale, some more or fewer: they are round.
TICKS = 6

#: The least share of its numbers that a scale spans.
# Why: below it steps between floats are no steps any more.
LEAST_SPAN = 1e-9

#: Free space between two bars.
GAP = 1

#: Height of a line of words, and what the word of a mark takes at most.
# Why: "in force" in the letters of a phone.
WORD_HEIGHT = 14
WORD_WIDTH = 72


@dataclass(frozen=True)
class Sparkline:
    """A line through some counts, oldest first: `points` as SVG has them, `x` and `y` of the last.

    `rows` are the (name, value) pairs it was drawn from.
    """

    points: str
    low: float
    high: float
    last: float
    total: float
    x: float
    y: float
    label: str
    rows: tuple[tuple[str, float], ...] = ()
    width: int = SPARK_WIDTH
    height: int = SPARK_HEIGHT

    @property
    def told(self) -> str:
        """The line in words, for who does not see it."""
        if not self.points:
            return "nothing yet"
        span = f"from {self.low:g} to {self.high:g}"
        return f"{len(self.rows)} values, {span}, last {self.last:g}, {self.total:g} in all"


@dataclass(frozen=True)
class Bar:
    """One bar, or a part of one: where it stands, how many, and of what ("sent", "dropped")."""

    x: float
    y: float
    width: float
    height: float
    count: int
    kind: str
    label: str


@dataclass(frozen=True)
class Mark:
    """A line across the plot at a value, with its word; `anchor` keeps the word inside, and words
    of neighbours stand on lines of their own."""

    x: float
    value: float
    label: str
    kind: str = "floor"
    anchor: str = "start"
    y: float = PLOT_TOP
    word_y: float = PLOT_TOP


@dataclass(frozen=True)
class Tick:
    """A number of the scale."""

    x: float
    label: str
    anchor: str = "middle"


@dataclass(frozen=True)
class Histogram:
    """Bars of one or more kinds, each stacked on the one before, with marks and a scale.

    `rows` are (from, to, counts by kind), without those that hold nothing; `outside` values were
    beyond the ends of the scale and stand in the first or the last bar.
    """

    label: str
    kinds: tuple[str, ...]
    bars: tuple[Bar, ...]
    marks: tuple[Mark, ...]
    ticks: tuple[Tick, ...]
    rows: tuple[tuple[str, str, tuple[int, ...]], ...]
    totals: tuple[tuple[str, int], ...]
    low: float
    high: float
    most: int
    width: int = PLOT_WIDTH
    height: int = PLOT_HEIGHT
    base: float = PLOT_HEIGHT - PLOT_BOTTOM

    @property
    def told(self) -> str:
        """The picture in words, for who does not see it."""
        if not self.bars:
            return "nothing to show yet"
        counts = ", ".join(f"{count} {kind}" for kind, count in self.totals)
        marks = "; ".join(f"{mark.label} at {mark.value:g}" for mark in self.marks)
        return f"{counts}, from {self.low:g} to {self.high:g}" + (f"; {marks}" if marks else "")


@dataclass(frozen=True)
class Length:
    """One line of a chart of lengths: its name, its number, and its bar from the left."""

    name: str
    value: float
    width: float


@dataclass(frozen=True)
class Lengths:
    """Numbers by name as bars from the left, on one scale; the longest fills the picture."""

    label: str
    rows: tuple[Length, ...]
    width: int = 200
    height: int = 10


def sparkline(values: Sequence[float], *, label: str = "", names: Sequence[str] = ()) -> Sparkline:
    """A line through `values`, oldest first. Its foot is zero, so that two lines can be compared;
    without `names` the values are numbered by how long ago they were, the last one "0"."""
    whole = [float(one) for one in values]
    if not whole:
        return Sparkline("", 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, label)
    top = max(max(whole), 0.0) or 1.0
    foot = min(min(whole), 0.0)
    step = (SPARK_WIDTH - 2 * SPARK_RIM) / max(len(whole) - 1, 1)
    places = [
        (
            _short(SPARK_RIM + number * step),
            _short(
                SPARK_HEIGHT
                - SPARK_RIM
                - (one - foot) / (top - foot) * (SPARK_HEIGHT - 2 * SPARK_RIM)
            ),
        )
        for number, one in enumerate(whole)
    ]
    told = names if len(names) == len(whole) else [str(n) for n in range(len(whole) - 1, -1, -1)]
    return Sparkline(
        points=" ".join(f"{x:g},{y:g}" for x, y in places),
        low=min(whole),
        high=max(whole),
        last=whole[-1],
        total=math.fsum(whole),
        x=places[-1][0],
        y=places[-1][1],
        label=label,
        rows=tuple(zip(told, whole, strict=True)),
    )


def histogram(
    values: Mapping[str, Sequence[float]],
    *,
    label: str = "",
    marks: Iterable[tuple[float, str, str]] = (),
    low: float | None = None,
    high: float | None = None,
    bars: int = BARS,
) -> Histogram:
    """Values by kind, counted in `bars` equal steps from `low` to `high` (their own ends when not
    given) and stacked in the order of the kinds. `marks` are (value, word, kind of mark)."""
    given = [(value, word, kind) for value, word, kind in marks if math.isfinite(value)]
    kept = {kind: _finite(some) for kind, some in values.items()}
    every = [one for some in kept.values() for one in some]
    start, end = _ends([*every, *(value for value, *_ in given)], low, high)
    edges = [start + (end - start) * number / bars for number in range(bars + 1)]
    counts = {kind: _counted(some, edges) for kind, some in kept.items()}
    most = max((sum(column) for column in zip(*counts.values(), strict=True)), default=0)
    return Histogram(
        label=label,
        kinds=tuple(kept),
        bars=tuple(_bars(counts, edges, most)) if every else (),
        marks=tuple(_marks(given, start, end)),
        ticks=tuple(_ticks(start, end)),
        rows=tuple(
            (_number(edges[at]), _number(edges[at + 1]), tuple(counts[kind][at] for kind in kept))
            for at in range(bars)
            if any(counts[kind][at] for kind in kept)
        ),
        totals=tuple((kind, len(some)) for kind, some in kept.items()),
        low=start,
        high=end,
        most=most,
    )


def lengths(values: Mapping[str, float], *, label: str = "") -> Lengths:
    """Numbers by name, in their order; what is below nothing has no length."""
    most = max(values.values(), default=0.0)
    width = Lengths.width
    return Lengths(
        label,
        tuple(
            Length(name, value, _short(max(value, 0.0) / most * width) if most > 0 else 0.0)
            for name, value in values.items()
        ),
    )


def _finite(values: Sequence[float]) -> Sequence[float]:
    # Looked at one by one only where one of them is not.
    if math.isfinite(sum(values)):
        return values
    return [one for one in values if math.isfinite(one)]


def _ends(every: Sequence[float], low: float | None, high: float | None) -> tuple[float, float]:
    """Both ends of the scale; never the same, or as good as the same."""
    start = min(every, default=0.0) if low is None else low
    end = max(every, default=1.0) if high is None else high
    wide = end - start > LEAST_SPAN * max(1.0, abs(start), abs(end))
    return (start, end) if wide else (start, start + max(1.0, abs(start)))


def _counted(values: Sequence[float], edges: Sequence[float]) -> list[int]:
    """How many values stand between each two edges; what is beyond an end stands in its bar."""
    # Why sorted: forty looks into a sorted list take less than one look for each of thousands.
    ordered = sorted(values)
    cuts = [0, *(bisect_left(ordered, edge) for edge in edges[1:-1]), len(ordered)]
    return [after - before for before, after in pairwise(cuts)]


def _bars(counts: Mapping[str, Sequence[int]], edges: Sequence[float], most: int) -> Iterable[Bar]:
    step = (PLOT_WIDTH - 2 * PLOT_RIM) / (len(edges) - 1)
    room = PLOT_HEIGHT - PLOT_TOP - PLOT_BOTTOM
    for at in range(len(edges) - 1):
        foot = float(PLOT_HEIGHT - PLOT_BOTTOM)
        for kind, some in counts.items():
            if not some[at]:
                continue
            tall = some[at] / most * room
            foot -= tall
            yield Bar(
                x=_short(PLOT_RIM + at * step + GAP / 2),
                y=_short(foot),
                width=_short(max(step - GAP, GAP)),
                height=_short(tall),
                count=some[at],
                kind=kind,
                label=f"{_number(edges[at])} to {_number(edges[at + 1])}: {some[at]} {kind}",
            )


def _marks(given: Sequence[tuple[float, str, str]], start: float, end: float) -> Iterable[Mark]:
    """Marks from left to right; a word that would run out of the picture ends at its line.

    No line strikes another's word: words of neighbours part outward, and where the rim leaves no
    room for that, the outer one stands higher and the inner line begins below it.
    """
    ordered = sorted(given)
    places = [_across(value, start, end) for value, *_ in ordered]
    anchors = [_anchor(places, place) for place in range(len(places))]
    inward = anchors[-1:] == ["end"]
    for place, (value, word, kind) in enumerate(ordered):
        row = len(ordered) - 1 - place if inward else place
        top = WORD_HEIGHT * (1 + row % 2) - 4
        yield Mark(places[place], value, word, kind, anchors[place], y=top, word_y=top)


def _anchor(places: Sequence[float], place: int) -> str:
    """On which side of its line a word stands: "end" is left of it."""
    x = places[place]
    if place + 1 < len(places) and places[place + 1] - x < WORD_WIDTH <= x:
        return "end"
    if place and x - places[place - 1] < WORD_WIDTH <= PLOT_WIDTH - x:
        return "start"
    return "end" if x > PLOT_WIDTH / 2 else "start"


def _ticks(start: float, end: float) -> Iterable[Tick]:
    """Round numbers of the scale."""
    step = _round((end - start) / TICKS)
    first = math.ceil(start / step) * step
    for number in range(2 * TICKS):
        value = first + number * step
        if value > end + step / 1_000:
            return
        x = _across(value, start, end)
        anchor = "start" if x < WORD_HEIGHT else "end" if x > PLOT_WIDTH - WORD_HEIGHT else "middle"
        yield Tick(x, _number(value), anchor)


def _round(step: float) -> float:
    """The next of 1, 2, 5, 10, 20, 50 and so on, that is not below a step."""
    ten = 10.0 ** math.floor(math.log10(step))
    return next(round_ * ten for round_ in (1, 2, 5, 10) if round_ * ten >= step * (1 - 1e-9))


def _across(value: float, start: float, end: float) -> float:
    share = min(max((value - start) / (end - start), 0.0), 1.0)
    return _short(PLOT_RIM + share * (PLOT_WIDTH - 2 * PLOT_RIM))


def _short(value: float) -> float:
    """A place to a hundredth of a unit: more is only longer to send."""
    return round(value, 2)


def _number(value: float) -> str:
    """A number of a scale, short; never "-0"."""
    return f"{round(value, 3) + 0.0:g}"
