"""Changes of files that belong to others: all planned first, then written, each with a way back.

A change is known by a name; `~/.argus/backup` holds what the file was before and the hash of what
we made of it, so that taking it back gives the very bytes when nobody else wrote meanwhile. Knows
nothing about clients or formats.
"""

from __future__ import annotations

import contextlib
import difflib
import hashlib
import json
import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from argus.hook import home
from memory.errors import RefusedError

#: Lines of a new file that are shown whole, and of a longer one.
# Why: a program of ours is no change that anybody compares.
NEW_LINES_MAX, NEW_LINES_SHOWN = 100, 10


class Locked(RefusedError):
    """A file that has to be changed cannot be written."""


@dataclass(frozen=True)
class Edit:
    """One file's change: bytes before and after (None: no file), and what taking it back leaves."""

    name: str
    path: str
    before: bytes | None
    after: bytes | None
    base: bytes | None = None

    @property
    def changed(self) -> bool:
        return self.before != self.after


@dataclass(frozen=True)
class Record:
    """What is remembered of a change: the file before (None: there was none), its hash after, and
    whether its folder was made for it."""

    path: str
    base: bytes | None
    after: str
    made: bool = False


def read(path: str) -> bytes | None:
    """The bytes of a file; None when there is none. Raises Locked, also for what is no file."""
    try:
        # Why so: a pipe would be waited for without an end.
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as handle:
            if not stat.S_ISREG(os.fstat(handle.fileno()).st_mode):
                raise Locked(f"{path} is no plain file; move it away, then try again")
            return handle.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Locked(f"{path}: {error.strerror}") from error


def check(edits: Iterable[Edit]) -> None:
    """Raise Locked for a file that cannot be written, before anything has been."""
    for edit in edits:
        real = os.path.realpath(edit.path)
        folder = os.path.dirname(real)
        while not os.path.exists(folder):
            folder = os.path.dirname(folder)
        if not edit.changed:
            continue
        # Why the bits: a rename would replace a file that its owner has made read-only.
        if edit.before is not None and not os.stat(real).st_mode & 0o222:
            raise Locked(f"{edit.path} is read-only; nothing was changed")
        # Why refused: a rename takes one of the names off, and writing in place changes what the
        # others stand for, which may be a backup.
        if edit.before is not None and os.stat(real).st_nlink > 1:
            raise Locked(
                f"{edit.path} is one of several names of the same file (hard links); make it a copy"
                " or a symbolic link, then try again; nothing was changed"
            )
        if not os.access(folder, os.W_OK | os.X_OK):
            raise Locked(f"{folder} cannot be written to; nothing was changed")


def apply(edit: Edit) -> None:
    """Write one change and remember the way back. Raises Locked."""
    if not edit.changed:
        return
    _same(edit)
    known = record(edit.name)
    base = edit.base
    if known and known.path == edit.path and known.after == digest(edit.before):
        base = known.base
    try:
        _remember(edit, base)
        _write(edit.path, edit.after)
    except OSError as error:
        raise Locked(f"{edit.path}: {error.strerror}") from error


def remembered(name: str) -> dict[str, bytes | None]:
    """What `undo` needs: the files about the change of this name, as they are now."""
    paths = [home.place("backup", name + suffix) for suffix in (".json", ".before")]
    return {path: read(path) for path in paths}


def undo(edit: Edit, kept: dict[str, bytes | None]) -> None:
    """Make everything as it was before `apply`, whether or not that came to its end.

    A file that somebody else has written since stays. Raises OSError.
    """
    if edit.changed and read(edit.path) == edit.after:
        _write(edit.path, edit.before)
    for path, data in kept.items():
        if data is not None:
            home.write(path, data)
        elif os.path.exists(path):
            os.unlink(path)


