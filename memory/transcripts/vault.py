"""A vault read back: a person's own notes, and what they wrote below the line in files of ours.

What Argus wrote itself is `derived` and never read again, wherever a copy of it lies: it is known
by the `argus_id` in its front matter, or by its end. A person's words are a synthesis: theirs,
about what is known.

Record id of words below the line = their hash alone: the file above them is written anew with every
export, renamed with its note and handed on to the note's heir, and the words stay what they are.
Record id of a note = hash of its place in the vault + hash of its content, as for documents.
Knows nothing about how files get there, or about storing.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import sys
from collections.abc import Iterator
from datetime import datetime
from typing import Any, BinaryIO

from memory.text import region
from memory.text.clean import clean_text
from memory.transcripts import documents
from memory.transcripts.turns import Item, Reading, Skip, Turn, text_hash

SOURCE = "vault"

#: Folders above a file that are looked at for a vault's sign.
# Why: as deep as people nest; a path of thousands is nobody's.
LEVELS_MAX = 64

#: Bytes of a vault's sign that are read.
SIGN_BYTES_MAX = 4096

#: The page of a project's folder, which names the project as people call it.
INDEX = "_index.md"

# The escapes of a double-quoted scalar: by number, or by a sign of their own.
_ESCAPE = re.compile(r"\\(?:(x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8})|(.))", re.DOTALL)
_SIGNS = {
    "0": "\0", "a": "\a", "b": "\b", "t": "\t", "n": "\n", "v": "\v", "f": "\f", "r": "\r",
    "e": "\x1b", "N": "\x85", "_": "\xa0", "L": "\u2028", "P": "\u2029",
}  # fmt: skip

_NOTHING = ("", "~", "null", "[]")


def root(path: str) -> str | None:
    """The vault that this file lies in: the nearest folder above it with our sign, or None."""
    folder = os.path.dirname(os.path.abspath(path))
    for _ in range(LEVELS_MAX):
        if os.path.isfile(os.path.join(folder, region.OURS, region.SIGN)):
            return folder
        above = os.path.dirname(folder)
        if above == folder:
            return None
        folder = above
    return None


def _owner(vault: str) -> str:
    """Whose vault this is, as it says; "" where it does not."""
    try:
        with open(os.path.join(vault, region.OURS, region.SIGN), "rb", opener=_opened) as handle:
            return region.owner_of(handle.read(SIGN_BYTES_MAX))
    except OSError:
        return ""


def read(
    handle: BinaryIO,
    name: str,
    offset: int,
    reading: Reading,
    modified_at: datetime | None = None,
) -> Iterator[Item]:
    """What a person wrote in one file; `modified_at` (aware): when, where the file does not say.

    Of a vault that says it is another person's than `reading.owner` nothing is read.
    """
    path = reading.path or name
    vault = root(path) if reading.path else None
    if vault and reading.owner and _owner(vault) not in ("", reading.owner):
        # Else what they wrote would be on record as this one's words.
        yield reading.count(Skip("others_vault", 0, path))
        return
    within = os.path.relpath(path, vault) if vault else os.path.basename(path)
    parts = within.split(os.sep)
    if any(part.startswith(".") for part in parts[:-1]):
        yield reading.count(Skip("derived" if parts[0] == region.OURS else "hidden", 0, path))
        return
    if vault and os.path.islink(path):
        # What it leads to lies somewhere else, and need not be the person's.
        yield reading.count(Skip("link", 0, path))
        return
    handle.seek(0)
    raw = handle.read(documents.FILE_BYTES_MAX + 1)
    if region.ours(raw):
        yield from _ours(raw, name, reading, modified_at)
        return
    project = _project_of(os.path.dirname(path)) if vault else None
    place = hashlib.sha256(within.encode("utf-8", "replace")).hexdigest()[:16]
    for found in documents.pieces(handle, name, reading, modified_at):
        if isinstance(found, Turn):
            number = str(found.locator["piece"])
            found = _theirs(found, f"note:{place}:{text_hash(found.body)}:{number}", project)
        yield reading.count(found)


def _ours(raw: bytes, name: str, reading: Reading, modified_at: datetime | None) -> Iterator[Item]:
    """A file that Argus wrote: what stands below the line, and a skip for the rest."""
    path = reading.path or name
    reading.offset = len(raw)
    yield reading.count(Skip("derived", 0, path))
    if len(raw) > documents.FILE_BYTES_MAX:
        yield reading.count(Skip("oversized", 0, path))
        return
    managed, below = region.split(raw)
    # Not as a file of its own: a stray byte does not make a person's words binary.
    lying = (below or b"").decode("utf-8", "replace")
    text, changed = clean_text(lying)
    changed = changed or "\ufffd" in text
    if not text.strip():
        return
    above = managed.decode("utf-8", "replace")
    words = text.strip()
    begun = text.index(words)
    # Where each character lies in the file: what cannot be kept was taken out.
    places = [at for at, sign in enumerate(lying, len(above)) if sign != "\0"]
    line = above.count("\n") + text[:begun].count("\n") + 1
    known, project = region.identity(managed), _property(managed, "project")
    title = _title(managed) or os.path.splitext(name)[0]
    cut = documents.cut(words, documents.PIECE_BYTES_MAX)
    identity = f"region:{text_hash(words)}"
    for number, piece in enumerate(cut, 1):
        metadata: dict[str, Any] = {"title": title, "path": path}
        if known is not None:
            metadata[region.FIELD] = known
        if changed:
            metadata["sanitised"] = True
        if modified_at is not None:
            metadata["time_from"] = "file"
        yield reading.count(
            Turn(
                source=SOURCE,
                kind="synthesis",
                role="user",
                body=piece.text,
                project=project,
                record_id=f"{identity}:{number}",
                occurred_at=modified_at,
                metadata=metadata,
                locator={
                    "path": path,
                    "line": line + piece.line - 1,
                    "start": places[begun + piece.start],
                    "end": places[begun + piece.start + len(piece.text) - 1] + 1,
                    "piece": number,
                    "pieces": len(cut),
                    "headings": [region.HEADING.lstrip("# "), *piece.headings],
                },
            )
        )


def _theirs(found: Turn, record_id: str, project: str | None) -> Turn:
    """A document of the vault as what it is: a person's own words about what is known."""
    return Turn(
        source=SOURCE,
        kind="synthesis",
        role="user",
        body=found.body,
        project=project,
        record_id=record_id,
        occurred_at=found.occurred_at,
        metadata=found.metadata,
        locator=found.locator,
    )


