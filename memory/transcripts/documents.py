"""Markdown and plain text files as documents, cut at headings when they are too long for one.

Knows headings, code fences and front matter; knows nothing about storing. A file up to the limit
is one document, verbatim with its front matter.

Record id = hash of the absolute path + hash of the content + number of the piece. A second run
over the same file stores nothing; a changed file is stored as a new document beside the old one,
which stays as it was; equal texts at two places are two documents, because where something stands
is part of what it says. A file that was moved is therefore stored once more.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import PurePath
from typing import Any, BinaryIO

from memory.text.clean import clean_text
from memory.text.region import ours
from memory.transcripts.instants import stamp
from memory.transcripts.turns import Item, Reading, Skip, Turn

SOURCE = "file"
SUFFIXES = frozenset((".md", ".markdown", ".mdown", ".txt", ".text"))

#: Bytes of one document.
# Why: a raw item holds at most 1 MiB, and redaction may make a text a little longer.
PIECE_BYTES_MAX = 1_000_000
#: Bytes of a file that is read at all.
FILE_BYTES_MAX = 64 * 1024 * 1024

_HEADING = re.compile(r"^(#{1,6})\s+(\S.*)$")
_FENCE = re.compile(r"^\s{0,3}(```|~~~)")
_FIELD = re.compile(r"^([A-Za-z_][\w -]*):\s*(\S.*)$")
_DATES = ("date", "created", "created_at", "updated", "modified")


def read(
    handle: BinaryIO,
    name: str,
    offset: int,
    reading: Reading,
    modified_at: datetime | None = None,
) -> Iterator[Item]:
    """The documents of one file; `modified_at` (aware) counts when the front matter has no date.

    A copy of a file of ours, wherever it lies, is read as one of the vault.
    """
    handle.seek(0)
    if ours(handle.read(FILE_BYTES_MAX)):
        from memory.transcripts import vault

        yield from vault.read(handle, name, 0, reading, modified_at)
        return
    for found in pieces(handle, name, reading, modified_at):
        yield reading.count(found)


def pieces(
    handle: BinaryIO, name: str, reading: Reading, modified_at: datetime | None
) -> Iterator[Item]:
    """The same for a file that is nobody's but the person's; whoever draws it counts."""
    handle.seek(0)
    raw = handle.read(FILE_BYTES_MAX + 1)
    reading.offset = len(raw)
    if len(raw) > FILE_BYTES_MAX:
        yield Skip("oversized", 0, reading.path)
        return
    text, changed = _decode(raw)
    if text is None:
        yield Skip("binary", 0, reading.path)
        return
    if not text.strip():
        yield Skip("empty", 0, reading.path)
        return
    front = front_matter(text)
    parts = cut(text, PIECE_BYTES_MAX)
    path = reading.path or name
    known_by = f"{_short(path)}:{hashlib.sha256(raw).hexdigest()[:32]}"
    reading.lines = text.count("\n") + 1
    for number, piece in enumerate(parts, 1):
        metadata: dict[str, Any] = {"title": _title(text, front, name), "path": path}
        if changed:
            metadata["sanitised"] = True
        dated = next((front[key] for key in _DATES if key in front), None)
        when = stamp(dated, metadata)
        if when is None and modified_at is not None:
            when = modified_at
            metadata["time_from"] = "file"
        yield Turn(
            source=SOURCE,
            kind="document",
            role="user",
            body=piece.text,
            record_id=f"{known_by}:{number}",
            occurred_at=when,
            metadata=metadata,
            locator={
                "path": path,
                "line": piece.line,
                "start": piece.start,
                "end": piece.start + len(piece.text),
                "piece": number,
                "pieces": len(parts),
                "headings": piece.headings,
            },
        )


class Piece:
    """One part of a text: `start` in characters, `line` from 1, the headings it stands under."""

    def __init__(self, text: str, start: int, line: int, headings: list[str]) -> None:
        self.text, self.start, self.line, self.headings = text, start, line, headings


def cut(text: str, bytes_max: int) -> list[Piece]:
    """The text whole, or in pieces of at most `bytes_max` bytes that together are the text.

    A piece begins at a heading where it can, else at a line, else anywhere.
    """
    if len(text.encode("utf-8")) <= bytes_max:
        return [Piece(text, 0, 1, [])]
    pieces: list[Piece] = []
    held, size, place, number = "", 0, 0, 1
    begun: tuple[int, int, list[str]] = (0, 1, [])
    for section, headings in _sections(text):
        for part in _fit(section, bytes_max):
            length = len(part.encode("utf-8"))
            if held and size + length > bytes_max:
                pieces.append(Piece(held, *begun))
                held, size = "", 0
            if not held:
                begun = (place, number, headings)
            held, size = held + part, size + length
            place, number = place + len(part), number + part.count("\n")
    return pieces + [Piece(held, *begun)]


def _sections(text: str) -> Iterator[tuple[str, list[str]]]:
    """The text cut before every heading outside code fences, with the heading path."""
    path: list[tuple[int, str]] = []
    held: list[str] = []
    names: list[str] = []
    fenced = False
    for line in re.findall(r"[^\n]*\n|[^\n]+\Z", text):
        if _FENCE.match(line):
            fenced = not fenced
        heading = None if fenced else _heading(line)
        if heading:
            if held:
                yield "".join(held), names
            path = [above for above in path if above[0] < heading[0]] + [heading]
            held, names = [], [name for _, name in path]
        held.append(line)
    if held:
        yield "".join(held), names


def _heading(line: str) -> tuple[int, str] | None:
    """(level, name) of a line that is a heading; closing signs are no part of the name."""
    match = _HEADING.match(line.rstrip())
    if not match:
        return None
    name = match.group(2)
    return len(match.group(1)), name.rstrip("#").rstrip() or name


def _fit(section: str, bytes_max: int) -> Iterator[str]:
    """A section in parts that each fit: lines together, and a line too long in bits."""
    held: list[str] = []
    size = 0
    for line in re.findall(r"[^\n]*\n|[^\n]+\Z", section):
        # A character takes four bytes at most, so a bit of this length always fits.
        wide = len(line.encode("utf-8")) > bytes_max
        step = bytes_max // 4 if wide else len(line)
        for at in range(0, len(line), step):
            bit = line[at : at + step]
            length = len(bit.encode("utf-8"))
            if held and size + length > bytes_max:
                yield "".join(held)
                held, size = [], 0
            held.append(bit)
            size += length
    if held:
        yield "".join(held)


def front_matter(text: str) -> dict[str, str]:
    """The one-line fields of a YAML front matter, keys in small letters; {} without one."""
    lines = text.split("\n", 200)
    if lines[0].rstrip() != "---":
        return {}
    found: dict[str, str] = {}
    for line in lines[1:]:
        if line.rstrip() in ("---", "..."):
            return found
        one = _FIELD.match(line.rstrip())
        if one:
            found[one.group(1).strip().lower()] = one.group(2).strip("\"'")
    return {}


def _title(text: str, front: dict[str, str], name: str) -> str:
    if front.get("title"):
        return front["title"]
    fenced = False
    for line in text.split("\n", 400)[:400]:
        if _FENCE.match(line):
            fenced = not fenced
        heading = None if fenced else _heading(line)
        if heading and heading[0] == 1:
            return heading[1]
    return PurePath(name).stem


def _decode(raw: bytes) -> tuple[str | None, bool]:
    """(text, was something replaced); None for what is not text."""
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        text = raw.decode("utf-16", "replace")
    elif b"\x00" in raw[:8192]:
        return None, False
    else:
        text = raw.decode("utf-8-sig", "replace")
    cleaned, changed = clean_text(text)
    return cleaned, changed or "\ufffd" in cleaned


def _short(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]
