"""What the server says of a key and of itself, and the smaller keys made of it.

Asks the cheapest doors there are; stores and prints no key. Knows nothing about where one is kept.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import socket
from collections.abc import Sequence
from dataclasses import dataclass

from argus.hook import home
from argus.hook.addresses import Address
from argus.hook.wire import Answer, Away, request

#: Seconds for one question; nobody's prompt waits here.
ASK_SECONDS_MAX = 5.0
CONNECT_SECONDS_MAX = 2.0

#: What the client does with a key.
NEEDS = ("capture", "recall")
#: The setting that says of which key (its prefix) this machine's own was made.
FROM = "ARGUS_KEY_FROM"

#: Characters of the part of a key by which the server lists it.
PREFIX_CHARACTERS = 8

#: The file by whose content the server proves that it is on this machine.
HERE = "here"


@dataclass(frozen=True)
class Standing:
    """Whether there is an Argus at an address, and what a key may do there.

    `reached`: it answered as Argus does; `reason`: one word when it did not; `accepted`: None when
    no key was shown or it is away. `prefix` and `name` are the key's, as the server lists it.
    """

    reached: bool
    why: str = ""
    accepted: bool | None = None
    scopes: tuple[str, ...] = ()
    prefix: str = ""
    name: str = ""
    reason: str = ""


def stand(url: str, key: str) -> Standing:
    """Ask whether the server is there and what the key may do. Stores nothing."""
    try:
        health = ask(url, "GET", "/healthz", "")
        if health.status != 200 or health.json() != {"status": "ok"}:
            return Standing(False, f"something else answers there (status {health.status})")
        if not key:
            return Standing(True)
        answer = ask(url, "GET", "/keys", key)
        if answer.status == 401:
            return Standing(True, "the key is unknown or revoked", False)
        told = answer.json() if answer.status == 200 else None
    except Away as away:
        return Standing(False, str(away), reason=away.why)
    if not isinstance(told, dict) or not isinstance(told.get("scopes"), list):
        return Standing(False, f"it answers with status {answer.status} when asked about the key")
    scopes = tuple(str(scope) for scope in told["scopes"])
    prefix, name = str(told.get("prefix", "")), str(told.get("name", ""))
    return Standing(True, "", True, scopes, prefix, name)


def kept(url: str, key: str, standing: Standing) -> tuple[dict[str, str], list[str]]:
    """What `~/.argus/env` is to say of the server and this key, and what a person is told of it.

    A key that may more than hooks need is not kept: one of its own is, which falls with it; one
    that an earlier installation made of it is used again, and one made of another is revoked.
    """
    known = home.read_env()
    mine, parent = known.get("ARGUS_KEY", ""), known.get(FROM, "")
    values = {"ARGUS_URL": url, "ARGUS_KEY": key}
    more = set(standing.scopes) - set(NEEDS)
    if key == mine and not more:
        return values, []
    again = parent and prefix(key) == parent and known.get("ARGUS_URL") == url
    if again and stand(url, mine).accepted is not False:
        return {**values, "ARGUS_KEY": mine}, []
    if parent and mine != key:
        revoke(known.get("ARGUS_URL", home.URL), mine)
    values[FROM] = ""
    if not more:
        return values, []
    made = make(url, key, NEEDS, "argus-hook")
    if not made:
        return values, [
            f"the key is kept as it is: it may more than hooks need ({', '.join(standing.scopes)}),"
            " and the server makes no smaller one of it"
        ]
    return {**values, "ARGUS_KEY": made, FROM: standing.prefix}, [
        f"made a key of its own that may only capture and recall ({prefix(made)}); yours"
        f" ({standing.prefix}) is kept nowhere, and that one falls with it"
    ]


def make(url: str, key: str, scopes: Sequence[str], use: str) -> str:
    """A new key that may do no more than this, a child of `key`; "" when none is to be had.

    `use`: what it is for, for whoever lists the keys.
    """
    wanted = {"name": f"{use} on {socket.gethostname()}", "scopes": list(scopes)}
    try:
        answer = ask(url, "POST", "/keys", key, json.dumps(wanted).encode())
        made = answer.json() if answer.status == 201 else None
    except Away:
        return ""
    found = made.get("key") if isinstance(made, dict) else None
    return found if isinstance(found, str) else ""


def prefix(key: str) -> str:
    """The part of a key by which the server lists it, and which opens nothing; "" for none."""
    parts = key.split("_")
    known = len(parts) > 2 and parts[0] == "argus" and len(parts[1]) == PREFIX_CHARACTERS
    return parts[1] if known else ""


def by_hand(key: str) -> str:
    """The command that revokes a key on the server, where this machine cannot."""
    return f"manage.py revokekey {prefix(key) or 'PREFIX (see manage.py keys)'}"


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
