"""What the benchmarks stand on: a throwaway database, the real web server, and a table of ratios.

Absolute times are the machine's; a ratio to the floor of the same run is the product's.
"""

from __future__ import annotations

import os
import socket
import statistics
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import django

ROOT = Path(__file__).resolve().parents[2]

#: Threads of the web server, as `up` starts it.
WEB_THREADS = 8

#: Seconds until the web server must answer.
READY_SECONDS_MAX = 60


@contextmanager
def database() -> Iterator[str]:
    """A clone of the migrated database, Django connected to it; dropped afterwards. Its address."""
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
    django.setup()
    from tests import cluster

    name = cluster.clone(cluster.template())
    try:
        with cluster.using(name):
            yield cluster.address(name)
    finally:
        cluster.drop(name)


@contextmanager
def server(address: str) -> Iterator[str]:
    """The web server as `up` runs it, on this database. Its URL."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {
        **os.environ,
        "ARGUS_DATABASE_URL": address,
        "ARGUS_LOG_LEVEL": "ERROR",
        "DJANGO_SETTINGS_MODULE": "argus.settings",
    }
    command = [
        sys.executable, "-m", "gunicorn", "argus.wsgi:application", "--bind", f"127.0.0.1:{port}",
        "--workers", "1", "--threads", str(WEB_THREADS), "--log-level", "error",
    ]  # fmt: skip
    process = subprocess.Popen(command, cwd=ROOT, env=environment)
    try:
        url = f"http://127.0.0.1:{port}"
        _await(url)
        yield url
    finally:
        process.terminate()
        process.wait(timeout=30)


def _await(url: str) -> None:
    deadline = time.monotonic() + READY_SECONDS_MAX
    while time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(f"{url}/healthz", timeout=5):
                return
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            time.sleep(0.2)
    raise SystemExit("the web server does not answer")


def milliseconds(work: Callable[..., object], *args: object) -> float:
    """How long `work(*args)` takes."""
    started = time.perf_counter()
    work(*args)
    return (time.perf_counter() - started) * 1000


def spread(times: Sequence[float]) -> tuple[float, float]:
    """(p50, p95)."""
    ordered = sorted(times)
    return statistics.median(ordered), ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))]


def table(title: str, rows: Mapping[str, Sequence[float]], *, floor: str, items: int = 0) -> None:
    """Print p50 and p95 of each row in ms, and its ratio to the floor's p50."""
    base = spread(rows[floor])[0]
    print(f"\n{title}\n{'':<34} {'p50 ms':>9} {'p95 ms':>9} {'x floor':>8}", end="")
    print(f" {'items/s':>9} {'of floor':>8}" if items else "")
    for name, times in rows.items():
        p50, p95 = spread(times)
        print(f"{name:<34} {p50:9.2f} {p95:9.2f} {p50 / base:8.2f}", end="")
        print(f" {items / p50 * 1000:9.0f} {base / p50:8.2f}" if items else "")
