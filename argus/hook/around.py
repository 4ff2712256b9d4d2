"""Sessions that no event told of: a kill, an error or an Esc leaves them behind; they are found.

At the start of a session and at its prompts, in a detached child. Knows nothing about stdin and
nothing about formats.
"""

from __future__ import annotations

import json
import time

from argus.hook import deliver, insurance, locate, sending, sessions, spool
from argus.hook.door import Door
from argus.hook.events import Event, safe
from argus.hook.locate import changed_at, size_of
from argus.hook.sessions import Session
from argus.hook.sweep import sweep
from argus.hook.tending import FLUSH_SECONDS, WORK_SECONDS, installed, read_on

#: Seconds without a change after which a file that nobody tells of is read.
# Why: its own hooks may still come, and a prompt that is being edited is not said yet.
# Calibrate: prompts stored that were withdrawn within a minute.
QUIET_SECONDS = 30.0

#: Seconds since a session's last reading for which every prompt looks at it again.
# Why: a prompt's child must be cheap; the start of a session looks at all of them.
RECENT_SECONDS = 2 * 86400.0


def look_around(event: Event, settings: dict[str, str], flush: bool) -> None:
    """See to the sessions that no event told of: known ones that changed, and new ones beside."""
    deadline = time.monotonic() + WORK_SECONDS
    since = installed()
    door = Door(settings)
    try:
        _see_to_all(event, door, since, flush, deadline)
    finally:
        door.tally.keep()


def _see_to_all(event: Event, door: Door, since: float, flush: bool, deadline: float) -> None:
    own = safe(event.session)
    _remember(event, own)
    if flush:
        if spool.waiting():
            deliver.flush(FLUSH_SECONDS, patient=False)
        elif not door.shut:
            deliver.tell_journals(door)
        sweep(time.time(), spool.keys())
    recent = 0.0 if flush else time.time() - RECENT_SECONDS
    for client, name, path in _changed(event, since, recent):
        if time.monotonic() > deadline:
            break
        if name != own and not spool.waiting(f"{client}.{name}"):
            visit(client, name, path, door, deadline)


def _remember(event: Event, name: str) -> None:
    """Keep of a new session where its file will be.

    Why: it may be killed in its first turn, and Codex begins another folder at midnight.
    """
    if (
        not name
        or sessions.written(event.client, name) >= 0
        or sessions.disabled(event.client, name)
    ):
        return
    session = sessions.load(event.client, name, event.session)
    held = sessions.take(session.key)
    if held is None:
        return
    try:
        # Its own hook may have been here since.
        if sessions.written(event.client, name) < 0:
            session.path, session.cwd = event.transcript, event.cwd
            sessions.save(session)
    finally:
        sessions.leave(held)


def visit(client: str, name: str, path: str, door: Door, deadline: float) -> None:
    """Read a session on that no event told of, and post the answers that have no row."""
    held = sessions.take(f"{client}.{name}")
    if held is None:
        return
    try:
        session = sessions.load(client, name, locate.name_of(client, path) if path else "")
        session.path = path or session.path
        idle = time.time() - changed_at(session.path)
        if idle < QUIET_SECONDS:
            return
        whole = read_on(session, door, deadline)
        items = insurance.due(session, idle) if whole or not size_of(session.path) else []
        texts = [json.dumps(item, ensure_ascii=False) for item in items]
        if texts and sending.put(session, door, texts, {}):
            insurance.posted(session, items)
        sessions.save(session)
    finally:
        sessions.leave(held)


def _changed(event: Event, since: float, recent: float) -> list[tuple[str, str, str]]:
    """(client, name, path or "") of sessions with something to read, the newest first.

    `since`: files that nobody knows must be newer; `recent`: what is known must be.
    """
    found: list[tuple[float, str, str, str]] = []
    known = set()
    for client, name in sessions.every(recent):
        session = sessions.load(client, name)
        known.add(session.path)
        # By its id: a sub-agent, and a second copy of the file, have names of their own.
        if sessions.disabled(client, safe(session.id)) or sending.stalled(session):
            continue
        size = size_of(session.path)
        lost = session.spooled > session.offset and not spool.waiting(session.key)
        gone = not size and (session.size or not session.path)
        if (
            size != session.size
            and not gone
            or lost
            or session.insured
            or sessions.handed_end(session) is not None
            or (gone and _moved(session))
        ):
            found.append((changed_at(session.path), client, name, session.path))
    for path in locate.beside(event.transcript) if event.transcript else ():
        name = safe(locate.name_of(event.client, path))
        # For a prompt `known` holds only some, and it looks at new ones alone.
        new = path not in known and (not recent or sessions.written(event.client, name) < 0)
        # A second file of the event's own session is that one's business.
        if not (new and name != safe(event.session) and locate.readable(path)):
            continue
        if changed_at(path) > since and not sessions.disabled(event.client, name):
            name = sessions.name_for(event.client, path)
            found.append((changed_at(path), event.client, name, path))
    found.sort(reverse=True)
    return [(client, name, path) for _, client, name, path in found]


def _moved(session: Session) -> bool:
    """Whether the file of a session lies elsewhere now and has something new."""
    lately = time.time() - sessions.written(session.client, session.name) < RECENT_SECONDS
    # Why lately: a deleted file is looked for in every folder there is.
    path = locate.find(session.client, session.id) if lately and not session.agent else ""
    if not path or size_of(path) == session.size:
        return False
    session.path = path
    return True
