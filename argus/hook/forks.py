"""Turns that a fork copied from a session which is never captured: they stay out in the fork, too.

Codex and pi name the session that was forked; Claude copies its rows, each with its id, into
another file of the same folder. Knows nothing about formats but the name of that id.
"""

from __future__ import annotations

import os
import re

from argus.hook import locate, sessions, trouble
from argus.hook.events import safe
from argus.hook.sessions import OFF, Session
from memory.transcripts.turns import Turn

#: Bytes of all files that are looked through for rows, the newest file first.
# Why: what may not be captured may be large as well, and a child has a minute.
# Calibrate: the log tells when it was not enough.
BYTES_MAX = 512 * 1024 * 1024

#: Bytes that are looked at together, and what two of these share.
_PIECE_BYTES, _SHARED_BYTES = 1024 * 1024, 256

_ROW = re.compile(rb'"uuid"\s*:\s*"([^"\\]{1,100})"')


class Ancestors:
    """Sessions that are never captured and that this session may be a fork of."""

    def __init__(self, session: Session) -> None:
        self.session = session
        #: Claude's files of such sessions: when each was changed, and its path; None = not looked.
        self._files: list[tuple[float, str]] | None = None
        self._rows: set[bytes] = set()
        self._left = BYTES_MAX

    def forbid(self, turn: Turn) -> bool:
        """Whether this turn was said in a session that is never captured, or in a fork of it."""
        client, parent = self.session.client, turn.metadata.get("forked_from")
        if client != "claude":
            return isinstance(parent, str) and sessions.disabled(client, safe(parent))
        if self._files is None:
            self._files = self._beside()
        at = turn.occurred_at.timestamp() if turn.occurred_at else 0.0
        # Why the times: what is said after the last row of such a file is no copy out of it, and
        # for the turns of now no file need be read.
        while self._files and self._files[-1][0] >= at:
            self._read(self._files.pop()[1])
        return (turn.record_id or "").encode("utf-8", "replace") in self._rows

    def _beside(self) -> list[tuple[float, str]]:
        folder = os.path.dirname(self.session.path)
        found = []
        for name in locate.names(os.path.dirname(sessions.file_of("claude", "any"))):
            path = os.path.join(folder, name[: -len(OFF)] + ".jsonl")
            own = path == self.session.path
            if name.endswith(OFF) and folder and not own and locate.readable(path):
                found.append((locate.changed_at(path), path))
        return sorted(found)

    def _read(self, path: str) -> None:
        try:
            with locate.open_plain(path) as handle:
                kept = b""
                while piece := handle.read(min(_PIECE_BYTES, self._left)):
                    self._left -= len(piece)
                    self._rows.update(_ROW.findall(kept + piece))
                    kept = piece[-_SHARED_BYTES:]
        except OSError as error:
            trouble.log(f"forks: {path}: {error.strerror}")
        if not self._left:
            trouble.log(f"forks: too much to look through, not all of {path} was")
