"""The embedded PostgreSQL: a port of two functions, `start` and `url`, and `stop`.

One server for each ARGUS_HOME, started by whichever process needs it first, shared by all, and
left running. Knows nothing about Django, nor about what lies in the tables.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, urlencode

import psutil
import psycopg

from argus.binaries import SYSTEM_ROOT, Binaries, ClusterError, locate, roads

DATABASE = "argus"
SUPERUSER = "postgres"
OWNER = "argus_owner"
APP = "argus_app"

#: What every new database has, by way of template1.
EXTENSIONS = ("vector", "pg_trgm")

#: How long a server may take to start, recovery after a crash included.
RECOVERY_SECONDS_MAX = 60

#: The longest path of a socket that macOS takes (Linux: 107).
SOCKET_PATH_BYTES_MAX = 103

#: The log starts anew beyond this size when the server starts.
LOG_BYTES_MAX = 10 * 1024 * 1024

#: A process id that no system gives out.
# Why not remove the file: PostgreSQL reads the rest of it, too, and refuses to start while a
# left-over backend of the old server still holds the memory that is named there.
PID_NEVER = 2_147_483_647

SOCKET = ".s.PGSQL.5432"

#: Which characters are letters, the first that this machine knows (glibc, macOS, anything).
# Why: pg_trgm asks the system, and under plain C no Chinese character is a letter.
CHARACTER_TYPES = ("C.UTF-8", "UTF-8", "C")

CONFIGURATION: Mapping[str, str] = {
    "listen_addresses": "''",
    "port": "5432",
    "max_connections": "100",
    "shared_buffers": "128MB",
    "fsync": "on",
    # Why: containers have 64 MB of /dev/shm, and building a vector index may want more.
    "dynamic_shared_memory_type": "mmap",
    "timezone": "'UTC'",
    "log_timezone": "'UTC'",
    "jit": "off",
    # Why: statements and details carry captured text, and a purge does not reach the log.
    "log_min_error_statement": "panic",
    "log_error_verbosity": "terse",
}


@dataclass(frozen=True)
class Cluster:
    """Where one embedded server lies. `home` is the ARGUS_HOME it belongs to."""

    home: Path
    root: Path
    run: Path

    @property
    def data(self) -> Path:
        return self.root / "data"

    @property
    def log(self) -> Path:
        return self.root / "server.log"


def place(home: Path) -> Cluster:
    """Where the server of this home lies. Starts nothing, touches nothing."""
    # Why resolved: two names of one folder are one server.
    home = home.expanduser().resolve()
    name = hashlib.sha256(str(home).encode()).hexdigest()[:12]
    root = SYSTEM_ROOT / "pg" / name if os.geteuid() == 0 else home / "pg"
    run = root / "run"
    if len(os.fsencode(run / f"{SOCKET}.lock")) > SOCKET_PATH_BYTES_MAX:
        run = Path("/tmp") / f"argus-{os.geteuid()}-{name}"
    return Cluster(home, root, run)


def folder(home: Path) -> Path:
    """Where the server of this home keeps its data. Starts nothing, touches nothing."""
    return place(home).data


def url(home: Path, role: str = APP, database: str = DATABASE) -> str:
    """The address of the server of this home, for a role. Starts nothing, touches nothing."""
    socket = urlencode({"host": str(place(home).run)})
    return f"postgresql://{quote(role)}@/{quote(database)}?{socket}"


def start(home: Path, options: Mapping[str, str] | None = None) -> Cluster:
    """Have the server of this home run, whoever started it; it is left running.

    `options` are lines of postgresql.conf that win over ours when the server is started here.
    Raises ClusterError with a sentence that says what to do.
    """
    cluster = place(home)
    if _answers(home):
        return cluster
    with _lock(cluster):
        # Why: somebody else may have started it while we waited for the lock.
        if not _answers(home):
            binaries = locate()
            _open(cluster, binaries)
            _create(cluster, binaries)
            _configure(cluster, options or {})
            if _postmaster(cluster) is None:
                _launch(cluster, binaries)
            _wait(cluster)
            _furnish(cluster)
    return cluster


def stop(home: Path, idle_only: bool = False) -> bool:
    """Stop the server of this home; with `idle_only`, only when nobody is connected.

    True: it was running and is stopped now.
    """
    cluster = place(home)
    if not cluster.data.exists():
        return False
    with _lock(cluster):
        if _postmaster(cluster) is None or (idle_only and connected(home)):
            return False
        binaries = locate()
        answer = binaries.run(
            *("pg_ctl", "stop", "-w", "-m", "fast", "-D", str(cluster.data)),
            *("-t", str(RECOVERY_SECONDS_MAX)),
            cwd=cluster.root,
            timeout_seconds=RECOVERY_SECONDS_MAX + 10,
        )
        if answer.returncode and _postmaster(cluster) is not None:
            raise ClusterError(f"PostgreSQL does not stop: {answer.stdout.strip()}")
    return True


def connected(home: Path) -> int:
    """How many other connections the server has; 0 when it does not run."""
    try:
        with psycopg.connect(url(home, SUPERUSER, SUPERUSER), connect_timeout=5) as connection:
            row = connection.execute(
                "SELECT count(*) FROM pg_stat_activity"
                " WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
            ).fetchone()
    except psycopg.OperationalError:
        return 0
    return int(row[0]) if row else 0


def _answers(home: Path, role: str = APP, database: str = DATABASE) -> bool:
    """The only proof that counts: a connection that answers."""
    try:
        with psycopg.connect(url(home, role, database), connect_timeout=5) as connection:
            return connection.execute("SELECT 1").fetchone() is not None
    except psycopg.OperationalError:
        return False


@contextmanager
def _lock(cluster: Cluster) -> Iterator[None]:
    """One process at a time starts or stops the server. A killed holder lets go by dying."""
    if os.geteuid() == 0:
        roads(cluster.root.parent)
    else:
        cluster.home.mkdir(parents=True, exist_ok=True)
    cluster.root.mkdir(mode=0o700, exist_ok=True)
    with open(cluster.root / "start.lock", "a") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _open(cluster: Cluster, binaries: Binaries) -> None:
    """Make the folders; nobody but the server's account (and root) may enter them."""
    try:
        cluster.run.mkdir(mode=0o700, exist_ok=True)
    except FileExistsError:
        raise ClusterError(f"{cluster.run} is in the way: it must be a folder.") from None
    facts = cluster.run.lstat()
    if not stat.S_ISDIR(facts.st_mode) or facts.st_uid not in (os.geteuid(), _uid(binaries)):
        raise ClusterError(f"{cluster.run} belongs to somebody else: remove it, or ask them to.")
    for folder in (cluster.root, cluster.run):
        folder.chmod(0o700)
        if binaries.account is not None:
            os.chown(folder, binaries.account.pw_uid, binaries.account.pw_gid)


