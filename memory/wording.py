"""What a report counts, in words for people: the same for commands, the page of a run, the board.

Pure. Knows nothing about stages but what people call what they count.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

#: What a person calls what the reports of stages count, where it is not the same.
COUNTED = {
    "reasons": "ended by",
    "rejected": "refused",
    "content_failures": "unusable answers",
    "transient_failures": "put off",
    "not_checked": "not looked at",
    "gap": "a pause",
    "size": "its length",
    "topic": "another topic",
    "session_end": "the end of the session",
    "claim_done": "said to be done",
}


def words(name: str) -> str:
    """A name of a report as a person says it."""
    return COUNTED.get(name) or name.replace("_", " ")


def value(told: Any) -> str:
    """A value of a report in one line."""
    if isinstance(told, Mapping):
        return inline(told) or "nothing"
    if isinstance(told, list | tuple):
        return "; ".join(value(one) for one in told)
    return f"{told:,}" if isinstance(told, int | float) and told is not True else str(told)


def inline(report: Mapping[str, Any]) -> str:
    """Counts in one line, zeros left out; those of a reason in brackets behind it."""
    return ", ".join(
        f"{words(name)} ({inside})" if isinstance(told, Mapping) else f"{words(name)} {inside}"
        for name, told in report.items()
        if told and not isinstance(told, bool)
        for inside in [value(told)]
    )


def counts(report: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The counts of a report that are not zero, by word, without what else it tells."""
    for name, told in report.items():
        if isinstance(told, bool) or not told:
            continue
        if isinstance(told, int | float):
            yield words(name), value(told)
        elif isinstance(told, Mapping) and (inside := inline(told)):
            yield words(name), f"({inside})"
