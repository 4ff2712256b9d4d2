"""What a client says of its post beside the items, and what of it the receipt may keep.

Pure: cleans, takes out what is private or secret, and cuts. A long or odd word here never costs the
items that came with it. Knows nothing about items, HTTP or the database.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from memory.text.clean import clean_text
from memory.text.private import strip_private
from memory.text.secrets import redact

#: Characters kept of a session's name, of the name of a count, and of any other word.
# Why: a name is short; a sentence of a trouble says what was wrong within 200 characters.
SESSION_CHARACTERS_MAX = 500
NAME_CHARACTERS_MAX = 64
WORD_CHARACTERS_MAX = 200

#: Counts by name that a range keeps; the smallest of more are summed as `others`.
COUNTS_MAX = 50

#: The largest count that a range keeps of one thing.
# Why: no transcript has so many lines, and sums of such counts fit whoever adds them up.
COUNT_MAX = 10**9

#: Misses that a receipt keeps; of more it says how many there were.
MISSES_MAX = 100


@dataclass(frozen=True)
class SessionEnd:
    """The client says that a session is over, so that its open tail may close."""

    session: str
    reason: str = ""


@dataclass(frozen=True)
class Range:
    """What the client counted in the range of its transcript that this post is from: lines seen,
    filtered by reason, posted, and secrets that it took out itself."""

    seen: int = 0
    filtered: int = 0
    posted: int = 0
    session: str = ""
    reasons: dict[str, int] = field(default_factory=dict)
    redacted: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Sender:
    """The program that posts, its machine, and the agent that it posts for."""

    name: str = ""
    version: str = ""
    machine: str = ""
    client: str = ""


@dataclass(frozen=True)
class Miss:
    """Something the client could not capture at the time, and why."""

    session: str = ""
    client: str = ""
    reason: str = ""
    at: str = ""
    detail: str = ""


def kept_end(end: SessionEnd | None) -> SessionEnd | None:
    """The session as capture stored its key: cleaned and redacted."""
    return end and SessionEnd(_safe(end.session), _word("reason", end.reason))


def kept_range(told: Mapping[str, Any] | None) -> dict[str, Any]:
    """The counts of a range, none below 0 or above COUNT_MAX; what it says nothing of is left
    out."""
    kept: dict[str, Any] = {}
    for given, value in (told or {}).items():
        name = _safe(given)[:NAME_CHARACTERS_MAX]
        if isinstance(value, Mapping):
            if value:
                kept[name] = _counts(value)
        elif not isinstance(value, str):
            kept[name] = _count(value)
        elif value:
            kept[name] = _word(given, value)
    return kept


def kept_words(told: Mapping[str, str] | None) -> dict[str, str]:
    """Texts by name, without those that are empty; the names are ours."""
    return {name: _word(name, text) for name, text in (told or {}).items() if text}


def kept_misses(told: Sequence[Mapping[str, str]]) -> list[dict[str, str]]:
    """The first misses, and behind them how many more there were."""
    kept = [kept_words(one) for one in told[:MISSES_MAX]]
    if more := len(told) - len(kept):
        kept.append({"reason": "left_out", "detail": f"{more} more misses in this post"})
    return kept


def _counts(told: Mapping[str, int]) -> dict[str, int]:
    counts: Counter[str] = Counter()
    for name, count in told.items():
        counts[_safe(name)[:NAME_CHARACTERS_MAX]] += _count(count)
    most = dict(counts.most_common(COUNTS_MAX - 1 if len(counts) > COUNTS_MAX else None))
    if rest := sum(counts.values()) - sum(most.values()):
        most["others"] = rest + most.get("others", 0)
    return {name: _count(count) for name, count in most.items()}


def _count(told: int) -> int:
    return min(max(told, 0), COUNT_MAX)


def _word(name: str, text: str) -> str:
    # Redacted before it is cut: half a secret looks like none.
    return _safe(text)[: SESSION_CHARACTERS_MAX if name == "session" else WORD_CHARACTERS_MAX]


def _safe(text: str) -> str:
    return redact(strip_private(clean_text(text)[0])[0]).text