def _uid(binaries: Binaries) -> int:
    return os.geteuid() if binaries.account is None else binaries.account.pw_uid


def _create(cluster: Cluster, binaries: Binaries) -> None:
    """Make the data directory, whole or not at all; refuse that of another major version."""
    version = binaries.version()
    if cluster.data.exists():
        marker = cluster.data / "PG_VERSION"
        found = marker.read_text().strip() if marker.exists() else "an unknown version"
        if found != version.partition(".")[0]:
            raise ClusterError(
                f"The data under {cluster.data} are of PostgreSQL {found} and this Argus brings "
                f"{version}: dump them with the Argus that made them (`pg_dumpall -h "
                f"{cluster.run} -U {SUPERUSER} > argus.sql`), move {cluster.data} away, run "
                f"`manage.py migrate` once to start an empty server, and load the dump with "
                f"`psql -h {cluster.run} -U {SUPERUSER} -f argus.sql`."
            )
        return
    half = cluster.root / "data.new"
    for character_type in CHARACTER_TYPES:
        shutil.rmtree(half, ignore_errors=True)
        answer = binaries.run(
            *("initdb", "-D", str(half), "-U", SUPERUSER, "--auth=trust", "--encoding=UTF8"),
            *("--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"),
            *("--lc-ctype", character_type, "--data-checksums", "--no-instructions"),
            cwd=cluster.root,
            timeout_seconds=RECOVERY_SECONDS_MAX * 2,
        )
        if not answer.returncode:
            break
    else:
        raise ClusterError(f"PostgreSQL's initdb failed: {answer.stdout.strip()}")
    # Why: no way in but the socket, and the socket lies in a folder closed to others.
    (half / "pg_hba.conf").write_text("local all all trust\n")
    half.rename(cluster.data)


