"""One post as the server takes it: made, sent, and halved until the item at fault stands alone.

An item that the server does not take is set aside and told, so that it never holds up the others.
Knows nothing about files, offsets or the spool.
"""

from __future__ import annotations

import json
import os
import time
from typing import Any

from argus.hook import home, locate, trouble
from argus.hook.door import Door, Refused, doubtful
from argus.hook.wire import Away

#: Folder of items that the server does not take, and how many of them are kept.
# Why: their words stand in a transcript as well; these are for whoever looks for the reason.
ASIDE, ASIDE_FILES_MAX = "aside", 100


def body(items: list[str], envelope: dict[str, Any]) -> bytes:
    """The bytes of one post: items that are JSON already, and what is said beside them."""
    beside = "".join(f",{json.dumps(name)}:{json.dumps(envelope[name])}" for name in envelope)
    return f'{{"items":[{",".join(items)}]{beside}}}'.encode("utf-8", "replace")


def sender(client: str) -> dict[str, str]:
    """Who posts: program, build, machine, and the agent it posts for."""
    try:
        with open(home.place("lib", "sha256"), encoding="ascii", errors="replace") as handle:
            version = handle.read(12)
    except OSError:
        version = "source"
    machine = os.uname().nodename
    return {"name": "argus-hook", "version": version, "machine": machine, "client": client}


def send(door: Door, items: list[str], envelope: dict[str, Any]) -> dict[str, int]:
    """Post these items to their last one; what the server did with how many of them.

    Raises Away when it did not acknowledge.
    """
    post = door.ask if door.stubborn else door.post
    try:
        answer = acknowledged(post("/capture", body(items, envelope)), len(items))
        door.tally.add(answer["stored"], envelope)
        return answer
    except Refused as refused:
        fault, probing = str(refused), True
    except Away as away:
        if not (door.stubborn and doubtful(away)):
            raise
        # Before anything is halved: the server may have gone meanwhile.
        probe(door)
        fault, probing = str(away), False
    if len(items) > 1:
        half = len(items) // 2
        first = send(door, items[:half], _who(envelope))
        last = send(door, items[half:], envelope)
        return {name: first[name] + last[name] for name in first}
    if probing:
        # Whoever refuses everything is none of ours; what we say is kept for who is.
        probe(door)
    if items:
        _set_aside(items[0], envelope, fault)
        return send(door, [], envelope)
    if len(envelope) == len(_who(envelope)):
        raise Away("http", detail=f"no post of ours is taken ({fault})")
    trouble.log(f"the server does not take what stands beside the items ({fault})")
    return dict.fromkeys(("stored", "duplicates", "refused"), 0)


def _who(envelope: dict[str, Any]) -> dict[str, Any]:
    return {name: envelope[name] for name in envelope if name == "client"}


def probe(door: Door) -> None:
    """Post nothing. Raises Away when the server takes nothing at all."""
    try:
        acknowledged(door.post("/capture", body([], {"client": sender("")})), 0)
    except Refused as refused:
        raise Away("http", detail=f"no post of ours is taken ({refused})") from None


def acknowledged(reply: dict[str, Any], items: int) -> dict[str, int]:
    """What the server did with the items of a post. Raises Away when the reply tells nothing."""
    told = reply.get("items")
    if not reply.get("receipt") or not isinstance(told, list) or len(told) != items:
        raise Away("json", detail="the answer acknowledges nothing")
    outcomes = [one if isinstance(one, dict) else {} for one in told]
    duplicates = sum(bool(one.get("duplicate")) for one in outcomes)
    refused = sum(bool(one.get("refused")) for one in outcomes)
    stored = items - duplicates - refused
    return {"stored": stored, "duplicates": duplicates, "refused": refused}


def _set_aside(item: str, envelope: dict[str, Any], fault: str) -> None:
    """Keep an item that cannot be stored where `retry` finds it, and tell the server of it."""
    said = json.loads(item)
    client = str(envelope.get("client", {}).get("client", ""))
    detail = f"{said.get('role')} {said.get('record_id')}: {fault}"
    trouble.miss(client, str(said.get("session")), "refused", detail)
    try:
        folder = home.private("hook", ASIDE)
        for name in locate.names(folder)[: -ASIDE_FILES_MAX + 1]:
            trouble.log(f"aside: {name} goes for want of room")
            os.unlink(os.path.join(folder, name))
        path = os.path.join(folder, f"{time.time_ns():020d}-{os.getpid()}.post")
        home.write(path, body([item], _who(envelope)))
    except OSError as error:
        trouble.log(f"an item could not be set aside: {error.strerror}")


def retry(door: Door) -> int:
    """Send again what was set aside, as a person asks; how much was taken."""
    taken = 0
    for name in locate.names(home.place("hook", ASIDE)):
        path = home.place("hook", ASIDE, name)
        try:
            with open(path, "rb") as handle:
                acknowledged(door.ask("/capture", handle.read()), 1)
            os.unlink(path)
            taken += 1
        except (OSError, Refused, Away) as error:
            trouble.log(f"aside: {name} stays: {error}")
            if isinstance(error, Away) and not doubtful(error):
                break
    return taken
