"""A stretch of a file as a file of its own: an adapter's memory does not grow with the file.

Knows nothing about rows but the two words by which adapters know those of a sub-agent.
"""

from __future__ import annotations

import io
from typing import BinaryIO


def _unsided(line: bytes) -> bytes:
    """A sub-agent's row as one of a session, of the same length.

    Why: adapters leave sub-agents out, and whoever asks for one asks for all its rows.
    """
    if b'"session_meta"' in line:
        return line.replace(b'"subagent"', b'"subagenT"')
    return line.replace(b'"isSidechain":true', b'"isSidechain":null')


class Window(io.RawIOBase):
    """A file that ends after the line in which `limit` lies; a sub-agent's rows as a session's.

    `more` says that it ended before the file did.
    """

    def __init__(self, handle: BinaryIO, limit: int, sidechain: bool) -> None:
        self.handle, self.limit, self.sidechain = handle, limit, sidechain
        self.more = self._inside = False

    def readline(self, size: int | None = -1, /) -> bytes:
        if not self._inside and self.handle.tell() >= self.limit:
            self.more = True
            return b""
        line = self.handle.readline(-1 if size is None else size)
        self._inside = not line.endswith(b"\n")
        return _unsided(line) if self.sidechain else line

    def seek(self, offset: int, whence: int = 0, /) -> int:
        self._inside = False
        return self.handle.seek(offset, whence)

    def read(self, size: int = -1, /) -> bytes:
        return self.handle.read(size)

    def tell(self) -> int:
        return self.handle.tell()
