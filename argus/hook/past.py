"""One file of a past session: counted, or sent by the state and the lock that the hooks go by.

So a backfill can be stopped at any moment and goes on where it was, and what hooks sent is not sent
again. Knows nothing about where the files come from or who is told.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from typing import Callable

from argus.hook import home, insurance, locate, reading, sending, sessions, spool, trouble
from argus.hook.deliver import FAILURES_MAX
from argus.hook.door import Door, doubtful
from argus.hook.events import safe
from argus.hook.outbox import probe
from argus.hook.reading import Batch, Gate, Unreadable
from argus.hook.sessions import Session
from argus.hook.wire import Away

#: The least pause after a failure.
PAUSE_SECONDS = 1.0


@dataclass
class BackfillReport:
    """What was read and what became of it; `posted` items by source, what was not by reason.

    `files` were read to their end, `passed` were not files of sessions or not wanted, by reason;
    `left` could not be finished: for `why`, because another is at work on them, or because their
    posts wait. `stored`, `duplicates` and `refused` are the server's own words.
    """

    files: int = 0
    left: int = 0
    posted: int = 0
    stored: int = 0
    duplicates: int = 0
    refused: int = 0
    bad_lines: int = 0
    sources: dict[str, int] = field(default_factory=dict)
    reasons: dict[str, int] = field(default_factory=dict)
    redacted: dict[str, int] = field(default_factory=dict)
    passed: dict[str, int] = field(default_factory=dict)
    dry_run: bool = False
    why: str = ""


class Past:
    """One backfill: what holds for every file of it."""

    def __init__(self, report: BackfillReport, since: str, project: str, patience: float) -> None:
        self.report, self.since, self.project = report, since, project
        self.patience, self.answered = patience, 0.0
        self.door = Door(home.read_env())

    def count(self, path: str, client: str, tell: Callable[[Batch], None]) -> None:
        """Read one file and send nothing."""
        if self._forbidden(client, path):
            return
        name = sessions.name_for(client, path)
        session = self._session(client, name, path)
        with locate.open_plain(path) as handle:
            start = reading.begin(handle, session)
            base, gate = os.path.basename(path), self._gate(session)
            # What was counted before and not told yet is no part of this.
            session.carried, gate.heard.noting = {}, False
            for batch in reading.batches(handle, base, start, gate):
                tell(batch)
        self.report.files += 1

    def send(self, path: str, client: str, tell: Callable[[Batch], None]) -> None:
        """Send one file; waits as the server asks. Raises Away when that took too long."""
        if self._forbidden(client, path):
            return
        name = sessions.name_for(client, path)
        self.answered = time.monotonic()
        failed, answered, spooling = 0, self.answered, False
        while True:
            try:
                return self._try(path, client, name, tell, spooling)
            except Away as away:
                if answered != self.answered:
                    failed, answered = 0, self.answered
                failed += doubtful(away)
                if failed >= FAILURES_MAX or away.why == "forbidden":
                    # The server may stumble over this file alone: then the spool sees to it.
                    spooling = self._well()
                patience = self.patience - (time.monotonic() - self.answered)
                forbidden = away.why == "forbidden" and not spooling
                if away.why == "key" or forbidden or patience <= 0:
                    raise
                if not spooling:
                    time.sleep(min(max(self.door.shut, PAUSE_SECONDS), patience))

    def _well(self) -> bool:
        """Whether the server takes a post without items."""
        try:
            probe(self.door)
        except Away:
            return False
        return True

    def _try(
        self, path: str, client: str, name: str, tell: Callable[[Batch], None], spooling: bool
    ) -> None:
        held = sessions.take(f"{client}.{name}", sessions.LOCK_SECONDS)
        if held is None or spool.waiting(f"{client}.{name}"):
            add(self.report.passed, "busy")
            self.report.left += 1
            if held is not None:
                sessions.leave(held)
            return
        try:
            session = self._session(client, name, path)
            quiet = time.time() - os.stat(path).st_mtime > insurance.IDLE_SECONDS
            ends = quiet and not session.ended and os.stat(path).st_size != session.size
            end = {"reason": "end of file"} if ends else None
            gate, whole, read = self._gate(session), not session.spooled, False
            try:
                read = sending.advance(
                    session, self.door, gate, end=end, spooling=spooling, tell=tell
                )
            except Unreadable as error:
                sending.unreadable(session, error)
                raise
            if end and read:
                session.ended = trouble.stamp(time.time())
            if whole and not gate.early:
                session.since = ""
            sessions.save(session)
        finally:
            sessions.leave(held)
        if session.spooled > session.offset:
            self.report.left += 1
        else:
            self.report.files += 1

    def _forbidden(self, client: str, path: str) -> bool:
        # By the session's id, whichever of its files this is.
        forbidden = sessions.disabled(client, safe(locate.name_of(client, path)))
        if forbidden:
            add(self.report.passed, "disabled")
        return forbidden

    def _session(self, client: str, name: str, path: str) -> Session:
        session = sessions.load(client, name, locate.name_of(client, path))
        session.path = path
        if session.since and (not self.since or self.since < session.since):
            # An earlier backfill left out what this one wants.
            session.restart()
        if not session.spooled:
            session.since = self.since
        return session

    def _gate(self, session: Session) -> Gate:
        return Gate(session, self.since, self.project, live=False)

    def add(self, batch: Batch, source: str) -> None:
        """Count one batch of this source, which was answered just now."""
        report, counts = self.report, batch.counts
        self.answered = time.monotonic()
        report.posted += counts.posted
        report.bad_lines += counts.reasons.get("bad_line", 0)
        report.stored += batch.answer.get("stored", 0)
        report.duplicates += batch.answer.get("duplicates", 0)
        report.refused += batch.answer.get("refused", 0)
        if counts.posted:
            add(report.sources, source, counts.posted)
        for reason, count in counts.reasons.items():
            add(report.reasons, reason, count)
        for reason, count in counts.redacted.items():
            add(report.redacted, reason, count)


def add(counts: dict[str, int], name: str, count: int = 1) -> None:
    counts[name] = counts.get(name, 0) + count
