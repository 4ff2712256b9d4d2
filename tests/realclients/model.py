"""A model server on loopback that says what a script says, and keeps what it was asked.

It is also every client's proxy, and lets nothing through: whoever tries to reach another host is
refused and noted. It is the far side of HTTP; the clients that talk to it are the real ones.
"""

from __future__ import annotations

import json
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.realclients.streams import Reply, Step, chat, document, messages, responses, tools

#: Which protocol stands behind a path's end.
PROTOCOLS: dict[str, Callable[[dict[str, Any], Step], Reply]] = {
    "/v1/messages": messages,
    "/v1/responses": responses,
    "/v1/responses/compact": responses,
    "/v1/chat/completions": chat,
}

#: What is said when the script is at its end, and to requests of the clients' own (titles).
NOTHING_SCRIPTED = "Nothing more was scripted."


@dataclass(frozen=True)
class Asked:
    """One request to the model."""

    path: str
    body: dict[str, Any]
    status: int
    #: When it came, on the clock of `time.monotonic`.
    at: float

    @property
    def main(self) -> bool:
        """Whether it is the conversation's own: those offer tools."""
        return bool(tools(self.body))

    @property
    def text(self) -> str:
        """All that the model was shown, as one text of JSON."""
        return json.dumps(self.body, ensure_ascii=False)

    @property
    def turns(self) -> list[tuple[str, str]]:
        """(role, text) of what the conversation holds, in the model's own order."""
        rows = self.body.get("messages") or self.body.get("input") or []
        return [(row.get("role") or row.get("type"), _words(row.get("content"))) for row in rows]


def _words(content: Any) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(str(part.get("text") or "") for part in parts if isinstance(part, dict))


class Model:
    """The server, its script and its log."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        #: Hosts that a client tried to reach through us.
        self.strayed: list[str] = []
        #: Ends every wait of a step.
        self.closing = threading.Event()
        self._steps: list[Step] = []
        self._lock = threading.Lock()
        model = self

        class Handler(_Handler):
            server_model = model

        self._http = _Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}"
        threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True).start()

    def script(self, *steps: Step | str) -> None:
        """What is said from now on, instead of what was left to say."""
        with self._lock:
            self._steps = [Step(step) if isinstance(step, str) else step for step in steps]

    @property
    def main(self) -> list[Asked]:
        """The conversation's own requests."""
        return [asked for asked in self.asked if asked.main]

    def take(self, path: str, body: dict[str, Any]) -> Step:
        """The step for this request; it is kept with it."""
        with self._lock:
            step = self._next(body)
            self.asked.append(Asked(path, body, step.status, time.monotonic()))
            return step

    def _next(self, body: dict[str, Any]) -> Step:
        text = json.dumps(body, ensure_ascii=False)
        for place, step in enumerate(self._steps):
            if step.only not in text if step.only else not tools(body):
                continue
            if step.times == 1:
                del self._steps[place]
            elif step.times > 1:
                self._steps[place] = replace(step, times=step.times - 1)
            return step
        return Step(NOTHING_SCRIPTED)

    def close(self) -> None:
        self.closing.set()
        self._http.shutdown()
        self._http.server_close()


@contextmanager
def listening(*steps: Step | str) -> Iterator[Model]:
    """A model that says these steps."""
    model = Model()
    model.script(*steps)
    try:
        yield model
    finally:
        model.close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request: Any, client_address: Any) -> None:
        # Why: a client that was killed or did not wait is part of a test.
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_model: Model

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: the requests are kept."""

    def do_CONNECT(self) -> None:
        self._stray()

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        if self.path.startswith("http"):
            return self._stray()
        names = [{"id": "scripted", "object": "model"}]
        listed = self.path.split("?")[0].endswith("/models")
        self._send(document({"object": "list", "data": names, "models": []} if listed else {}))

    def do_POST(self) -> None:
        if self.path.startswith("http"):
            return self._stray()
        body = self._body()
        path = self.path.split("?")[0]
        if path.endswith("/count_tokens"):
            return self._send(document({"input_tokens": max(1, len(json.dumps(body)) // 4)}))
        speak = next((PROTOCOLS[end] for end in PROTOCOLS if path.endswith(end)), None)
        if speak is None:
            return self._send(document({}))
        step = self.server_model.take(path, body)
        if self.server_model.closing.wait(step.seconds):
            return
        self._send(speak(body, step))

    def _stray(self) -> None:
        self.server_model.strayed.append(self.path)
        self.close_connection = True
        self._send(document({"error": "there is no network here"}, 403))

    def _body(self) -> dict[str, Any]:
        raw = self._raw()
        if (self.headers.get("content-encoding") or "").lower() in ("gzip", "deflate"):
            raw = zlib.decompress(raw, 47)
        try:
            body = json.loads(raw or b"{}")
        except ValueError:
            return {}
        return body if isinstance(body, dict) else {}

    def _raw(self) -> bytes:
        length = self.headers.get("content-length")
        if length is not None:
            return self.rfile.read(int(length))
        raw = b""
        while size := int(self.rfile.readline().split(b";")[0] or b"0", 16):
            raw += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return raw

    def _send(self, reply: Reply) -> None:
        self.send_response(reply.status)
        for name, value in reply.headers.items():
            self.send_header(name, value)
        if not reply.stream:
            body = b"".join(reply.pieces)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
            return
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Cache-Control", "no-cache")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for piece in reply.pieces:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")
