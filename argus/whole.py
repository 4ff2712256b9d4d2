"""A file that is whole and on the disk, or not there: written beside its place, then put into it.

Reads and writes: files. Knows nothing about what is in them.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from unicodedata import category

from memory.errors import RefusedError

#: What a file system says that has no hard links (exFAT, FAT, many shares).
NO_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})


def file_name(text: str) -> Path:
    """A path as an argument of a command. Raises ValueError for one that would write over the
    terminal on which it is told."""
    if not text.strip() or any(category(one) == "Cc" for one in text):
        raise ValueError("no name of a file")
    return Path(text)


class Draft:
    """The file on its way. What its disk refuses is said of `path`; whatever else goes wrong
    meanwhile is not."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path, self._descriptor = path, descriptor

    def write(self, block: bytes, /) -> int:
        """Some more of the file."""
        rest = memoryview(block)
        with _plainly(self._path):
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]
        return len(block)

    def seek(self, place: int) -> None:
        """Where the next byte goes."""
        os.lseek(self._descriptor, place, os.SEEK_SET)


def check_name(path: Path, *, force: bool) -> None:
    """Raises RefusedError for a name at which no file may come to be: somebody's stands there and
    not `force`, it is no file, or there is no such folder."""
    if path.is_symlink() or (path.exists() and not path.is_file()):
        # Why: as root a device would be replaced, and /dev/null is everybody's.
        raise RefusedError(f"{path} is no file: name one")
    if not force and path.exists():
        raise _stands(path)
    if not path.parent.is_dir():
        raise RefusedError(f"{path} cannot be written: there is no folder {path.parent}")


@contextmanager
def whole(path: Path, *, force: bool) -> Iterator[Draft]:
    """A file at `path`, for its owner's eyes alone (0600); nothing there when the body raises.

    Raises RefusedError as `check_name` does, and when the disk does not take it.
    """
    check_name(path, force=force)
    draft = path.with_name(f".{path.name}.{os.getpid()}.part")
    flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    with _plainly(path):
        descriptor = os.open(draft, flags, 0o600)
    try:
        try:
            yield Draft(path, descriptor)
            with _plainly(path):
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
        with _plainly(path):
            _put(draft, path, force=force)
            _settle(path.parent)
    finally:
        draft.unlink(missing_ok=True)


def _put(draft: Path, path: Path, *, force: bool) -> None:
    """The draft takes its place; what came there meanwhile is not written over."""
    if not force:
        try:
            try:
                os.link(draft, path)
                return
            except OSError as error:
                if error.errno not in NO_LINKS:
                    raise
            # The name is taken first, so that it is ours to write over.
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        except FileExistsError:
            raise _stands(path) from None
    os.replace(draft, path)


def _settle(folder: Path) -> None:
    """The name of the file is on the disk, too, where the disk has such a promise to give."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _plainly(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise RefusedError(f"{path} cannot be written: {error.strerror}") from error


def _stands(path: Path) -> RefusedError:
    return RefusedError(f"{path} is there already: name another file, or say --force")
