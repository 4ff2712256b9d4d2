"""What hooks of this machine have not sent yet, in ARGUS_HOME: posts that would bring back what was
purged.

Reads and writes: posts in the spool and aside, and the answers that a session keeps, each file
whole or not at all; under the locks that hooks take. Knows nothing about other files: those are a
person's, and the proof names them.
Verify: the proof, which reads the same files.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from argus.hook.home import parse, write
from memory.access import digest
from memory.errors import RefusedError
from memory.models import AccessKey
from memory.selection import Selection, matching
from memory.text.identity import sha256
from memory.text.passages import Passages

#: Seconds for which a hook that sends is waited for. What it sends meanwhile the proof finds.
LOCK_SECONDS = 5.0

#: Pause between two tries for a lock.
POLL_SECONDS = 0.05

#: What of some items goes, by its place among them.
Goes = Callable[[Sequence[dict[str, Any]]], set[int]]


def forget(
    home: Path,
    words: Passages,
    hashes: Collection[str],
    *,
    owners: Collection[int],
    asked: Selection | None = None,
) -> int:
    """Take out of what waits below this home whatever would have gone with the purge, had it been
    sent: what is the same as an item that went (`hashes`: of their bodies), says nothing but its
    words, is of the session that was `asked` for or matches the pattern; all of it where all of a
    person was asked for, and the key of the hooks is theirs. How many items went.

    What quotes the words beside others stays, as an item of the record would. Nothing is touched
    where the key of the hooks is of somebody who is none of these owners. A file that cannot be
    read or written stays as it is: the proof tells of it.
    """
    folder = home / "hook"
    whose = _whose(home) if folder.is_dir() else None
    if not folder.is_dir() or (whose is not None and whose not in owners):
        return 0
    asked = asked or Selection()
    leaves = whose is not None and asked == Selection(owner=asked.owner) and bool(asked.owner)

    def goes(items: Sequence[dict[str, Any]]) -> set[int]:
        bodies = [str(item.get("body", "")) for item in items]
        gone = {
            at
            for at, body in enumerate(bodies)
            if leaves or sha256(body) in hashes or words.covers(body)
        }
        if asked.session:
            gone |= {at for at, item in enumerate(items) if item.get("session") == asked.session}
        if asked.matching:
            with suppress(RefusedError):
                gone |= matching(asked.matching, bodies)
        return gone

    count = 0
    with _held(folder, "flush") as ours:
        if ours:
            for place in ("spool", "aside"):
                count += sum(_post(path, goes) for path in sorted((folder / place).glob("*.post")))
    for path in sorted((folder / "sessions").glob("*/*.json")):
        count += _session(folder, path, goes)
    return count


def _whose(home: Path) -> int | None:
    """Whom the key of the hooks names, if it is one of ours."""
    try:
        key = parse((home / "env").read_text(errors="replace")).get("ARGUS_KEY", "")
    except OSError:
        return None
    found = AccessKey.objects.filter(digest=digest(key)).first() if key else None
    return found.principal_id if found else None


def _post(path: Path, goes: Goes) -> int:
    """One post; in the spool with a line about it before it."""
    with suppress(OSError, ValueError, RecursionError):
        data = path.read_bytes()
        head, _, body = data.partition(b"\n") if path.parent.name == "spool" else (b"", b"", data)
        said = json.loads(body)
        items = said.get("items") if isinstance(said, dict) else None
        if path.is_symlink() or not isinstance(items, list):
            return 0
        gone = goes([one if isinstance(one, dict) else {} for one in items])
        if not gone:
            return 0
        said["items"] = [one for at, one in enumerate(items) if at not in gone]
        if not said["items"] and not head:
            path.unlink()
        else:
            # Why an empty post stays: without it the hook reads its range of the transcript again.
            left = json.dumps(said, ensure_ascii=False).encode("utf-8", "replace")
            write(str(path), head + b"\n" + left if head else left)
        return len(gone)
    return 0


def _session(folder: Path, path: Path, goes: Goes) -> int:
    """Answers that a session keeps until their row shows up."""
    if not _kept(path):
        return 0
    with _held(folder, f"{path.parent.name}.{path.stem}") as ours, suppress(OSError):
        state, kept = _kept(path) or ({}, [])
        items = [one["item"] for one in kept]
        gone = goes(items) if ours and items else set()
        if gone:
            names = {kept[at]["print"] for at in gone}
            state["insured"] = [one for one in state["insured"] if one.get("print") not in names]
            write(str(path), json.dumps(state).encode())
        return len(gone)
    return 0


def _kept(path: Path) -> tuple[dict[str, Any], list[dict[str, Any]]] | None:
    try:
        state = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    told = state.get("insured") if isinstance(state, dict) else None
    if path.is_symlink() or not isinstance(told, list) or not told:
        return None
    if not all(isinstance(one, dict) for one in told):
        return None
    return state, [one for one in told if isinstance(one.get("item"), dict) and one.get("print")]


@contextmanager
def _held(folder: Path, name: str) -> Iterator[bool]:
    """Whether the hooks' lock of this name is ours: it is theirs while they send."""
    until, path = time.monotonic() + LOCK_SECONDS, folder / "locks" / name
    held, ours = -1, False
    try:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        while not (ours := _locked(held := os.open(path, os.O_RDWR | os.O_CREAT, 0o600), path)):
            os.close(held)
            held = -1
            if time.monotonic() > until:
                break
            time.sleep(POLL_SECONDS)
    except OSError:
        ours = False
    try:
        yield ours
    finally:
        if held >= 0:
            os.close(held)


def _locked(held: int, path: Path) -> bool:
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # A hook may have collected the file between the opening and the lock.
        return os.fstat(held).st_ino == path.stat().st_ino
    except (BlockingIOError, FileNotFoundError):
        return False
