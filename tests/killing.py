"""A house of a test's own, as `up` runs it: people who use it, and what in it can be killed.

Knows nothing about what must hold afterwards.
"""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psutil
from django.conf import settings as configured
from django.db import OperationalError, connection, connections
from django.test import override_settings
from django_q.brokers import get_broker
from django_q.models import OrmQ
from django_q.tasks import async_task
from psycopg.conninfo import conninfo_to_dict

from argus import postgres
from memory.llm.remote.embed import shared
from memory.llm.remote.structured import forget_dialects
from tests.cluster import discard, into_memory
from tests.ports import free_port
from tests.standby import until
from tests.topology import ROOT, post

#: What is killed, in this order by seed.
VICTIMS = ("worker", "web", "postgres")

#: What of the command line tells which child of `up` it is.
WORDS = {"worker": "qcluster", "web": "gunicorn"}

#: How long anything may take to be back, starting PostgreSQL and its recovery included.
SECONDS_MAX = 90

#: Deaths of a child of `up` after which another `up` is begun: it waits longer after each.
DEATHS_MAX = 2

#: Turns of one session; the last of them says that it is over.
TURNS = 3

#: Between two posts of a person; two cores serve all of them.
PAUSE_SECONDS = (0.02, 0.2)

#: Tasks that wait for the worker.
TASKS_MAX = 2

#: Of these are words made that no other turn has.
SYLLABLES = ("ba", "de", "fi", "go", "lu", "ma", "ne", "pi", "ro", "su", "ta", "ve", "wi", "zo")


