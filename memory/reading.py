"""Where a search reads: at a standby where one is set, keeps up and answers, else at the primary.

Reads: how far either server is. Only what is run by `anywhere` may go to the standby, and whoever
runs it asks the primary again before anything of it leaves. Whatever is written, and whatever
decides who sees what, stays on the primary. Knows nothing about what is searched for.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, Error, connections, transaction

logger = logging.getLogger(__name__)

#: The standby's name among Django's databases.
STANDBY = "replica"

#: How often a process asks the primary how far it is, and how long a standby that is behind is left
#: alone.
# Why: a short statement a second costs nothing, and a second is no more than any lag allowed.
MEASURE_SECONDS = 1.0

#: How long a standby that failed is left alone.
# Why: a server that starts or catches up must not be met by every prompt; a prompt that finds it
# gone has waited for that once.
ALONE_SECONDS = 5.0

#: How long the standby may take for one search; then its socket is closed.
# Why: a machine that is frozen or cut off answers nothing, not even no; a search takes milliseconds
# and hooks wait a few seconds for all of a recall.
ANSWER_SECONDS_MAX = 2.0

#: Places of the primary that are remembered, one each MEASURE_SECONDS.
# Why: at least as many as the greatest lag allowed has seconds (`replica_lag_seconds`).
MARKS_MAX = 600

#: How long the doctor waits for a standby that has not yet what the primary has.
# Why: one that keeps up needs milliseconds; one that does not in this time is told as behind.
LOOK_SECONDS_MAX = 2.0

T = TypeVar("T")

_reading: ContextVar[str] = ContextVar("reading", default=DEFAULT_DB_ALIAS)


@dataclass(frozen=True)
class Read:
    """Where a search was answered; `why` is why it was not the standby."""

    server: Literal["standby", "primary"]
    why: str = ""

    def as_json(self) -> dict[str, str]:
        return {"server": self.server, **({"why": self.why} if self.why else {})}


@dataclass(frozen=True)
class Mark:
    """How far the primary's log was (bytes) at a moment (seconds of this process's clock)."""

    at: float
    place: int


def server() -> Any:
    """The connection that hand-written reads go to now."""
    return connections[_reading.get()]


def anywhere(work: Callable[[], T]) -> tuple[T, Read | None]:
    """Run these reads at the standby, or at the primary where that cannot be; and where it was
    (None: no standby is set for this database).

    All in one transaction, which begins with how far that server is: behind one address there may
    be several. What fails at the standby, whatever it is, is run again at the primary: an error
    that is ours comes back from there.
    """
    if not _is_set():
        return work(), None
    why = _standby.rests()
    if not why:
        try:
            _standby.mark()
            with _at_standby():
                why = _standby.why_not()
                if not why:
                    return work(), Read("standby")
        except Error as error:
            why = _standby.failed(error)
    return work(), Read("primary", why)


def _is_set() -> bool:
    if STANDBY not in connections.settings:
        return False
    here = connections[DEFAULT_DB_ALIAS]
    # Why the names: a database beside the real one (`scratch`) has no standby. Why no transaction:
    # what is written in it stands nowhere else yet.
    same = here.settings_dict["NAME"] == connections.settings[STANDBY]["NAME"]
    return bool(same) and not here.in_atomic_block


def lag_seconds(marks: Sequence[Mark], *, replayed: int, at: float) -> float | None:
    """How far behind a standby that has replayed this much is at most; None: nobody knows. Pure.

    By this process's clock alone: those of two servers differ. A standby that has all the primary
    had written when asked is not behind, however old that is.
    """
    if marks and replayed >= marks[-1].place:
        return 0.0
    return min((at - mark.at for mark in marks if mark.place <= replayed), default=None)


class Standby:
    """What this process knows of the standby; one for all its threads."""

    def __init__(self) -> None:
        self._marking = threading.Lock()
        self._marks: deque[Mark] = deque(maxlen=MARKS_MAX)
        self._system: object = None
        self._due = 0.0
        self._rests_until = 0.0
        self._why = ""

    def rests(self) -> str:
        """Why it is left alone now; "" when it may be asked."""
        return self._why if time.monotonic() < self._rests_until else ""

    def mark(self) -> None:
        """Ask the primary how far it is, at most once each MEASURE_SECONDS."""
        # Why not wait for another thread's asking: its last answer is a second old.
        if time.monotonic() < self._due or not self._marking.acquire(blocking=False):
            return
        try:
            with connections[DEFAULT_DB_ALIAS].cursor() as cursor:
                cursor.execute(_PRIMARY)
                self._system, place = cursor.fetchone()
            self._marks.append(Mark(time.monotonic(), int(place)))
            self._due = time.monotonic() + MEASURE_SECONDS
        finally:
            self._marking.release()

    def why_not(self) -> str:
        """Why the server that answers now may not be read; "" when it may. Inside `_at_standby`:
        how long its statements may take is set, too."""
        with server().cursor() as cursor:
            cursor.execute(_STANDBY, [f"{ANSWER_SECONDS_MAX * 1000:.0f}"])
            recovering, system, replayed, _ = cursor.fetchone()
        why = self._judge(recovering, system, replayed)
        self._tell(why, MEASURE_SECONDS if why else 0)
        return why

    def failed(self, error: Error) -> str:
        """It failed: leave it alone for some seconds. Returns what is told of it."""
        # Why not the error's text: it may quote the query or name hosts.
        kind = type(error.__cause__ or error).__name__
        self._tell(f"it failed ({kind})", ALONE_SECONDS)
        return self._why

    def _judge(self, recovering: bool, system: object, replayed: int | None) -> str:
        if not recovering or replayed is None:
            return "it is no standby"
        if system != self._system:
            return "it is a standby of another server"
        lag = lag_seconds(tuple(self._marks), replayed=int(replayed), at=time.monotonic())
        if lag is None:
            return "it is behind, nobody knows how far"
        if lag > settings.ARGUS.replica_lag_seconds:
            return f"it is {lag:.0f} s behind"
        return ""

    def _tell(self, why: str, alone_seconds: float) -> None:
        if bool(why) != bool(self._why):
            told = f"at the primary: the standby cannot be used, {why}" if why else "at the standby"
            logger.log(logging.WARNING if why else logging.INFO, "Searches are read %s.", told)
        self._why = why
        self._rests_until = time.monotonic() + alone_seconds


_standby = Standby()

# Why flushed: a standby is sent nothing else.
_PRIMARY = (
    "SELECT (SELECT system_identifier FROM pg_control_system()),"
    " pg_current_wal_flush_lsn() - '0/0'::pg_lsn"
)
_STANDBY = (
    "SELECT pg_is_in_recovery(), (SELECT system_identifier FROM pg_control_system()),"
    " pg_last_wal_replay_lsn() - '0/0'::pg_lsn, set_config('statement_timeout', %s, true)"
)


def look() -> Read | None:
    """Where a search of this process would be read now: for the doctor. None: no standby is set.

    It may take LOOK_SECONDS_MAX: a busy standby has what the primary has now a moment later.
    """
    if not _is_set():
        return None
    fresh = Standby()
    until = time.monotonic() + LOOK_SECONDS_MAX
    try:
        fresh.mark()
        while True:
            with _at_standby():
                why = fresh.why_not()
            if "behind" not in why or time.monotonic() > until:
                break
            time.sleep(LOOK_SECONDS_MAX / 20)
    except Error as error:
        why = fresh.failed(error)
    return Read("primary", why) if why else Read("standby")


@contextmanager
def _at_standby() -> Iterator[None]:
    """Hand-written reads go to the standby inside, in one transaction: through a pooler, too, they
    meet one server. A connection that failed is not kept."""
    connection = connections[STANDBY]
    connection.ensure_connection()
    token = _reading.set(STANDBY)
    try:
        with _bounded(connection.connection.fileno()), transaction.atomic(using=STANDBY):
            yield
    except Error:
        with suppress(Error):
            connection.close()
        raise
    finally:
        _reading.reset(token)


@contextmanager
def _bounded(descriptor: int) -> Iterator[None]:
    """Shut a socket down when what is asked through it takes longer than ANSWER_SECONDS_MAX."""
    # Why a copy: the number of a closed one may be somebody else's by then.
    with socket.socket(fileno=os.dup(descriptor)) as line:
        watch = threading.Timer(ANSWER_SECONDS_MAX, _shut, [line])
        watch.daemon = True
        watch.start()
        try:
            yield
        finally:
            watch.cancel()


def _shut(line: socket.socket) -> None:
    with suppress(OSError):
        line.shutdown(socket.SHUT_RDWR)
