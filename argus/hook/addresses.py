"""Where a server is: its address taken apart, the numbers behind its name, and a query.

On the fast path. Knows nothing about requests.
"""

from __future__ import annotations

import _socket
import time

#: What `localhost` is, without asking a resolver that may hang.
_LOCAL = ((_socket.AF_INET, "127.0.0.1"), (_socket.AF_INET6, "::1"))

#: Signs that no address has.
_FOREIGN = frozenset(' \t?#"<>\\^`{|}')

_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


#: What a person is told for a word that says little.
_SENTENCES = {
    "refused": "connection refused",
    "timeout": "it gave no answer in time",
    "cut": "the connection ended before the answer did",
    "http": "something that is no web server answers there",
    "json": "something that is not Argus answers there",
    "401": "the key is unknown or revoked",
    "403": "the key may not do that",
    "429": "too many requests",
}


class Away(Exception):
    """The server gave no answer that can be used.

    `why` is one word for a ledger (address, key, dns, refused, unreachable, timeout, cut, http,
    tls, certificate, large, json, or a status), `detail` more for the log; `retry_after`: seconds,
    when told.
    """

    def __init__(self, why: str, retry_after: float | None = None, detail: str = "") -> None:
        told = _SENTENCES.get(why) or (f"status {why}" if why.isdigit() else why)
        super().__init__(f"{told} ({detail})" if detail else told)
        self.why = why
        self.retry_after = retry_after


class Address:
    """An address in its parts; `prefix` is the path that stands before ours, "" or "/...".

    Raises Away("address") for what is none. A name or a password in it is refused: it would end up
    in logs, and the key has a line of its own.
    """

    __slots__ = ("secure", "host", "port", "prefix")

    def __init__(self, url: str) -> None:
        url = url.strip()
        scheme, mark, rest = url.partition("://")
        authority, slash, path = rest.partition("/")
        self.secure = scheme.lower() == "https"
        known = mark and scheme.lower() in ("http", "https") and "@" not in authority
        if not (known and url.isascii() and url.isprintable()) or _FOREIGN.intersection(url):
            raise Away("address", detail="ARGUS_URL is no http:// or https:// address")
        if authority.startswith("["):
            self.host, _, after = authority[1:].partition("]")
            colon, port = after[:1], after[1:]
            sound = "]" in authority and colon in ("", ":")
        else:
            self.host, colon, port = authority.partition(":")
            sound = True
        if port:
            sound = sound and port.isdigit() and len(port) <= 5 and 0 < int(port) < 65_536
        if not (sound and self.host):
            raise Away("address", detail="ARGUS_URL has no host, or no port that can be")
        self.port = int(port or (443 if self.secure else 80))
        self.prefix = (slash + path).rstrip("/")

    @property
    def authority(self) -> str:
        """Host and port as the header Host has them."""
        name = f"[{self.host.partition('%')[0]}]" if ":" in self.host else self.host
        return name if self.port == (443 if self.secure else 80) else f"{name}:{self.port}"

    @property
    def loopback(self) -> bool:
        """Whether the server is on this machine, as the address tells it."""
        host = self.host.lower()
        return host in ("localhost", "::1") or (host.startswith("127.") and _family(host) > 0)

    def numbers(self, until: float) -> list[tuple[int, tuple[object, ...]]]:
        """(family, address) of each number behind the host. Raises Away("dns")."""
        if self.host.lower() == "localhost":
            return [(family, (number, self.port)) for family, number in _LOCAL]
        family = _family(self.host)
        if family:
            return [(family, (self.host, self.port))]
        return _resolve(self.host, self.port, until)


def _family(host: str) -> int:
    """The family of a number, 0 for a name."""
    for family in (_socket.AF_INET, _socket.AF_INET6):
        try:
            _socket.inet_pton(family, host)
            return int(family)
        except OSError:
            continue
    return 0


def _resolve(host: str, port: int, until: float) -> list[tuple[int, tuple[object, ...]]]:
    """Ask for a name's numbers, for as long as there is time.

    Why in a thread: the system's resolver has no deadline. Who still waits in it ends with us.
    """
    import _thread

    found: list[object] = []
    done = _thread.allocate_lock()
    done.acquire()

    def ask() -> None:
        try:
            found.append(_socket.getaddrinfo(host, port, 0, _socket.SOCK_STREAM))
        except (OSError, UnicodeError) as error:
            found.append(error)
        done.release()

    _thread.start_new_thread(ask, ())
    if not done.acquire(timeout=max(until - time.monotonic(), 0.001)):
        raise Away("dns", detail="no answer in time")
    answer = found[0]
    if not isinstance(answer, list):
        raise Away("dns", detail=str(getattr(answer, "strerror", "") or "no such name"))
    return [(family, address) for family, _, _, _, address in answer]


def encode(fields: dict[str, str]) -> str:
    """The fields as a query, `?` included; empty ones are left out, "" when all are."""
    pairs = [f"{name}={_escaped(value)}" for name, value in fields.items() if value]
    return "?" + "&".join(pairs) if pairs else ""


def _escaped(text: str) -> str:
    data = text.encode("utf-8", "replace")
    return "".join(chr(byte) if byte in _UNRESERVED else f"%{byte:02X}" for byte in data)
