"""What the server says of a key and of itself, and the small key of the http hook.

Asks the cheapest doors there are; stores and prints no key. Knows nothing about where one is kept.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import socket
from dataclasses import dataclass

from argus.hook import home
from argus.hook.addresses import Address
from argus.hook.wire import Answer, Away, request

#: Seconds for one question; nobody's prompt waits here.
ASK_SECONDS_MAX = 5.0
CONNECT_SECONDS_MAX = 2.0

#: The file by whose content the server proves that it is on this machine.
HERE = "here"

#: A door for each scope that the client needs, asked for nothing: it refuses the key, or the
#: question.
_DOORS = {
    "capture": ("POST", "/capture", b'{"items": 0}'),
    "recall": ("GET", "/recall/turns/0", None),
}


@dataclass(frozen=True)
class Standing:
    """Whether there is an Argus at an address, and what a key may do there.

    `reached`: it answered as Argus does; `accepted`: None when no key was shown or it is away.
    """

    reached: bool
    why: str = ""
    accepted: bool | None = None
    scopes: tuple[str, ...] = ()


def stand(url: str, key: str) -> Standing:
    """Ask whether the server is there and what the key may do. Stores nothing."""
    try:
        health = ask(url, "GET", "/healthz", "")
        if health.status != 200 or health.json() != {"status": "ok"}:
            return Standing(False, f"something else answers there (status {health.status})")
        if not key:
            return Standing(True)
        scopes = []
        for scope, (method, path, body) in _DOORS.items():
            status = ask(url, method, path, key, body).status
            if status == 401:
                return Standing(True, "the key is unknown or revoked", False)
            if status >= 500 or status == 429:
                return Standing(False, f"it answered with status {status}")
            if status != 403:
                scopes.append(scope)
    except Away as away:
        return Standing(False, told(away))
    return Standing(True, "", True, tuple(scopes))


def small(url: str, key: str) -> str:
    """A new key that may recall and nothing else, a child of `key`; "" when none is to be had."""
    wanted = {"name": f"http hook on {socket.gethostname()}", "scopes": ["recall"]}
    try:
        answer = ask(url, "POST", "/keys", key, json.dumps(wanted).encode())
        made = answer.json() if answer.status == 201 else None
    except Away:
        return ""
    found = made.get("key") if isinstance(made, dict) else None
    return found if isinstance(found, str) else ""


def revoke(url: str, key: str) -> bool:
    """Let a key revoke itself; whether the server says that it is gone."""
    try:
        return ask(url, "DELETE", "/keys", key).status in (204, 401)
    except Away:
        return False


def build(url: str) -> str:
    """The digest of the client that the server hands out; "" when it does not say."""
    try:
        answer = ask(url, "GET", "/hook/argus-hook.pyz.sha256", "")
    except Away:
        return ""
    first = answer.body[:64].decode("ascii", "replace") if answer.status == 200 else ""
    return first if len(first) == 64 and set(first) <= set("0123456789abcdef") else ""


def ask(url: str, method: str, path: str, key: str, body: bytes | None = None) -> Answer:
    """One request without hurry. Raises Away."""
    return request(
        url, method, path, key, body, seconds=ASK_SECONDS_MAX, connect=CONNECT_SECONDS_MAX
    )


def told(away: Away) -> str:
    """Why the server is away, for a person."""
    return f"{away.why} ({away.detail})" if away.detail else away.why


def plain(url: str) -> bool:
    """Whether http:// leads to another machine, and what is sent can be read on the way."""
    address = Address(url)
    return not (address.secure or address.loopback)


def loopback(url: str) -> bool:
    """Whether an address is this machine's own, by http, as it is written."""
    address = Address(url)
    return address.loopback and not address.secure


def here(url: str, key: str) -> bool:
    """Whether the server reads this machine's files: it tells the hash of what only a file says.

    Why: behind a loopback address there may be a tunnel, or a container. Raises OSError.
    """
    made = [path for path in (home.place("hook"), home.place()) if not os.path.isdir(path)]
    folder, nonce = home.private("hook"), secrets.token_hex(32)
    try:
        home.write(os.path.join(folder, HERE), nonce.encode())
        answer = ask(url, "POST", "/hook/here", key, json.dumps({"folder": folder}).encode())
        told = answer.json() if answer.status == 200 else None
    except Away:
        return False
    finally:
        with contextlib.suppress(OSError):
            os.unlink(os.path.join(folder, HERE))
            for path in made:
                os.rmdir(path)
    return told == {"sha256": hashlib.sha256(nonce.encode()).hexdigest()}
