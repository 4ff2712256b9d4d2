"""What went wrong, told where it helps and never too often: log, stderr, and journals for later.

`log` writes a line into `~/.argus/log`; `complain` says it on stderr as well, once per kind and ten
minutes; a detached child, whose stderr is closed, uses `pass_on`, and the next hook tells. Misses
and skipped recalls are kept in journals until the server is back. On the fast path. Callers never
hand over a body or a key. Nothing here fails: where nothing can be written, nothing is.
"""

from __future__ import annotations

import os
import sys
import time

from argus.hook.home import place, private
from argus.hook.quickjson import dump, parse

# Why not typing's: importing it takes longer than a whole start of Python.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

#: Bytes of the log before it becomes the old one.
LOG_BYTES_MAX = 1_000_000
#: Bytes of a journal; what comes later is counted only.
# Why: some weeks of a server that nobody starts again.
JOURNAL_BYTES_MAX = 1_000_000
#: Characters of a line of the log, and of a text in a journal.
LINE_CHARACTERS_MAX = 500
#: Bytes of a line in a journal.
# Why: an append of one page is not mixed with another's.
JOURNAL_LINE_BYTES_MAX = 4_000
#: Seconds for which the same trouble is told once.
AGAIN_SECONDS = 600
#: Kinds that this process told where no file can say so.
_TOLD: set[str] = set()
#: Bytes of what children have to tell.
TROUBLES_BYTES_MAX = 64_000


def log(line: str) -> bool:
    """Write one line into the log; whether that was possible."""
    try:
        path = os.path.join(private("log"), "argus-hook.log")
        try:
            if os.stat(path).st_size > LOG_BYTES_MAX:
                os.rename(path, path + ".1")
        except FileNotFoundError:
            pass
        return _append(path, f"{stamp(time.time())} {_flat(line)}\n")
    except OSError:
        return False


def complain(kind: str, line: str) -> bool:
    """Say it on stderr and in the log, once per kind and `AGAIN_SECONDS`; whether it was said."""
    if not _first(kind):
        return False
    log(line)
    # Why the object and not the number: a closed stderr's number may belong to another file now.
    if sys.stderr is None:
        return False
    try:
        os.write(2, f"argus-hook: {_flat(line)}\n".encode("utf-8", "replace"))
    except OSError:
        return False
    return True


def pass_on(kind: str, line: str) -> bool:
    """Log it, and let the next hook say it on stderr."""
    log(line)
    try:
        path = os.path.join(private("hook"), "troubles")
        return _append(path, dump([kind, _flat(line)]) + "\n", most=TROUBLES_BYTES_MAX)
    except OSError:
        return False


def tell() -> None:
    """Say what children passed on."""
    path = place("hook", "troubles")
    mine = f"{path}.{os.getpid()}"
    try:
        os.rename(path, mine)
        with open(mine, encoding="utf-8", errors="replace") as handle:
            lines = handle.read(TROUBLES_BYTES_MAX).splitlines()
        os.unlink(mine)
    except OSError:
        return
    for line in lines:
        try:
            told = parse(line)
        except ValueError:
            continue
        if isinstance(told, list) and len(told) == 2:
            complain(str(told[0]), str(told[1]))


def miss(client: str, session: str, reason: str, detail: str = "") -> bool:
    """Keep that something of a session could not be captured, for the server."""
    told = {"client": client, "session": session, "reason": reason}
    return _journal("misses", {**told, "detail": _flat(detail)})


def skipped(mode: str, client: str, session: str, cwd: str, reason: str, milliseconds: int) -> bool:
    """Keep that a recall was skipped (`mode`: prompt or context), for the server's ledger."""
    raw = os.urandom(16).hex()
    # An id of version 4: a second post of the same line makes no second row.
    mark = f"{raw[:8]}-{raw[8:12]}-4{raw[13:16]}-a{raw[17:20]}-{raw[20:]}"
    told = {"id": mark, "mode": mode, "client": client, "session": session, "cwd": cwd}
    return _journal("skipped", {**told, "reason": reason, "milliseconds": milliseconds})


