"""How a log line is written. Knows nothing about who logs.

Errors of the database print the statement's values: 768 numbers for a vector, which hide the
message and hold what the text meant. They are cut here.
"""

from __future__ import annotations

import logging
import re

#: Eight numbers in a row or more, as in a vector's literal.
_NUMBERS = re.compile(
    r"(?:-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?\s*,\s*){7,}-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?"
)

#: A longer message is cut, its end said.
LINE_CHARACTERS_MAX = 16_000


def shorten(text: str) -> str:
    """The text with long runs of numbers replaced by how many there were, and cut when huge."""
    short = _NUMBERS.sub(lambda run: f"<{run.group().count(',') + 1} numbers>", text)
    if len(short) <= LINE_CHARACTERS_MAX:
        return short
    return f"{short[:LINE_CHARACTERS_MAX]} ... ({len(short)} characters)"


class ShortFormatter(logging.Formatter):
    """Cuts after formatting, so that the traceback is cut, too."""

    def format(self, record: logging.LogRecord) -> str:
        return shorten(super().format(record))
