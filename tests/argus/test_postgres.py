"""The embedded server: had by whoever asks, shared, and back after whatever death."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import psutil
import psycopg
import pytest
from django.core.management import CommandError, call_command

from argus import postgres
from argus.binaries import ClusterError, roads

START = "import sys; from pathlib import Path; from argus import postgres; "
START += "postgres.start(Path(sys.argv[1])); "


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A home with a server of its own, gone afterwards."""
    yield tmp_path / "home"
    postgres.stop(tmp_path / "home")
    cluster = postgres.place(tmp_path / "home")
    for folder in (cluster.root, cluster.run):
        shutil.rmtree(folder, ignore_errors=True)


def _pid(home: Path) -> int:
    return int((postgres.place(home).data / "postmaster.pid").read_text().split()[0])


def _ask(home: Path, query: str, role: str = postgres.APP) -> object:
    with psycopg.connect(postgres.url(home, role), autocommit=True) as connection:
        cursor = connection.execute(query.encode())
        row = cursor.fetchone() if cursor.description else None
        return row[0] if row else None


def _gone(pid: int) -> None:
    deadline = time.monotonic() + 20
    while psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < deadline, f"process {pid} does not end"
        time.sleep(0.05)


def test_it_starts_once_and_is_shared(home: Path) -> None:
    first = postgres.start(home)
    pid = _pid(home)
    assert postgres.start(home) == first
    assert _pid(home) == pid
    assert _ask(home, "SELECT current_user") == "argus_app"
    assert _ask(home, "SELECT '[1,2]'::halfvec(2)::text") == "[1,2]"


def test_down_stops_it_under_nobody_but_by_force(home: Path, settings, capsys) -> None:
    settings.ARGUS = settings.ARGUS.model_copy(update={"home": home, "database_url": None})
    postgres.start(home)
    pid = _pid(home)
    with psycopg.connect(postgres.url(home, postgres.APP)):
        with pytest.raises(CommandError, match="1 open connection: end `manage.py up`"):
            call_command("down")
        assert _pid(home) == pid
    call_command("down")
    assert "Stopped" in capsys.readouterr().out
    call_command("down")
    assert "was not running" in capsys.readouterr().out
    postgres.start(home)
    with psycopg.connect(postgres.url(home, postgres.APP)):
        call_command("down", "--force")
    assert "Stopped" in capsys.readouterr().out


def test_it_gives_the_application_no_power(home: Path) -> None:
    postgres.start(home)
    for role in (postgres.APP, postgres.OWNER):
        assert _ask(home, "SELECT rolsuper FROM pg_roles WHERE rolname = user", role) is False
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        _ask(home, "CREATE TABLE mine (n int)")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        _ask(home, "SET session_replication_role = replica")
    _ask(home, "CREATE TABLE ours (n int)", postgres.OWNER)
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        _ask(home, "DROP TABLE ours")


def test_it_listens_on_a_socket_in_a_closed_folder_only(home: Path) -> None:
    cluster = postgres.start(home)
    assert stat.S_IMODE(cluster.run.stat().st_mode) == 0o700
    assert stat.S_IMODE(cluster.data.stat().st_mode) == 0o700
    assert _ask(home, "SHOW listen_addresses") == ""
    assert not [c for c in psutil.Process(_pid(home)).net_connections("inet") if c.laddr]


def test_it_survives_the_kill_of_whoever_started_it(home: Path) -> None:
    dying = START + "import os, signal; os.killpg(0, signal.SIGKILL)"
    starter = subprocess.run(
        [sys.executable, "-c", dying, str(home)], start_new_session=True, check=False
    )
    assert starter.returncode == -signal.SIGKILL
    pid = _pid(home)
    assert _ask(home, "SELECT 1") == 1
    postgres.start(home)
    assert _pid(home) == pid


def test_it_comes_back_after_its_own_kill_with_all_that_was_committed(home: Path) -> None:
    postgres.start(home)
    _ask(home, "CREATE TABLE kept AS SELECT 42 AS n", postgres.OWNER)
    pid = _pid(home)
    os.kill(pid, signal.SIGKILL)
    postgres.start(home)
    assert _pid(home) != pid
    assert _ask(home, "SELECT n FROM kept", postgres.OWNER) == 42