def _configure(cluster: Cluster, options: Mapping[str, str]) -> None:
    lines = {**CONFIGURATION, "unix_socket_directories": f"'{cluster.run}'", **options}
    ours = cluster.data / "argus.conf"
    ours.write_text("".join(f"{name} = {value}\n" for name, value in lines.items()))
    ours.chmod(0o644)
    main = cluster.data / "postgresql.conf"
    include = "include_if_exists = 'argus.conf'\n"
    if include not in main.read_text():
        with main.open("a") as handle:
            handle.write(include)


def _postmaster(cluster: Cluster) -> int | None:
    """The id of the running server, or None: a zombie or a re-used id is not our server."""
    try:
        pid = int((cluster.data / "postmaster.pid").read_text().split("\n", 1)[0])
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return None
        words = process.cmdline()
    except (OSError, ValueError, psutil.Error):
        # Why psutil's denial, too: our server is always of an account whose facts we may read.
        return None
    return pid if str(cluster.data) in words else None


def _launch(cluster: Cluster, binaries: Binaries) -> None:
    _bury(cluster)
    if cluster.log.exists() and cluster.log.stat().st_size > LOG_BYTES_MAX:
        cluster.log.replace(cluster.log.with_suffix(".log.old"))
    deadline = time.monotonic() + RECOVERY_SECONDS_MAX
    while True:
        begin = cluster.log.stat().st_size if cluster.log.exists() else 0
        answer = binaries.run(
            *("pg_ctl", "start", "-w", "-D", str(cluster.data), "-l", str(cluster.log)),
            *("-t", str(RECOVERY_SECONDS_MAX)),
            cwd=cluster.root,
            timeout_seconds=RECOVERY_SECONDS_MAX + 10,
        )
        if not answer.returncode or _postmaster(cluster) is not None:
            return
        written = cluster.log.read_bytes()[begin:] if cluster.log.exists() else b""
        said = written.decode(errors="replace")
        # Why: backends of a killed server end when their statement does.
        if "still in use" not in said or time.monotonic() > deadline:
            raise ClusterError(
                f"PostgreSQL does not start: {(said or answer.stdout).strip()} (log: {cluster.log})"
            )
        time.sleep(0.5)


def _bury(cluster: Cluster) -> None:
    """Take the dead server's name off its locks. Only called when `_postmaster` found none."""
    lock = cluster.data / "postmaster.pid"
    if lock.exists():
        _, newline, rest = lock.read_text().partition("\n")
        lock.write_text(f"{PID_NEVER}{newline}{rest}")
    for name in (SOCKET, f"{SOCKET}.lock"):
        (cluster.run / name).unlink(missing_ok=True)


def _wait(cluster: Cluster) -> None:
    deadline = time.monotonic() + RECOVERY_SECONDS_MAX
    while not _answers(cluster.home, SUPERUSER, SUPERUSER):
        if time.monotonic() > deadline:
            raise ClusterError(
                f"PostgreSQL (process {_postmaster(cluster)}) does not answer within "
                f"{RECOVERY_SECONDS_MAX} s: read {cluster.log}; `manage.py down` stops it."
            )
        time.sleep(0.1)


def _furnish(cluster: Cluster) -> None:
    """Extensions, roles and the database, each when missing."""

    def connect(database: str) -> psycopg.Connection:
        return psycopg.connect(url(cluster.home, SUPERUSER, database), autocommit=True)

    with connect("template1") as template:
        for extension in EXTENSIONS:
            template.execute(f"CREATE EXTENSION IF NOT EXISTS {extension}")
    with connect(SUPERUSER) as connection:
        for role, rights in ((OWNER, "CREATEDB"), (APP, "NOCREATEDB")):
            if not _found(connection, "SELECT 1 FROM pg_roles WHERE rolname = %s", role):
                connection.execute(f"CREATE ROLE {role} LOGIN NOSUPERUSER NOCREATEROLE {rights}")
        if not _found(connection, "SELECT 1 FROM pg_database WHERE datname = %s", DATABASE):
            connection.execute(f"CREATE DATABASE {DATABASE} OWNER {OWNER}")


def _found(connection: psycopg.Connection, query: str, name: str) -> bool:
    return connection.execute(query.encode(), (name,)).fetchone() is not None
