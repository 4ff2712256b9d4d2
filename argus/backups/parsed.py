"""The dump of a backup, read as PostgreSQL reads it, by its own program and without a database.

Reads: the file. Writes nothing. Knows nothing about hashes: those say that the file is what was
written, this says that what was written is a dump, whole, and of these tables.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import IO, Any

from argus.backups import archive, clients, inventory
from memory.errors import RefusedError

#: Tables that are named where they are not what the manifest says.
TABLES_NAMED_MAX = 5

_BEGINS = re.compile(rb'COPY public\.(?:"([^"]+)"|(\S+)) \(.*\) FROM stdin;\n')
_ENDS = b"\\.\n"


def parse(path: Path, manifest: Mapping[str, Any]) -> None:
    """Read the whole dump of a backup, and count its rows.

    Raises Broken for a dump that is cut off, that is none, or that holds other tables or rows than
    the manifest; OwnerProblem where no program here can read it.
    """
    program = clients.able("pg_restore", int(manifest["server"].split(".")[0]))
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(
            [str(program), "--file=-", "--no-owner", "--no-acl"],
            env=clients.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said,
        )  # fmt: skip
        assert process.stdin is not None and process.stdout is not None
        try:
            feeder = Thread(target=_feed, args=(path, process.stdin), daemon=True)
            feeder.start()
            rows = _rows(process.stdout)
            feeder.join()
            failed = process.wait()
        finally:
            clients.end(process)
        if failed:
            told = clients.complaint(program, said)
            raise archive.Broken(f"{path} holds a dump that cannot be read: {told}")
    _compare(path, rows, manifest["tables"])


def _feed(path: Path, pipe: IO[bytes]) -> None:
    # Why quietly: a program that had enough of it says itself why, and the file was read before.
    with suppress(OSError, RefusedError), pipe:
        archive.check(path, pipe)


def _rows(script: Iterable[bytes]) -> dict[str, int]:
    """Rows by table, of the script that a dump is. A row is a line: what breaks lines in a value is
    written otherwise there."""
    rows: dict[str, int] = {}
    table: str | None = None
    for line in script:
        if table is None:
            if begins := _BEGINS.fullmatch(line):
                table = (begins[1] or begins[2]).decode()
                rows[table] = 0
        elif line == _ENDS:
            table = None
        else:
            rows[table] += 1
    return rows


def _compare(path: Path, rows: Mapping[str, int], tables: Mapping[str, Any]) -> None:
    other = [
        f"{name} {rows.get(name, 'is missing')}, not {one['rows']}"
        for name, one in tables.items()
        if name not in inventory.LEFT_OUT and rows.get(name) != one["rows"]
    ]
    other += [f"{name} is of no backup" for name in rows if name not in tables]
    if other:
        named = "; ".join(other[:TABLES_NAMED_MAX])
        raise archive.Broken(f"{path} holds the dump of another database: rows of {named}")
