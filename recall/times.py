"""When a question asks about: stretches of time that its words name, in English and German.

Pure: the clock is an argument, and its zone says whose days are meant. The grammar is our own; the
libraries were tried on prompts about code. `dateparser` takes 190 ms to import and 5 ms a prompt,
and reads "we", "march on" and a port as dates. `parsedatetime` takes 0.3 ms, knows no German, and
reads 3.11 and the number of a ticket. `dateutil` finds one date or none, and a port is its year.
Knows nothing about what is searched.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from memory.text.sentences import Span
from recall.calendar import (
    DAY,
    LENGTHS,
    UNITS,
    WEEKDAY,
    YEAR_MAX,
    YEAR_MIN,
    Clock,
    Stretch,
)
from recall.dates import before, expressions

#: Stretches of one question.
# Why: what names more of them is a pasted log and asks about none.
# Calibrate: questions of people that compare more than two times.
WINDOWS_MAX = 4

_FIRST = datetime(YEAR_MIN, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Window:
    """From `start` up to and without `end`, in UTC, as `said` in the question.

    Not `exact` where the likeliest reading was taken: a month without its year, a weekday, a
    season, "two weeks ago".
    """

    start: datetime
    end: datetime
    said: Span
    exact: bool


_CODE = re.compile(r"```(?:[^`]|`(?!``))*(?:```)?|`[^`\n]{1,400}`")


def windows(question: str, *, now: datetime) -> tuple[Window, ...]:
    """Return the stretches of time that a question names, in order; none for what names many.

    Days are those of the zone of `now`, weeks begin on Monday, and what has no year is the latest
    that has begun. What is quoted as code names no time. Raises ValueError for a `now` without a
    zone or outside YEAR_MIN to YEAR_MAX.
    """
    if now.tzinfo is None or not YEAR_MIN < now.year < YEAR_MAX:
        raise ValueError("a clock needs a time zone and a year of this age")
    text = _CODE.sub(lambda code: " " * len(code.group()), question)
    found = dict.fromkeys(_joined(text, _found(text, Clock(now, now.tzinfo))))
    return () if len(found) > WINDOWS_MAX else tuple(found)


def _found(text: str, clock: Clock) -> list[Window]:
    """Return the windows in order, none over another; the longer of two that begin together."""
    found: list[Window] = []
    done = 0
    for start, end, stretch in expressions(text, clock):
        if start < done:
            continue
        begin = start
        if beside := _beside(text, start, stretch):
            begin, stretch = beside
            # Why: the Sunday of "the Sunday before May 5" is no last Sunday.
            found = [one for one in found if one.said.end <= begin]
            done = found[-1].said.end if found else 0
        begin, stretch = _prefixed(text, begin, done, stretch, clock)
        done = end
        first = max(stretch.start, _FIRST)
        if first < stretch.end:
            said = Span(begin, end, text[begin:end])
            found.append(Window(first, stretch.end, said, stretch.exact))
        if len(found) > 2 * WINDOWS_MAX:  # pairs may become one yet
            break
    return found


_BETWEEN = re.compile(r"\b(?:between|from|zwischen|von|vom)\s$", re.IGNORECASE)
_AND = re.compile(r"\s(?:and|to|until|till|und|bis(?:\szum)?)\s|\s?[–-]\s?", re.IGNORECASE)


def _joined(text: str, found: Iterable[Window]) -> list[Window]:
    """Make one of two that are the ends of a stretch: between March and May."""
    joined: list[Window] = []
    for window in found:
        first = joined[-1] if joined else None
        lead = first and before(_BETWEEN, text, first.said.start)
        if first and lead and _AND.fullmatch(text, first.said.end, window.said.start):
            start = first.start
            if start >= window.end and not first.exact:
                start -= timedelta(days=365)
            if start < window.end:
                said = Span(lead.start(), window.said.end, text[lead.start() : window.said.end])
                joined[-1] = Window(start, window.end, said, first.exact and window.exact)
                continue
        joined.append(window)
    return joined


_BESIDE = re.compile(
    rf"\b(?:the\s|on\s|der\s|am\s)*(?P<unit>day|week|weekend|month|year|tag|woche|{WEEKDAY})"
    r"\s(?P<side>before|after|vor|nach)\s(?:the\s|dem\s)?$", re.IGNORECASE,
)  # fmt: skip


def _beside(text: str, start: int, stretch: Stretch) -> tuple[int, Stretch] | None:
    """Read "the week before" in front of a stretch: where that begins, and what it means."""
    said = before(_BESIDE, text, start)
    if not said:
        return None
    length = LENGTHS[UNITS.get(said["unit"].lower(), "week")] * DAY
    if said["side"].lower() in ("before", "vor"):
        return said.start(), Stretch(stretch.start - length, stretch.start, False)
    return said.start(), Stretch(stretch.end, stretch.end + length, False)


_PART = re.compile(
    r"\b(?:the\s|am\s|zu\s)?(?:(?P<first>early|beginning\sof|start\sof|first\sweek(?:end)?\sof"
    r"|anfang)|(?P<middle>mid|middle\sof|mitte)|(?P<last>late|end\sof|last\sweek(?:end)?\sof|ende)"
    r"|(?P<half>first\shalf\sof)|(?P<other>second\shalf\sof))[\s-](?:the\s|des\s)?$", re.IGNORECASE,
)  # fmt: skip
# From which sixth to which.
_SIXTHS = {"first": (0, 2), "middle": (2, 4), "last": (4, 6), "half": (0, 3), "other": (3, 6)}
_RELATION = re.compile(
    r"\b(?:(?P<since>since|seit|ab)|(?P<before>before|prior\sto|vor)|(?P<after>after|nach)"
    r"|(?P<until>until|till|by|bis(?:\szum)?))\s(?:the\s|dem\s|der\s)?$", re.IGNORECASE,
)  # fmt: skip


def _prefixed(
    text: str, start: int, low: int, stretch: Stretch, clock: Clock
) -> tuple[int, Stretch]:
    """Read what stands before a stretch: which part of it, and whether since, before or after."""
    if part := before(_PART, text, start, low):
        first, last = _SIXTHS[part.lastgroup or ""]
        sixth = (stretch.end - stretch.start) / 6
        stretch = Stretch(stretch.start + first * sixth, stretch.start + last * sixth, False)
        start = part.start()
    relation = before(_RELATION, text, start, low)
    if not relation:
        return start, stretch
    match relation.lastgroup:
        case "since":
            stretch = replace(stretch, end=max(clock.utc, stretch.end))
        case "before":
            stretch = replace(stretch, start=_FIRST, end=stretch.start)
        case "after":
            stretch = replace(stretch, start=stretch.end, end=max(clock.utc, stretch.end + DAY))
        case _:
            stretch = replace(stretch, start=_FIRST)
    return relation.start(), stretch
