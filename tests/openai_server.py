"""A real HTTP server on 127.0.0.1 that speaks the OpenAI protocol, by script.

Each path has a list of steps that are used up in order; after them (or without any) it answers as a
well-behaved model would: notes quoted from the prompt, distinct verdicts, vectors made of words.
Every request is kept. It is the far side of HTTP, and the only fake in the tests.
"""

from __future__ import annotations

import json
import re
import socket
import struct
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.hashing_embedder import vector_of

CHAT = "/v1/chat/completions"
EMBEDDINGS = "/v1/embeddings"
RERANK = "/v1/rerank"


@dataclass(frozen=True)
class Request:
    """One request as it came in."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]

    @property
    def user(self) -> str:
        """The last message of a chat."""
        return str(self.body["messages"][-1]["content"])


@dataclass(frozen=True)
class Step:
    """One answer. `reset` cuts the connection; `hang_seconds` waits before anything is sent.

    `pieces` makes what is sent instead of all the rest, status line included, as it comes;
    `drip_seconds` waits before each of them.
    """

    body: str = ""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    content_type: str = "application/json"
    hang_seconds: float = 0.0
    reset: bool = False
    pieces: Callable[[], Iterable[bytes]] | None = None
    drip_seconds: float = 0.0


Scripted = Step | Callable[[Request], Step]


def says(
    text: str | None, *, finish_reason: str = "stop", refusal: str | None = None, tokens: int = 7
) -> Step:
    """A chat completion with this content."""
    message = {"role": "assistant", "content": text, "refusal": refusal}
    return Step(
        json.dumps(
            {
                "id": "chat-1",
                "object": "chat.completion",
                "created": 0,
                "model": "scripted-2026-01",
                "choices": [{"index": 0, "finish_reason": finish_reason, "message": message}],
                "usage": {
                    "prompt_tokens": 11,
                    "completion_tokens": tokens,
                    "total_tokens": 11 + tokens,
                },
            }
        )
    )


def notes(*entries: dict[str, Any]) -> str:
    """The JSON of a distiller's answer."""
    return json.dumps({"notes": list(entries)}, ensure_ascii=False)


def note(quote: str, **changes: Any) -> dict[str, Any]:
    """One note whose evidence is this quote."""
    return {
        "title": quote[:60],
        "content": quote,
        "importance": 0.6,
        "keywords": [],
        "tags": ["fact"],
        "context": "",
        "memory_kind": "semantic",
        "source_ref": quote,
    } | changes


def gives(vectors: Sequence[object], order: Sequence[int] | None = None) -> Step:
    """An embeddings answer with these vectors (NaN is written as JSON cannot: bare), permuted."""
    data = [
        {"object": "embedding", "index": index, "embedding": vector}
        for index, vector in enumerate(vectors)
    ]
    if order is not None:
        data = [data[index] for index in order]
    usage = {"prompt_tokens": 5, "total_tokens": 5}
    return Step(
        json.dumps({"object": "list", "data": data, "model": "scripted-embed", "usage": usage})
    )


def ranks(scores: Sequence[float], *, bare: bool = False, key: str = "results") -> Step:
    """A rerank answer with these scores by position, best first as servers send them.

    `bare` is the list that text-embeddings-inference sends.
    """
    name = "score" if bare else "relevance_score"
    places = sorted(range(len(scores)), key=lambda place: scores[place], reverse=True)
    entries = [{"index": place, name: scores[place]} for place in places]
    if bare:
        return Step(json.dumps(entries))
    usage = {"total_tokens": 9}
    return Step(json.dumps({"model": "scripted-rerank", key: entries, "usage": usage}))


def opens(*tokens: dict[str, float]) -> Step:
    """A chat completion whose tokens had these alternatives: value -> log-probability."""
    content = [
        {
            "token": max(token, key=token.__getitem__),
            "logprob": max(token.values()),
            "top_logprobs": [{"token": value, "logprob": n} for value, n in token.items()],
        }
        for token in tokens
    ]
    text = "".join(str(entry["token"]) for entry in content)
    answer = json.loads(says(text, finish_reason="length", tokens=len(tokens)).body)
    answer["choices"][0]["logprobs"] = {"content": content, "refusal": None}
    return Step(json.dumps(answer))


def fails(status: int, body: str = "", **headers: str) -> Step:
    """An error; keyword names become header names (`retry_after` -> Retry-After)."""
    named = {name.replace("_", "-").title(): value for name, value in headers.items()}
    text = body or json.dumps({"error": {"message": f"status {status}", "type": "error"}})
    kind = "text/html" if text.lstrip().startswith("<") else "application/json"
    return Step(text, status, named, kind)


