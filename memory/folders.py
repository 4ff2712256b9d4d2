"""Every text that lies in files below some folders, names included.

Reads: files. Writes: nothing. Knows nothing about what is looked for, nor what any file is.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import stat
import zlib
from collections.abc import Callable, Iterator, Sequence, Set
from hashlib import sha256
from io import BufferedReader
from pathlib import Path
from typing import IO, Any

from memory.scan import OVERLAP_BYTES, texts
from memory.text.numbers import Numbers
from memory.text.passages import Passages

#: Bytes of a file that are in memory at once.
FILE_BYTES_AT_ONCE = 32 * 1024 * 1024

#: Folders that are not looked at: git's history, which nobody can rewrite quietly (a receipt names
#: it), and what no text of ours is in. The files of a database server are known by DATABASE.
NO_FILES = (".git", "__pycache__")
DATABASE = "PG_VERSION"

#: What a compressed file begins with, and what reads it.
COMPRESSED: dict[bytes, Callable[[BufferedReader], Any]] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ\x00": lzma.open,
}
#: What they say of a file that is cut off, or is no such thing, beside OSError.
BROKEN = (EOFError, zlib.error, lzma.LZMAError)

#: Digits of the hash by which a file that was counted is known again.
FILE_DIGITS = 16


def walk(folders: Sequence[Path], unread: list[str] | None = None) -> Iterator[Path]:
    """Every file below these folders that may hold a text; links are not followed. `unread`: gets
    the folders that cannot be listed."""
    seen: set[str] = set()

    def missed(error: OSError) -> None:
        if unread is not None and not isinstance(error, FileNotFoundError):
            unread.append(str(error.filename))

    for root in folders:
        for here, below, names in os.walk(root, onerror=missed):
            below[:] = sorted(name for name in below if name not in NO_FILES)
            real = os.path.realpath(here)
            if real in seen or DATABASE in names:
                below[:] = []
                continue
            seen.add(real)
            yield from (Path(here, name) for name in sorted(names))


def in_file(path: Path, words: Passages) -> Set[int]:
    """What a file holds of these words, its name included. Raises OSError for one that cannot be
    read; one that is gone by now holds nothing."""
    found = Numbers(words.in_text(path.stem))
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            return found
        last, by_line = b"", bool(words.whole)
        for piece in _pieces(path):
            # In a file of JSON a line of a text ends with two characters that look like a word.
            by_line = by_line or (not last and piece[:1] in (b"{", b"["))
            data = last + piece
            lines = data.decode("utf-8", "replace").split("\n") if by_line else ()
            for line in (data, *lines):
                for text in texts(line):
                    found.update(words.in_text(text))
            # A line, or a window, may lie across what is read at once and the next.
            line_at = data.rfind(b"\n") + 1 or len(data)
            last = data[max(0, min(line_at, len(data) - OVERLAP_BYTES)) :]
    except FileNotFoundError:
        return set()
    return found


def _pieces(path: Path) -> Iterator[bytes]:
    """What a file says, unpacked. Raises OSError for one that cannot be read to its end."""
    with path.open("rb") as plain:
        file = _unpacking(plain)
        try:
            while data := file.read(FILE_BYTES_AT_ONCE):
                yield data
        except BROKEN as error:
            raise OSError(f"it is cut off or broken: {error}") from error


def _unpacking(plain: BufferedReader) -> IO[bytes]:
    """What reads this file: as compressed, where it is."""
    start = plain.peek(max(map(len, COMPRESSED)))
    for begins, reader in COMPRESSED.items():
        if start.startswith(begins):
            try:
                reader(plain).read(1)
            except (OSError, *BROKEN):
                # A text may begin with the same letters.
                plain.seek(0)
                break
            plain.seek(0)
            unpacking: IO[bytes] = reader(plain)
            return unpacking
    return plain


def file_id(path: str) -> str:
    """By what a file is known again where its name may not be kept."""
    return sha256(path.encode("utf-8", "surrogateescape")).hexdigest()[:FILE_DIGITS]
