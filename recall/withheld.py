"""Turns that no agent is given though they were found: what a note's gate would have refused.

Reads: raw_item, evidence, note. A note passed the gate when it was made; a raw turn did not: what
it says is judged here, before it is put before an agent. Knows nothing about floors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models.functions import Left

from memory.models import Evidence, Note, Principal, RawItem
from memory.text.poison import harness, instruction, poison
from memory.text.words import normalise
from recall.excerpt import LOOKED_AT_CHARACTERS_MAX
from recall.scoring import Hit

#: Turns looked at, best first; the rest is not given.
# Why: nobody asks for more results than this, and each is read.
TURNS_READ_MAX = 60

AIMED = "aimed at an agent"
OUTDATED = "what was made of it no longer holds"
ASKS = "a question answers none"
SAME_SESSION = "of the session that asks"
SILENCED = "somebody asked never to see it again"
UNREAD = "not read"


def withhold(
    hits: Sequence[Hit],
    *,
    principal: Principal,
    now: datetime,
    session: str = "",
    silenced: Sequence[UUID] = (),
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
    outdated, replaced = (set(), []) if past or not keys else _outdated(keys, now)
    never = _statements(silenced) if keys else ()
    unread = set(looked[TURNS_READ_MAX:])
    return [
        hit
        if hit.source != "turn"
        else _judged(
            hit,
            said[hit.key],
            hit.key in outdated or _says(said[hit.key]["said"], replaced),
            never,
            session,
            prompt,
        )
        if hit.key in said
        else replace(hit, withheld=UNREAD)
        if hit.key in unread
        else hit
        for hit in hits
    ]


def _refused(hit: Hit) -> bool:
    return bool(hit.judged.refused)


def _judged(
    hit: Hit,
    row: Mapping[str, Any],
    outdated: bool,
    never: Sequence[str],
    session: str,
    prompt: bool,
) -> Hit:
    text = row["said"]
    if _says(text, never):
        return replace(hit, withheld=SILENCED)
    if instruction(text) or harness(text) or poison(text, row["role"] or "assistant"):
        return replace(hit, withheld=AIMED)
    if prompt and session and row["session"] == session:
        return replace(hit, withheld=SAME_SESSION)
    if prompt and text.rstrip(" \"')*_`\n").endswith(("?", "？")):
        return replace(hit, withheld=ASKS)
    if outdated:
        return replace(hit, withheld=OUTDATED) if prompt else replace(hit, state="outdated")
    return hit


def _says(text: str, statements: Sequence[str]) -> bool:
    """Whether a text holds one of these, as texts are compared."""
    return bool(statements) and any(one in normalise(text) for one in statements)


def _statements(notes: Sequence[UUID]) -> list[str]:
    """What those notes say, as texts are compared."""
    contents = Note.objects.as_pipeline().filter(pk__in=notes).values_list("content", flat=True)
    return [normalise(content) for content in contents]


def _outdated(items: Sequence[Any], now: datetime) -> tuple[set[Any], list[str]]:
    """Those of which a note was made that was replaced, or of whose notes none holds any more; and
    what the replaced notes say, wherever else it stands."""
    cited: dict[Any, list[tuple[bool, bool, str]]] = {}
    living = set(
        Note.objects.as_pipeline()
        .live(now)
        .values_list("pk", flat=True)
        .filter(evidence__raw_item__in=items)
    )
    edges = Evidence.objects.filter(raw_item__in=items).select_related("note")
    for edge in edges.only("raw_item_id", "note__content", "note__retired_reason"):
        note = edge.note
        holds = note.pk in living
        replaced = not holds and note.retired_reason == "superseded"
        cited.setdefault(edge.raw_item_id, []).append((holds, replaced, note.content))
    over = {
        item
        for item, notes in cited.items()
        if any(replaced for _, replaced, _ in notes) or not any(holds for holds, *_ in notes)
    }
    said = [normalise(content) for notes in cited.values() for _, replaced, content in notes
            if replaced]  # fmt: skip
    return over, said
