"""Everything in one foreground process: database, migrations, first user, web server, worker.

Knows nothing about what the web server and the worker do; it starts, watches and stops them.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.db import connections, transaction

from argus import postgres, schedules
from memory import access
from memory.errors import ConfigurationError, InfraError
from memory.models import AccessKey, Principal

#: The first user's name.
ADMIN = "admin"

#: Requests served at a time; one process, so that the embedder is loaded once.
WEB_THREADS = 8

#: How long a child may take to finish what it has begun.
STOP_SECONDS_MAX = 30

#: How long until the web server must answer.
READY_SECONDS_MAX = 60

#: A child that ended is started again, so often; beyond that something is wrong.
RESTARTS_MAX = 5

#: How often the children are looked at.
WATCH_SECONDS = 0.2

#: Linux's number for "send me a signal when my parent dies".
PR_SET_PDEATHSIG = 1


@dataclass(frozen=True)
class Welcome:
    """What is printed once: a password or key of None existed before and is not known to us."""

    url: str
    name: str
    password: str | None
    key: str | None


@dataclass
class Child:
    """A process that should be there."""

    name: str
    command: list[str]
    process: subprocess.Popen[bytes] | None = None
    restarts: int = 0

    def start(self) -> None:
        self.process = subprocess.Popen(
            self.command,
            cwd=settings.BASE_DIR,
            stdin=subprocess.DEVNULL,
            # Why a session of its own: Ctrl-C reaches us alone, and we stop them in order.
            start_new_session=True,
            preexec_fn=_end_with_parent() if sys.platform == "linux" else None,
        )

    def ended(self) -> int | None:
        return self.process.poll() if self.process else None

    def clear(self) -> None:
        """End what it left behind when it ended: a killed worker's own workers would go on for
        ever, taking tasks and starting each other again. What they hold is freed by the next run.
        """
        # Why also the second: macOS says that of a group of which only the dead are left.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if self.process:
                os.killpg(self.process.pid, signal.SIGKILL)


@dataclass
class Stop:
    """Whether somebody asked us to stop."""

    asked: bool = field(default=False)

    def __call__(self, number: int, frame: FrameType | None) -> None:
        self.asked = True


def up(say: Callable[[str], None]) -> int:
    """Serve until told to stop (SIGINT, SIGTERM, SIGHUP). Returns the exit code."""
    host, port = _free_address()
    with _told_to_stop() as stop:
        if settings.ARGUS.embedded:
            postgres.start(settings.ARGUS.home)
        call_command("migrate", verbosity=0)
        schedules.sync()
        welcome = first()
        # Why: our own connection would keep the server from being idle.
        connections.close_all()
        children = [Child("web server", _web(host, port)), Child("worker", _worker())]
        try:
            for child in children:
                child.start()
            _wait(host, port, children, stop)
            if not stop.asked:
                _greet(welcome, say)
            return _watch(children, stop, say)
        finally:
            _end(children)
            if settings.ARGUS.embedded:
                stopped = postgres.stop(settings.ARGUS.home, idle_only=True)
                say(f"Stopped{'' if stopped else '; others still use the database'}.")


@transaction.atomic
def first() -> Welcome:
    """The first user, the principal that commands act for, and a key; each when missing."""
    password = key = None
    users = get_user_model()
    user = users.objects.filter(is_superuser=True).order_by("pk").first()
    if user is None:
        password = secrets.token_urlsafe(12)
        user = users.objects.create_superuser(ADMIN, password=password)
    principal = access.principal()
    if principal.user_id is None and not Principal.objects.filter(user=user).exists():
        principal.user = user
        principal.save(update_fields=["user"])
    if not AccessKey.objects.filter(principal=principal, revoked_at=None).exists():
        key, _ = access.create_key(owner=principal.name, scopes=access.SCOPES, name="up")
    return Welcome(settings.ARGUS.url, user.get_username(), password, key)


def _free_address() -> tuple[str, int]:
    host, _, port = settings.ARGUS.bind.rpartition(":")
    host = host.strip("[]")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, int(port), type=socket.SOCK_STREAM
        )[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        raise ConfigurationError(
            f"Argus cannot listen at {settings.ARGUS.bind} ({error.strerror or error}): is it up "
            "already? Else set ARGUS_BIND and ARGUS_URL to another port."
        ) from None
    return host, int(port)


def _web(host: str, port: int) -> list[str]:
    bind = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    return [
        *(sys.executable, "-m", "gunicorn", "argus.wsgi:application", "--bind", bind),
        *("--worker-class", "gthread", "--workers", "1", "--threads", str(WEB_THREADS)),
        *("--log-level", "warning", "--no-control-socket", "--graceful-timeout", "10"),
    ]


def _worker() -> list[str]:
    return [sys.executable, str(Path(settings.BASE_DIR) / "manage.py"), "qcluster"]


@contextlib.contextmanager
def _told_to_stop() -> Iterator[Stop]:
    stop = Stop()
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, stop) for number in numbers}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _wait(host: str, port: int, children: list[Child], stop: Stop) -> None:
    where = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    where = f"[{where}]" if ":" in where else where
    request = urllib.request.Request(
        f"http://{where}:{port}/healthz", headers={"Host": "localhost"}
    )
    # Why no proxy: the environment's would be asked for an address of this machine.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    deadline = time.monotonic() + READY_SECONDS_MAX
    while not stop.asked:
        try:
            with opener.open(request, timeout=5):
                return
        except (urllib.error.URLError, OSError):
            if time.monotonic() > deadline or children[0].ended() is not None:
                raise InfraError("The web server does not answer; see its messages.") from None
            time.sleep(WATCH_SECONDS)


def _greet(welcome: Welcome, say: Callable[[str], None]) -> None:
    say(f"Argus is up: {welcome.url}/ui/")
    say(f"  name      {welcome.name}")
    password = welcome.password or "as set before (change it: manage.py changepassword)"
    say(f"  password  {password}")
    say(f"  key       {welcome.key or 'as made before (another: manage.py createkey)'}")
    say(f"  hooks     see {welcome.url}/hook/")
    if once := [name for name in ("password", "key") if getattr(welcome, name)]:
        say(f"The {' and the '.join(once)} {'is' if len(once) == 1 else 'are'} shown this once.")
    say("Ctrl-C stops the web server, the worker and the database.")


def _watch(children: list[Child], stop: Stop, say: Callable[[str], None]) -> int:
    while not stop.asked:
        for child in children:
            code = child.ended()
            if code is None:
                continue
            if child.restarts == RESTARTS_MAX:
                say(f"The {child.name} ended {RESTARTS_MAX + 1} times; giving up.")
                return 1
            child.restarts += 1
            child.clear()
            say(f"The {child.name} ended ({code}); starting it again.")
            time.sleep(child.restarts)
            child.start()
        time.sleep(WATCH_SECONDS)
    return 0


def _end_with_parent() -> Callable[[], None]:
    """Called in the child: Linux ends it when we die, also by kill -9, which we cannot catch."""
    library = ctypes.CDLL(None)
    return lambda: library.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def _end(children: list[Child]) -> None:
    running = [child.process for child in children if child.process and child.ended() is None]
    for process in running:
        process.terminate()
    deadline = time.monotonic() + STOP_SECONDS_MAX
    for process in running:
        try:
            process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    for child in children:
        child.clear()
