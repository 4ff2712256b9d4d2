"""`up` as a newcomer runs it: real processes, a real server of its own, a real Ctrl-C."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from django.contrib.auth.models import User

from argus import postgres
from argus.up import Welcome, _greet, first
from memory.models import Principal
from tests import cluster
from tests.ports import free_port


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Of one home: the first test that starts it finds it new."""
    home = tmp_path_factory.mktemp("up") / "home"
    address = f"127.0.0.1:{free_port()}"
    cluster.into_memory(home)
    yield {
        **os.environ,
        "ARGUS_HOME": str(home),
        "ARGUS_BIND": address,
        "ARGUS_URL": f"http://{address}",
        "ARGUS_WORKERS": "1",
        "DJANGO_SETTINGS_MODULE": "argus.settings",
    }
    cluster.discard(home)


def _up(environment: dict[str, str], log: Path) -> subprocess.Popen[bytes]:
    with log.open("wb") as handle:
        process = subprocess.Popen(
            [sys.executable, "manage.py", "up"],
            env=environment,
            stdout=handle,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    deadline = time.monotonic() + 90
    while b"Ctrl-C stops" not in log.read_bytes():
        assert process.poll() is None and time.monotonic() < deadline, log.read_text()
        time.sleep(0.1)
    return process


def test_it_serves_and_ctrl_c_stops_all_of_it(environment: dict[str, str], tmp_path: Path) -> None:
    process = _up(environment, tmp_path / "log")
    family = psutil.Process(process.pid).children(recursive=True)
    said = (tmp_path / "log").read_text()
    assert re.search(r"password  \S{12,}\n", said)
    assert f"see {environment['ARGUS_URL']}/hook/\n" in said
    with urllib.request.urlopen(f"{environment['ARGUS_URL']}/readyz", timeout=10) as answer:
        assert answer.status == 200
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 0, (tmp_path / "log").read_text()
    psutil.wait_procs(family, timeout=10)
    assert [child for child in family if child.is_running()] == []
    assert not postgres.connected(Path(environment["ARGUS_HOME"]))
    assert "Traceback" not in (tmp_path / "log").read_text()


def test_it_starts_a_dead_child_again_and_leaves_none_behind_when_killed(
    environment: dict[str, str], tmp_path: Path
) -> None:
    process = _up(environment, tmp_path / "log")
    psutil.Process(process.pid).children()[0].kill()
    deadline = time.monotonic() + 30
    while "starting it again" not in (tmp_path / "log").read_text():
        assert time.monotonic() < deadline, "a dead child was not noticed"
        time.sleep(0.1)
    process.terminate()
    assert process.wait(60) == 0

    process = _up(environment, tmp_path / "second")
    assert "as set before" in (tmp_path / "second").read_text()
    children = psutil.Process(process.pid).children()
    process.kill()
    process.wait()
    if sys.platform == "linux":
        _, alive = psutil.wait_procs(children, timeout=30)
        assert alive == []
    for child in children:
        if child.is_running():
            child.terminate()


def test_it_says_when_the_address_is_taken(environment: dict[str, str]) -> None:
    with socket.create_server(("127.0.0.1", free_port())) as taken:
        host, port = taken.getsockname()
        answer = subprocess.run(
            [sys.executable, "manage.py", "up"],
            env={**environment, "ARGUS_BIND": f"{host}:{port}"},
            capture_output=True,
            text=True,
        )
    assert answer.returncode == 2
    assert "is it up already?" in answer.stderr


@pytest.mark.parametrize(
    ("password", "key", "said"),
    [
        ("p", "k", ["The password and the key are shown this once."]),
        ("p", None, ["The password is shown this once."]),
        (None, "k", ["The key is shown this once."]),
        (None, None, []),
    ],
)
def test_it_names_what_is_shown_once(
    password: str | None, key: str | None, said: list[str]
) -> None:
    lines: list[str] = []
    _greet(Welcome(url="http://localhost", name="admin", password=password, key=key), lines.append)
    assert [line for line in lines if "this once" in line] == said


@pytest.mark.django_db
def test_it_makes_the_first_user_and_principal_once() -> None:
    made = first()
    assert made.name == "admin"
    assert User.objects.get(username="admin").check_password(made.password)
    assert Principal.objects.get(name="me").user == User.objects.get()
    again = first()
    assert (again.password, User.objects.count(), Principal.objects.count()) == (None, 1, 1)
