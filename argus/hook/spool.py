"""What could not be sent, kept on disk until the server is back: bounded, in order, private.

One file a post: a line about it (which session, which range of its file) and the exact body, with
its secrets long gone. What stands in a transcript as well is refused when there is no room, and is
read again later; what stands nowhere else (the end of a session, a message without a file) finds
room for longer. Knows nothing about the network.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from typing import Any

from argus.hook import home, locate
from argus.hook.locate import changed_at

#: Bytes and files of the spool, and what is kept free for what stands nowhere else.
# Why: a transcript is its own spool; this one is for a working week without a server.
# Calibrate: `argus-hook status` after a week away.
SPOOL_BYTES_MAX = 64 * 1024 * 1024
SPOOL_FILES_MAX = 4_000
RESERVE_BYTES, RESERVE_FILES = 8 * 1024 * 1024, 1_000

_SUFFIX = ".post"


def add(about: dict[str, Any], body: bytes, only_copy: bool) -> bool:
    """Keep one post; False when there is no room for it. Raises OSError.

    `about` holds `key` of its session, and `start`, `end`, `mark`, `generation` when it is a range
    of a file. `only_copy`: it stands nowhere else.
    """
    names = waiting()
    # Drafts of the dead take room as well, until they are swept.
    size = sum(_size(name) for name in locate.names(home.place("hook", "spool"))) + len(body)
    most_bytes, most_files = SPOOL_BYTES_MAX, SPOOL_FILES_MAX
    if only_copy:
        most_bytes, most_files = most_bytes + RESERVE_BYTES, most_files + RESERVE_FILES
    if size > most_bytes or len(names) >= most_files:
        return False
    # A clock that was set back must not put a later post before an earlier one.
    last = int(names[-1].split("-", 1)[0]) if names else 0
    stamp = max(time.time_ns(), last + 1)
    home.private("hook", "spool")
    _write(f"{stamp:020d}-{os.getpid()}.{about['key']}{_SUFFIX}", about, body)
    return True


def _write(name: str, about: dict[str, Any], body: bytes) -> None:
    head = json.dumps(about).encode()
    home.write(home.place("hook", "spool", name), head + b"\n" + body)


def waiting(key: str = "") -> list[str]:
    """Names of what waits, oldest first; of one session when its key is given."""
    end = f".{key}{_SUFFIX}" if key else _SUFFIX
    names = locate.names(home.place("hook", "spool"))
    return [name for name in names if name.endswith(end) and name[:20].isdigit()]


def queue() -> list[str]:
    """Names of what waits, session by session: first whose oldest post was kept or tried first.

    So two posts that always fail do not stand before all others for ever.
    """
    fronts: dict[str, float] = {}
    names = waiting()
    for name in names:
        if key_of(name) not in fronts:
            fronts[key_of(name)] = changed_at(home.place("hook", "spool", name))
    return sorted(names, key=lambda name: (fronts[key_of(name)], key_of(name), name))


def key_of(name: str) -> str:
    """The key of the session whose post has this name."""
    return name[: -len(_SUFFIX)].split(".", 1)[1]


def keys() -> frozenset[str]:
    """The keys of all sessions with something that waits."""
    return frozenset(key_of(name) for name in waiting())


def tried(name: str, at_fault: bool = False) -> None:
    """Put the session of this post behind the others; `at_fault` counts it in `failed`."""
    with contextlib.suppress(OSError):
        found = read(name) if at_fault else None
        if found is None:
            os.utime(home.place("hook", "spool", name))
        else:
            about, body = found
            _write(name, {**about, "failed": about.get("failed", 0) + 1}, body)


def read(name: str) -> tuple[dict[str, Any], bytes] | None:
    """What a post is about, and its body; None when the file is gone or no such thing."""
    try:
        with open(home.place("hook", "spool", name), "rb") as handle:
            head, _, body = handle.read().partition(b"\n")
        about = json.loads(head)
    except (OSError, ValueError, RecursionError):
        return None
    return (about, body) if isinstance(about, dict) and about.get("key") and body else None


def remove(name: str) -> None:
    """Forget one post. Silent when it is gone already."""
    with contextlib.suppress(OSError):
        os.unlink(home.place("hook", "spool", name))


def totals() -> tuple[int, int]:
    """(files, bytes) that wait."""
    names = waiting()
    return len(names), sum(_size(name) for name in names)


def _size(name: str) -> int:
    return locate.size_of(home.place("hook", "spool", name))
