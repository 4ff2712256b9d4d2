"""One HTTP request and its answer, within one deadline, by the shortest way.

http:// goes over a bare socket (`socket` and `http.client` would cost more than the request),
https:// over the same with TLS. The time counts from the first look at the address to the last byte
of the answer, so that a server that drips a byte a second holds nobody up. No redirect is followed
and no proxy is asked. Knows nothing about what is sent.
"""

from __future__ import annotations

import _socket
import time

from argus.hook.addresses import Address, Away, encode
from argus.hook.quickjson import parse

__all__ = ["Answer", "Away", "encode", "request"]

#: Seconds for a connection, of the total.
CONNECT_SECONDS_MAX = 0.3
#: Bytes of an answer's head, and of its body.
HEAD_BYTES_MAX = 65_536
BODY_BYTES_MAX = 4_000_000
#: Bytes that are handed to the system at once.
_PIECE_BYTES = 65_536


class Answer:
    """What came back: status, headers by their small names, body."""

    __slots__ = ("status", "headers", "body")

    def __init__(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.status = status
        self.headers = headers
        self.body = body

    @property
    def retry_after(self) -> float | None:
        """Seconds after which the server wants to be asked again; None when it does not say."""
        value = self.headers.get("retry-after", "").strip()
        if value.isascii() and value.isdigit():
            return float(value[:9])
        if not value:
            return None
        # A date; rare, and the only reader of one.
        from email.utils import parsedate_to_datetime

        try:
            return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
        except (TypeError, ValueError, OverflowError):
            return None

    def json(self) -> object:
        """The body's value. Raises Away when it is no JSON, a page of another program."""
        try:
            return parse(self.body.decode("utf-8"))
        except ValueError:
            kind = self.headers.get("content-type", "no type")[:60]
            raise Away("json", detail=f"status {self.status}, {kind}") from None


def request(
    url: str,
    method: str,
    path: str,
    key: str,
    body: bytes | None = None,
    seconds: float = 2.0,
    connect: float = CONNECT_SECONDS_MAX,
) -> Answer:
    """Send one request to `url` + `path` and return the answer, whatever its status.

    `seconds` bounds everything, `connect` the connection. `body` is sent as JSON. Raises Away.
    """
    deadline = time.monotonic() + seconds
    address = Address(url)
    head = _head(method, address.prefix + path, address.authority, key, body)
    until = min(deadline, time.monotonic() + connect)
    try:
        channel = _connect(address, until, deadline)
        try:
            return _exchange(channel, head, body, deadline)
        finally:
            channel.close()
    except _socket.timeout:
        raise Away("timeout") from None
    except ConnectionRefusedError:
        raise Away("refused") from None
    except (ConnectionResetError, BrokenPipeError):
        raise Away("cut", detail="the connection was closed") from None
    except OSError as error:
        raise _told(error) from None


def _told(error: OSError) -> Away:
    """What a failing system call means; TLS's errors are among them and have names of their own."""
    name = type(error).__name__
    if name == "SSLCertVerificationError":
        return Away("certificate", detail=str(getattr(error, "verify_message", error)))
    if name.startswith("SSL"):
        return Away("tls", detail=str(getattr(error, "reason", None) or name))
    if isinstance(error, _socket.gaierror):
        return Away("dns", detail=error.strerror or name)
    return Away("unreachable", detail=error.strerror or name)


def _head(method: str, path: str, authority: str, key: str, body: bytes | None) -> bytes:
    given = {
        "Host": authority,
        "User-Agent": "argus-hook",
        "Accept": "application/json",
        "Connection": "close",
    }
    if key:
        given["Authorization"] = f"Bearer {key}"
    if body is not None:
        given["Content-Type"] = "application/json"
        given["Content-Length"] = str(len(body))
    lines = [f"{method} {path or '/'} HTTP/1.1", *(f"{k}: {v}" for k, v in given.items())]
    for line in lines:
        # A break in a key or a header would be a second header, or a second request.
        if not (line.isascii() and line.isprintable()):
            raise Away("key", detail="a key or header with signs that no header may have")
    return "\r\n".join([*lines, "", ""]).encode("ascii")


def _connect(address: Address, until: float, deadline: float) -> _socket.socket:
    """A connected socket, with TLS when asked. Raises Away or OSError."""
    found = address.numbers(until)
    failed: OSError | None = None
    for number, (family, place) in enumerate(found):
        # Each number gets its share of what is left: the first may be one that nobody routes.
        share = (until - time.monotonic()) / (len(found) - number)
        channel = _plain(family, address.secure)
        try:
            channel.settimeout(max(share, 0.001))
            channel.connect(place)
        except OSError as error:
            channel.close()
            failed = failed or error
            continue
        return _tls(channel, address.host, deadline) if address.secure else channel
    raise failed or OSError("no address")


def _plain(family: int, secure: bool) -> _socket.socket:
    if not secure:
        return _socket.socket(family, _socket.SOCK_STREAM)
    # Why another class: TLS wraps only what `socket` makes.
    import socket

    return socket.socket(family, socket.SOCK_STREAM)


def _tls(channel: _socket.socket, host: str, deadline: float) -> _socket.socket:
    """The channel with TLS on it; certificates are always checked (SSL_CERT_FILE adds one)."""
    import socket
    import ssl

    assert isinstance(channel, socket.socket)
    try:
        channel.settimeout(max(deadline - time.monotonic(), 0.001))
        return ssl.create_default_context().wrap_socket(channel, server_hostname=host)
    except OSError:
        channel.close()
        raise


def _exchange(channel: _socket.socket, head: bytes, body: bytes | None, deadline: float) -> Answer:
    stream = _Stream(channel, deadline)
    try:
        stream.send(head + (body or b"")[:_PIECE_BYTES])
        stream.send((body or b"")[_PIECE_BYTES:])
    except (BrokenPipeError, ConnectionResetError):
        # A server may answer (too large, no such key) before it has read everything.
        pass
    while True:
        status, headers = stream.head()
        if status >= 200:
            break
    if status in (204, 304):
        return Answer(status, headers, b"")
    if "chunked" in headers.get("transfer-encoding", "").lower():
        return Answer(status, headers, stream.chunks())
    length = headers.get("content-length")
    if length is None:
        return Answer(status, headers, stream.rest())
    if not (length.isascii() and length.isdigit()):
        raise Away("http", detail="a length that is none")
    if len(length) > 15 or int(length) > BODY_BYTES_MAX:
        raise Away("large", detail=f"an answer of more than {BODY_BYTES_MAX} bytes")
    return Answer(status, headers, stream.exactly(int(length)))


class _Stream:
    """Bytes out and in, none after the deadline."""

    def __init__(self, channel: _socket.socket, deadline: float) -> None:
        self.channel = channel
        self.deadline = deadline
        self.held = bytearray()

    def send(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            self.channel.settimeout(self.left())
            rest = rest[self.channel.send(rest[:_PIECE_BYTES]) :]

    def left(self) -> float:
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise Away("timeout")
        return left

    def more(self) -> bool:
        """Wait for some bytes; False at the end."""
        self.channel.settimeout(self.left())
        piece = self.channel.recv(_PIECE_BYTES)
        self.held += piece
        return bool(piece)

    def head(self) -> tuple[int, dict[str, str]]:
        """Status and headers of the next answer."""
        size = 0
        line = self.line(HEAD_BYTES_MAX)
        version, _, rest = line.partition(" ")
        code = rest[:3]
        if not version.startswith("HTTP/1.") or not (code.isascii() and code.isdigit()):
            raise Away("http", detail="another protocol answers there")
        headers: dict[str, str] = {}
        while line := self.line(HEAD_BYTES_MAX - size):
            size += len(line)
            name, _, value = line.partition(":")
            headers[name.strip().lower()] = value.strip()
        return int(code), headers

    def line(self, most: int) -> str:
        while (end := self.held.find(b"\n")) < 0:
            if len(self.held) > most:
                raise Away("http", detail="a head without an end")
            if not self.more():
                raise Away("cut", detail="the answer ended in its head")
        line = self.held[:end].decode("latin-1").rstrip("\r")
        del self.held[: end + 1]
        if len(line) > most:
            raise Away("http", detail="a head without an end")
        return line

    def exactly(self, size: int) -> bytes:
        while len(self.held) < size:
            if not self.more():
                raise Away("cut", detail=f"{len(self.held)} of {size} bytes came")
        data = bytes(self.held[:size])
        del self.held[:size]
        return data

    def rest(self) -> bytes:
        while self.more():
            if len(self.held) > BODY_BYTES_MAX:
                raise Away("large", detail=f"an answer of more than {BODY_BYTES_MAX} bytes")
        return bytes(self.held)

    def chunks(self) -> bytes:
        data = bytearray()
        while True:
            digits = self.line(HEAD_BYTES_MAX).partition(";")[0].strip()
            try:
                size = int(digits, 16)
            except ValueError:
                raise Away("http", detail="a chunk without a length") from None
            if size <= 0:
                return bytes(data)
            if len(data) + size > BODY_BYTES_MAX:
                raise Away("large", detail=f"an answer of more than {BODY_BYTES_MAX} bytes")
            data += self.exactly(size)
            self.line(HEAD_BYTES_MAX)
