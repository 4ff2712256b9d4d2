"""Turns that no agent is given though they were found: what a note's gate would have refused.

Reads: raw_item, evidence, note. A note passed the gate when it was made; a raw turn did not: what it
says is judged here, before it is put before an agent. Knows nothing about floors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from django.db.models.functions import Left

from memory.models import Evidence, Note, Principal, RawItem
from memory.text.poison import harness, instruction, poison
from recall.excerpt import LOOKED_AT_CHARACTERS_MAX
from recall.scoring import Hit

#: Turns looked at, best first; the rest is not given.
# Why: nobody asks for more results than this, and each is read.
TURNS_READ_MAX = 60

AIMED = "aimed at an agent"
OUTDATED = "what was made of it no longer holds"
ASKS = "a question answers none"
SAME_SESSION = "of the session that asks"
UNREAD = "not read"


def withhold(
    hits: Sequence[Hit],
    *,
    principal: Principal,
    now: datetime,
    session: str = "",
    prompt: bool,
    past: bool = False,
) -> list[Hit]:
    """The hits in their order, each turn that is not to be given with the reason (`withheld`).

    Whoever asks on purpose is given questions, the session's own turns, and what is outdated, too,
    marked as such (`state`); nobody is given what gives orders to an agent.
    """
    looked = [hit.key for hit in hits if hit.source == "turn" and not (prompt and _refused(hit))]
    keys = looked[:TURNS_READ_MAX]
    said = {
        row["pk"]: row
        for row in RawItem.objects.visible_to(principal)
        .filter(pk__in=keys)
        .annotate(said=Left("body", LOOKED_AT_CHARACTERS_MAX))
        .values("pk", "said", "session", "role")
    }
    outdated = set() if past else _outdated(keys, now)
    unread = set(looked[TURNS_READ_MAX:])
    return [
        hit
        if hit.source != "turn"
        else _judged(hit, said.get(hit.key), hit.key in outdated, session, prompt)
        if hit.key in said
        else replace(hit, withheld=UNREAD)
        if hit.key in unread
        else hit
        for hit in hits
    ]


def _refused(hit: Hit) -> bool:
    return bool(hit.judged.refused)


def _judged(
    hit: Hit, row: Mapping[str, Any] | None, outdated: bool, session: str, prompt: bool
) -> Hit:
    if row is None:
        return hit
    text = row["said"]
    if instruction(text) or harness(text) or poison(text, row["role"] or "assistant"):
        return replace(hit, withheld=AIMED)
    if prompt and session and row["session"] == session:
        return replace(hit, withheld=SAME_SESSION)
    if prompt and text.rstrip(" \"')*_`\n").endswith(("?", "？")):
        return replace(hit, withheld=ASKS)
    if outdated:
        return replace(hit, withheld=OUTDATED) if prompt else replace(hit, state="outdated")
    return hit


def _outdated(items: Sequence[Any], now: datetime) -> set[Any]:
    """Those of which notes were made that hold no more, every one of them."""
    if not items:
        return set()
    cited = set(Evidence.objects.filter(raw_item__in=items).values_list("raw_item", flat=True))
    living = Note.objects.as_pipeline().live(now).filter(evidence__raw_item__in=cited)
    return cited - set(living.values_list("evidence__raw_item", flat=True))
