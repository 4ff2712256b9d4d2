"""Recall about the past: what held at a moment, as far as it was known at another."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from memory import verdicts
from memory.models import DedupVerdict, Injection, Note, Principal
from recall.feedback import give_feedback
from recall.notes import Wanted, recall_notes
from recall.query import recall_query
from recall.search import Past
from tests.recall.making import NOW, note, people, said

pytestmark = pytest.mark.django_db

ASKED = "Which port does the staging database use?"
DAY = timedelta(days=1)
#: Said on day -30; on day -10 it was said anew, and that was decided on day -5.
OLD, NEW = (
    "The staging database listens on port 5432.",
    "The staging database listens on port 5433.",
)


def moved(owner: Principal) -> tuple[Note, Note]:
    old = note(owner, OLD, valid_from=NOW - 30 * DAY, created_at=NOW - 30 * DAY)
    new = note(owner, NEW, valid_from=NOW - 10 * DAY, created_at=NOW - 10 * DAY)
    verdict = DedupVerdict.objects.create(owner=owner, note=new, target=old, verdict="supersede")
    verdicts.apply(verdict, now=NOW - 5 * DAY)
    return old, new


def queried(who: Principal, **at: datetime | None) -> list[dict[str, Any]]:
    past = Past.asked(**{"as_of": None, "known_at": None} | at, now=NOW)
    got = recall_query(ASKED, principal=who, now=NOW, past=past)
    results: list[dict[str, Any]] = got.as_json()["results"]
    return results


def contents(who: Principal, **at: datetime | None) -> set[str]:
    return {one.get("content") or one["excerpt"] for one in queried(who, **at)}


def test_it_means_by_one_moment_the_other_as_well() -> None:
    then = NOW - DAY
    assert Past.asked(as_of=None, known_at=None, now=NOW) is None
    assert Past.asked(as_of=then, known_at=None, now=NOW) == Past(then, NOW)
    assert Past.asked(as_of=None, known_at=then, now=NOW) == Past(then, then)
    assert Past.asked(as_of=NOW, known_at=then, now=NOW) == Past(NOW, then)


def test_it_finds_what_held_then_and_today_what_holds() -> None:
    alice = people().alice
    moved(alice)
    assert contents(alice) == {NEW}
    assert contents(alice, as_of=NOW - 20 * DAY) == {OLD}
    assert contents(alice, as_of=NOW - DAY) == {NEW}
    assert contents(alice, as_of=NOW - 40 * DAY) == set()


def test_it_knows_then_no_more_than_was_known() -> None:
    alice = people().alice
    moved(alice)
    assert contents(alice, known_at=NOW - 20 * DAY) == {OLD}
    assert contents(alice, known_at=NOW - 7 * DAY) == {OLD, NEW}, "not decided yet"
    assert contents(alice, known_at=NOW - DAY) == {NEW}
    assert contents(alice, as_of=NOW, known_at=NOW - 40 * DAY) == set()


def test_it_marks_what_no_longer_holds_and_points_to_what_does() -> None:
    alice = people().alice
    old, new = moved(alice)
    (one,) = queried(alice, as_of=NOW - 20 * DAY)
    assert (one["id"], one["state"]) == (str(old.pk), "superseded")
    assert one["replaced_by"]["id"] == str(new.pk) and one["replaced_by"]["content"] == NEW
    (one,) = queried(alice, as_of=NOW - DAY)
    assert (one["state"], one["replaced_by"]) == ("live", None)


def test_it_marks_it_in_the_block_as_well() -> None:
    alice = people().alice
    _, new = moved(alice)
    wanted = Wanted(past=Past(NOW - 20 * DAY, NOW))
    got = recall_notes(ASKED, principal=alice, now=NOW, wanted=wanted)
    assert OLD in got.text and f"superseded since by note {new.pk}" in got.text
    row = Injection.objects.as_pipeline().get(pk=got.injection)
    assert row.options["as_of"] == (NOW - 20 * DAY).isoformat()
    assert row.options["known_at"] == NOW.isoformat()
    today = recall_notes(ASKED, principal=alice, now=NOW)
    assert NEW in today.text and OLD not in today.text and "since" not in today.text


def test_it_finds_turns_that_had_been_said_and_captured_by_then() -> None:
    alice = people().alice
    said(alice, f"First: {OLD}", occurred_at=NOW - 30 * DAY)
    late = f"Later: {OLD}"
    said(alice, late, occurred_at=NOW - 30 * DAY, captured_at=NOW - 2 * DAY)
    said(alice, f"Now: {NEW}", occurred_at=NOW - DAY)
    assert contents(alice, as_of=NOW - 10 * DAY) == {f"First: {OLD}", late}
    assert contents(alice, known_at=NOW - 10 * DAY) == {f"First: {OLD}"}


def test_it_shows_the_past_of_nobody_else_and_nothing_that_was_silenced() -> None:
    cast = people()
    old, _ = moved(cast.alice)
    then = NOW - 20 * DAY
    assert contents(cast.bob, as_of=then) == contents(cast.charlie, as_of=then) == set()
    give_feedback(old.pk, "never", principal=cast.alice, now=NOW)
    assert contents(cast.alice, as_of=then) == set()


@pytest.mark.parametrize("days", [-400_000, 400_000])
def test_it_takes_any_moment(days: int) -> None:
    alice = people().alice
    moved(alice)
    at = NOW + timedelta(days=days)
    assert contents(alice, as_of=at) == (set() if days < 0 else {NEW})
    assert contents(alice, known_at=at) == (set() if days < 0 else {NEW})