def hangs(seconds: float) -> Step:
    """Says nothing for so long."""
    return Step("{}", hang_seconds=seconds)


RESET = Step(reset=True)


class OpenAIServer:
    """The server with its scripts and its log."""

    def __init__(self) -> None:
        self.scripts: dict[str, list[Scripted]] = defaultdict(list)
        self.requests: list[Request] = []
        #: Bytes of `pieces` that were taken from us.
        self.sent_bytes = 0
        self._lock = threading.Lock()
        server = self

        class Answer(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = int(self.headers.get("content-length", 0))
                body = json.loads(self.rfile.read(length) or b"{}")
                headers = {name.lower(): value for name, value in self.headers.items()}
                step = server.answer(Request(self.path, headers, body))
                server.closing.wait(step.hang_seconds)
                if step.reset:
                    linger = struct.pack("ii", 1, 0)
                    self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                    self.connection.close()
                    return
                if step.pieces is not None:
                    self.close_connection = True
                    for piece in step.pieces():
                        if server.closing.wait(step.drip_seconds):
                            return
                        self.wfile.write(piece)
                        server.sent_bytes += len(piece)
                    return
                payload = step.body.encode()
                self.send_response(step.status)
                self.send_header("content-type", step.content_type)
                self.send_header("content-length", str(len(payload)))
                for name, value in step.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(payload)

            def log_message(self, format: str, *args: Any) -> None:
                """Say nothing: the requests are kept."""

        class Quiet(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, request: Any, client_address: Any) -> None:
                """A client that gave up waiting is part of the script."""

        self.closing = threading.Event()
        self._http = Quiet(("127.0.0.1", 0), Answer)
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}/v1"
        self._thread = threading.Thread(
            target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        )
        self._thread.start()

    def script(self, path: str, *steps: Scripted) -> None:
        """Add answers for this path."""
        self.scripts[path] += steps

    def answer(self, request: Request) -> Step:
        """The next step for this request."""
        with self._lock:
            self.requests.append(request)
            script = self.scripts[request.path]
            step = script.pop(0) if script else behave
        return step(request) if callable(step) else step

    def close(self) -> None:
        """Stop, also where something hangs."""
        self.closing.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join(timeout=5)


@contextmanager
def running() -> Iterator[OpenAIServer]:
    """A server for the time of a block."""
    server = OpenAIServer()
    try:
        yield server
    finally:
        server.close()


def behave(request: Request) -> Step:
    """What a model would answer that does as it is told."""
    if request.path.endswith("/embeddings"):
        return gives([vector_of(text) for text in request.body["input"]])
    if request.path.endswith("/rerank"):
        return ranks(overlaps(request.body["query"], request.body["documents"]))
    if not request.path.endswith("/chat/completions"):
        return fails(404)
    if request.body.get("logprobs"):
        return opens(*opening(request.user)[: request.body["max_tokens"]])
    system = str(request.body["messages"][0]["content"])
    if '"verdict"' in system:
        return says('{"verdict": "distinct", "target": null, "reasoning": "Two subjects."}')
    if '"expected"' in system:
        return says('{"question": "What does the statement say?", "expected": "statement"}')
    if '"answered"' in system:
        return says('{"answered": true, "answer": "the statement", "quote": ""}')
    return says(notes(*[note(quote) for quote in quotes(request.user)[:3]]))


def overlaps(query: str, texts: Sequence[str]) -> list[float]:
    """The share of the query's words that each text has."""
    asked = set(re.findall(r"\w+", query.lower()))
    return [
        len(asked & set(re.findall(r"\w+", text.lower()))) / max(1, len(asked)) for text in texts
    ]


def opening(prompt: str) -> list[dict[str, float]]:
    """The tokens of a model that begins with what it was told last of all before the question."""
    lines = [line for line in prompt.split("\n") if line.strip()]
    told = [line for line in lines if line.startswith("- ")] or lines[-1:]
    return [{word: -0.1, "the": -3.0, "well": -4.0} for word in told[-1].split()[:40]]


def quotes(prompt: str) -> list[str]:
    """The longer sentences of the numbered parts of a distiller's prompt, verbatim."""
    found = []
    for line in prompt.split("\n"):
        if line.startswith("-----") or re.match(r"\[\d+\] ", line):
            continue
        found += [s for s in re.split(r"(?<=[.!?。])\s+", line.strip()) if len(s) > 30]
    return found


def wait_until(condition: Callable[[], bool], seconds: float = 5.0) -> bool:
    """Whether the condition came true in time."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True
