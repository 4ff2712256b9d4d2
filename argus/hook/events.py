"""What a client tells a hook on stdin, as one event.

Clients differ in what they send and in whether they ever close the pipe: reading ends with the JSON
object, the end of the input or a second, whichever comes first. On the fast path. Knows nothing
about what a verb does with an event.
"""

from __future__ import annotations

import os
import select
import time

from argus.hook.home import installed, own
from argus.hook.optout import PATH_BYTES_MAX
from argus.hook.quickjson import parse
from argus.hook.repository import facts
from argus.hook.trouble import log

#: Seconds that reading may take.
# Why: the whole prompt path has two, and a client writes before it waits for us.
STDIN_SECONDS_MAX = 1.0

#: Bytes of an event.
# Why: a prompt may hold a pasted log; what is larger is read from the transcript by capture, and
# no one recalls by it.
EVENT_BYTES_MAX = 2_000_000

#: Bytes of one read: a pipe's content.
_PIECE_BYTES = 65_536

#: Characters of a session's name as a file's name.
SAFE_CHARACTERS_MAX = 128

_SAFE = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")

_TEXTS = {
    "name": "hook_event_name",
    "session": "session_id",
    "transcript": "transcript_path",
    "cwd": "cwd",
    "prompt": "prompt",
    "source": "source",
    "reason": "reason",
    "last": "last_assistant_message",
    "agent": "agent_id",
    "agent_type": "agent_type",
    "agent_transcript": "agent_transcript_path",
}


class Event:
    """One event of a client. What was missing, null or of another type is "".

    `client`: claude, codex or pi; `name`: the client's own name of the event; `session`: its id as
    sent (`safe` makes a file's name of it); `transcript`, `agent_transcript`: paths; `last`: the
    last words of the assistant; `agent`: id of a sub-agent, "" in the main session; `message`: pi's
    message of a message_end.
    """

    __slots__ = ("client", *_TEXTS, "message")

    client: str
    name: str
    session: str
    transcript: str
    cwd: str
    prompt: str
    source: str
    reason: str
    last: str
    agent: str
    agent_type: str
    agent_transcript: str
    message: dict[str, object] | None

    def __init__(self, client: str, raw: dict[str, object]) -> None:
        self.client = client
        for slot, field in _TEXTS.items():
            value = raw.get(field)
            setattr(self, slot, clean(value) if isinstance(value, str) else "")
        for slot in ("transcript", "cwd", "agent_transcript"):
            if "\0" in getattr(self, slot):
                setattr(self, slot, "")
        message = raw.get("message")
        self.message = message if isinstance(message, dict) else None


def read_event(client: str, descriptor: int = 0) -> Event | None:
    """The event on this descriptor; None, told in the log, when there is none to use.

    Where its `cwd` is none, the folder of this process is. Raises Planted (`home.own`).
    """
    try:
        data = _read(descriptor, time.monotonic() + STDIN_SECONDS_MAX)
    except (OSError, ValueError) as error:
        own("")
        log(f"{client}: no event: {type(error).__name__}")
        return None
    own("")
    if data is None:
        log(f"{client}: an event of more than {EVENT_BYTES_MAX} bytes was passed over")
        return None
    value = _object(data)
    if value is None:
        log(f"{client}: no event: {len(data)} bytes that are no JSON object")
        return None
    event = Event(client, value)
    event.cwd = _folder(event.cwd)
    if not installed():
        own(facts(event.cwd).get("git_root", ""))
    return event


def _folder(cwd: str) -> str:
    """Where the client is, as it says; where it says nothing that can be, this process's folder.

    Why not none: what the person switched off in it must hold whatever a client sends.
    """
    if cwd.startswith("/") and len(cwd.encode("utf-8", "replace")) < PATH_BYTES_MAX:
        return cwd
    try:
        return clean(os.getcwd())
    except OSError:
        return ""


def _read(descriptor: int, deadline: float) -> bytes | None:
    """Everything up to the end of the object, of the input or of the time; None: too much."""
    data = bytearray()
    over = False
    while True:
        wait = deadline - time.monotonic()
        # Why poll and not select: select fails for a descriptor above 1,023.
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        whole = not over and data.rstrip()[-1:] == b"}" and not poll.poll(0)
        if wait <= 0 or (whole and _object(data) is not None):
            break
        if not poll.poll(wait * 1000):
            break
        piece = os.read(descriptor, _PIECE_BYTES)
        if not piece:
            break
        data += piece
        if len(data) > EVENT_BYTES_MAX:
            # Why read on: a client that writes into a closed pipe shows an error to the person.
            over = True
            data.clear()
    return None if over else bytes(data)


def _object(data: bytes | bytearray) -> dict[str, object] | None:
    try:
        value = parse(data.decode("utf-8-sig", "replace"), whole=False)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def clean(text: str) -> str:
    """The text with half surrogate pairs replaced, so that it can be written anywhere."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    return text


def safe(session: str) -> str:
    """A session's id as the name of a file: itself when it is harmless, else a hash of it."""
    harmless = 0 < len(session) <= SAFE_CHARACTERS_MAX and session[0] != "."
    if harmless and _SAFE.issuperset(session):
        return session
    import hashlib

    return hashlib.sha256(session.encode("utf-8", "surrogatepass")).hexdigest()
