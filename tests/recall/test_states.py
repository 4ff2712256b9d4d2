"""What became of a note: the same as the predicates say, for every order in which things happen."""

from __future__ import annotations

from datetime import timedelta
from itertools import product
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from memory.models import DedupVerdict, Note, Principal
from recall.reader import reader
from recall.states import STATE_COLUMNS, STATES, believed, stale, state
from tests.recall.making import NOW, note, people, unsaved

pytestmark = pytest.mark.django_db

PORT = "The staging database listens on port 5433."


def every_life(owner: Principal) -> list[Note]:
    """A note for every order of becoming known, true, untrue and retired."""

    def day(number: int | None) -> Any:
        return None if number is None else NOW + timedelta(days=number)

    lives = product(
        (-3, 0, 2), (None, -2, 1, 3), (-3, -1), (None, -2, 0), (None, -2, 0),
        ("superseded", "duplicate", "redistilled"),
    )  # fmt: skip
    return Note.objects.bulk_create(
        unsaved(
            owner, PORT, embedding=None, valid_from=day(start), valid_to=day(end),
            created_at=day(made), deleted_at=day(gone), invalidated_at=day(ended),
            retired_reason="" if gone is None else reason,
        )
        for start, end, made, gone, ended, reason in lives
    )  # fmt: skip


def test_it_says_live_of_exactly_the_notes_of_the_predicates() -> None:
    alice = people().alice
    every_life(alice)
    pool = Note.objects.visible_to(alice)
    rows = list(pool.values(*STATE_COLUMNS))
    live = set(pool.live(NOW).values_list("pk", flat=True))
    assert {row["id"] for row in rows if state(row, NOW) == "live"} == live and live
    for as_of, known_at in product(range(-4, 5), repeat=2):
        when = {
            "as_of": NOW + timedelta(days=as_of), "known_at": NOW + timedelta(days=known_at)
        }  # fmt: skip
        held = set(pool.believed(**when).values_list("pk", flat=True))
        assert {row["id"] for row in rows if believed(row, **when) == "live"} == held, when
    seen = {believed(row, as_of=NOW, known_at=NOW) for row in rows} | {state(r, NOW) for r in rows}
    assert seen <= set(STATES)


def replace(new: Note, old: Note, verdict: str, **fields: Any) -> None:
    DedupVerdict.objects.create(owner=new.owner, note=new, target=old, verdict=verdict, **fields)


def gone(owner: Principal, content: str, reason: str, days: int = 30, **fields: Any) -> Note:
    return note(
        owner, content, embedding=None, deleted_at=NOW, retired_reason=reason,
        valid_from=NOW - timedelta(days=days), **fields,
    )  # fmt: skip


def test_it_marks_what_no_longer_holds_and_points_to_what_does() -> None:
    alice = people().alice
    live = note(alice, PORT, embedding=None, valid_from=NOW - timedelta(days=1))
    older = gone(alice, f"{PORT} Was.", "superseded")
    oldest = gone(alice, f"{PORT} Was before.", "superseded", days=40)
    twin = gone(alice, f"{PORT} Twin.", "duplicate")
    redone = gone(alice, f"{PORT} Redone.", "redistilled")
    replace(live, older, "supersede")
    # Read in the other order: the note that was judged is the one that lost.
    replace(oldest, older, "supersede")
    replace(twin, live, "duplicate")
    replace(live, redone, "supersede", status="undone")
    rows = [{"id": one.pk, "more": 1} for one in (live, older, oldest, twin, redone)]
    told = stale(rows, who=reader(alice, None), now=NOW)
    assert [(one["state"], (one["replaced_by"] or {}).get("id")) for one in told] == [
        ("live", None), ("superseded", str(live.pk)), ("superseded", str(live.pk)),
        ("duplicate", str(live.pk)), ("retired", None),
    ]  # fmt: skip
    assert all(one["more"] == 1 for one in told)
    assert told[1]["replaced_by"]["content"] == PORT and told[1]["replaced_by"]["state"] == "live"


def test_it_points_to_the_last_note_that_the_reader_may_see() -> None:
    cast = people()
    first = gone(cast.alice, "Port is 1.", "superseded", visibility="common", days=9)
    second = gone(cast.alice, "Port is 2.", "superseded", visibility="common", days=8)
    third = note(cast.alice, "Port is 3.", embedding=None, valid_from=NOW - timedelta(days=7))
    replace(second, first, "supersede")
    replace(third, second, "supersede")

    def heir(one: Note, who: Principal) -> Any:
        (told,) = stale([{"id": one.pk}], who=reader(who, None), now=NOW)
        return told["replaced_by"] and told["replaced_by"]["content"]

    assert (heir(first, cast.alice), heir(second, cast.alice)) == ("Port is 3.", "Port is 3.")
    assert (heir(first, cast.charlie), heir(second, cast.charlie)) == ("Port is 2.", None)


def test_it_ends_when_replacements_run_in_a_circle() -> None:
    alice = people().alice
    a, b = (gone(alice, f"Port is {n}.", "refined") for n in range(2))
    replace(a, b, "refine")
    replace(b, a, "refine")
    (told,) = stale([{"id": a.pk}], who=reader(alice, None), now=NOW)
    assert told["state"] == "refined" and told["replaced_by"]["id"] == str(b.pk)


def test_it_asks_once_when_everything_holds() -> None:
    alice = people().alice
    rows = [{"id": note(alice, f"{PORT} {n}", embedding=None).pk} for n in range(5)]
    who = reader(alice, None)
    with CaptureQueriesContext(connection) as asked:
        assert {one["state"] for one in stale(rows, who=who, now=NOW)} == {"live"}
    assert len(asked) == 1
    assert stale([], who=reader(alice, None), now=NOW) == []
