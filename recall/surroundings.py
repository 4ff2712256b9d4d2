"""What was said around a turn: the turns before and after it in its session, who and when.

Reads: raw_item, evidence, note. Every turn and note shown beside one is one that may go to the
reader: visible, and not silenced. A long turn is cut where it is read, in the database.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from itertools import zip_longest
from typing import Any

from django.db.models import Q, Value
from django.db.models.functions import Length, Substr

from memory.errors import NotFound
from memory.models import RawItem
from memory.querysets import OwnedQuerySet
from recall.budget import ANSWER_CHARACTERS, Budget, size
from recall.reader import Reader

#: Turns shown on each side.
# Why: a question and its answer, and what led to them; measured on dialogues, three turns hold what
# a "that" or a "she" of the turn points to.
# Calibrate: how often a surrounding of three is followed by opening the turn at its end.
SURROUNDING_TURNS = 3

#: Characters shown of a surrounding turn.
# Why: a pasted log before a question must not fill the answer.
TURN_CHARACTERS_MAX = 1_000

#: Share of an answer that what stands around an opened turn may have; the turn has the rest.
# Why: a turn of a megabyte would leave nothing, and without them it is half understood.
SURROUNDINGS_SHARE = 0.4

#: Notes named beside an opened turn.
TURN_NOTES_MAX = 10

#: What of a raw item is read for a turn.
COLUMNS = ("id", "role", "source", "session", "occurred_at", "characters", "shown")

#: Room for the keys of an answer that are written last.
SLACK_CHARACTERS = 120


def surround(
    item: RawItem, *, who: Reader, budget: Budget
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The turns before and after a turn, in the order of the session. The nearest are taken first,
    as far as the budget goes, so that what is shown is one piece; none for what stands in no
    session."""
    before, after = _sides(item, who)
    kept: tuple[list[dict[str, Any]], list[dict[str, Any]]] = ([], [])
    open_sides = [True, True]
    for pair in zip_longest(before, after):
        for side, turn in enumerate(pair):
            if turn is None:
                continue
            open_sides[side] = open_sides[side] and budget.take(turn)
            if open_sides[side]:
                kept[side].append(turn)
            else:
                budget.omit("surroundings")
    return kept[0][::-1], kept[1]


def _sides(item: RawItem, who: Reader) -> tuple[list[dict[str, Any]], ...]:
    if item.kind != "turn" or not item.session:
        return [], []
    at, pk = item.occurred_at, item.pk
    said: OwnedQuerySet = who.items().filter(
        owner=item.owner_id, source=item.source, session=item.session, kind="turn"
    )
    earlier = said.filter(Q(occurred_at__lt=at) | Q(occurred_at=at, pk__lt=pk))
    later = said.filter(Q(occurred_at__gt=at) | Q(occurred_at=at, pk__gt=pk))
    return (
        list(_turns(earlier.order_by("-occurred_at", "-pk"))),
        list(_turns(later.order_by("occurred_at", "pk"))),
    )


def _turns(rows: OwnedQuerySet) -> Iterator[dict[str, Any]]:
    for row in _cut(rows, 0, TURN_CHARACTERS_MAX)[:SURROUNDING_TURNS]:
        yield _told(row)


def _cut(rows: OwnedQuerySet, offset: int, characters: int) -> Any:
    """So many characters of each body from an offset on; the rest stays in the database."""
    shown = Substr("body", offset + 1, Value(characters))
    return rows.annotate(shown=shown, characters=Length("body")).values(*COLUMNS)


def _told(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": row["id"],
        "role": row["role"],
        "occurred_at": row["occurred_at"].isoformat(),
        "body": row["shown"],
        # How long it is when the body is not all of it.
        **({"cut": row["characters"]} if row["characters"] > len(row["shown"]) else {}),
    }


def open_turn(
    turn_id: int,
    *,
    who: Reader,
    now: datetime,
    characters: int = ANSWER_CHARACTERS,
    offset: int = 0,
) -> dict[str, Any]:
    """A raw item by its id, from `offset` on, with the turns around it and the live notes that
    stand on it, in about so many characters. One that bears out a silenced note opens, too, as the
    note does. Raises NotFound, also for somebody else's."""
    pool = RawItem.objects.visible_to(who.principal, mates=who.mates).filter(pk=turn_id)
    item = pool.select_related("project").defer("body").first()
    if item is None:
        raise NotFound(f"no turn {turn_id}")
    (row,) = _cut(pool, offset, characters)
    told: dict[str, Any] = {
        **_told(row),
        "kind": item.kind,
        "source": item.source,
        "session": item.session,
        "project": item.project.name if item.project else None,
        "characters": row["characters"],
        "offset": offset,
        "before": [],
        "after": [],
        "notes": [],
    }
    budget = Budget(characters - SLACK_CHARACTERS - size({**told, "body": ""}))
    around = Budget(int(budget.left * SURROUNDINGS_SHARE), budget.omitted)
    notes = who.notes().live(now).filter(evidence__raw_item=item)
    named = notes.distinct().order_by("valid_from", "pk").values("id", "title")[:TURN_NOTES_MAX]
    told["notes"] = around.fit("notes", ({**one, "id": str(one["id"])} for one in named))
    told["before"], told["after"] = surround(item, who=who, budget=around)
    spent = [*told["notes"], *told["before"], *told["after"]]
    budget.left -= size(spent)
    told["body"] = _begin(row["shown"], budget)
    if offset + len(told["body"]) < row["characters"]:
        told["cut"] = row["characters"]
    return {**told, "omitted": budget.omitted}


def _begin(text: str, budget: Budget) -> str:
    """As much of a text as the budget holds; what JSON writes as two characters counts as two."""
    longest, shortest = len(text), 0
    while shortest < longest:
        middle = (shortest + longest + 1) // 2
        if size(text[:middle]) < budget.left:
            shortest = middle
        else:
            longest = middle - 1
    return text[:shortest]