def take(name: str) -> tuple[list[dict[str, object]], Callable[[bool], None]]:
    """The lines of the journal `misses` or `skipped`, and what is called when they are settled.

    `settle(True)` forgets them, `settle(False)` keeps them for the next take. Who dies between the
    two keeps them, too. One process at a time: another gets nothing meanwhile.
    """
    import fcntl

    try:
        held = os.open(os.path.join(private("hook"), f"{name}.lock"), os.O_RDWR | os.O_CREAT, 0o600)
    except OSError:
        return [], _nothing
    path, taken = place("hook", f"{name}.jsonl"), place("hook", f"{name}.taken")
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not os.path.exists(taken):
            os.rename(path, taken)
            _tell_dropped(name)
        with open(taken, encoding="utf-8", errors="replace") as handle:
            lines = handle.read().splitlines()
    except OSError:
        os.close(held)
        return [], _nothing

    def settle(done: bool) -> None:
        try:
            if done:
                os.unlink(taken)
        except OSError:
            pass
        os.close(held)

    return _read_lines(lines), settle


def _nothing(done: bool) -> None:
    """Nothing was taken."""


def _read_lines(lines: list[str]) -> list[dict[str, object]]:
    found = []
    for line in lines:
        try:
            value = parse(line)
        except ValueError:
            continue
        if isinstance(value, dict):
            found.append(value)
    return found


def _journal(name: str, told: dict[str, object]) -> bool:
    told["at"] = stamp(time.time())
    cut = {k: v[:LINE_CHARACTERS_MAX] if isinstance(v, str) else v for k, v in told.items()}
    line = dump(cut) + "\n"
    if len(line) > JOURNAL_LINE_BYTES_MAX:
        # Only what is not ASCII is that long: escaped it takes six bytes a character, or twelve.
        line = dump({k: v[:60] if isinstance(v, str) else v for k, v in cut.items()}) + "\n"
    try:
        path = os.path.join(private("hook"), f"{name}.jsonl")
        if _append(path, line, most=JOURNAL_BYTES_MAX):
            return True
        _append(place("hook", f"{name}.dropped"), ".")
    except OSError:
        pass
    return False


def _tell_dropped(name: str) -> None:
    path = place("hook", f"{name}.dropped")
    try:
        count = os.stat(path).st_size
        os.unlink(path)
    except OSError:
        return
    log(f"{name}: the journal was full, {count} lines were dropped")


def _append(path: str, text: str, most: int | None = None) -> bool:
    """Add the text in one write; False when the file has `most` bytes already. Raises OSError."""
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if most is not None and os.fstat(descriptor).st_size >= most:
            return False
        data = text.encode("utf-8", "replace")
        return os.write(descriptor, data) == len(data)
    finally:
        os.close(descriptor)


def _first(kind: str) -> bool:
    """Whether nobody told this kind of trouble lately; from now on somebody did."""
    name = "".join(sign if sign.isalnum() and sign.isascii() else "-" for sign in kind)[:60]
    try:
        path = os.path.join(private("hook", "told"), name or "-")
        try:
            # A time ahead of ours is a clock that was set back.
            if abs(time.time() - os.stat(path).st_mtime) < AGAIN_SECONDS:
                return False
            os.unlink(path)
        except FileNotFoundError:
            pass
        # Of two hooks at the same moment one makes the file.
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        return False
    except OSError:
        # Nobody can remember having told: once a process is what is left.
        if name in _TOLD:
            return False
        _TOLD.add(name)
    return True


def stamp(at: float) -> str:
    """An instant in seconds as ISO 8601 in UTC, with milliseconds."""
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at)) + f".{int(at * 1000) % 1000:03d}Z"


def _flat(line: str) -> str:
    """On one line, without signs that a terminal would obey, and not too long."""
    plain = "".join(sign if sign.isprintable() else " " for sign in line[: 2 * LINE_CHARACTERS_MAX])
    return plain[:LINE_CHARACTERS_MAX]
