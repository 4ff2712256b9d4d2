"""Databases for tests: a migrated template made once for each state of the code, and its clones.

Knows nothing about what the tests do. Everything here talks to the tests' own server.
"""

from __future__ import annotations

import fcntl
import hashlib
import itertools
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import LiteralString

import psutil
import psycopg
from django.conf import settings
from django.core.management import call_command
from django.db import connection, connections
from psycopg import sql

from argus import postgres
from argus.binaries import roads
from argus.owner import as_owner
from tests.settings import ASKED_BY, lock_of, placed

ROOT = Path(__file__).resolve().parent.parent

#: Whatever can change what a migrated database holds.
SOURCES = ("argus", "memory", "review", "recall", "exporter")

#: Test data may be lost when the machine dies, and then nobody asks for it.
TUNING = {
    "fsync": "off",
    "full_page_writes": "off",
    "max_connections": "200",
    # Why: it reads hundreds of databases that live for seconds, and what it counts in one of them
    # would choose a plan by chance. Tests that need statistics gather them.
    "autovacuum": "off",
    # What is written ahead fills memory where the server lies there.
    "max_wal_size": "'256MB'",
}

#: Where files are in memory, on systems that have such a place.
MEMORY = Path("/dev/shm")

#: Free bytes from which on the server lies there. A container may have 64 MiB.
# Calibrate: after all tests a server has 400 MB.
MEMORY_BYTES_MIN = 3 << 30

#: Dropping a database can trip over an autovacuum worker that has just begun.
DROP_TRIES_MAX = 20

_numbers = itertools.count(1)

#: What this process holds while it uses the server.
_joined: list[int] = []


def home() -> Path:
    return Path(os.environ["ARGUS_HOME"])


def join() -> None:
    """Be one of those who use the server, until this process ends."""
    home().mkdir(parents=True, exist_ok=True)
    descriptor = os.open(home() / "users.lock", os.O_RDWR | os.O_CREAT, 0o600)
    # Why never closed: between two of its databases a run has no connection that says it is there.
    fcntl.flock(descriptor, fcntl.LOCK_SH)
    _joined.append(descriptor)


