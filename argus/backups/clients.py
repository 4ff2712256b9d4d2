"""PostgreSQL's `pg_dump` and `pg_restore`, of the version that a server needs, and how they get in.

Knows nothing about what is dumped. A password goes by the environment of the program alone, where
no other account reads it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from psycopg.conninfo import make_conninfo

from argus.binaries import ClusterError, locate
from argus.owner import OwnerProblem
from memory.errors import ArgusError

#: Characters of what a program says when it fails.
# Why: the first lines say what is wrong; the rest repeats a statement.
SAID_CHARACTERS_MAX = 600


#: How long a program may take to end that is told nothing any more.
END_SECONDS_MAX = 30


class ProgramFailed(ArgusError):
    """A program of PostgreSQL failed. The message is what it said."""


def matching(program: str, major: int) -> Path:
    """The program of this major version: the wheel's, else that of PATH.

    Raises OwnerProblem, in words that say what to install.
    """
    found = []
    for path in _candidates(program):
        version = _major(path)
        if version == major:
            return path
        found.append(f"{path} is of {version}")
    there = f" ({'; '.join(found)})" if found else ""
    raise OwnerProblem(
        f"The server is PostgreSQL {major} and there is no {program} {major} here{there}: install "
        f"the client programs of PostgreSQL {major} and put them first on PATH."
    )


def able(program: str, major: int) -> Path:
    """The program of this major version or a newer one: whatever reads a dump of it.

    Raises OwnerProblem, in words that say what to install.
    """
    for path in _candidates(program):
        if (version := _major(path)) is not None and version >= major:
            return path
    raise OwnerProblem(
        f"There is no {program} {major} or newer here: install the client programs of PostgreSQL"
        f" {major} and put them first on PATH."
    )


def _candidates(program: str) -> Iterator[Path]:
    # No wheel for this machine: then its own programs will do.
    with suppress(ClusterError):
        yield locate().folder / program
    if named := shutil.which(program):
        yield Path(named)


def _major(path: Path) -> int | None:
    try:
        answer = subprocess.run(
            [str(path), "--version"], capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    words = re.search(r"(\d+)(?:\.|devel|beta|rc|\b)", answer.stdout)
    return int(words[1]) if words else None


def address(at: dict[str, Any]) -> tuple[str, dict[str, str]]:
    """A database of Django's settings as (--dbname, environment); the password in the latter."""
    names = {"dbname": "NAME", "user": "USER", "host": "HOST", "port": "PORT"}
    given = {key: str(at[name]) for key, name in names.items() if at[name]}
    options = {key: value for key, value in at["OPTIONS"].items() if key != "application_name"}
    told = environment()
    if at["PASSWORD"]:
        told["PGPASSWORD"] = at["PASSWORD"]
    return make_conninfo("", **given, **options, application_name="argus backup"), told


def environment() -> dict[str, str]:
    """What a program is told of our environment."""
    # Why not our own PG* variables: they would point the program elsewhere.
    return {
        "PATH": os.environ.get("PATH", os.defpath), "HOME": os.environ.get("HOME", "/"),
        "LC_ALL": "C", "TZ": "UTC",
    }  # fmt: skip


@contextmanager
def running(program: Path, *arguments: str, at: dict[str, Any], reads: bool) -> Iterator[IO[bytes]]:
    """The program at work on a database: what it writes, or (`reads`) what it is fed by.

    Raises ProgramFailed when it cannot be started or did not end well, whatever went wrong here
    because of that.
    """
    name, environment = address(at)
    with ExitStack() as kept:
        try:
            said: IO[bytes] = kept.enter_context(tempfile.TemporaryFile())
            process = subprocess.Popen(
                [str(program), f"--dbname={name}", "--no-password", *arguments],
                env=environment,
                stdin=subprocess.PIPE if reads else subprocess.DEVNULL,
                stdout=subprocess.DEVNULL if reads else subprocess.PIPE,
                stderr=said,
            )
        except OSError as error:
            raise ProgramFailed(f"{program.name} cannot be started: {error.strerror}") from error
        kept.callback(end, process)
        pipe = process.stdin if reads else process.stdout
        assert pipe is not None
        try:
            yield pipe
            pipe.close()
        except (ArgusError, OSError):
            # When the program died first, its reason is the one to tell.
            _quietly_close(pipe)
            if not process.wait(timeout=END_SECONDS_MAX):
                raise
        if process.wait():
            raise ProgramFailed(complaint(program, said))


def end(process: subprocess.Popen[bytes]) -> None:
    """No process of ours is left, and no pipe to it."""
    if process.poll() is None:
        process.kill()
        process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            _quietly_close(pipe)


def _quietly_close(pipe: IO[bytes]) -> None:
    # It may have died with something still on its way.
    with suppress(OSError):
        pipe.close()


def complaint(program: Path, said: IO[bytes]) -> str:
    said.seek(0)
    words = said.read().decode(errors="replace").strip()[:SAID_CHARACTERS_MAX]
    return f"{program.name} failed: {words or 'it said nothing'}"