def revert(edit: Edit) -> None:
    """Write a change that takes an earlier one back, and forget that one. Raises Locked."""
    _same(edit)
    known = record(edit.name)
    try:
        if edit.changed:
            _write(edit.path, edit.after)
        if edit.after is None and known and known.made:
            # What somebody else has put there meanwhile stays, and the folder with it.
            with contextlib.suppress(OSError):
                os.rmdir(os.path.dirname(edit.path))
        for suffix in (".json", ".before"):
            path = home.place("backup", edit.name + suffix)
            if os.path.exists(path):
                os.unlink(path)
    except OSError as error:
        raise Locked(f"{edit.path}: {error.strerror}") from error


def _same(edit: Edit) -> None:
    # Why: clients write their settings too, and a change is planned over what was read before.
    if read(edit.path) != edit.before:
        raise Locked(f"{edit.path} was changed by somebody else just now; run it again")


def record(name: str) -> Record | None:
    """What is remembered of the change of this name, or None."""
    try:
        with open(home.place("backup", name + ".json"), encoding="utf-8") as handle:
            known: dict[str, Any] = json.load(handle)
        base = read(home.place("backup", name + ".before")) if known["existed"] else None
        return Record(known["path"], base, known["after"], known.get("made") is True)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def untouched(name: str, path: str, current: bytes | None) -> Record | None:
    """The record of a change when the file is still what we made of it, else None."""
    known = record(name)
    same = known is not None and known.path == path and known.after == digest(current)
    return known if same else None


def digest(data: bytes | None) -> str:
    """SHA-256 in hex; "" for no file."""
    return "" if data is None else hashlib.sha256(data).hexdigest()


def diff(edit: Edit, secrets: Iterable[str] = ()) -> str:
    """The change as a unified diff, keys left out; of a long new file its first lines."""
    before, after = (_lines(data) for data in (edit.before, edit.after))
    if edit.before is None and len(after) > NEW_LINES_MAX:
        rest = f"[and {len(after) - NEW_LINES_SHOWN} lines more]\n"
        after = [*after[:NEW_LINES_SHOWN], rest]
    old = "/dev/null" if edit.before is None else edit.path
    new = "/dev/null" if edit.after is None else edit.path
    text = "".join(
        line if line.endswith("\n") else line + "\n\\ No newline at end of file\n"
        for line in difflib.unified_diff(before, after, old, new)
    )
    for secret in secrets:
        text = text.replace(secret, "[redacted]") if secret else text
    return text


def _lines(data: bytes | None) -> list[str]:
    text = (data or b"").decode("utf-8", "replace")
    # Why not splitlines(): it also breaks at U+2028 and five others.
    return [line + "\n" for line in text.split("\n")[:-1]] + [
        line for line in text.split("\n")[-1:] if line
    ]


def _remember(edit: Edit, base: bytes | None) -> None:
    home.private()
    home.private("backup")
    if base is not None:
        home.write(home.place("backup", edit.name + ".before"), base)
    if edit.before is not None and edit.before != base:
        # What somebody else made of the file while we were in it; kept, used by nobody.
        copy = f"{edit.name}.{digest(edit.before)[:8]}"
        home.write(home.place("backup", copy), edit.before)
    earlier = record(edit.name)
    folder = os.path.dirname(edit.path)
    known = {
        "made": earlier.made if earlier else not os.path.isdir(folder),
        "path": edit.path,
        "existed": base is not None,
        "before": digest(base),
        "after": digest(edit.after),
    }
    text = json.dumps(known, indent=2) + "\n"
    home.write(home.place("backup", edit.name + ".json"), text.encode())


def _write(path: str, data: bytes | None) -> None:
    """Replace a file's bytes: through links, with its mode and owner. None removes it."""
    real = os.path.realpath(path)
    if data is None:
        if os.path.exists(real):
            os.unlink(real)
        return
    os.makedirs(os.path.dirname(real), exist_ok=True)
    try:
        was = os.stat(real)
    except FileNotFoundError:
        home.write(real, data)
        return
    home.write(real, data)
    now = os.stat(real)
    if (was.st_uid, was.st_gid) != (now.st_uid, now.st_gid):
        os.chown(real, was.st_uid, was.st_gid)
    os.chmod(real, stat.S_IMODE(was.st_mode))
