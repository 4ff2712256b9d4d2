"""A vault's disk, asked by descriptor: what lies below an open folder, and what it holds.

No link is ever followed and nothing but plain files is read, so that no name leads out. Knows
nothing about notes, nor when anything is written.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import unicodedata
from collections.abc import Iterator
from pathlib import Path

from exporter.found import Found, Scan, found
from memory.errors import InfraError, RefusedError
from memory.text.region import FRONT_BYTES_MAX, identity

#: How deep a person's folders are followed in search of files of ours.
# Why: beyond it nobody moved a note by hand.
FOLDERS_DEEP_MAX = 24

#: A folder, and a file: never through a link, and a pipe does not hold us up.
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

#: What the system says where a link or a file stands in the place of a folder.
IN_THE_WAY = (errno.ELOOP, errno.ENOTDIR)

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

#: What it says where nobody, or not we, may write.
REFUSED = (errno.EACCES, errno.EPERM, errno.EROFS)
_UNSEEN = (errno.EACCES, errno.ENOENT, *IN_THE_WAY)


class VaultAway(InfraError):
    """The vault's folder cannot be read or written."""


class Astray(RefusedError):
    """The vault is not a folder of ours to write."""

    def __init__(self, message: str = "") -> None:
        super().__init__(message, reason="vault")


def scan(root: int) -> Scan:
    """Every name below an open folder, hidden ones left out; of files of ours what they hold."""
    files: dict[str, Found] = {}
    folders: set[str] = set()
    others: set[str] = set()

    def walk(descriptor: int, above: str, deep: int) -> None:
        with os.scandir(descriptor) as entries:
            names = sorted(entries, key=lambda entry: entry.name)
        for entry in names:
            if entry.name.startswith(".") or not _is_text(entry.name):
                continue
            path = above + _composed(descriptor, entry.name)
            text = path.casefold().endswith(".md")
            if entry.is_dir(follow_symlinks=False):
                folders.add(path)
                if text:
                    files[path] = Found(path, "folder")
                if deep < FOLDERS_DEEP_MAX:
                    below(descriptor, entry.name, path, deep)
            elif not text:
                others.add(path)
            elif entry.is_file(follow_symlinks=False):
                files[path] = _seen(descriptor, entry.name, path)
            else:
                files[path] = Found(path, "other")

    def below(descriptor: int, name: str, path: str, deep: int) -> None:
        try:
            inner = os.open(name, FOLDER, dir_fd=descriptor)
        except OSError as error:
            if error.errno in _UNSEEN:
                return
            raise
        try:
            walk(inner, f"{path}/", deep + 1)
        finally:
            os.close(inner)

    walk(root, "", 0)
    return Scan(files, frozenset(folders), frozenset(others))


def _seen(parent: int, name: str, path: str) -> Found:
    """A file as it is: of a person's own no more is read than the front matter."""
    try:
        data = content(parent, name, head=True)
    except OSError as error:
        if error.errno in _UNSEEN:
            return Found(path, "other")
        raise
    return Found(path) if data is None else found(path, data)


def content(parent: int, name: str, *, head: bool = False) -> bytes | None:
    """The bytes of a plain file; with `head` None for one that is not ours by its front matter."""
    descriptor = os.open(name, READ, dir_fd=parent)
    try:
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode):
            return None
        data = os.read(descriptor, max(FRONT_BYTES_MAX, about.st_size + 1 if not head else 0))
        if head and identity(data) is None:
            return None
        if len(data) >= about.st_size:
            return data
        pieces = [data]
        while piece := os.read(descriptor, 1 << 20):
            pieces.append(piece)
        return b"".join(pieces)
    finally:
        os.close(descriptor)


def exists(parent: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _composed(parent: int, name: str) -> str:
    """The name as we write it, where the file system gives it back decomposed (HFS+)."""
    composed = unicodedata.normalize("NFC", name)
    if composed == name:
        return name
    try:
        same = os.path.samestat(
            os.stat(name, dir_fd=parent, follow_symlinks=False),
            os.stat(composed, dir_fd=parent, follow_symlinks=False),
        )
    except FileNotFoundError:
        return name
    return composed if same else name


def _is_text(name: str) -> bool:
    """Whether a name is UTF-8: what is not stands in no path of ours."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


@contextlib.contextmanager
def plainly(path: Path | None = None) -> Iterator[None]:
    """What the file system refuses, in words. Never with the error that it is told from: that one
    names the file, and a queue keeps what it is told from as well."""
    try:
        yield
    except OSError as error:
        where = f"{path}: " if path else ""
        if error.errno in _FULL:
            raise VaultAway(
                f"{where}the vault's disk is full; make room and export again"
            ) from None
        if error.errno in REFUSED:
            raise VaultAway(f"{where}the vault cannot be written ({error.strerror})") from None
        away = VaultAway(f"{where}the vault cannot be used ({error.strerror})")
        away.told = f"{where}the vault cannot be used: {error}"
        raise away from None
