"""Lines of a JSONL file with their byte offsets, and one line as a clean object.

Knows nothing about what the objects mean. Splits on 0x0A alone: U+2028, U+2029, U+0085, VT and FF
stand inside JSON strings. Memory is bounded by the ceiling, whatever the file holds.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

from memory.text.clean import clean

#: Bytes of one line above which it is skipped unread.
# Why: lines of 60 MB and more with inline images are real; no words of a person are that long.
# Calibrate: the largest line that held a turn, times ten.
LINE_BYTES_MAX = 16 * 1024 * 1024

#: Bytes of a line, apart from files that are inlined in it, above which it is not parsed.
# Why: what a parser makes of it takes up to thirty times its size, on somebody's machine.
# Calibrate: as LINE_BYTES_MAX, times four.
PARSED_BYTES_MAX = 4 * 1024 * 1024

#: Bytes read at a time while running over a line that is too long.
SKIP_BYTES = 1024 * 1024

_BOM = b"\xef\xbb\xbf"
# Escapes that JSON accepts and PostgreSQL or UTF-8 does not: NUL and halves of a pair.
_INLINED = re.compile(rb'"(?:data:[^",]{0,200},)?[A-Za-z0-9+/=]{65536,}"')
_DIRTY = re.compile(rb"\\u(?:0000|[dD][89a-fA-F])|\x00")


@dataclass(frozen=True)
class Line:
    """One line: `start` and `end` are byte offsets in the file, `end` after its 0x0A.

    `raw` is without 0x0A and one trailing 0x0D; None when `problem` says why it was not kept.
    `complete` is False for a last line that has no 0x0A yet.
    """

    number: int
    start: int
    end: int
    raw: bytes | None
    problem: str | None = None
    complete: bool = True


def read_lines(handle: BinaryIO, offset: int = 0, number: int = 0) -> Iterator[Line]:
    """The lines of `handle` from byte `offset` on; the first one gets `number` + 1.

    A last line without 0x0A comes with `complete` False; whether it can be used is for `parse`
    to say. Read errors of the handle are the caller's.
    """
    handle.seek(offset)
    start = offset
    while True:
        raw = handle.readline(LINE_BYTES_MAX + 1)
        if not raw:
            return
        number += 1
        if len(raw) > LINE_BYTES_MAX and not raw.endswith(b"\n"):
            del raw
            end, complete = _run_over(handle, start + LINE_BYTES_MAX + 1)
            yield Line(number, start, end, None, f"longer than {LINE_BYTES_MAX} bytes", complete)
            start = end
            continue
        end = start + len(raw)
        complete = raw.endswith(b"\n")
        kept = raw[:-1] if complete else raw
        kept = kept[:-1] if kept.endswith(b"\r") else kept
        if start == 0 and kept.startswith(_BOM):
            kept = kept[len(_BOM) :]
        yield Line(number, start, end, kept, None, complete)
        start = end


def count_lines(handle: BinaryIO, end: int) -> int:
    """How many lines stand before byte `end`: so that a pass from an offset names true numbers."""
    return run_past(handle, end, b"")[0]


def run_past(handle: BinaryIO, end: int, sign: bytes) -> tuple[int, bool]:
    """How many lines stand before byte `end`, and whether `sign` stands there.

    In pieces, whatever the lines are: what was read in an earlier pass costs little in the next.
    """
    handle.seek(0)
    lines = 0
    found = False
    tail = b""
    left = end
    while left > 0:
        piece = handle.read(min(SKIP_BYTES, left))
        if not piece:
            break
        left -= len(piece)
        lines += piece.count(b"\n")
        if sign and not found:
            # A sign may lie across the edge of two pieces.
            found = sign in piece or sign in tail + piece[: len(sign)]
            tail = (tail + piece[-len(sign) :])[-len(sign) :]
    return lines, found


def parse(line: Line) -> tuple[Any, str | None, bool]:
    """(value, problem, sanitised) of one line; a blank line is (None, None, False).

    NUL and lone surrogates are gone at every depth and in keys; bytes that are not UTF-8 become
    U+FFFD. `sanitised` says that something was replaced. Files that are inlined in a long line are
    left out.
    """
    if line.raw is None:
        return None, line.problem, False
    if not line.raw.strip():
        return None, None, False
    raw, replaced = line.raw, False
    if len(raw) > PARSED_BYTES_MAX:
        # What a person says beside a picture is kept, the picture never was.
        raw = _INLINED.sub(b'""', raw)
        if len(raw) > PARSED_BYTES_MAX:
            return None, f"longer than {PARSED_BYTES_MAX} bytes without what is inlined", False
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        text = raw.decode("utf-8", "replace")
        replaced = True
    try:
        value = json.loads(text)
    except json.JSONDecodeError as problem:
        return None, f"not JSON: {problem.msg}", False
    except RecursionError:
        return None, "nested too deep", False
    except ValueError:
        return None, "a number too long to read", False
    if _DIRTY.search(raw):
        value, changed = clean(value)
        replaced = replaced or changed
    return value, None, replaced


def _run_over(handle: BinaryIO, position: int) -> tuple[int, bool]:
    """Read on to the end of the line without keeping it: (offset after it, had it a 0x0A)."""
    while True:
        piece = handle.readline(SKIP_BYTES)
        position += len(piece)
        if not piece:
            return position, False
        if piece.endswith(b"\n"):
            return position, True
