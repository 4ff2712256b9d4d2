"""What the benchmarks stand on: a throwaway database, the real web server, and a table of ratios.

Absolute times are the machine's; a ratio to the floor of the same run is the product's.
"""

from __future__ import annotations

import http.client
import os
import statistics
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Generic, TypeVar, cast
from urllib.parse import urlsplit

import django

from tests.ports import free_port

T = TypeVar("T")

#: Does something with each of these, its clients side by side; the milliseconds of each.
Crowd = Callable[[Callable[[Any], object], Sequence[Any]], list[float]]

ROOT = Path(__file__).resolve().parents[2]

#: Threads of the web server, as `up` starts it.
WEB_THREADS = 8

#: Seconds until the web server must answer.
READY_SECONDS_MAX = 60

#: Seconds after which a connection is not used again.
# Why: the web server closes one that was idle for two.
IDLE_SECONDS_MAX = 1.0

#: Times from which a p99 is more than their maximum.
P99_TIMES_MIN = 100


@contextmanager
def database() -> Iterator[str]:
    """A clone of the migrated database, Django connected to it; dropped afterwards. Its address."""
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
    os.environ["TESTS_ASKED_BY"] = "bench"
    django.setup()
    from tests import cluster

    cluster.join()
    name = cluster.clone(cluster.template())
    try:
        with cluster.using(name):
            yield cluster.address(name)
    finally:
        cluster.drop(name)


@contextmanager
def server(address: str, *, settings: str = "argus.settings") -> Iterator[str]:
    """The web server as `up` runs it, on this database, by these settings. Its URL."""
    port = free_port()
    command = [
        sys.executable, "-m", "gunicorn", "argus.wsgi:application", "--bind", f"127.0.0.1:{port}",
        "--workers", "1", "--threads", str(WEB_THREADS), "--log-level", "error",
    ]  # fmt: skip
    process = subprocess.Popen(command, cwd=ROOT, env=environment(address, settings))
    try:
        url = f"http://127.0.0.1:{port}"
        _await(url)
        yield url
    finally:
        process.terminate()
        process.wait(timeout=30)


def environment(address: str, settings: str) -> dict[str, str]:
    """What a process of Argus is told that runs on this database by these settings."""
    return {
        **os.environ,
        "ARGUS_DATABASE_URL": address,
        "ARGUS_LOG_LEVEL": "ERROR",
        "DJANGO_SETTINGS_MODULE": settings,
    }


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


class Web:
    """One client of a web server, its connection kept open as long as the server keeps it."""

    def __init__(self, url: str, key: str = "") -> None:
        self._link = http.client.HTTPConnection(urlsplit(url).netloc)
        self._headers = {"Content-Type": "application/json"}
        if key:
            self._headers["Authorization"] = f"Bearer {key}"
        self._used = time.monotonic()

    def ask(self, method: str, path: str, body: str | None = None) -> bytes:
        """What the server answers."""
        if time.monotonic() - self._used > IDLE_SECONDS_MAX:
            self._link.close()  # Opened anew by the request.
        self._link.request(method, path, body, self._headers)
        answer = self._link.getresponse().read()
        self._used = time.monotonic()
        return answer


class Each(Generic[T]):
    """One of something for each thread, made when it first asks."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._kept = threading.local()

    def __call__(self) -> T:
        if not hasattr(self._kept, "one"):
            self._kept.one = self._make()
        return cast(T, self._kept.one)


@contextmanager
def crowd(clients: int) -> Iterator[Crowd]:
    """So many clients, each of whom does one thing after the other."""
    with ThreadPoolExecutor(clients) as pool:

        def at_once(work: Callable[[T], object], given: Sequence[T]) -> list[float]:
            return list(pool.map(lambda one: milliseconds(work, one), given))

        yield at_once


def quantile(times: Sequence[float], share: float) -> float:
    """The time that this share of them does not pass."""
    ordered = sorted(times)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def spread(times: Sequence[float]) -> tuple[float, float]:
    """(p50, p95)."""
    return statistics.median(times), quantile(times, 0.95)


def table(title: str, rows: Mapping[str, Sequence[float]], *, floor: str, items: int = 0) -> None:
    """Print p50 and p95 of each row in ms (p99, where there are enough), and its ratio to the
    floor's p50; with `items` in each, how many of them a second."""
    base = spread(rows[floor])[0]
    far = len(rows[floor]) >= P99_TIMES_MIN
    print(f"\n{title}\n{'':<34} {'p50 ms':>9} {'p95 ms':>9}", end="")
    print(f" {'p99 ms':>9}" if far else "", f"{'x floor':>8}", end="")
    print(f" {'items/s':>9} {'of floor':>8}" if items else "")
    for name, times in rows.items():
        p50, p95 = spread(times)
        print(f"{name:<34} {p50:9.2f} {p95:9.2f}", end="")
        print(f" {quantile(times, 0.99):9.2f}" if far else "", f"{p50 / base:8.2f}", end="")
        print(f" {items / p50 * 1000:9.0f} {base / p50:8.2f}" if items else "")
