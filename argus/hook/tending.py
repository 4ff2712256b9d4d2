"""What a detached child does for a session: read on, send, keep what is not sure, look around.

It has a minute and stops cleanly where it is then; the next event goes on. Never two of them at the
same session. Knows nothing about stdin and nothing about formats.
"""

from __future__ import annotations

import json
import time
from datetime import datetime, timezone
from typing import Any

from argus.hook import (
    deliver,
    home,
    insurance,
    locate,
    reading,
    sending,
    sessions,
    spool,
    trouble,
)
from argus.hook.capture import ENDS, SPOKEN, find
from argus.hook.cleanse import cleanse, said_nothing_else
from argus.hook.door import Door
from argus.hook.events import Event, safe
from argus.hook.limits import fit
from argus.hook.locate import size_of
from argus.hook.reading import Gate, Unreadable
from argus.hook.sessions import Session
from memory.text.poison import poison

#: Seconds of wall clock for one child, and for the spool.
WORK_SECONDS, FLUSH_SECONDS = 60.0, 20.0

#: Seconds by which a state must be older than an installation to be that of an earlier one.
# Why: clocks of files lag a little, and a new installation of the same minute leaves no gap.
GAP_SECONDS = 60.0

#: Seconds for which the row of an answer is waited for, and the pause between two looks.
ROW_SECONDS, LOOK_SECONDS = 0.25, 0.05

#: Seconds for which a file is waited for that should be there.
# Why: a client writes behind time, and a first answer may come before there is any file. The pause
# is longer: each look may go through every folder of the client.
FILE_SECONDS, FIND_SECONDS = 2.0, 0.2

#: Times that a file which grew meanwhile is read again before the child leaves.
ROUNDS_MAX = 20


def tend(event: Event, path: str, settings: dict[str, str]) -> None:
    """See to the session of one event."""
    deadline = time.monotonic() + WORK_SECONDS
    installed()
    door = Door(settings)
    try:
        _see_to(event, path, door, deadline)
    finally:
        door.tally.keep()


def _see_to(event: Event, path: str, door: Door, deadline: float) -> None:
    said = event.message is not None
    if spool.waiting() and not said:
        # Why not then: a message comes with a prompt, and whoever answers it needs the machine.
        deliver.flush(FLUSH_SECONDS, patient=False)
    name = safe(event.session)
    if event.name == "SubagentStop":
        name = safe(f"{event.session}.agent-{event.agent}")
    if sessions.disabled(event.client, safe(event.session)):
        return
    own = Session(event.client, name)
    if event.name in ENDS:
        # Before the lock is asked for: whoever has it looks for this afterwards.
        sessions.hand_end(own, event.reason)
    if said:
        _say(own, event, door)
    elif not path and event.name in SPOKEN:
        path = _await(event)
    for _ in range(ROUNDS_MAX):
        held = sessions.take(own.key, sessions.LOCK_SECONDS)
        if held is None:
            trouble.log(f"{own.key}: another child is at work, {event.name} is left to it")
            return
        try:
            session = sessions.load(event.client, name, event.session)
            _turn(session, event, path, door, deadline)
        finally:
            sessions.leave(held)
        # Whoever came meanwhile and waited in vain relied on us to read to the end.
        more = size_of(session.path) != session.size or sessions.handed_end(session) is not None
        if time.monotonic() > deadline or not session.size or not more:
            break
    if not door.shut and not said:
        deliver.tell_journals(door)


def _await(event: Event) -> str:
    """The file that should be there, after a moment's wait; "" when it does not come."""
    until = time.monotonic() + FILE_SECONDS
    while not (path := find(event)) and time.monotonic() < until:
        time.sleep(FIND_SECONDS)
    return path


def _turn(session: Session, event: Event, path: str, door: Door, deadline: float) -> None:
    """One look at the session under its lock."""
    session.id = event.session
    session.path = path or session.path
    session.cwd = event.cwd or session.cwd
    if event.name == "SubagentStop":
        session.agent = {"agent": event.agent, "agent_type": event.agent_type}
    if event.message is not None and not locate.readable(session.path):
        return
    if event.name in SPOKEN and not session.agent:
        _tell_absent(session, event)
    read_on(session, door, deadline)
    if event.name == "Stop" and event.last:
        _insure(session, event, door, deadline)
    sessions.save(session)


