"""Everything that Argus reads from files: one stream of turns, skips and bad lines per file.

Pure and streaming, standard library only, Python 3.9: these modules also run inside the hook.
Knows nothing about the database, the network or the clock.

Left out here is what a client itself marks or words as no part of the conversation (error texts
among it). A refusal in the model's own words is a turn: refusing it, with a trace, is for capture.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterable, Iterator
from datetime import datetime, timezone, tzinfo
from typing import Any, BinaryIO

from memory.transcripts.lines import parse, read_lines
from memory.transcripts.turns import BadLine, Item, Reading, Skip, Turn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["BadLine", "Item", "Reading", "SOURCES", "Skip", "Turn", "detect", "read", "walk"]

#: Sources whose files are JSONL; the order settles a draw.
_JSONL = ("claude-code", "codex", "pi")
SOURCES = (*_JSONL, "telegram", "bookmark", "file", "vault")
#: Adapters whose module has another name than their source.
_MODULES = {"claude-code": "claude_code", "bookmark": "bookmarks", "file": "documents"}

#: Bytes and lines by which a file is recognised.
# Why: the first lines of a transcript may be broken, foreign or titles of another session.
HEAD_BYTES = 64 * 1024
HEAD_LINES = 40

_UNWALKED = frozenset(("node_modules", "__pycache__", "site-packages"))
_NOTES = frozenset((".md", ".markdown"))
_SUFFIXES = frozenset((".jsonl", ".ndjson", ".json", ".htm", ".html"))


def _adapter(source: str) -> Any:
    """The module that reads this source.

    Why late: the hook's process reads the files of one client, and pays for what it imports.
    """
    return importlib.import_module("memory.transcripts." + _MODULES.get(source, source))


def detect(path: str | Path) -> str | None:
    """Which source's adapter reads this file, by content first and name second; None = none does.

    Raises OSError when the file cannot be opened.
    """
    suffix = os.path.splitext(path)[1].lower()
    if suffix in _adapter("file").SUFFIXES:
        # Why the place: in a vault a person's note is more than a document that lies about.
        own = suffix in _NOTES and _adapter("vault").root(str(path))
        return "vault" if own else "file"
    if suffix not in _SUFFIXES:
        return None
    with open(path, "rb") as handle:
        if suffix in (".jsonl", ".ndjson"):
            return _vote(handle)
        head = handle.read(HEAD_BYTES).decode("utf-8", "replace")
    if suffix == ".json":
        return "telegram" if _adapter("telegram").recognises(head) else None
    return "bookmark" if _adapter("bookmark").recognises(head) else None


def read(
    path: str | Path,
    source: str | None = None,
    offset: int = 0,
    reading: Reading | None = None,
    zone: tzinfo = timezone.utc,
) -> Iterator[Item]:
    """The items of one file in file order: Turn, Skip and BadLine.

    `source` None = detect it; a file that no adapter knows gives one Skip `unrecognised`.
    `offset` in bytes = where an earlier pass stopped (JSONL only); beyond the end the file was
    rewritten and is read from 0. `reading` is filled while the items are drawn. `zone` is for
    stamps that name none. Raises OSError when the file cannot be read, ValueError for an unknown
    source.
    """
    reading = Reading() if reading is None else reading
    reading.path = os.path.abspath(str(path))
    source = source or detect(path)
    reading.source = source
    if source is None:
        yield reading.count(Skip("unrecognised", 0, reading.path))
        return
    if source not in SOURCES:
        raise ValueError("unknown source {!r}: one of {}".format(source, ", ".join(SOURCES)))
    with open(path, "rb") as handle:
        status = os.fstat(handle.fileno())
        if offset > status.st_size:
            offset, reading.restarted = 0, True
        modified = datetime.fromtimestamp(max(status.st_mtime, 0), tz=timezone.utc)
        name = os.path.basename(path)
        yield from read_open(handle, name, source, offset, reading, zone, modified)


def read_open(
    handle: BinaryIO,
    name: str,
    source: str,
    offset: int = 0,
    reading: Reading | None = None,
    zone: tzinfo = timezone.utc,
    modified_at: datetime | None = None,
) -> Iterator[Item]:
    """The same for an open, seekable binary handle, whose source is known."""
    reading = Reading(source=source) if reading is None else reading
    adapter = _adapter(source)
    if source in _JSONL:
        yield from adapter.read(handle, name, offset, reading)
    elif source == "telegram":
        yield from adapter.read(handle, name, 0, reading, zone)
    elif source == "bookmark":
        yield from adapter.read(handle, name, 0, reading)
    else:
        yield from adapter.read(handle, name, 0, reading, modified_at)


def walk(paths: Iterable[str | Path]) -> Iterator[Path | Skip]:
    """The files worth reading under `paths`, each once, sorted; what is passed over is a Skip.

    A file that was named is always given, whatever it is. Directories are walked without
    following links; hidden ones are passed over. Files of sub-agents are `sidechain`.
    Raises FileNotFoundError for a path that is not there.
    """
    from pathlib import Path

    seen = set()
    denied: list[OSError] = []
    for given in paths:
        start = Path(given)
        if not start.exists():
            raise FileNotFoundError(f"no such file or directory: {start}")
        for found in [start] if start.is_file() else _files(start, denied):
            place = os.path.realpath(str(found))
            if place in seen:
                continue
            seen.add(place)
            reason = None if found == start else _unread(found)
            yield found if reason is None else Skip(reason, 0, str(found))
    # Why at the end: a folder that refuses to be listed must not be taken for an empty one.
    for error in denied:
        yield Skip("unreadable", 0, str(error.filename))


def _files(start: Path, denied: list[OSError]) -> Iterator[Path]:
    from pathlib import Path

    for folder, folders, names in os.walk(str(start), onerror=denied.append):
        folders[:] = sorted(f for f in folders if not f.startswith(".") and f not in _UNWALKED)
        for name in sorted(names):
            path = Path(folder, name)
            if path.is_file() and not name.startswith("."):
                yield path


def _unread(path: Path) -> str | None:
    """Why a file met on the way is not read, or None."""
    if "subagents" in path.parts and path.suffix in (".jsonl", ".json"):
        return "sidechain"
    # Claude Code keeps long tool output there, and what a hook injected: Argus's own recall text.
    if "tool-results" in path.parts and path.suffix == ".txt":
        return "injected"
    if path.suffix in (".zst", ".gz") and ".jsonl" in path.suffixes:
        return "compressed"
    try:
        return None if detect(path) else "unrecognised"
    except OSError:
        return "unreadable"


def _vote(handle: BinaryIO) -> str | None:
    """Whose rows the first lines look like; None when nobody's."""
    votes = dict.fromkeys(_JSONL, 0)
    for line in read_lines(handle, 0):
        if line.number > HEAD_LINES or line.start > HEAD_BYTES:
            break
        row, _, _ = parse(line)
        if not isinstance(row, dict):
            continue
        for source in _JSONL:
            if _adapter(source).sniff(row):
                votes[source] += 1
                break
    best = max(votes, key=lambda source: votes[source])
    return best if votes[best] else None
