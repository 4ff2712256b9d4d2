"""How a log line is written. Knows nothing about who logs.

Errors of the database print the statement's values: 768 numbers for a vector, which hide the
message and hold what the text meant. They are cut here. A refused request prints its path and its
Host as they came, keys and all: secrets are redacted here, by the rules of the record.
"""

from __future__ import annotations

import logging
import re

from memory.text.secrets import redact

# Each part is bounded and no number begins inside another, so that a line costs what it is long.
_NUMBER = r"-?\d{1,20}(?:\.\d{1,30})?(?:[eE][+-]?\d{1,4})?"
#: Eight numbers in a row or more, as in a vector's literal.
_NUMBERS = re.compile(rf"(?<![\d.])(?:{_NUMBER}\s{{0,4}},\s{{0,4}}){{7,}}{_NUMBER}")

#: Characters of a message that are read at all.
# Why: whoever is refused chooses what the line says; a batch of vectors is a megabyte.
# Calibrate: a few vectors of 768 numbers and what stands around them.
READ_CHARACTERS_MAX = 64_000

#: A longer message is cut, its end said.
LINE_CHARACTERS_MAX = 16_000


def shorten(text: str) -> str:
    """The text with long runs of numbers replaced by how many there were, and cut when huge."""
    read = text[:READ_CHARACTERS_MAX]
    short = _NUMBERS.sub(lambda run: f"<{run.group().count(',') + 1} numbers>", read)
    short = redact(short).text
    if len(read) == len(text) and len(short) <= LINE_CHARACTERS_MAX:
        return short
    return f"{short[:LINE_CHARACTERS_MAX]} ... ({len(text)} characters)"


class ShortFormatter(logging.Formatter):
    """Cuts and redacts after formatting, so that the traceback is meant, too."""

    def format(self, record: logging.LogRecord) -> str:
        return shorten(super().format(record))
