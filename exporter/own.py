"""Our own folder in a vault: whose vault it is, the lock, files in the making.

Reads and writes: `.argus` and what is in it. Knows nothing about the vault's other files.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import time

from exporter.disk import FOLDER, IN_THE_WAY, Astray, content
from memory.errors import Conflict
from memory.text.region import OURS, OWNER, SIGN, owner_of

#: How long an export waits for another one that has the folder in hand.
LOCK_WAIT_SECONDS = 5.0
#: Between two tries for it.
LOCK_TRY_SECONDS = 0.05

#: What `.argus/vault` says to whoever looks.
SIGN_TEXT = "A vault of Argus: files with argus_id in their front matter are written by it.\n"

_PART = re.compile(r"[0-9a-f]{16}\.part")


class ForeignVault(Astray):
    """The vault is signed by another principal: `owner`, their name."""

    def __init__(self, message: str, owner: str) -> None:
        super().__init__(message)
        self.owner = owner


def opened(stack: contextlib.ExitStack, name: str, flags: int, parent: int | None = None) -> int:
    descriptor = os.open(name, flags, 0o666, dir_fd=parent)
    stack.callback(os.close, descriptor)
    return descriptor


def own(stack: contextlib.ExitStack, parent: int, name: str) -> int:
    """A folder of ours, made where it is missing."""
    with contextlib.suppress(FileExistsError):
        os.mkdir(name, dir_fd=parent)
    try:
        return opened(stack, name, FOLDER, parent)
    except OSError as error:
        if error.errno not in IN_THE_WAY:
            raise
        raise Astray(
            f"{name} in the vault is a link or a file: Argus needs a folder there of its own;"
            " take it away and export again"
        ) from None


def lock(descriptor: int, wait_seconds: float) -> None:
    """Have the folder to oneself until the descriptor is closed, whatever ends this process."""
    until = time.monotonic() + wait_seconds
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() >= until:
                raise Conflict("another export is running") from None
            time.sleep(LOCK_TRY_SECONDS)


def sweep(parts: int) -> None:
    """Take away what an export left half-written. Under the lock."""
    for name in os.listdir(parts):
        if _PART.fullmatch(name):
            os.unlink(name, dir_fd=parts)


def sign(ours: int, owner: str) -> None:
    """Say what this folder is and whose, unless it says so."""
    said = b""
    try:
        said = content(ours, SIGN) or b""
    except OSError as error:
        if error.errno not in (errno.ENOENT, *IN_THE_WAY):
            raise
    if theirs(said, owner):
        return
    with contextlib.suppress(FileNotFoundError):
        os.unlink(SIGN, dir_fd=ours)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(SIGN, flags, 0o666, dir_fd=ours), "w") as file:
        file.write(SIGN_TEXT + (f"{OWNER}{owner}\n" if owner else ""))


def theirs(said: bytes, owner: str) -> bool:
    """Whether the sign names this owner, or nobody need be named. Raises ForeignVault."""
    named = owner_of(said)
    if named and owner and named != owner:
        raise ForeignVault(
            f"this vault is {named}'s, not {owner}'s: set ARGUS_VAULT to another folder, or move"
            f" what lies here away and delete {OURS}/{SIGN} to make it {owner}'s",
            named,
        )
    return bool(said) and (bool(named) or not owner)
