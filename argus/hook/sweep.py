"""What nobody needs any more goes: states and marks of sessions long gone, drafts of the dead.

At the start of a session, in a detached child. Knows nothing about what is in any of these files
but the path in a mark.
"""

from __future__ import annotations

import contextlib
import os

from argus.hook import home, locate, sessions
from argus.hook.locate import changed_at

#: Days after which the state of a session is dropped whose file is gone.
# Why: clients delete transcripts after 30 days; nothing can come back from such a session.
# Calibrate: a client that moves files away for longer.
GARBAGE_DAYS = 60

#: Seconds after which a file is nobody's that lives for moments or for minutes.
LITTER_SECONDS = 86400.0


def sweep(now: float, unsent: frozenset[str]) -> int:
    """Drop what is old and of no use; how many states of sessions among it.

    `unsent` are the keys of sessions with something in the spool.
    """
    before = now - GARBAGE_DAYS * 86400
    _drop_litter(now - LITTER_SECONDS)
    _drop_old("insured", before)
    for client in locate.names(home.place("hook", "sessions")):
        for name in locate.names(home.place("hook", "sessions", client)):
            if name.endswith(sessions.OFF):
                _see_to_mark(client, name[: -len(sessions.OFF)], before)
        _drop_old(os.path.join("sessions", client), before, sessions.END)
    return sum(
        sessions.written(client, name) < before
        and f"{client}.{name}" not in unsent
        and _drop_state(client, name)
        for client, name in list(sessions.every())
    )


def _drop_state(client: str, name: str) -> bool:
    session = sessions.load(client, name)
    if session.insured or (session.path and os.path.exists(session.path)):
        return False
    held = sessions.take(session.key)
    if held is None:
        return False
    _unlink(sessions.file_of(client, name))
    _unlink(home.place("hook", "locks", session.key))
    sessions.leave(held)
    return True


def _see_to_mark(client: str, name: str, before: float) -> None:
    """Drop the mark of a session that is never captured, once there is nothing to capture."""
    path = sessions.file_of(client, name, sessions.OFF)
    if changed_at(path) >= before:
        return
    try:
        with open(path, encoding="utf-8", errors="replace") as handle:
            told = handle.read()
    except OSError:
        return
    # Why the search: clients move files, and a promise holds wherever the file is.
    found = locate.find(client, name, told)
    if found:
        sessions.disable(client, name, found)
    elif told:
        _unlink(path)


def _drop_litter(before: float) -> None:
    """Drafts whose writer died, notes of what was told lately, and troubles that nobody told."""
    _drop_old("told", before)
    for folder, _, names in os.walk(home.place("hook")):
        for name in names:
            left = name.endswith(".new") or name.startswith("troubles.")
            if left and changed_at(os.path.join(folder, name)) < before:
                _unlink(os.path.join(folder, name))
    for name in locate.names(home.place()):
        # The server keeps its things in the same folder.
        draft = name.startswith("env.") and name.endswith(".new")
        if draft and changed_at(home.place(name)) < before:
            _unlink(home.place(name))


def _drop_old(folder: str, before: float, ending: str = "") -> None:
    for name in locate.names(home.place("hook", folder)):
        if name.endswith(ending) and changed_at(home.place("hook", folder, name)) < before:
            _unlink(home.place("hook", folder, name))


def _unlink(path: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(path)