@dataclass
class House:
    """`up` and its server. `key` may do anything."""

    home: Path
    environment: dict[str, str]
    url: str
    key: str = ""
    log: Path = Path()
    process: subprocess.Popen[bytes] | None = None
    deaths: Counter[str] = field(default_factory=Counter)

    def rise(self) -> None:
        """Start `up`; it serves when this returns."""
        self.deaths.clear()
        self.log = self.home.parent / f"up-{time.monotonic_ns()}.log"
        with self.log.open("wb") as handle:
            self.process = subprocess.Popen(
                [sys.executable, "manage.py", "up"], cwd=ROOT, env=self.environment,
                stdout=handle, stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
        until(lambda: "Ctrl-C stops" in self.log.read_text(), "`up` does not serve", SECONDS_MAX)
        if found := re.search(r"^  key +(\S+)$", self.log.read_text(), re.MULTILINE):
            self.key = found[1]

    def fall(self) -> None:
        """Ctrl-C."""
        assert self.process is not None
        self.process.send_signal(signal.SIGINT)
        assert self.process.wait(SECONDS_MAX) == 0, self.log.read_text()

    def stands(self) -> None:
        """Be up, with restarts left to lose."""
        if self.process and max(self.deaths.values(), default=0) >= DEATHS_MAX:
            self.fall()
            self.process = None
        if self.process is None:
            self.rise()

    def family(self, victim: str) -> list[psutil.Process]:
        """The processes of one of VICTIMS, its head first."""
        if victim == "postgres":
            words = (postgres.folder(self.home) / "postmaster.pid").read_text().split()
            head = psutil.Process(int(words[0]))
        else:
            assert self.process is not None
            children = psutil.Process(self.process.pid).children()
            head = next(one for one in children if WORDS[victim] in " ".join(one.cmdline()))
        return [head, *sorted(head.children(recursive=True), key=lambda one: one.pid)]

    def kill(
        self, victim: str, by: random.Random, *, below: bool
    ) -> tuple[str, list[psutil.Process]]:
        """SIGKILL to the head, or to any process below it: which one it was, and who must be gone
        for that."""
        family = self.family(victim)
        if below:
            place = by.randrange(1, len(family))
            family[place].kill()
            # It ends as a whole; the web server puts another in the place of its one below.
            self.deaths[victim] += victim == "worker"
            return f"{place} of {len(family) - 1} below", [family[place]]
        family[0].kill()
        self.deaths[victim] += victim in WORDS
        return "head", family


@dataclass
class Person(threading.Thread):
    """Posts session after session, each turn until it is acknowledged with a 2xx."""

    number: int
    seed: int
    house: House
    acknowledged: list[str] = field(default_factory=list)
    refused: Counter[int] = field(default_factory=Counter)
    lost: list[str] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        super().__init__(daemon=True)
        self.by = random.Random(f"{self.seed}/{self.number}")

    # A thread is its own, whatever it holds.
    __hash__ = threading.Thread.__hash__

    def run(self) -> None:
        session = 0
        while not self.over.is_set():
            session += 1
            self._session(f"seed {self.seed}, person {self.number}, session {session}")

    def _session(self, name: str) -> None:
        """Of one to TURNS turns a post; a session that was begun is told to its end."""
        turns, said = [self._turn(name, n) for n in range(TURNS)], 0
        while said < TURNS:
            many = self.by.randint(1, TURNS - said)
            batch: dict[str, Any] = {"items": turns[said : said + many]}
            said += many
            if said == TURNS:
                batch["session_end"] = {"session": name, "reason": "exit"}
            bodies = [one["body"] for one in batch["items"]]
            (self.acknowledged if self._until_answered(batch) else self.lost).extend(bodies)
            time.sleep(self.by.uniform(*PAUSE_SECONDS))

    def _turn(self, session: str, number: int) -> dict[str, Any]:
        words = ["".join(self.by.choices(SYLLABLES, k=3)) for _ in range(10)]
        when = datetime.now(UTC) - timedelta(days=1, minutes=-number)
        return {
            "source": "claude-code", "role": ("user", "assistant")[number % 2],
            "session": session, "cwd": "/src/shop", "body": f"The {' '.join(words)} is ready.",
            "original_timestamp": when.isoformat(),
        }  # fmt: skip

    def _until_answered(self, batch: dict[str, Any]) -> bool:
        deadline = time.monotonic() + SECONDS_MAX
        while time.monotonic() < deadline:
            status, _ = post(f"{self.house.url}/capture", self.house.key, batch)
            if 200 <= status < 300:
                return True
            self.refused[status] += 1
            time.sleep(0.1)
        return False


class Starter(threading.Thread):
    """Has the pipeline run all the time, in the web server and in the worker."""

    def __init__(self, house: House) -> None:
        super().__init__(daemon=True)
        self.house, self.over = house, threading.Event()

    def run(self) -> None:
        while not self.over.is_set():
            try:
                # The worker has one in hand and one before it, and no backlog of them.
                if OrmQ.objects.count() < TASKS_MAX:
                    async_task("memory.tasks.run_process", broker=get_broker())
            except OperationalError:
                connection.close()
            post(f"{self.house.url}/process", self.house.key, {})
        connection.close()


@contextmanager
def busy(house: House, seed: int, *, people: int) -> Iterator[list[Person]]:
    """So many people at work inside, and the pipeline behind them."""
    crew: Sequence[Person] = [Person(number, seed, house) for number in range(people)]
    starter = Starter(house)
    for one in (*crew, starter):
        one.start()
    try:
        yield list(crew)
    finally:
        for over in (starter.over, *(one.over for one in crew)):
            over.set()
        for one in (*crew, starter):
            one.join(SECONDS_MAX)


@contextmanager
def living(folder: Path, model: str) -> Iterator[House]:
    """A house in this folder; Django of this process is connected to it. `model` is the URL of a
    scripted one, which distills, judges and embeds."""
    address = f"127.0.0.1:{free_port()}"
    told = {"model_url": model, "model": "scripted", "embedder": "url", "embed_url": model}
    told |= {"embed_model": "scripted-embed"}
    environment = {
        **os.environ,
        **{f"ARGUS_{name.upper()}": value for name, value in told.items()},
        "ARGUS_HOME": str(folder / "home"),
        "ARGUS_BIND": address,
        "ARGUS_URL": f"http://{address}",
        "ARGUS_WORKERS": "1",
        # What waits in the queue is signed with it.
        "ARGUS_SECRET_KEY": configured.SECRET_KEY,
        "DJANGO_SETTINGS_MODULE": "argus.settings",
    }
    house = House(folder / "home", environment, f"http://{address}")
    into_memory(house.home)
    forget_dialects()
    shared.cache_clear()
    try:
        with _pointed(house), override_settings(ARGUS=configured.ARGUS.model_copy(update=told)):
            yield house
    finally:
        if house.process is not None:
            house.process.send_signal(signal.SIGINT)
            house.process.wait(SECONDS_MAX)
            # Seen where something fails.
            print(f"--- {house.log.name}", house.log.read_text()[-6000:], sep="\n")
        discard(house.home)


@contextmanager
def _pointed(house: House) -> Iterator[None]:
    """The default connection, of every thread of this process, is to this house inside."""
    default = connections.settings["default"]
    before = {name: default[name] for name in ("HOST", "NAME", "ARGUS_HOME")}
    assert not connection.in_atomic_block
    host = conninfo_to_dict(postgres.url(house.home))["host"]
    inside = {"HOST": host, "NAME": postgres.DATABASE, "ARGUS_HOME": str(house.home)}
    connection.close()
    default.update(inside)
    connection.settings_dict.update(inside)
    try:
        yield
    finally:
        connection.close()
        default.update(before)
        connection.settings_dict.update(before)
