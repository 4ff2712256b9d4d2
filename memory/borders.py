"""Where a run of turns breaks into episodes: size, gap, topic. Pure; the clock is an argument.

Shared judgement of segment and of whoever replays it. Knows nothing about the database; a turn
carries its raw item along unread.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

from memory.llm.vectors import cosine, mean

#: Turns of one episode.
# Why: what a distiller reads at once and a person reads in a minute.
# Calibrate: notes per episode and tokens per distill call, by episode size.
EPISODE_TURNS_MAX = 20

#: A pause longer than this ends an episode.
# Why: after half an hour people come back with another purpose.
# Calibrate: histogram of pauses inside sessions; the threshold belongs in its valley.
TIME_GAP_MINUTES = 30

#: Turns of an episode before a topic border may end it.
TOPIC_TURNS_MIN = 4

#: Turns on each side of a border whose mean vectors are compared.
# Why: one turn is noise ("yes, do that"); three are a topic.
# Calibrate: tests/bench/topic_shift.py.
TOPIC_WINDOW_TURNS = 3

assert TOPIC_WINDOW_TURNS <= TOPIC_TURNS_MIN < EPISODE_TURNS_MAX


@dataclass(frozen=True)
class Turn:
    """A raw item as the cutter sees it; `vector` is None when it could not be made."""

    item: Any
    occurred_at: datetime
    captured_at: datetime
    vector: Sequence[float] | None


@dataclass(frozen=True)
class Border:
    """One look before one turn: what was measured, against what, and whether it fired."""

    item: Any
    kind: str
    score: float | None
    threshold: float
    fired: bool
    outcome: str = "checked"


@dataclass(frozen=True)
class Cut:
    """A closed run of turns and why it ended."""

    turns: tuple[Turn, ...]
    reason: str
    score: float | None


@dataclass(frozen=True)
class Done:
    """Closed runs in order, every border looked at, and the open tail."""

    cuts: tuple[Cut, ...]
    borders: tuple[Border, ...]
    tail: tuple[Turn, ...]


def cut(
    turns: Sequence[Turn],
    *,
    now: datetime,
    ended_at: datetime | None,
    topic_shift: float,
    closed_until: datetime | None = None,
) -> Done:
    """Break time-ordered turns of one session into closed runs and an open tail.

    The same turns are cut alike however often and in however many steps this is asked, because a
    border is judged only when the turns it looks at can no longer change. `closed_until` is when
    the last turn before these was said, if there is one.
    """
    cuts: list[Cut] = []
    borders: list[Border] = []
    if turns and closed_until:
        borders.append(_gap(closed_until, turns[0]))
    stretches = _stretches(turns, borders)
    for number, stretch in enumerate(stretches):
        last = number == len(stretches) - 1
        closing = "gap" if not last else _closing(stretch, now=now, ended_at=ended_at)
        rest = _cut_stretch(stretch, cuts, borders, closed=bool(closing), topic_shift=topic_shift)
        if not closing:
            return Done(tuple(cuts), tuple(borders), tuple(rest))
        if rest:
            cuts.append(Cut(tuple(rest), closing, _pause(rest[-1], turns, now=now)))
    return Done(tuple(cuts), tuple(borders), ())


def _stretches(turns: Sequence[Turn], borders: list[Border]) -> list[list[Turn]]:
    """Split at long pauses; the cheapest border, looked at before every turn."""
    stretches: list[list[Turn]] = [[turns[0]]] if turns else []
    for before, turn in pairwise(turns):
        look = _gap(before.occurred_at, turn)
        borders.append(look)
        if look.fired:
            stretches.append([])
        stretches[-1].append(turn)
    return stretches


def _gap(before: datetime, turn: Turn) -> Border:
    minutes = (turn.occurred_at - before) / timedelta(minutes=1)
    fired = minutes > TIME_GAP_MINUTES
    return Border(turn.item, "gap", round(minutes, 3), TIME_GAP_MINUTES, fired)


def _closing(stretch: Sequence[Turn], *, now: datetime, ended_at: datetime | None) -> str:
    """Why the last stretch is over, or "" while it may go on."""
    if ended_at and ended_at >= max(turn.captured_at for turn in stretch):
        return "session_end"
    pause = now - stretch[-1].occurred_at
    return "gap" if pause > timedelta(minutes=TIME_GAP_MINUTES) else ""


def _pause(last: Turn, turns: Sequence[Turn], *, now: datetime) -> float:
    """Minutes from the last turn of a run to what came after it, or to now."""
    following = next((t.occurred_at for t in turns if t.occurred_at > last.occurred_at), now)
    return round((following - last.occurred_at) / timedelta(minutes=1), 3)


def _cut_stretch(
    stretch: Sequence[Turn],
    cuts: list[Cut],
    borders: list[Border],
    *,
    closed: bool,
    topic_shift: float,
) -> list[Turn]:
    """Cut a stretch without pauses by size and topic; what is left over is returned."""
    start = 0
    for at in range(1, len(stretch)):
        size = at - start
        full = size >= EPISODE_TURNS_MAX
        borders.append(Border(stretch[at].item, "size", size, EPISODE_TURNS_MAX, full))
        if full:
            cuts.append(Cut(tuple(stretch[start:at]), "size", size))
            start = at
            continue
        if size < TOPIC_TURNS_MIN:
            continue
        look = _topic(stretch, start, at, closed=closed, topic_shift=topic_shift)
        if look is None and not closed:
            break  # What follows depends on this border, which cannot be judged yet.
        if look is None:
            continue
        borders.append(look)
        if look.fired:
            cuts.append(Cut(tuple(stretch[start:at]), "topic", look.score))
            start = at
    return list(stretch[start:])


def _topic(
    stretch: Sequence[Turn], start: int, at: int, *, closed: bool, topic_shift: float
) -> Border | None:
    """Compare the windows before and after; None when too few turns follow to say.

    Fires at the lowest point only: not when the next border is lower still.
    """
    here = _window_cosine(stretch, start, at)
    if here is None:
        return None
    following = _window_cosine(stretch, start, at + 1)
    if following is None and not closed:
        return None
    if here == UNKNOWN:
        return Border(stretch[at].item, "topic", None, topic_shift, False, "not_checked")
    lower_next = following not in (None, UNKNOWN) and following < here
    return Border(
        stretch[at].item,
        "topic",
        round(here, 6),
        topic_shift,
        here < topic_shift and not lower_next,
    )


#: Stands for a cosine of windows without vectors.
UNKNOWN = float("inf")


def _window_cosine(stretch: Sequence[Turn], start: int, at: int) -> float | None:
    """Cosine of the mean vectors of the windows around a border; None when one is short."""
    if at + TOPIC_WINDOW_TURNS > len(stretch) or at - start < TOPIC_WINDOW_TURNS:
        return None
    before = mean([t.vector for t in stretch[at - TOPIC_WINDOW_TURNS : at] if t.vector is not None])
    after = mean([t.vector for t in stretch[at : at + TOPIC_WINDOW_TURNS] if t.vector is not None])
    return UNKNOWN if before is None or after is None else cosine(before, after)
