"""A server that says exactly the bytes that a test wants, at the pace that a test wants."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass
class Raw:
    """Where it listens, and what it was told: one entry of bytes per connection."""

    port: int
    heard: list[bytes] = field(default_factory=list)
    #: Set when the test is over, for servers that wait.
    over: threading.Event = field(default_factory=threading.Event)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


Say = Callable[[socket.socket, Raw], None]


def answer(status: str, body: bytes, *headers: str) -> bytes:
    """A plain answer in one piece."""
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


def hear(channel: socket.socket) -> bytes:
    """One request with its body."""
    data = b""
    while b"\r\n\r\n" not in data:
        piece = channel.recv(65_536)
        if not piece:
            return data
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    size = 0
    for line in head.split(b"\r\n"):
        if line.lower().startswith(b"content-length:"):
            size = int(line.split(b":")[1])
    while len(body) < size:
        piece = channel.recv(65_536)
        if not piece:
            break
        data, body = data + piece, body + piece
    return data


@contextmanager
def saying(say: bytes | Say, family: int = socket.AF_INET) -> Iterator[Raw]:
    """Listen on loopback; after each request say these bytes and close, or do as `say` does."""
    listener = socket.socket(family)
    listener.bind(("::1" if family == socket.AF_INET6 else "127.0.0.1", 0))
    listener.listen(20)
    raw = Raw(listener.getsockname()[1])

    def one(channel: socket.socket) -> None:
        with channel:
            try:
                if callable(say):
                    say(channel, raw)
                    return
                raw.heard.append(hear(channel))
                channel.sendall(say)
            except OSError:
                pass

    def run() -> None:
        while True:
            try:
                channel, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=one, args=(channel,), daemon=True).start()

    threading.Thread(target=run, daemon=True).start()
    try:
        yield raw
    finally:
        raw.over.set()
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