def _tell_absent(session: Session, event: Event) -> None:
    """Tell once that there is no file of a session in which something was said."""
    if locate.readable(session.path) or locate.find(session.client, session.id):
        session.absent = False
        return
    if session.absent or Gate(session).unwelcome():
        return
    session.absent = True
    line = f"{session.client}: no transcript of session {session.name} at {event.transcript}"
    trouble.pass_on(f"missing-{session.name}", line)
    # Why no path: it names the folder in which somebody worked.
    trouble.miss(session.client, session.id, "no_transcript")


def read_on(session: Session, door: Door, deadline: float) -> bool:
    """Send what the file has more, and that the session ended; whether it was read to its end."""
    if not locate.readable(session.path) and not session.agent:
        session.path = locate.find(session.client, session.id) or session.path
    since = installed()
    known = sessions.written(session.client, session.name)
    if 0 <= known < since - GAP_SECONDS and since <= time.time():
        # What was said while nobody captured is left to a backfill, which goes by this, too.
        session.since = datetime.fromtimestamp(since, timezone.utc).isoformat()
    end, whole = sessions.handed_end(session), False
    try:
        whole = sending.advance(session, door, Gate(session, session.since), deadline, end)
    except OSError as error:
        if session.path:
            trouble.log(f"{session.key}: {error.strerror}: {error.filename}")
    except Unreadable as error:
        sending.unreadable(session, error)
    if end is not None and (whole or not locate.readable(session.path)):
        if not whole and session.named and not Gate(session).unwelcome():
            told = cleanse({**end, "session": session.named}, {})
            sending.put(session, door, [], {"session_end": told})
        sessions.end_told(session)
        session.ended = trouble.stamp(time.time())
        for one in session.insured:
            one["looked"] = True
    return whole


def _insure(session: Session, event: Event, door: Door, deadline: float) -> None:
    """Keep the last answer when its row is not in the file, after a moment's wait."""
    item = _item(session, event, "assistant", event.last)
    if item is None or poison(event.last, "assistant"):
        return
    until = time.monotonic() + ROW_SECONDS
    while not insurance.heard(session, item["body"]):
        if time.monotonic() > until:
            now = time.time()
            item["original_timestamp"] = trouble.stamp(now)
            # The id of a row is not known; the same words at two stops are two answers.
            item["record_id"] = f"insured/{session.name}/{trouble.stamp(now)}"
            insurance.keep(session, item["body"], now, item)
            return
        time.sleep(LOOK_SECONDS)
        if size_of(session.path) != session.size and not sending.stalled(session):
            read_on(session, door, deadline)


def _item(session: Session, event: Event, role: str, text: str) -> dict[str, Any] | None:
    """An item of words that an event brought, cleansed; None when they must not leave."""
    cwd = event.cwd or session.cwd
    rules = Gate(session).rules(cwd)
    if rules is None or not text.strip():
        return None
    item: dict[str, Any] = cleanse(
        {
            "source": locate.SOURCES[event.client],
            "kind": "turn",
            "role": role,
            "body": text,
            "session": session.named or event.session,
            "cwd": cwd,
            "project": rules.project,
            "metadata": {**reading.facts(cwd), "insured": True},
        },
        {},
    )
    long = len(item["body"].encode("utf-8", "replace")) > reading.ITEM_BYTES_MAX
    return None if long or said_nothing_else(item["body"]) else fit(item)


def _say(session: Session, event: Event, door: Door) -> None:
    """Send a message that an event brought whole, before any file has it."""
    from memory.transcripts.instants import instant
    from memory.transcripts.pi import identify, judge_entry

    message: dict[str, Any] = dict(event.message or {})
    text, reason, marks = judge_entry({"type": "message", "message": message})
    when, _ = instant(message.get("timestamp"))
    if reason is not None or when is None:
        return
    item = _item(session, event, str(message.get("role")), text)
    if item is None:
        return
    item["metadata"] = {**reading.facts(item["cwd"]), **marks}
    # By the words as they are stored, as the file's own reading names them.
    item["record_id"] = identify(message.get("timestamp"), item["role"], item["body"])
    item["original_timestamp"] = when.isoformat()
    sending.put(session, door, [json.dumps(item, ensure_ascii=False)], {})


def installed() -> float:
    """Since when this machine captures, in seconds; from now on when it never did."""
    path = home.place("hook", "since")
    try:
        with open(path, encoding="ascii", errors="replace") as handle:
            return float(handle.read(32))
    except (OSError, ValueError):
        now = time.time()
    home.private("hook")
    home.write(path, str(now).encode())
    return now
