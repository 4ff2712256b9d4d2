"""Where the scores of past hits lie, and the floors among them: one picture a source and number.

Pure: rows of the ledger in, the geometry of `memory.web.charts` out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from memory.web.charts import Histogram, histogram
from recall.floors import SOURCES, Floors, Source
from recall.trial import SAME
from recall.weighed import FATES, Weighed, numbers

#: What is drawn: relevance decides about silence, the final score is what a caller may ask for.
DRAWN = ("relevance", "score")

#: Names of what is drawn, for people.
LABELS: Mapping[str, str] = {"relevance": "relevance (log-odds)", "score": "final score"}


def histograms(
    rows: Sequence[Weighed], *, now: Mapping[Source, Floors], then: Mapping[Source, Floors]
) -> list[Histogram]:
    """Of each source with hits the scores by what became of them, with both floors marked."""
    found = numbers(tuple(rows))
    return [
        histogram(
            {fate: found[name, source, fate] for fate in FATES},
            label=f"{source.capitalize()}s by {LABELS[name]}",
            marks=_marks(getattr(now[source], name), getattr(then[source], name)),
        )
        for source in SOURCES
        for name in DRAWN
    ]


def _marks(now: float, then: float) -> Iterator[tuple[float, str, str]]:
    yield now, "in force", "floor"
    if abs(now - then) > SAME:
        yield then, "tried", "tried"
