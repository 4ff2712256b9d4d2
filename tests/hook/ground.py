"""What a client's hook meets: a home of its own, the real server, and a road on which things break.

The server is Argus itself behind real HTTP on a database of its own; the toll stands before it on
another port, and lets through, refuses, stalls or cuts as a test says. Nothing here is a stand-in
for our own code.
"""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from django.core.servers.basehttp import ThreadedWSGIServer, WSGIRequestHandler
from django.core.wsgi import get_wsgi_application

from argus.hook.bundle import SCRIPT

#: How long a test waits for what a detached child does.
PATIENCE_SECONDS = 30

#: Below this nothing hangs, however loaded the machine is; how fast it is, the bench says.
HANG_SECONDS = 15


@dataclass(frozen=True)
class Home:
    """A person's home with the client unpacked in it; hooks run in it as their clients run them."""

    path: Path

    @property
    def argus(self) -> Path:
        return self.path / ".argus"

    @property
    def script(self) -> Path:
        return self.argus / "lib" / SCRIPT

    def env(self, **values: str) -> None:
        """Write `~/.argus/env` as `install` does."""
        lines = [f"{name}={value}\n" for name, value in values.items()]
        (self.argus / "env").write_text("".join(lines))
        (self.argus / "env").chmod(0o600)

    def environment(self, extra: Mapping[str, str] | None = None) -> dict[str, str]:
        return {"HOME": str(self.path), "PATH": os.environ["PATH"], **(extra or {})}

    def run(
        self,
        *arguments: str,
        stdin: object = "",
        cwd: Path | None = None,
        extra: Mapping[str, str] | None = None,
        timeout: float = 60,
    ) -> subprocess.CompletedProcess[str]:
        """Run the client to its end. `stdin`: text, bytes, or an object that becomes JSON."""
        if not isinstance(stdin, (str, bytes)):
            stdin = json.dumps(stdin)
        raw = stdin if isinstance(stdin, bytes) else stdin.encode("utf-8", "surrogatepass")
        done = subprocess.run(
            [sys.executable, "-I", "-S", str(self.script), *arguments],
            input=raw,
            capture_output=True,
            cwd=cwd or self.path,
            env=self.environment(extra),
            timeout=timeout,
        )
        out, err = (text.decode("utf-8", "replace") for text in (done.stdout, done.stderr))
        return subprocess.CompletedProcess(done.args, done.returncode, out, err)


class _Quiet(WSGIRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def serve() -> Iterator[str]:
    """Argus behind real HTTP in this process; yields its address."""
    httpd = ThreadedWSGIServer(("127.0.0.1", 0), _Quiet)
    httpd.daemon_threads = True
    httpd.set_app(get_wsgi_application())
    thread = threading.Thread(target=httpd.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{httpd.server_address[1]}"
    finally:
        httpd.shutdown()
        httpd.server_close()
        thread.join(10)


@dataclass
class Toll:
    """A road to the server that can be spoiled while it is used.

    `mode` is one of: pass; status (answers `status` with a problem, and `headers`); html (200 and a
    page); slow (passes after `seconds`); hang (accepts, never answers); cut (half of the reply's
    body, then closes); lose (the server gets the request, the client no reply); off (nobody
    listens). `script` gives modes for the next requests, one each, before `mode` holds again.
    """

    server: str
    mode: str = "pass"
    status: int = 401
    seconds: float = 20.0
    headers: dict[str, str] = field(default_factory=dict)
    script: list[str] = field(default_factory=list)
    #: When set, only requests with one of these in their body meet the mode, all others pass.
    poison: tuple[bytes, ...] = ()
    #: Of each request: method, path, body.
    requests: list[tuple[str, str, bytes]] = field(default_factory=list)
    port: int = 0
    _httpd: ThreadingHTTPServer | None = None
    _over: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def open(self) -> None:
        """Listen: on a port of its own the first time, on the same one afterwards."""
        toll = self

        class Handler(_TollHandler):
            road = toll

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128

            def handle_error(self, request: Any, client_address: Any) -> None:
                if not isinstance(sys.exc_info()[1], OSError):
                    super().handle_error(request, client_address)

        self._over.clear()
        self._httpd = Server(("127.0.0.1", self.port), Handler)
        self.port = self._httpd.server_address[1]
        threading.Thread(target=self._httpd.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        """Nobody listens any more."""
        self._over.set()
        if self._httpd:
            self._httpd.shutdown()
            self._httpd.server_close()
            self._httpd = None

    def posted(self, path: str = "/capture") -> list[Any]:
        """The JSON bodies that were sent to this path, in order."""
        return [json.loads(body) for _, at, body in self.requests if at.split("?")[0] == path]

    def next_mode(self) -> str:
        with self._lock:
            return self.script.pop(0) if self.script else self.mode


class _TollHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    road: Toll

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def handle_one_request(self) -> None:
        super().handle_one_request()
        self.close_connection = True

    def do_GET(self) -> None:
        self._take()

    def do_POST(self) -> None:
        self._take()

    def do_DELETE(self) -> None:
        self._take()

    def _take(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        road = self.road
        mode = road.next_mode()
        if road.poison and not any(one in body for one in road.poison):
            mode = "pass"
        road.requests.append((self.command, self.path, body))
        if mode == "hang":
            road._over.wait(PATIENCE_SECONDS)
            return
        if mode == "status":
            problem = json.dumps({"code": "scripted", "detail": "as the test says"}).encode()
            return self._answer(road.status, problem, "application/problem+json", road.headers)
        if mode == "html":
            return self._answer(200, b"<!doctype html><title>Another program</title>", "text/html")
        if mode == "slow" and road._over.wait(road.seconds):
            return
        status, kind, reply = self._forward(body)
        if mode == "lose":
            return
        self._answer(status, reply, kind, half=mode == "cut")

    def _forward(self, body: bytes) -> tuple[int, str, bytes]:
        host = self.road.server.removeprefix("http://")
        connection = http.client.HTTPConnection(host, timeout=PATIENCE_SECONDS)
        skipped = ("connection", "content-length")
        headers = {k: v for k, v in self.headers.items() if k.lower() not in skipped}
        connection.request(self.command, self.path, body or None, headers)
        answer = connection.getresponse()
        reply = answer.read()
        connection.close()
        return answer.status, answer.headers.get("content-type", ""), reply

    def _answer(
        self,
        status: int,
        body: bytes,
        kind: str,
        headers: Mapping[str, str] | None = None,
        half: bool = False,
    ) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body[: len(body) // 2] if half else body)


def running(home: Home) -> list[str]:
    """Processes of this home's client."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().decode("utf-8", "replace")
        except OSError:
            continue
        if str(home.script) in words:
            found.append(words)
    return found


def settled(home: Home) -> None:
    """Wait until no process of this home's client is at work any more."""
    wait_until(lambda: not running(home), "the children are gone", 90)


def wait_until(true: Any, what: str, seconds: float = PATIENCE_SECONDS) -> Any:
    """What `true()` answers once it is truthy; fails with `what` when that takes too long."""
    deadline = time.monotonic() + seconds
    while not (found := true()):
        assert time.monotonic() < deadline, f"after {seconds} s still not: {what}"
        time.sleep(0.05)
    return found