def alone() -> bool:
    """Whether no other run uses the server."""
    while _joined:
        os.close(_joined.pop())
    home().mkdir(parents=True, exist_ok=True)
    with open(home() / "users.lock", "w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
    return True


def start() -> None:
    """Have the tests' server run."""
    if ASKED_BY == "test":
        into_memory(home())
    postgres.start(home(), options=TUNING)


def begin() -> None:
    """Make way for a server in memory when this one lies on the disk, and no other run uses it:
    whoever asked a command by these settings began it there."""
    root = postgres.place(home()).root
    if ASKED_BY == "test" and root.is_dir() and not root.is_symlink() and _roomy() and alone():
        discard(home())


def into_memory(place: Path) -> None:
    """The server of this home will have its files in memory, where there is room; one that was made
    already stays where it is."""
    # Why: a clone is 850 new files. On a disk these cost up to a second of a core, and there are
    # hundreds of clones; in memory they cost a tenth of that.
    root = postgres.place(place).root
    if os.geteuid() == 0:
        roads(root.parent)
    root.parent.mkdir(parents=True, exist_ok=True)
    with placed(root):
        if not root.exists() and _roomy():
            # Why a name that nobody can guess: everybody may write there.
            root.symlink_to(tempfile.mkdtemp(prefix=f"{home().name}-", dir=MEMORY))


def _roomy() -> bool:
    return MEMORY.is_dir() and shutil.disk_usage(MEMORY).free >= MEMORY_BYTES_MIN


def discard(place: Path) -> None:
    """Stop the server of this home and remove its files, wherever they are."""
    postgres.stop(place)
    cluster = postgres.place(place)
    for folder in (cluster.root.resolve(), cluster.run):
        shutil.rmtree(folder, ignore_errors=True)
    cluster.root.unlink(missing_ok=True)
    lock_of(cluster.root).unlink(missing_ok=True)


def template() -> str:
    """The name of a database migrated by the code as it is now; made when there is none."""
    start()
    name = f"template_{_fingerprint()}"
    home().mkdir(parents=True, exist_ok=True)
    with open(home() / "template.lock", "w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        _claim(name)
        _sweep()
        if name not in _databases():
            # Why a second name: a killed run leaves no half-migrated template.
            draft = f"draft_{os.getpid()}"
            drop(draft)
            _run("CREATE DATABASE {}", draft)
            with using(draft), as_owner():
                call_command("migrate", verbosity=0)
            _run("ALTER DATABASE {} RENAME TO {}", draft, name)
    return name


def made(kind: str, fill: Callable[[], object]) -> str:
    """The name of a database that `fill` filled, once for all workers of a run; to be cloned."""
    source = template()
    name = f"{source}_{kind}"
    with open(home() / f"{kind}.lock", "w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        _claim(name)
        if name not in _databases():
            draft = clone(source)
            with using(draft):
                fill()
            _run("ALTER DATABASE {} RENAME TO {}", draft, name)
    return name


def clone(source: str) -> str:
    """A new database like the source, to which nobody may be connected. Returns its name."""
    name = f"test_{os.getpid()}_{next(_numbers)}"
    drop(name)
    # Why by its files: written ahead, each of their blocks takes twice as long.
    _run("CREATE DATABASE {} TEMPLATE {} STRATEGY FILE_COPY", name, source)
    return name


@contextmanager
def copied(source: str) -> Iterator[str]:
    """A clone of the source is what Django is connected to; afterwards it is gone. Its name."""
    name = clone(source)
    try:
        with using(name):
            yield name
    finally:
        drop(name)


def address(name: str) -> str:
    """The address of a test database for the application's role."""
    return postgres.url(home(), postgres.APP, name)


def owner_address(address: str) -> str:
    """The owner's address of the same database."""
    return address.replace(f"{postgres.APP}@", f"{postgres.OWNER}@")


def drop(name: str) -> None:
    """Drop a database, whoever is connected to it."""
    for attempt in range(DROP_TRIES_MAX):
        try:
            # Why the superuser: the owner may not end the application's connections.
            _run("DROP DATABASE IF EXISTS {} WITH (FORCE)", name, role=postgres.SUPERUSER)
        except psycopg.OperationalError:
            if attempt == DROP_TRIES_MAX - 1:
                raise
            time.sleep(0.1)
        else:
            return


@contextmanager
def using(name: str) -> Iterator[None]:
    """Django's default connection, in every thread that opens one, is to this database."""
    configured = connections.settings["default"]
    before = configured["NAME"]
    _point(name)
    try:
        yield
    finally:
        _point(before)


def _point(name: str) -> None:
    assert not connection.in_atomic_block, "clone_db and the mark django_db do not go together"
    connection.close()
    connections.settings["default"]["NAME"] = name
    connection.settings_dict["NAME"] = name


def _run(statement: LiteralString, *names: str, role: str = postgres.OWNER) -> None:
    query = sql.SQL(statement).format(*map(sql.Identifier, names))
    with _connect(role) as maintenance:
        maintenance.execute(query)


def _connect(role: str = postgres.OWNER) -> psycopg.Connection:
    try:
        return psycopg.connect(postgres.url(home(), role), autocommit=True)
    except psycopg.OperationalError:
        # Why: another run may have stopped the server when it ended.
        start()
        return psycopg.connect(postgres.url(home(), role), autocommit=True)


def _databases() -> set[str]:
    with _connect() as maintenance:
        return {row[0] for row in maintenance.execute("SELECT datname FROM pg_database")}


def _claim(name: str) -> None:
    """Say that this process uses the template: two runs of two states of the code may overlap."""
    folder = home() / "templates" / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / str(os.getpid())).touch()


def _sweep() -> None:
    """Drop what ended runs left: their databases, and templates that no living process claims."""
    for name in _databases():
        kind, _, rest = name.partition("_")
        if kind in ("test", "draft"):
            alive = _lives(rest.partition("_")[0])
        elif kind == "template" and rest != "":
            claims = home() / "templates" / name
            alive = any(_lives(claim.name) for claim in claims.glob("*"))
            if not alive:
                shutil.rmtree(claims, ignore_errors=True)
        else:
            continue
        if not alive:
            drop(name)


def _lives(process: str) -> bool:
    return process.isdigit() and psutil.pid_exists(int(process))


def _fingerprint() -> str:
    digest = hashlib.sha256(repr(settings.INSTALLED_APPS).encode())
    for folder in SOURCES:
        for path in sorted((ROOT / folder).rglob("*.py")):
            digest.update(str(path.relative_to(ROOT)).encode() + path.read_bytes())
    return digest.hexdigest()[:16]
