"""Batches to the server, or into the spool; offsets only over what was acknowledged.

A post that was lost on its way is sent again, and the server knows its items by their ids: nothing
is lost, nothing is stored twice. Runs in detached children and in commands.
"""

from __future__ import annotations

import os
import time
from typing import Any, Callable

from argus.hook import locate, reading, sessions, spool, trouble
from argus.hook.cleanse import cleanse
from argus.hook.door import Door
from argus.hook.limits import short
from argus.hook.outbox import body, send, sender
from argus.hook.reading import Batch, Gate, Unreadable
from argus.hook.sessions import Session
from argus.hook.wire import Away


def advance(
    session: Session,
    door: Door,
    gate: Gate,
    deadline: float = float("inf"),
    end: dict[str, str] | None = None,
    spooling: bool = True,
    tell: Callable[[Batch], None] = lambda batch: None,
) -> bool:
    """Send the file of this session from where it was left; whether it was read to its end.

    The caller holds the lock of the session. `end` goes with the last batch. Without `spooling`
    Away is raised where it otherwise fills the spool. Raises OSError for a file that cannot be
    read, and where no state can be written, Unreadable where our own code fails at it.
    """
    if session.spooled > session.offset and not spool.waiting(session.key):
        # The spool lost it, or the server has it and we died before we knew: it is read again.
        session.spooled, session.spooled_mark = session.offset, session.mark
    with locate.open_plain(session.path) as handle:
        start = reading.begin(handle, session)
        if not start:
            # Also of a file that was begun anew: what is left out of it now.
            session.since = gate.since
        name, size = os.path.basename(session.path), os.fstat(handle.fileno()).st_size
        last: Batch | None = None
        for batch in reading.batches(handle, name, start, gate, deadline):
            if last is not None and not _settle(gate, door, last, None, spooling):
                session.size = 0
                return False
            if last is not None:
                tell(last)
            last = batch
        whole = time.monotonic() <= deadline
        if last is not None:
            whole = _settle(gate, door, last, end if whole else None, spooling) and whole
            tell(last)
        session.size = size if whole else 0
        session.crash = ""
        sessions.save(session)
        return whole


def unreadable(session: Session, error: Unreadable) -> None:
    """Note that our code fails at the file of this session, which stays where it was read to.

    It is told once for each build of ours; `stalled` says that nothing changed since.
    """
    trouble.log(f"{session.key}: unreadable: {error}")
    before, session.crash, session.size = session.crash, _crash(session), 0
    if before.split(" ")[0] != session.crash.split(" ")[0] and not Gate(session).unwelcome():
        name = session.named or session.id
        trouble.miss(session.client, name, "unreadable", str(error))
    sessions.save(session)


def stalled(session: Session) -> bool:
    """Whether the same code would fail at the same file again."""
    return bool(session.crash) and session.crash == _crash(session)


def _crash(session: Session) -> str:
    return f"{sender('')['version']} {locate.size_of(session.path)}"


def _settle(
    gate: Gate, door: Door, batch: Batch, end: dict[str, str] | None, spooling: bool
) -> bool:
    """Send one batch or spool it, and move the offsets; False when it had to be left where it is.

    Raises Away without `spooling`.
    """
    session = gate.session
    waits = bool(spool.waiting(session.key))
    if not batch.items and (end is not None or batch.bad) and gate.unwelcome():
        end, batch.bad = None, []
    if not batch.items and end is None and not batch.bad:
        # Behind what waits it is left for the next reading: ranges of the spool have no gaps.
        if not waits:
            session.carried = batch.counts.as_json() if batch.counts.seen else {}
            _move(session, batch, acknowledged=True)
            sessions.save(session)
        return True
    if batch.items and end is None:
        session.ended = ""
    envelope = _envelope(session, batch, end)
    if (not waits and not door.shut) or not spooling:
        try:
            batch.answer = send(door, batch.items, envelope)
        except Away:
            if not spooling:
                raise
        else:
            session.carried = {}
            _move(session, batch, acknowledged=True)
            sessions.save(session)
            return True
    about = {
        "key": session.key, "client": session.client, "name": session.name, "start": batch.start,
        "end": batch.end, "mark": batch.mark, "generation": session.generation,
    }  # fmt: skip
    if not spool.add(about, body(batch.items, envelope), only_copy=False):
        return False
    session.carried = {}
    _move(session, batch, acknowledged=False)
    sessions.save(session)
    return True


def _envelope(session: Session, batch: Batch, end: dict[str, str] | None) -> dict[str, Any]:
    told: dict[str, Any] = {"client": sender(session.client)}
    name = session.named or short("session", session.id)
    if batch.counts.seen:
        told["range"] = {**batch.counts.as_json(), "session": name}
    if batch.bad:
        told["misses"] = [
            {
                "client": session.client,
                "session": name,
                "reason": "bad_line",
                "at": trouble.stamp(time.time()),
                "detail": detail,
            }
            for detail in batch.bad
        ]
    if end is not None:
        told["session_end"] = {**end, "session": name}
    cleansed: dict[str, Any] = cleanse(told, {})
    return cleansed


def _move(session: Session, batch: Batch, acknowledged: bool) -> None:
    session.spooled, session.spooled_mark = batch.end, batch.mark
    # Why from its start only: what the spool lost meanwhile lies before it, and is read again.
    if acknowledged and session.offset == batch.start:
        session.offset, session.mark = batch.end, batch.mark


def put(session: Session, door: Door, items: list[str], beside: dict[str, Any]) -> bool:
    """Send or spool what stands in no file; False when there was no room for it."""
    envelope = {"client": sender(session.client), **beside}
    if not door.shut and not spool.waiting(session.key):
        try:
            send(door, items, envelope)
            return True
        except Away:
            pass
    about = {"key": session.key, "client": session.client, "name": session.name}
    if spool.add(about, body(items, envelope), only_copy=True):
        return True
    trouble.pass_on("spool", "the spool is full: words that stand in no file were lost")
    trouble.miss(session.client, session.id, "spool_full", f"{len(items)} items")
    return False
