"""What the client remembers of each session: how far its file was read, and who is at it now.

One small JSON file a session, written whole, and one lock that the kernel frees when its holder
dies. A file that cannot be read as state counts as none: the transcript is then read from its
beginning, and the server knows what it has. Knows nothing about transcripts or the server.
"""

from __future__ import annotations

import fcntl
import json
import os
import time

from argus.hook import home, locate
from argus.hook.events import safe
from argus.hook.locate import names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

#: Seconds for which another's work at the same session is waited for.
LOCK_SECONDS = 10.0

#: Pause between two tries for a lock.
POLL_SECONDS = 0.02

#: Endings of the mark of a session that is never captured, and of one whose end is still to tell.
OFF, END = ".off", ".end"


class Session:
    """One session of one client, as the file about it says.

    `offset`: bytes that the server acknowledged; `spooled`: bytes that it acknowledged or that lie
    in the spool, where the next reading begins. A mark is a hash of bytes before its offset, and
    tells with `inode` whether the file is still the one that was read. `generation` counts the
    times that it was not. `size`: bytes of the file when it was read to its end, 0 when it was not.
    `carried`: counts of ranges that held nothing to post. `named`: the id that its rows give it.
    `root`: the folder of its first turn. `crash`: at which build and size its file was unreadable
    last, `absent`: it was told that there is none.
    `insured`, `replaced`, `covered`, `said`: see `insurance`.
    """

    client: str
    name: str
    id: str = ""
    path: str = ""
    cwd: str = ""
    root: str = ""
    named: str = ""
    inode: int = 0
    size: int = 0
    offset: int = 0
    mark: str = ""
    spooled: int = 0
    spooled_mark: str = ""
    generation: int = 0
    since: str = ""
    ended: str = ""
    crash: str = ""
    absent: bool = False
    carried: dict[str, Any]
    agent: dict[str, Any]
    insured: list[Any]
    replaced: list[Any]
    covered: list[Any]
    said: list[Any]

    def __init__(self, client: str, name: str) -> None:
        self.client, self.name = client, name
        self.carried, self.agent = {}, {}
        self.insured, self.replaced, self.covered, self.said = [], [], [], []

    @property
    def key(self) -> str:
        """The name of its files in the folders of the client."""
        return f"{self.client}.{self.name}"

    def restart(self) -> None:
        """Read the file from its beginning next time."""
        self.offset = self.spooled = self.inode = self.size = 0
        self.mark = self.spooled_mark = self.since = ""
        self.generation += 1
        self.carried = {}


_FIELDS = (
    "id", "path", "cwd", "root", "named", "inode", "size", "offset", "mark", "spooled",
    "spooled_mark", "generation", "since", "ended", "crash", "absent", "carried",
    "agent", "insured", "replaced", "covered", "said",
)  # fmt: skip


def file_of(client: str, name: str, suffix: str = ".json") -> str:
    """The file about a session with this ending."""
    return home.place("hook", "sessions", client, name + suffix)


def name_for(client: str, path: str) -> str:
    """The name of the state about this file; a second file of a session has one of its own."""
    # Why here: the hook of a prompt marks sessions, and starts fast.
    import hashlib

    name = safe(locate.name_of(client, path))
    known = load(client, name).path
    same = not known or os.path.realpath(known) == os.path.realpath(path)
    if same or not locate.readable(known):
        return name
    return f"{name}.{hashlib.sha256(path.encode('utf-8', 'replace')).hexdigest()[:12]}"


def load(client: str, name: str, session: str = "") -> Session:
    """The state of a session; a fresh one when there is none that can be read."""
    found = Session(client, name)
    try:
        with open(file_of(client, name), encoding="utf-8") as handle:
            kept = json.load(handle)
    except (OSError, ValueError, RecursionError):
        kept = {}
    for field in _FIELDS:
        value = kept.get(field) if isinstance(kept, dict) else None
        if type(value) is type(getattr(found, field)):
            setattr(found, field, value)
    if min(found.offset, found.spooled - found.offset) < 0:
        found.restart()
    found.id = found.id or session or name
    return found


def save(session: Session) -> None:
    """Write the state of a session. Raises OSError."""
    home.private("hook", "sessions", session.client)
    kept = {field: getattr(session, field) for field in _FIELDS}
    home.write(file_of(session.client, session.name), json.dumps(kept).encode())


def disable(client: str, session: str, transcript: str = "") -> None:
    """Never capture this session, whatever comes later. Silent where nothing can be written.

    Without the lock of the session, so that a hook never waits: the mark is a file of its own.
    """
    if not session:
        return
    try:
        home.private("hook", "sessions", client)
        home.write(file_of(client, safe(session), OFF), transcript.encode("utf-8", "replace"))
    except OSError:
        pass


def disabled(client: str, name: str) -> bool:
    """Whether the session was marked as none of ours."""
    return os.path.exists(file_of(client, name, OFF))


def hand_end(session: Session, reason: str) -> None:
    """Leave it to whoever reads this session to its end to tell that it ended. Raises OSError.

    In a file of its own: who is at the session now would write its state over ours.
    """
    home.private("hook", "sessions", session.client)
    home.write(file_of(session.client, session.name, END), reason.encode("utf-8", "replace"))


def handed_end(session: Session) -> dict[str, str] | None:
    """The end that is still to be told, as the server takes it."""
    try:
        with open(file_of(session.client, session.name, END), encoding="utf-8") as handle:
            return {"reason": handle.read()}
    except (OSError, ValueError):
        return None


def end_told(session: Session) -> None:
    """Nobody need tell the end any more."""
    path = file_of(session.client, session.name, END)
    # Who holds the session's lock takes it away, nobody else.
    if os.path.exists(path):
        os.unlink(path)


def every(since: float = 0.0) -> Iterator[tuple[str, str]]:
    """(client, name) of each session that has a state, written after `since` (in seconds)."""
    top = home.place("hook", "sessions")
    for client in names(top):
        for name in names(os.path.join(top, client)):
            if name.endswith(".json") and written(client, name[: -len(".json")]) >= since:
                yield client, name[: -len(".json")]


def written(client: str, name: str) -> float:
    """When the state of a session was written, in seconds; below 0 when there is none."""
    try:
        return os.stat(file_of(client, name)).st_mtime
    except OSError:
        return -1.0


def take(name: str, seconds: float = 0.0) -> int | None:
    """Hold the lock of this name: what `leave` takes, or None when another held it too long.

    Raises OSError when there can be no lock at all.
    """
    home.private("hook", "locks")
    path = home.place("hook", "locks", name)
    deadline = time.monotonic() + seconds
    while True:
        held = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Why: the file may have been collected between the opening and the lock.
            if os.fstat(held).st_ino == os.stat(path).st_ino:
                return held
        except (BlockingIOError, FileNotFoundError):
            pass
        os.close(held)
        if time.monotonic() >= deadline:
            return None
        time.sleep(POLL_SECONDS)


def leave(held: int) -> None:
    """Let go of a lock."""
    os.close(held)
