"""A vault's files: the line below which they are a person's, and the name by which ours are known.

Pure, standard library only: what writes these files (exporter) and what reads them back
(memory.transcripts) agree here. Knows nothing about notes, folders or how a file is made.
"""

from __future__ import annotations

import re
from typing import NamedTuple

#: The heading of a person's part of our files, and the line after it that ends our part.
HEADING = "## Notes"
MARKER = "%% argus: below this line is yours; every export keeps it %%"

#: The property in the front matter by which a file of ours is known, wherever it lies.
FIELD = "argus_id"

#: A vault's folder of ours, and the file in it by which a folder is known as a vault.
# Why a file: a home that Argus keeps its data in is called .argus as well, and holds no vault.
OURS = ".argus"
SIGN = "vault"

#: How the line in it begins that says whose vault it is.
OWNER = "Owner: "

#: Bytes of a file in which its front matter must end.
# Why: a tag or an alias is a line; a file whose property stands further down is none of ours.
FRONT_BYTES_MAX = 64 * 1024

# An editor may end lines its own way; a marker that it changed so is still the marker.
_MARKER = re.compile(rb"^" + re.escape(MARKER.encode()) + rb"[ \t]*\r?(?:\n|\Z)", re.MULTILINE)
_FRONT = re.compile(
    rb"\A(?:\xef\xbb\xbf)?---[ \t]*\r?\n(.*?)^(?:---|\.\.\.)[ \t]*\r?$", re.M | re.S
)
_FIELD = re.compile(rb"^" + FIELD.encode() + rb":[ \t]*(\S[^\r\n]*?)[ \t]*\r?$", re.MULTILINE)


# Our last lines, and what opens or closes a block of code, with what stands behind it.
_BAR_OR_END = re.compile(
    rb"^(?:%b[ \t]*\r?\n%b[ \t]*\r?$| {0,3}(?P<bar>`{3,}|~{3,})(?P<rest>.*)$)"
    % (re.escape(HEADING.encode()), re.escape(MARKER.encode())),
    re.MULTILINE,
)


class Parts(NamedTuple):
    """A file of the vault: what Argus wrote, the first marker line included, and what a person did.

    `region` is None where there is no marker line.
    """

    managed: bytes
    region: bytes | None


def split(data: bytes) -> Parts:
    """The file's bytes in two; together they are the file."""
    found = _MARKER.search(data)
    return Parts(data[: found.end()], data[found.end() :]) if found else Parts(data, None)


def front(data: bytes) -> bytes | None:
    """The lines of the front matter, or None without one."""
    found = _FRONT.match(data[:FRONT_BYTES_MAX])
    return found.group(1) if found else None


def identity(data: bytes) -> str | None:
    """The `argus_id` of the front matter, or None: no front matter, or none of ours."""
    found = _FIELD.search(front(data) or b"")
    return found.group(1).decode("utf-8", "replace").strip("\"'") or None if found else None


def ours(data: bytes) -> bool:
    """Whether Argus wrote this file, or what a copy without its front matter was taken of. A text
    that shows our last lines as code is none of ours."""
    if identity(data) is not None:
        return True
    # All blocks of code in a page of ours are closed.
    bar = b""
    for found in _BAR_OR_END.finditer(data):
        mark, rest = found.group("bar", "rest")
        if mark is None and not bar:
            return True
        if mark is not None and not bar:
            bar = mark
        elif mark is not None and bar in mark and not rest.strip():
            bar = b""
    return False


def owner_of(sign: bytes) -> str:
    """Whose vault it is, by what its sign says; "" where that names nobody."""
    lines = sign.decode(errors="replace").splitlines()
    return next((line[len(OWNER) :] for line in lines if line.startswith(OWNER)), "")