@pytest.mark.parametrize("ghost", ["zombie", "stranger"])
def test_it_is_not_fooled_by_a_process_id_that_lives_on(home: Path, ghost: str) -> None:
    cluster = postgres.start(home)
    lock = (cluster.data / "postmaster.pid").read_text()
    pid = _pid(home)
    os.kill(pid, signal.SIGKILL)
    _gone(pid)
    program = "pass" if ghost == "zombie" else "import time; time.sleep(60)"
    other = subprocess.Popen([sys.executable, "-c", program])
    try:
        if ghost == "zombie":
            while psutil.Process(other.pid).status() != psutil.STATUS_ZOMBIE:
                time.sleep(0.02)
        for path in (cluster.data / "postmaster.pid", cluster.run / f"{postgres.SOCKET}.lock"):
            path.write_text(lock.replace(str(pid), str(other.pid), 1))
        postgres.start(home)
        assert _ask(home, "SELECT 1") == 1
    finally:
        other.kill()
        other.wait()


def test_it_waits_for_the_backends_of_a_killed_server(home: Path) -> None:
    """Two servers on one directory would destroy it."""
    postgres.start(home)
    with psycopg.connect(postgres.url(home)) as connection:
        backend = psutil.Process(connection.info.backend_pid)
        backend.suspend()
        os.kill(_pid(home), signal.SIGKILL)
        starter = subprocess.Popen([sys.executable, "-c", START, str(home)])
        time.sleep(1)
        assert starter.poll() is None, "it started beside a backend of the old server"
        backend.resume()
        assert starter.wait(60) == 0
    assert _ask(home, "SELECT 1") == 1


def test_it_starts_one_server_for_four_who_ask_at_once(home: Path) -> None:
    program = START + "print((postgres.place(Path(sys.argv[1])).data / 'postmaster.pid')"
    program += ".read_text().split()[0])"
    command = [sys.executable, "-c", program, str(home)]
    askers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    answers = {asker.communicate(timeout=120)[0].strip() for asker in askers}
    assert answers == {str(_pid(home))}


def test_it_refuses_the_data_of_another_major_version(home: Path) -> None:
    cluster = postgres.start(home)
    postgres.stop(home)
    marker = cluster.data / "PG_VERSION"
    mine = marker.read_text()
    marker.write_text("17\n")
    with pytest.raises(ClusterError, match="of PostgreSQL 17 and this Argus brings .*pg_dumpall"):
        postgres.start(home)
    marker.write_text(mine)


def test_it_starts_again_after_a_creation_that_was_cut_short(home: Path) -> None:
    root = postgres.place(home).root
    (root / "data.new").mkdir(parents=True)
    (root / "data.new" / "PG_VERSION").write_text("18\n")
    postgres.start(home)
    assert _ask(home, "SELECT 1") == 1


def test_it_stops_only_when_told_and_when_asked_to_be_polite_only_when_idle(home: Path) -> None:
    postgres.start(home)
    with psycopg.connect(postgres.url(home)):
        assert postgres.connected(home) == 1
        assert not postgres.stop(home, idle_only=True)
    deadline = time.monotonic() + 10
    while postgres.connected(home) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert postgres.stop(home, idle_only=True)
    assert not postgres.stop(home)


@pytest.mark.parametrize(
    "command",
    [
        ("shell", "-v0", "-c", "from django.db import connection as c; c.ensure_connection();"
         " print('there')"),
        ("dbshell", "--", "-Atc", "SELECT 'there'"),
    ],
    ids=["shell", "dbshell"],
)  # fmt: skip
def test_it_is_started_by_any_command_that_needs_it(home: Path, command: tuple[str, ...]) -> None:
    environment = {
        **os.environ,
        "ARGUS_HOME": str(home),
        "DJANGO_SETTINGS_MODULE": "argus.settings",
    }
    answer = subprocess.run(
        [sys.executable, "manage.py", *command], env=environment, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert answer.stdout.strip() == "there", answer.stderr
    assert _ask(home, "SELECT 1") == 1


def test_it_keeps_the_socket_path_short_whatever_the_home() -> None:
    deep = Path("/home") / ("a" * 90) / ("b" * 90)
    folder = parse_qs(urlsplit(postgres.url(deep)).query)["host"][0]
    assert len(f"{folder}/{postgres.SOCKET}.lock") <= postgres.SOCKET_PATH_BYTES_MAX


def test_it_does_not_open_a_closed_folder_for_its_account(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    with pytest.raises(ClusterError, match="cannot pass .* closed to others"):
        roads(closed / "inside")
    assert stat.S_IMODE(closed.stat().st_mode) == 0o700