def _project_of(folder: str) -> str | None:
    """The project that a folder of the vault is of, as its index page says; None without one."""
    try:
        with open(os.path.join(folder, INDEX), "rb", opener=_opened) as handle:
            head = handle.read(region.FRONT_BYTES_MAX)
    except OSError:
        return None
    return _property(head, "project") if region.identity(head) else None


def _opened(path: str, flags: int) -> int:
    """A file alone, and not waiting for what sends nothing: a pipe may be called so."""
    number = os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise OSError(f"no file: {path}")
    return number


def _property(head: bytes, name: str) -> str | None:
    """The text of one property of our front matter, which stands on one line; None for none."""
    front = region.front(head) or b""
    found = re.search(rf"^{name}:[ \t]*(.*?)[ \t]*\r?$".encode(), front, re.MULTILINE)
    return _unquoted(found.group(1)) if found else None


def _title(head: bytes) -> str | None:
    """The note's title as its alias has it: unlike the heading, nothing in it is escaped."""
    front = region.front(head) or b""
    found = re.search(rb"^aliases:[ \t]*\r?\n[ \t]*-[ \t]+(.*?)[ \t]*\r?$", front, re.MULTILINE)
    return _unquoted(found.group(1)) if found else None


def _unquoted(told: bytes) -> str | None:
    """A YAML scalar of one line as text."""
    text = told.decode("utf-8", "replace")
    if len(text) > 1 and text[0] == text[-1] == "'":
        return text[1:-1].replace("''", "'") or None
    if len(text) > 1 and text[0] == text[-1] == '"':
        return _ESCAPE.sub(_meant, text[1:-1]) or None
    return None if text in _NOTHING else text


def _meant(escape: re.Match[str]) -> str:
    """The character that an escape of YAML stands for."""
    code, sign = escape.groups()
    if not code:
        return _SIGNS.get(sign, sign)
    number = int(code[1:], 16)
    known = number <= sys.maxunicode and not 0xD800 <= number <= 0xDFFF
    return chr(number) if known else "\ufffd"
