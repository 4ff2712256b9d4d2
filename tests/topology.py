"""The web server, two clusters of workers and people who use them, as processes on one machine.

Knows nothing about what the databases go through meanwhile.
"""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from argus import up
from tests.ports import free_port
from tests.standby import until

ROOT = Path(__file__).resolve().parent.parent

#: How long a person tries one thing again, and how long anybody waits for a process.
TRY_SECONDS_MAX = 30

#: Between two things that one person does; two cores serve all of them.
PAUSE_SECONDS = 0.05


@dataclass
class Caller(threading.Thread):
    """One client: captures a turn, recalls, and again, until it is told to stop.

    `acknowledged` are the bodies whose capture was answered with 200; `refused` each answer that
    was not, as (status, Retry-After). What is refused is tried again.
    """

    number: int
    url: str
    key: str
    acknowledged: list[str] = field(default_factory=list)
    recalls: int = 0
    refused: list[tuple[int, str | None]] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        super().__init__(daemon=True)

    # A thread is its own, whatever it holds.
    __hash__ = threading.Thread.__hash__

    def run(self) -> None:
        while not self.over.is_set():
            body = f"Client {self.number} says that step {len(self.acknowledged)} is done."
            turn = {
                "source": "claude-code", "role": "user", "session": f"load {self.number}",
                "cwd": "/src/shop", "body": body, "original_timestamp": "2026-05-04T10:00:00Z",
            }  # fmt: skip
            if self._until_answered("/capture", turn):
                self.acknowledged.append(body)
            if self._until_answered("/recall/notes", {"query": "Which port does staging use?"}):
                self.recalls += 1
            time.sleep(PAUSE_SECONDS)

    def _until_answered(self, path: str, data: Any) -> bool:
        deadline = time.monotonic() + TRY_SECONDS_MAX
        while time.monotonic() < deadline:
            status, wait = post(self.url + path, self.key, data)
            if status < 300:
                return True
            self.refused.append((status, wait))
            time.sleep(0.2)
        self.lost.append(path)
        return False


def post(url: str, key: str, data: Any) -> tuple[int, str | None]:
    """Status and Retry-After of an answer; status 0 when there was none."""
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    request = urllib.request.Request(url, json.dumps(data).encode(), headers)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=TRY_SECONDS_MAX) as answer:
            answer.read()
            return answer.status, None
    except urllib.error.HTTPError as error:
        return error.code, error.headers.get("Retry-After")
    except OSError:
        return 0, None


@contextmanager
def machines(environment: dict[str, str], folder: Path, *, clusters: int) -> Iterator[str]:
    """A web server and so many clusters of workers, as `up` starts them. The server's URL."""
    port = free_port()
    environment = {
        **os.environ,
        **environment,
        "ARGUS_URL": f"http://127.0.0.1:{port}",
        "ARGUS_HOME": str(folder),
        "ARGUS_WORKERS": "1",
        "DJANGO_SETTINGS_MODULE": "argus.settings",
    }
    commands = {"web": up._web("127.0.0.1", port)}
    commands |= {f"worker {n}": up._worker() for n in range(clusters)}
    with ExitStack() as stack:
        children = []
        for name, command in commands.items():
            log = stack.enter_context((folder / f"{name}.log").open("wb"))
            children.append(
                subprocess.Popen(
                    command, cwd=ROOT, env=environment, stdout=log, stderr=subprocess.STDOUT
                )
            )
        try:
            until(lambda: post(f"http://127.0.0.1:{port}/healthz", "", {})[0], "no web server")
            yield f"http://127.0.0.1:{port}"
            assert [child.poll() for child in children] == [None] * len(children)
        finally:
            for child in children:
                child.terminate()
            for child in children:
                child.wait(TRY_SECONDS_MAX)
            # Seen where something fails.
            for name in commands:
                print(f"--- {name}", (folder / f"{name}.log").read_text()[-4000:], sep="\n")


@contextmanager
def load(url: str, key: str, *, callers: int) -> Iterator[list[Caller]]:
    """So many clients at work inside."""
    people = [Caller(number, url, key) for number in range(callers)]
    for one in people:
        one.start()
    try:
        yield people
    finally:
        for one in people:
            one.over.set()
        for one in people:
            one.join(2 * TRY_SECONDS_MAX)
