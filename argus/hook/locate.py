"""Where a session's file is, and whose session a file is.

A client names a path that may not exist yet, lags behind, or was right before the file moved to an
archive or to the folder of a worktree; the session's id finds it again. Looks at names only.
"""

from __future__ import annotations

import errno
import os
import stat

from argus.hook.events import safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import BinaryIO

#: Adapter of each client's files.
SOURCES = {"claude": "claude-code", "codex": "codex", "pi": "pi"}

#: Folders of days that are looked through for a rollout, newest first.
# Why: a hook looks for a session of now; ten years of folders would cost it seconds.
DAYS_MAX = 400


def readable(path: str) -> bool:
    """Whether this is a transcript that can be opened: never a pipe or a device, which hang."""
    try:
        return path.endswith(".jsonl") and stat.S_ISREG(os.stat(path).st_mode)
    except (OSError, ValueError):
        return False


def open_plain(path: str) -> BinaryIO:
    """A file that anybody may have laid there, open for reading: never a pipe, which would hang.

    Raises OSError, also for what is no plain file.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except ValueError as error:
        raise OSError(errno.EINVAL, str(error)) from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "no plain file", path)
    return os.fdopen(descriptor, "rb")


def size_of(path: str) -> int:
    """Bytes of a file; 0 when it is not there."""
    try:
        return os.stat(path).st_size
    except (OSError, ValueError):
        return 0


def changed_at(path: str) -> float:
    """When a file was changed, in seconds; 0 when it is not there."""
    try:
        return os.stat(path).st_mtime
    except (OSError, ValueError):
        return 0.0


def find(client: str, session: str, told: str = "") -> str:
    """The file of a session: the one that was told when it is there, else by the id; "" = none."""
    if readable(told):
        return told
    # Why: the id becomes part of a path, and whoever gives it may have chosen it.
    if not session or safe(session) != session:
        return ""
    for root in _roots(client, told):
        for folder in _folders(client, root):
            for name in names(folder):
                if name.endswith(".jsonl") and name_of(client, name) == session:
                    path = os.path.join(folder, name)
                    if readable(path):
                        return path
    return ""


def name_of(client: str, path: str) -> str:
    """The session id in the name of a file."""
    stem = os.path.basename(path)
    stem = stem[: -len(".jsonl")] if stem.endswith(".jsonl") else stem
    if client == "codex" and stem.startswith("rollout-"):
        return "-".join(stem.split("-")[-5:])
    return stem.rsplit("_", 1)[-1] if client == "pi" else stem


def beside(path: str) -> list[str]:
    """The other transcripts in the folder of this one, sub-agents' not among them."""
    folder = os.path.dirname(path)
    return [
        os.path.join(folder, name)
        for name in names(folder)
        if name.endswith(".jsonl") and not name.startswith((".", "agent-"))
    ]


def _roots(client: str, told: str) -> list[str]:
    """Where a client keeps its sessions; first the place that was told."""
    base = os.path.expanduser("~")
    roots = []
    if client == "claude":
        roots = [os.path.dirname(os.path.dirname(told))] if told else []
        own = os.environ.get("CLAUDE_CONFIG_DIR") or os.path.join(base, ".claude")
        roots.append(os.path.join(own, "projects"))
    elif client == "codex":
        for part in ("/sessions/", "/archived_sessions/"):
            if part in told:
                roots.append(told[: told.rindex(part)])
        roots.append(os.environ.get("CODEX_HOME") or os.path.join(base, ".codex"))
    else:
        roots = [os.path.dirname(os.path.dirname(told))] if told else []
        roots.append(os.path.join(base, ".pi", "agent", "sessions"))
    return list(dict.fromkeys(root for root in roots if root and root != "/"))


def _folders(client: str, root: str) -> list[str]:
    if client != "codex":
        return [os.path.join(root, name) for name in names(root)]
    days = []
    for year in reversed(names(os.path.join(root, "sessions"))):
        for month in reversed(names(os.path.join(root, "sessions", year))):
            place = os.path.join(root, "sessions", year, month)
            days += [os.path.join(place, day) for day in reversed(names(place))]
    return [*days[:DAYS_MAX], os.path.join(root, "archived_sessions")]


def names(folder: str) -> list[str]:
    """The names in a folder, sorted; none when it cannot be read."""
    try:
        return sorted(os.listdir(folder))
    except (OSError, ValueError):
        return []
