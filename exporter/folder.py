"""The vault's folder, and the only module that writes its files.

Every folder below the root is opened by descriptor and never through a link, so that no name leads
out. A file is written beside (`.argus/tmp`), flushed, and put in place whole; what is replaced or
removed is read once more right before. Knows nothing about notes, or why a file is written.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
import unicodedata
from collections import OrderedDict, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from exporter.disk import FOLDER, IN_THE_WAY, REFUSED, Astray, content, exists, plainly, scan
from exporter.disk import VaultAway as VaultAway
from exporter.found import Scan, sha256, starts_with
from exporter.own import LOCK_WAIT_SECONDS, lock, opened, own, sign, sweep, theirs
from memory.text.region import OURS, SIGN, identity

#: Folders kept open at once.
# Why: each is a descriptor, of which a process often has 256.
FOLDERS_OPEN_MAX = 32

#: Files flushed to the disk at once.
# Why: waiting for the disk is most of a first export; a disk takes several flushes together.
# Calibrate: `python -m tests.bench vault`, first export, with 1, 4, 8 and 16.
FLUSHES_AT_ONCE = 8

#: What lies behind a link or a file that stands where a folder belongs.
BARRED = "barred"

#: The file in `.argus` that an export leaves for the next one.
KEPT = "known"

#: How much later a file is than the newest whose words of a person it has.
# Why: capture takes a file's time for when they wrote; and sync tools know by it that a file
# changed, some of them no nearer than two seconds.
LATER_SECONDS = 2

_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EXDEV)


@dataclass(frozen=True)
class Put:
    """Bytes for a path. `expect` is the hash of the whole file that is there; None: nothing is.
    `words`: the files whose words of a person are in it; it is as old as the newest of those."""

    path: str
    data: bytes
    expect: str | None = None
    words: tuple[str, ...] = ()


class Folder:
    """An open vault. Made by `hold` (to write, under the lock) and `look` (to read)."""

    def __init__(self, root: int, parts: int) -> None:
        self._root, self._parts = root, parts
        self._open: OrderedDict[str, int] = OrderedDict()
        #: Paths that may not be written, and what the system said.
        self.refused: dict[str, str] = {}
        self._pool = ThreadPoolExecutor(FLUSHES_AT_ONCE, thread_name_prefix="flush")

    @classmethod
    @contextlib.contextmanager
    def hold(
        cls, path: Path, owner: str = "", *, wait_seconds: float = LOCK_WAIT_SECONDS
    ) -> Iterator[Self]:
        """The vault, made where it is missing, for this process alone. `owner`: whose it is.

        Raises Conflict while another export has it, Astray where it is another's or `.argus` is no
        folder of its own, VaultAway where nothing can be written.
        """
        with contextlib.ExitStack() as stack:
            with plainly(path):
                path.parent.mkdir(parents=True, exist_ok=True)
                # What lies in there is one person's.
                path.mkdir(0o700, exist_ok=True)
                root = opened(stack, os.path.realpath(path), os.O_RDONLY | os.O_DIRECTORY)
                ours = own(stack, root, OURS)
                flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
                lock(opened(stack, "lock", flags, ours), wait_seconds)
                parts = own(stack, ours, "tmp")
                sign(ours, owner)
                sweep(parts)
            folder = cls(root, parts)
            # What could not be put in place is not to fill the disk.
            stack.callback(sweep, parts)
            stack.callback(folder._close)
            yield folder

    @classmethod
    @contextlib.contextmanager
    def look(cls, path: Path, owner: str = "") -> Iterator[Self | None]:
        """The vault as it is, to read alone; None where there is none. Raises Astray where it is
        another's."""
        with contextlib.ExitStack() as stack:
            folder: Self | None = None
            with plainly(path), contextlib.suppress(FileNotFoundError):
                root = opened(stack, os.path.realpath(path), os.O_RDONLY | os.O_DIRECTORY)
                folder = cls(root, -1)
                stack.callback(folder._close)
                theirs(folder._signed(), owner)
            yield folder

    def scan(self) -> Scan:
        """Everything that lies in the vault."""
        with plainly():
            return scan(self._root)

    def holds(
        self, expected: Iterable[tuple[str, str, int]], maybe: Iterable[tuple[str, str, int]] = ()
    ) -> int | None:
        """How many of these files lie there with our part unchanged: (path, hash, bytes of our
        part). None if one of them is changed, or not there; what is `maybe` there may be gone, or
        made a person's own."""
        lie = 0
        with plainly():
            for must, some in ((True, expected), (False, maybe)):
                for path, wanted, size in some:
                    data = self.read(path)
                    if not must and identity(data or b"") is None:
                        continue
                    if data is None or not starts_with(data, wanted=wanted, size=size):
                        return None
                    lie += 1
        return lie

    def comes_back(self, left: Mapping[str, Collection[str]]) -> bool:
        """Whether a file lies where one was removed, and says that it is that one (path, ids).

        Folders are listed, and what lies at none of these paths is not opened."""
        by_folder: dict[str, set[str]] = defaultdict(set)
        for path in left:
            by_folder[path.rpartition("/")[0]].add(path)
        with plainly():
            for folder, paths in by_folder.items():
                try:
                    names = os.listdir(self._folder(folder))
                except OSError as error:
                    if error.errno in (errno.ENOENT, *IN_THE_WAY):
                        continue
                    raise
                above = f"{folder}/" if folder else ""
                there = paths & {above + unicodedata.normalize("NFC", name) for name in names}
                if any(identity(self.read(path) or b"") in left[path] for path in there):
                    return True
        return False

    def lies(self, path: str) -> str:
        """What lies at a path: the hash of a file, a word for all else, "" for nothing."""
        with plainly():
            try:
                parent, name = self._parent(path)
                kind = stat.S_IFMT(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode)
            except OSError as error:
                if error.errno == errno.ENOENT:
                    return ""
                if error.errno in IN_THE_WAY:
                    return BARRED
                raise
            return sha256(self.read(path) or b"") if stat.S_ISREG(kind) else f"{kind:o}"

    def kept(self) -> bytes | None:
        """What was kept here for the next export; None for nothing."""
        with plainly():
            try:
                return content(self._folder(OURS), KEPT)
            except OSError as error:
                if error.errno in (errno.ENOENT, errno.ENXIO, *IN_THE_WAY):
                    return None
                raise

    def keep(self, data: bytes | None) -> None:
        """Keep this for the next export; None: nothing. Whatever else bears that name stays: then
        nothing is kept."""
        with plainly(), contextlib.suppress(FileNotFoundError, IsADirectoryError, PermissionError):
            if data is None:
                os.unlink(KEPT, dir_fd=self._folder(OURS))
            else:
                draft = self._draft(data)
                os.rename(draft, KEPT, src_dir_fd=self._parts, dst_dir_fd=self._folder(OURS))

    def read(self, path: str) -> bytes | None:
        """A file's bytes; None where no plain file is."""
        try:
            parent, name = self._parent(path)
            return content(parent, name)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.EISDIR, errno.ENXIO, *IN_THE_WAY):
                return None
            raise

    def put(self, batch: Sequence[Put]) -> set[str]:
        """Write files, each beside and then in place; the paths where something else lies than was
        expected, or that may not be written (`refused`): they are left as they are.

        Raises VaultAway where nothing can be written at all."""
        kept: set[str] = set()
        with plainly():
            drafts = list(self._pool.map(self._draft, [one.data for one in batch]))
            touched: set[str] = set()
            for one, draft in zip(batch, drafts, strict=True):
                try:
                    placed = self._place(one, draft)
                except OSError as error:
                    if error.errno in REFUSED:
                        self.refused[one.path] = os.strerror(error.errno or 0)
                    elif error.errno not in IN_THE_WAY:
                        raise
                    placed = False
                if placed:
                    touched.add(one.path.rpartition("/")[0])
                else:
                    kept.add(one.path)
                    os.unlink(draft, dir_fd=self._parts)
            self._flush(touched)
        return kept

    def remove(self, gone: Collection[tuple[str, str]], ours: Collection[str] = ()) -> set[str]:
        """Remove files (path, hash of the whole); the paths that hold something else by now. Of the
        folders `ours` those go that are left empty."""
        kept: set[str] = set()
        touched: set[str] = set()
        with plainly():
            for path, whole in gone:
                data = self.read(path)
                if data is None:
                    continue
                if sha256(data) != whole:
                    kept.add(path)
                    continue
                try:
                    parent, name = self._parent(path)
                    os.unlink(name, dir_fd=parent)
                except OSError as error:
                    if error.errno not in REFUSED:
                        raise
                    self.refused[path] = os.strerror(error.errno or 0)
                    kept.add(path)
                    continue
                touched.add(path.rpartition("/")[0])
            self._flush(touched)
            self._tidy(touched & set(ours))
        return kept

    def _signed(self) -> bytes:
        """What the vault says of itself."""
        try:
            return content(self._folder(OURS), SIGN) or b""
        except OSError as error:
            if error.errno in (errno.ENOENT, *IN_THE_WAY):
                return b""
            raise

    def _draft(self, data: bytes) -> str:
        """A new file under `.argus/tmp` with these bytes, on the disk; its name."""
        name = f"{secrets.token_hex(8)}.part"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(name, flags, 0o666, dir_fd=self._parts)
        try:
            left = memoryview(data)
            while left:
                left = left[os.write(descriptor, left) :]
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        return name

    def _place(self, one: Put, draft: str) -> bool:
        parent, name = self._parent(one.path, make=True)
        if written := [at for path in one.words if (at := self._written_ns(path)) is not None]:
            at = max(written) + LATER_SECONDS * 10**9
            with contextlib.suppress(PermissionError, NotImplementedError):
                os.utime(draft, ns=(at, at), dir_fd=self._parts)
        if one.expect is None:
            return self._place_new(parent, name, draft)
        data = self.read(one.path)
        if data is None or sha256(data) != one.expect:
            return False
        mode = stat.S_IMODE(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode)
        # Some shares and sticks know no modes: the file is put all the same.
        with contextlib.suppress(PermissionError, NotImplementedError):
            os.chmod(draft, mode, dir_fd=self._parts)
        os.rename(draft, name, src_dir_fd=self._parts, dst_dir_fd=parent)
        return True

    def _written_ns(self, path: str) -> int | None:
        """When a file was written; None where none is."""
        try:
            parent, name = self._parent(path)
            return os.stat(name, dir_fd=parent, follow_symlinks=False).st_mtime_ns
        except OSError as error:
            if error.errno in (errno.ENOENT, *IN_THE_WAY):
                return None
            raise

    def _place_new(self, parent: int, name: str, draft: str) -> bool:
        """A second name for the draft where nothing has it: a rename would take away what somebody
        put there meanwhile."""
        try:
            os.link(draft, name, src_dir_fd=self._parts, dst_dir_fd=parent, follow_symlinks=False)
        except FileExistsError:
            return False
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            # A file system without them (exFAT, some that go over a network).
            if exists(parent, name):
                return False
            os.rename(draft, name, src_dir_fd=self._parts, dst_dir_fd=parent)
            return True
        os.unlink(draft, dir_fd=self._parts)
        return True

    def _parent(self, path: str, *, make: bool = False) -> tuple[int, str]:
        """The open folder of a path, and the file's name in it."""
        names = path.split("/")
        for name in names:
            if not name or name.startswith(".") or "\0" in name:
                raise Astray(f"{path!r} is no path of a vault")
        above, _, last = path.rpartition("/")
        return self._folder(above, make=make), last

    def _folder(self, path: str, *, make: bool = False) -> int:
        if not path:
            return self._root
        if path in self._open:
            self._open.move_to_end(path)
            return self._open[path]
        above, _, name = path.rpartition("/")
        parent = self._folder(above, make=make)
        if make:
            with contextlib.suppress(FileExistsError):
                os.mkdir(name, dir_fd=parent)
                os.fsync(parent)
        descriptor = os.open(name, FOLDER, dir_fd=parent)
        self._open[path] = descriptor
        while len(self._open) > FOLDERS_OPEN_MAX:
            os.close(self._open.popitem(last=False)[1])
        return descriptor

    def _flush(self, folders: Collection[str]) -> None:
        """Names are on the disk when their folder is."""
        for path in folders:
            with contextlib.suppress(FileNotFoundError):
                os.fsync(self._folder(path))

    def _tidy(self, folders: Collection[str]) -> None:
        """Folders that hold nothing any more go, with those around them."""
        for path in sorted(folders, key=len, reverse=True):
            while path:
                above, _, name = path.rpartition("/")
                if path in self._open:
                    os.close(self._open.pop(path))
                try:
                    os.rmdir(name, dir_fd=self._folder(above))
                except OSError as error:
                    if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT, errno.EBUSY):
                        break
                    raise
                path = above

    def _close(self) -> None:
        self._pool.shutdown()
        while self._open:
            os.close(self._open.popitem()[1])
