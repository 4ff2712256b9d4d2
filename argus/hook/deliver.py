"""The spool to the server, and the journals after it; a post that it never takes holds up no other.

Runs in detached children and in commands. Knows nothing about transcripts.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass
from typing import Any, Callable

from argus.hook import home, sessions, spool, trouble
from argus.hook.cleanse import cleanse
from argus.hook.door import Door, Refused, doubtful
from argus.hook.outbox import acknowledged, probe, retry, send, sender
from argus.hook.wire import Away

#: Rows of a journal in one post.
MISSES_A_POST, SKIPPED_A_POST = 100, 200

#: Seconds for one such post.
JOURNAL_SECONDS = 10.0

#: Times that the server fails at a post and takes others, after which the post is taken apart.
# Why: one failure may be a restart between two posts.
FAILURES_MAX = 3


@dataclass
class FlushReport:
    """What a flush did: posts `sent`, posts `left` and their `bytes`, and `why` it stopped."""

    sent: int = 0
    left: int = 0
    bytes: int = 0
    why: str = ""


def _report(sent: int = 0, why: str = "") -> FlushReport:
    return FlushReport(sent, *spool.totals(), why)


def flush(
    seconds: float,
    tell: Callable[[int, int], None] = lambda sent, left: None,
    patient: bool = True,
) -> FlushReport:
    """Send what waits in the spool, then the journals; one flush at a time.

    `tell` gets the posts sent and left. `patient`: also when the server was away a moment ago, and
    what was set aside, too, as a person asks.
    """
    deadline = time.monotonic() + seconds
    door = Door(home.read_env())
    if door.shut and not patient:
        return _report(why="the server was away a moment ago")
    held = sessions.take("flush")
    if held is None:
        return _report(why="another flush is at work")
    run = _Flush(door, tell)
    try:
        run.empty(deadline)
        if not door.shut:
            tell_journals(door)
            run.sent += retry(door) if patient else 0
    finally:
        sessions.leave(held)
        door.tally.keep()
    return _report(run.sent, run.why)


class _Flush:
    """One walk over the spool: `sent` posts, and `why` not all of them.

    A session whose post fails is passed over. Another session's post shows then whether the server
    is away or stumbles over that one; one that it stumbles over again and again is taken apart.
    """

    def __init__(self, door: Door, tell: Callable[[int, int], None]) -> None:
        self.door, self.tell = door, tell
        self.sent, self.why = 0, ""
        #: Keys of sessions to pass over.
        self.stuck: set[str] = set()
        #: The post that failed since the last one was taken, and how.
        self.doubt: tuple[str, Away] | None = None

    def empty(self, deadline: float) -> None:
        while names := [n for n in spool.queue() if spool.key_of(n) not in self.stuck]:
            for at, name in enumerate(names):
                if spool.key_of(name) in self.stuck:
                    continue
                # A doubt is settled first, or it would come back for ever.
                if time.monotonic() > deadline and self.doubt is None:
                    self.why = "out of time"
                    return
                try:
                    taken = _forward(self.door, name)
                except Away as away:
                    if not self._go_on_after(name, away):
                        return
                    continue
                self.sent += taken
                if taken:
                    self._settle_doubt()
                self.tell(self.sent, len(names) - at - 1)
        if self.doubt is not None:
            self._probe(self.doubt[1])

    def _probe(self, away: Away) -> None:
        """No other post shows what it was that failed: an empty one does."""
        try:
            probe(self.door)
        except Away:
            if not self.door.shut:
                self.door.close(away)
        else:
            self._settle_doubt()

    def _go_on_after(self, name: str, away: Away) -> bool:
        """Whether another session is tried after this failure."""
        spool.tried(name)
        self.why = str(away)
        self.stuck.add(spool.key_of(name))
        if self.doubt is not None or not doubtful(away):
            self.door.close(away)
            return False
        self.doubt = (name, away)
        return True

    def _settle_doubt(self) -> None:
        """The server took a post: the one that failed before it failed for its own sake."""
        self.door.open()
        if self.doubt is not None:
            spool.tried(self.doubt[0], at_fault=True)
            self.doubt = None


def _forward(door: Door, name: str) -> int:
    """Send one post of the spool; 1 when there was one. Raises Away."""
    found = spool.read(name)
    try:
        about, kept = found or ({}, b"")
        said = json.loads(kept)
        items = [json.dumps(item, ensure_ascii=False) for item in said.pop("items")]
    except (ValueError, KeyError, TypeError, AttributeError):
        trouble.log(f"spool: {name} holds no post and was dropped")
        spool.remove(name)
        return 0
    try:
        door.stubborn = about.get("failed", 0) >= FAILURES_MAX
        if door.stubborn:
            send(door, items, said)
        else:
            answer = acknowledged(door.ask("/capture", kept), len(items))
            door.tally.add(answer["stored"], said)
    except Refused:
        send(door, items, said)
    if "end" in about:
        _acknowledge(about)
    spool.remove(name)
    return 1


def _acknowledge(about: dict[str, Any]) -> None:
    """Move the offset of the session whose range was acknowledged, when it is where it was."""
    held = sessions.take(str(about["key"]), sessions.LOCK_SECONDS)
    if held is None:
        return
    try:
        session = sessions.load(str(about["client"]), str(about["name"]))
        same = session.generation == about.get("generation")
        if same and session.offset == about.get("start") and session.spooled >= about["end"]:
            session.offset, session.mark = about["end"], str(about.get("mark"))
            read = sessions.written(session.client, session.name)
            sessions.save(session)
            if read >= 0:
                # Why: by when it was read last, it is known whether nobody captured since.
                os.utime(sessions.file_of(session.client, session.name), (read, read))
    finally:
        sessions.leave(held)


def tell_journals(door: Door) -> None:
    """Send what was missed and which recalls were skipped. What is not taken waits on."""
    for name, path, most in (
        ("misses", "/capture", MISSES_A_POST),
        ("skipped", "/recall/skipped", SKIPPED_A_POST),
    ):
        lines, settle = trouble.take(name)
        done = True
        try:
            for at in range(0, len(lines), most):
                _tell(door, name, path, cleanse(lines[at : at + most], {}))
        except Away:
            done = False
        settle(done)


def _tell(door: Door, name: str, path: str, rows: list[Any]) -> None:
    """Send rows of a journal; one that the server refuses does not cost the others."""
    try:
        _post(door, name, path, rows)
    except Refused as refused:
        if len(rows) == 1:
            try:
                # Whoever refuses no rows at all as well is another program, or another build.
                _post(door, name, path, [])
            except Refused:
                raise Away("http", detail=f"no {name} of ours are taken ({refused})") from None
            trouble.log(f"{name}: the server does not take a row of these ({refused})")
            return
        half = len(rows) // 2
        _tell(door, name, path, rows[:half])
        _tell(door, name, path, rows[half:])


def _post(door: Door, name: str, path: str, rows: list[Any]) -> None:
    """Send rows of a journal. Raises Refused, and Away for an answer that acknowledges nothing."""
    told: dict[str, Any] = {name: rows}
    if name == "misses":
        told = {"items": [], "client": sender(""), **told}
    reply = door.ask(path, json.dumps(told).encode(), JOURNAL_SECONDS)
    if name == "misses":
        acknowledged(reply, 0)
    elif not {"recorded", "known"}.issubset(reply):
        raise Away("json", detail="the answer acknowledges nothing")
