"""One post as the server takes it: made, sent, and halved until the item at fault stands alone.

An item that the server refuses for good is left out and told, so that it never holds up the others.
Knows nothing about files, offsets or the spool.
"""

from __future__ import annotations

import json
import os
from typing import Any

from argus.hook import home, trouble
from argus.hook.door import Door, Refused
from argus.hook.wire import Away


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
    try:
        return acknowledged(door.post("/capture", body(items, envelope)), len(items))
    except Refused as refused:
        if len(items) > 1:
            half = len(items) // 2
            first = send(door, items[:half], _who(envelope))
            last = send(door, items[half:], envelope)
            return {name: first[name] + last[name] for name in first}
        if items:
            _leave_out(door, items[0], envelope, refused)
            return send(door, [], envelope)
        if len(envelope) == len(_who(envelope)):
            raise Away("http", detail=f"no post of ours is taken ({refused})") from None
        trouble.log(f"the server refused what stands beside the items ({refused})")
        return dict.fromkeys(("stored", "duplicates", "refused"), 0)


def _who(envelope: dict[str, Any]) -> dict[str, Any]:
    return {name: envelope[name] for name in envelope if name == "client"}


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


def _leave_out(door: Door, item: str, envelope: dict[str, Any], refused: Refused) -> None:
    """Tell that this item cannot be stored. Raises Away when the server takes nothing at all."""
    if refused.status != 413:
        send(door, [], _who(envelope))
    said = json.loads(item)
    client = str(envelope.get("client", {}).get("client", ""))
    detail = f"{said.get('role')} {said.get('record_id')}: {refused}"
    trouble.miss(client, str(said.get("session")), "refused", detail)
