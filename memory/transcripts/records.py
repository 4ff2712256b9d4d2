"""The walk that the JSONL adapters share: lines in, objects out, the reading kept true.

Knows nothing about any client's rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, Callable

from memory.transcripts.lines import Line, count_lines, parse, read_lines
from memory.transcripts.turns import BadLine, Item, Reading


@dataclass(frozen=True)
class Record:
    """One object of a JSONL file with the line it came from."""

    row: dict[str, Any]
    line: Line
    sanitised: bool = False

    @property
    def locator(self) -> dict[str, Any]:
        """Where the record stands: line from 1, bytes start and end."""
        return {"line": self.line.number, "start": self.line.start, "end": self.line.end}


def each_record(
    handle: BinaryIO,
    offset: int,
    reading: Reading,
    judge: Callable[[Record], Iterator[Item]],
    passed: int | None = None,
) -> Iterator[Item]:
    """What `judge` makes of every record from `offset` on, bad lines among it, all tallied.

    `reading.offset` moves behind a line only when all its items were drawn, and never behind a
    last line that is still being written. `passed`: the lines before `offset`, None = count them.
    """
    reading.offset = offset
    number = count_lines(handle, offset) if passed is None else passed
    for line in read_lines(handle, offset, number):
        row, problem, sanitised = parse(line)
        if not line.complete and (problem or not isinstance(row, dict)):
            reading.incomplete = True
            return
        reading.lines += 1
        if problem or (row is not None and not isinstance(row, dict)):
            bad = BadLine(line.number, problem or "not an object", reading.path)
            yield reading.count(bad)
        elif row is not None:
            for item in judge(Record(row, line, sanitised)):
                yield reading.count(item)
        reading.offset = line.end
