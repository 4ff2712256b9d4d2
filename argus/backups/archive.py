"""The file of a backup: a tar of the dump, what is known of it, and the hashes of both.

Reads and writes: files. Knows nothing about Django, PostgreSQL, or what a dump holds.
`tar xf FILE && sha256sum -c SHA256SUMS` says the same as `check`, without Argus.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from argus.whole import Draft, whole
from memory.errors import RefusedError

#: What a backup is made of, in this order.
DUMP, MANIFEST, SUMS = "database.dump", "manifest.json", "SHA256SUMS"

#: The form of the manifest; a backup of a later one is refused.
FORMAT = 1

#: How the dump begins.
DUMP_MAGIC = b"PGDMP"

#: Bytes read at once.
BLOCK_BYTES = 1024 * 1024

#: Bytes of the manifest and of the sums that are read.
# Why: a file of somebody else's must not fill the memory before it is refused.
NOTES_BYTES_MAX = 16 * 1024 * 1024


class Sink(Protocol):
    """Whatever takes bytes."""

    def write(self, block: bytes, /) -> int: ...


class Broken(RefusedError):
    """This is no whole backup."""


@dataclass(frozen=True)
class Checked:
    """A whole backup: what its manifest says, and the dump's size in bytes and sha256."""

    manifest: dict[str, Any]
    dump_bytes: int
    dump_sha256: str


class Writer:
    """Writes one backup, front to back. The dump's length is known only in the end, so that its
    header is written last."""

    def __init__(self, out: Draft) -> None:
        self._out = out
        self._digest = hashlib.sha256()
        self.dump_bytes = 0
        out.write(_header(DUMP, 0))

    def write(self, block: bytes) -> None:
        """Some more of the dump."""
        self._out.write(block)
        self._digest.update(block)
        self.dump_bytes += len(block)

    def finish(self, manifest: dict[str, Any]) -> str:
        """The rest of the file; the dump's sha256."""
        dump = self._digest.hexdigest()
        told = {**manifest, "format": FORMAT, "dump": {"bytes": self.dump_bytes, "sha256": dump}}
        notes = json.dumps(told, indent=1, sort_keys=True, default=str).encode()
        sums = f"{dump}  {DUMP}\n{hashlib.sha256(notes).hexdigest()}  {MANIFEST}\n".encode()
        self._pad(self.dump_bytes)
        for name, content in ((MANIFEST, notes), (SUMS, sums)):
            self._out.write(_header(name, len(content)) + content)
            self._pad(len(content))
        self._out.write(bytes(2 * tarfile.BLOCKSIZE))
        self._out.seek(0)
        self._out.write(_header(DUMP, self.dump_bytes))
        return dump

    def _pad(self, length: int) -> None:
        self._out.write(bytes(-length % tarfile.BLOCKSIZE))


@contextmanager
def writing(path: Path, *, force: bool) -> Iterator[Writer]:
    """A backup at `path`, as `whole` has it."""
    with whole(path, force=force) as out:
        yield Writer(out)


def check(path: Path, out: Sink | None = None) -> Checked:
    """Read the whole backup and compare every hash; `out` gets the dump on the way.

    Raises Broken with what is wrong: cut off, changed, made by a newer Argus, or no backup at all.
    """
    try:
        with tarfile.open(path, "r:") as tar:
            members = {member.name: member for member in tar.getmembers() if member.isreg()}
            if set(members) != {DUMP, MANIFEST, SUMS}:
                missing = sorted({DUMP, MANIFEST, SUMS} - set(members))
                raise Broken(f"{path} is no whole backup: {', '.join(missing) or 'it holds more'}")
            notes = _read(tar, members[MANIFEST])
            sums = dict(
                line.split("  ", 1)[::-1] for line in _read(tar, members[SUMS]).decode().split("\n")
                if "  " in line
            )  # fmt: skip
            dump = _stream(tar, members[DUMP], out)
    except FileNotFoundError:
        raise Broken(f"there is no file {path}") from None
    except (tarfile.TarError, OSError, UnicodeDecodeError) as error:
        raise Broken(f"{path} is no whole backup: {error}") from error
    for name, digest in ((DUMP, dump), (MANIFEST, hashlib.sha256(notes).hexdigest())):
        if sums.get(name) != digest:
            raise Broken(f"{path} was changed or cut off: {name} is not what was written")
    size = members[DUMP].size
    return Checked(_manifest(path, notes, dump, size), size, dump)


#: What stands in a manifest, and of what type.
TOLD = {
    "made_at": str, "server": str, "extensions": dict, "migrations": list, "tables": dict,
    "rights": list, "closed": list, "dump": dict,
}  # fmt: skip


def _manifest(path: Path, notes: bytes, dump: str, size: int) -> dict[str, Any]:
    """The manifest, with all that it must have. Raises Broken."""
    try:
        manifest: dict[str, Any] = json.loads(notes)
        form = manifest["format"]
        if form != FORMAT:
            raise Broken(f"{path} has the form {form} and this Argus reads {FORMAT}: take a newer")
        wrong = [name for name, kind in TOLD.items() if not isinstance(manifest[name], kind)]
        wrong += _strange(manifest)
        datetime.fromisoformat(manifest["made_at"])
        dump_told = manifest["dump"]["sha256"], manifest["dump"]["bytes"]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise Broken(f"{path} is no backup of Argus: its manifest cannot be read") from None
    if wrong or not re.match(r"\d+", manifest["server"]):
        raise Broken(f"{path} is no backup of Argus: its manifest is none")
    if dump_told != (dump, size):
        raise Broken(f"{path} was put together: its manifest is that of another dump")
    return manifest


def _strange(manifest: dict[str, Any]) -> list[str]:
    """What in a manifest is not of the kind that a backup writes: nobody else has to look."""
    names = ("migrations", "rights", "closed")
    found = [name for name in names if not all(isinstance(one, str) for one in manifest[name])]
    if not all(isinstance(one, str) for one in manifest["extensions"].values()):
        found.append("extensions")
    if (
        not manifest["migrations"]
        or not manifest["tables"]
        or not all(
            type(one["rows"]) is int and one["rows"] >= 0 and isinstance(one["hash"], str)
            for one in manifest["tables"].values()
        )
    ):
        found.append("tables")
    # What a purge, a key or a fact of it is known by; a backup of an older Argus names none.
    for rows in manifest.get("taken", {}).values():
        for pk, made in rows:
            if type(pk) is not int or not 0 < pk < 2**63:
                found.append("taken")
            datetime.fromisoformat(made)
    return found


def _read(tar: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    if member.size > NOTES_BYTES_MAX:
        raise Broken(f"{member.name} has {member.size} bytes: no backup has so much")
    with io.BytesIO() as held:
        _stream(tar, member, held)
        return held.getvalue()


def _stream(tar: tarfile.TarFile, member: tarfile.TarInfo, out: Sink | None) -> str:
    """The sha256 of a member, which goes to `out` block by block."""
    source = tar.extractfile(member)
    assert source is not None
    digest, first = hashlib.sha256(), True
    with source:
        while block := source.read(BLOCK_BYTES):
            if first and member.name == DUMP and not block.startswith(DUMP_MAGIC):
                raise Broken("it holds no dump of PostgreSQL")
            first = False
            digest.update(block)
            if out is not None:
                out.write(block)
    if first and member.name == DUMP:
        raise Broken("it holds no dump of PostgreSQL")
    return digest.hexdigest()


def _header(name: str, size: int) -> bytes:
    info = tarfile.TarInfo(name)
    info.size, info.mode = size, 0o600
    return info.tobuf(tarfile.GNU_FORMAT)
