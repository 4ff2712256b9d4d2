"""The lines of a foreign file, one object each, and what the objects of it became here.

Reads: the file. Writes: a throwaway file with numbers alone. Knows nothing about the record.
Nothing is believed: a line may be too long, no JSON, no object, or nested without end.
"""

from __future__ import annotations

import codecs
import json
import sqlite3
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import IO, Any

from memory.text.clean import clean_text

#: Bytes of one line.
# Why: a body of 1 MiB may be written with six bytes a character.
LINE_BYTES_MAX = 8 * 1024 * 1024

#: Characters of the name that an object has in a file.
NAME_CHARACTERS_MAX = 500

#: Years of an instant that is believed.
# Why: Python ends where PostgreSQL does not. What a zone moves over that end is stored, and then
# no read of the row succeeds.
YEAR_MIN, YEAR_MAX = 2, 9998


@dataclass(frozen=True)
class Line:
    """One line: its number, its bytes with the ones before it, and its object or what is wrong."""

    number: int
    end: int
    told: dict[str, Any] | None = None
    wrong: str = ""


def read(source: IO[bytes]) -> Iterator[Line]:
    """Every line that is not empty."""
    number = end = 0
    while block := source.readline(LINE_BYTES_MAX + 1):
        number += 1
        end += len(block)
        if number == 1:
            # Editors on Windows write it.
            block = block.removeprefix(codecs.BOM_UTF8)
        if len(block) > LINE_BYTES_MAX and not block.endswith(b"\n"):
            while (more := source.readline(LINE_BYTES_MAX)) and not more.endswith(b"\n"):
                end += len(more)
            end += len(more)
            yield Line(number, end, wrong=f"longer than {LINE_BYTES_MAX} bytes")
        elif block.strip():
            told, wrong = _object(block)
            yield Line(number, end, told, wrong)


def _object(block: bytes) -> tuple[dict[str, Any] | None, str]:
    try:
        told = json.loads(block.decode("utf-8"), parse_constant=_refuse)
    except UnicodeDecodeError:
        return None, "not UTF-8"
    except (ValueError, RecursionError):
        return None, "not JSON"
    if not isinstance(told, dict) or not isinstance(told.get("kind"), str):
        return None, 'not an object with a "kind"'
    return told, ""


def _refuse(word: str) -> None:
    raise ValueError(word)


def text(value: Any) -> str:
    """The value if it is text, as PostgreSQL and UTF-8 can hold it; else nothing."""
    return clean_text(value)[0] if isinstance(value, str) else ""


def texts(value: Any) -> tuple[str, ...]:
    """The texts of a list."""
    found = value if isinstance(value, list) else ()
    return tuple(text(one) for one in found if isinstance(one, str))


def number(value: Any) -> float | None:
    """The value if it is a number between 0 and 1."""
    plain = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if plain and 0 <= value <= 1 else None


def moment(value: Any) -> datetime | None:
    """The value if it is an instant with a zone, in a year that is believed."""
    try:
        found = datetime.fromisoformat(text(value))
    except ValueError:
        return None
    return found if found.tzinfo is not None and YEAR_MIN <= found.year <= YEAR_MAX else None


class Names:
    """What the file's names of things are here, and what was seen of each: on the disk, so that a
    file of any length needs little memory. Gone when closed."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self._at = sqlite3.connect(Path(self._folder.name) / "names", isolation_level=None)
        self._at.execute("PRAGMA journal_mode = OFF")
        self._at.execute("PRAGMA synchronous = OFF")
        self._at.execute(
            "CREATE TABLE names (kind TEXT, name TEXT, value TEXT, PRIMARY KEY (kind, name))"
            " WITHOUT ROWID"
        )

    def __enter__(self) -> Names:
        return self

    def __exit__(self, *error: object) -> None:
        self._at.close()
        self._folder.cleanup()

    def put(self, kind: str, name: Any, value: object) -> None:
        """The thing that the file calls so is this one; what was said first holds."""
        if (known := _name(name)) is not None:
            row = (kind, known, str(value))
            self._at.execute("INSERT INTO names VALUES (?, ?, ?) ON CONFLICT DO NOTHING", row)

    def get(self, kind: str, name: Any) -> str | None:
        """What `put` said of it, or None."""
        if (known := _name(name)) is None:
            return None
        row = self._at.execute(
            "SELECT value FROM names WHERE kind = ? AND name = ?", (kind, known)
        ).fetchone()
        return str(row[0]) if row else None

    def all(self, kind: str) -> Iterator[tuple[str, str]]:
        """Every name of a kind with its value."""
        yield from self._at.execute("SELECT name, value FROM names WHERE kind = ?", (kind,))


def _name(name: Any) -> str | None:
    if isinstance(name, bool) or not isinstance(name, (int, str)):
        return None
    try:
        known = str(name)
        known.encode()
    except ValueError:  # A number too long to be written, or half a character.
        return None
    return known if 0 < len(known) <= NAME_CHARACTERS_MAX else None
