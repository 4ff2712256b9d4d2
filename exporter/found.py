"""What lies in a vault: values, and the hashes by which our part of a file is known.

Pure. Knows nothing about how files are read.
"""

from __future__ import annotations

import hashlib
from codecs import BOM_UTF8
from dataclasses import dataclass, field
from typing import Literal

from memory.text import region

Kind = Literal["file", "folder", "other"]


@dataclass(frozen=True)
class Found:
    """What lies at a path. `key` is the `argus_id` of its front matter; hashes are SHA-256 in hex,
    `managed` of our part of the file, `size` bytes long, `whole` of all of it; `region` is a
    person's part; `marked`: whether there is a line that it begins below; `aimed`: whether an
    editor changed where our links lead, and nothing else (`managed` is of what was there before).
    """

    path: str
    kind: Kind = "file"
    key: str | None = None
    managed: str = ""
    size: int = 0
    region: bytes = b""
    whole: str = ""
    marked: bool = True
    aimed: bool = False


@dataclass(frozen=True)
class Scan:
    """All Markdown files by path, all folders, and every other name that is taken."""

    files: dict[str, Found] = field(default_factory=dict)
    folders: frozenset[str] = frozenset()
    others: frozenset[str] = frozenset()


def found(path: str, data: bytes) -> Found:
    """A file as the plan sees it."""
    ours, words = parts(data)
    return Found(
        path=path,
        key=region.identity(data),
        managed=sha256(ours),
        size=len(ours),
        region=words,
        whole=sha256(data),
        marked=region.split(data).region is not None,
    )


def parts(data: bytes) -> tuple[bytes, bytes]:
    """A file's bytes: our part, and what a person wrote below. Without a marker line all is ours.

    What an editor does to every file is nobody's change: our part is told with our own line ends,
    the last one too, and without a byte order mark. A person's part is theirs to the byte.
    """
    ours, words = region.split(data)
    ours = ours.removeprefix(BOM_UTF8).replace(b"\r\n", b"\n")
    if words is None:
        return ours, b""
    return (ours if ours.endswith(b"\n") else ours + b"\n"), words


def starts_with(data: bytes, *, wanted: str, size: int) -> bool:
    """Whether the first `size` bytes have this hash: our part, as it was written. An editor may
    have changed the ends of its lines."""
    if len(data) == size - 1:
        data += b"\n"
    return sha256(data[:size]) == wanted or sha256(parts(data)[0]) == wanted


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
