"""HTTP with an end: one request takes so many seconds and its answer so many bytes, whatever comes.

The timeouts of an HTTP client count for each read, so that a server which drips a byte now and then
holds its caller for ever. Here every read, write and connect gets what is left of one deadline.
Redirects are not followed and no compressed answer is read. Knows nothing about models.
"""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Iterable
from contextlib import closing
from contextvars import ContextVar
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import httpcore2
import httpx2

from memory.llm.calls import Away, Oversized

#: Bytes of an answer that are read.
# Why: a run-away or hostile server must not fill the memory of a worker; parsed JSON takes many
# times its size.
# Calibrate: above the largest batch of vectors of a model with 4,096 numbers (6 MB).
ANSWER_BYTES_MAX = 8 * 2**20

#: Bytes of an error that are read; the rest is left where it is.
ERROR_BYTES_MAX = 64 * 2**10

#: Bytes of an oversized answer that are shown to a person.
SHOWN_BYTES_MAX = 2_000

#: Bytes written at once.
# Why: the deadline is looked at between pieces, and a server may read as slowly as it likes.
PIECE_BYTES = 16 * 2**10

_end: ContextVar[float] = ContextVar("end")


def open_client(url: str, seconds: float) -> httpx2.Client:
    """A client for the one host of this URL whose requests end after so many seconds.

    Its requests raise what httpx2 raises, Oversized for an answer over ANSWER_BYTES_MAX, and Away
    for a compressed one. The name look-up alone has the deadline of the system's resolver.
    """
    # Why no redirects: what is asked goes to the host of the settings and to no other one.
    return httpx2.Client(transport=_Bounded(_proxy(url), seconds), follow_redirects=False)


class _Bounded(httpx2.BaseTransport):
    """Reads the whole answer within the limits, and hands on nothing that would be interpreted."""

    def __init__(self, proxy: str | None, seconds: float) -> None:
        self._seconds = seconds
        self._inner = httpx2.HTTPTransport(proxy=proxy)
        # The transport has no argument for it; reading it first fails loudly where it is renamed.
        pool: Any = self._inner._pool
        pool._network_backend = _Network(pool._network_backend)

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        token = _end.set(time.monotonic() + self._seconds)
        try:
            with closing(self._inner.handle_request(request)) as answer:
                body = _body(answer)
        finally:
            _end.reset(token)
        # No other header: a charset or an encoding is a way to make a reader stumble.
        waits = answer.headers.get("retry-after")
        headers = {} if waits is None else {"retry-after": waits}
        return httpx2.Response(answer.status_code, headers=headers, content=body)

    def close(self) -> None:
        self._inner.close()

    def __del__(self) -> None:
        # A client that falls out of the cache closes its sockets.
        if hasattr(self, "_inner"):
            self.close()


class _Network(httpcore2.NetworkBackend):
    """Connects within what is left."""

    def __init__(self, inner: httpcore2.NetworkBackend) -> None:
        self._inner = inner

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.NetworkStream:
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except OSError as error:
            raise httpcore2.ConnectError(str(error)) from error
        last: Exception = httpcore2.ConnectError(f"{host} has no address")
        # One by one: the system's own loop gives each address the whole time.
        for address in dict.fromkeys(str(entry[4][0]) for entry in found):
            seconds = _left(timeout)
            try:
                stream = self._inner.connect_tcp(
                    address, port, seconds, local_address, socket_options
                )
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                last = error
                continue
            return _Stream(stream)
        raise last


class _Stream(httpcore2.NetworkStream):
    """A connection whose every step gets what is left of the request in hand."""

    def __init__(self, inner: httpcore2.NetworkStream) -> None:
        self._inner = inner

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._inner.read(max_bytes, _left(timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        for start in range(0, len(buffer), PIECE_BYTES):
            self._inner.write(buffer[start : start + PIECE_BYTES], _left(timeout))

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore2.NetworkStream:
        return _Stream(self._inner.start_tls(ssl_context, server_hostname, _left(timeout)))

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)


def _left(timeout: float | None) -> float:
    """Seconds until the deadline, at most `timeout`. Raises ReadTimeout when there are none."""
    left = _end.get() - time.monotonic()
    if left <= 0:
        raise httpcore2.ReadTimeout("the time for the whole request is over")
    return left if timeout is None else min(left, timeout)


def _body(answer: httpx2.Response) -> bytes:
    encoding = answer.headers.get("content-encoding", "").strip().lower()
    if encoding not in ("", "identity"):
        if not answer.is_success:
            return b""
        raise Away(f"The answer came as {encoding[:40]!r}; plain was asked for", "no_answer")
    limit = ANSWER_BYTES_MAX if answer.is_success else ERROR_BYTES_MAX
    body = bytearray()
    for chunk in answer.iter_raw():
        body += chunk
        if len(body) > limit:
            if answer.is_success:
                shown = bytes(body[:SHOWN_BYTES_MAX]).decode(errors="replace")
                raise Oversized(f"The answer is over {limit} bytes", shown)
            break
    return bytes(body[:limit])


def _proxy(url: str) -> str | None:
    """The proxy that the environment names for this URL, or None."""
    parts = urlsplit(url)
    if not parts.hostname or proxy_bypass(parts.hostname):
        return None
    proxies = getproxies()
    return proxies.get(parts.scheme) or proxies.get("all")
