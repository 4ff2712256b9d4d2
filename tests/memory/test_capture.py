"""Capture: every item is stored once, and every post leaves a receipt."""

from __future__ import annotations

import hashlib
import itertools
from datetime import timedelta, timezone
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memory.access import principal
from memory.envelope import SessionEnd
from memory.intake import (
    Invalid,
)
from memory.models import CaptureReceipt, Project, RawItem, Session
from tests.memory.posting import NOW, SECRET, SPOKEN, item, post, stored, the

pytestmark = pytest.mark.django_db


# Identity: a raw item is stored once for each owner, however it comes back.


def test_it_answers_the_first_id_when_an_item_is_posted_again() -> None:
    first, again = post(item()), post(item())
    assert (first.stored, first.duplicates) == (1, 0)
    assert (again.stored, again.duplicates) == (0, 1)
    assert again.outcomes[0].duplicate
    assert again.outcomes[0].id == first.outcomes[0].id == stored()[0].pk


def test_it_knows_an_instant_in_another_zone() -> None:
    post(item())
    berlin = SPOKEN.astimezone(timezone(timedelta(hours=2)))
    assert post(item(original_timestamp=berlin)).duplicates == 1
    assert post(item(original_timestamp=SPOKEN + timedelta(microseconds=1))).stored == 1


def test_it_knows_copied_history_by_its_record_id() -> None:
    first = post(item(record_id="row-1"))
    fork = post(item(record_id="row-1", session="s2", cwd="/elsewhere"))
    assert fork.outcomes[0].id == first.outcomes[0].id
    other = post(item("Something else.", record_id="row-1", source="codex"))
    assert other.stored == 1, "a record id is a name within its source only"


def test_it_knows_copied_history_by_project_instant_role_and_words() -> None:
    first = post(item())
    assert post(item(session="s2")).outcomes[0].id == first.outcomes[0].id
    assert post(item(session="s2", role="assistant")).stored == 1
    assert post(item(session="s2", cwd="/src/other")).stored == 1
    assert post(item(session="s2", body="We keep the queue in Redis.")).stored == 1


def test_it_tells_items_without_an_instant_apart_by_their_session_alone() -> None:
    undated = item(original_timestamp=None)
    assert post(undated).stored == 1
    assert post(undated, now=NOW + timedelta(days=1)).duplicates == 1
    assert post(item(original_timestamp=None, session="s2")).stored == 1


def test_it_keeps_a_transcript_for_each_of_two_owners() -> None:
    mine, theirs = post(item(record_id="row-1")), post(item(record_id="row-1"), owner="bob")
    assert mine.stored == theirs.stored == 1
    assert mine.outcomes[0].id != theirs.outcomes[0].id
    # The one's name begins with the other's.
    assert post(item(record_id="row-1"), owner="bob2").stored == 1


def test_it_stores_one_of_two_twins_in_a_batch() -> None:
    report = post(item(), item(), item("Another."), item(session="s2"))
    assert (report.stored, report.duplicates) == (2, 2)
    assert len({report.outcomes[index].id for index in (0, 1, 3)}) == 1
    assert [one.duplicate for one in report.outcomes] == [False, True, False, True]


def test_it_finds_the_row_again_when_a_secret_is_posted_again() -> None:
    first = post(item(f"the token is {SECRET}, keep it"))
    again = post(item(f"the token is {SECRET}, keep it"))
    masked = post(item(stored()[0].body))
    assert first.outcomes[0].id == again.outcomes[0].id == masked.outcomes[0].id
    row = stored()[0]
    assert SECRET not in row.body and "[redacted:" in row.body
    assert row.sha256 == hashlib.sha256(row.body.encode()).hexdigest()
    assert sum(row.flags["redacted"].values()) == sum(first.redacted.values()) == 1


def test_it_marks_a_near_duplicate_and_stores_it() -> None:
    first = post(item("We keep the job queue in Postgres, not Redis."))
    report = post(
        item("we keep the job queue  in postgres — NOT redis", session="s2"),
        item("WE KEEP the job queue in Postgres, not Redis!", session="s3"),
        item("We keep the job queue in Postgres, not Kafka.", session="s4"),
    )
    assert report.stored == 3
    near = {row.session: row.near_duplicate_of_id for row in stored()}
    origin = first.outcomes[0].id
    assert near == {"s1": None, "s2": origin, "s3": origin, "s4": None}
    other = post(item("We keep the job queue in Postgres, not Redis."), owner="bob")
    assert the(other).near_duplicate_of_id is None


def test_it_marks_a_near_duplicate_within_one_batch() -> None:
    report = post(
        item("We keep the job queue in Postgres, not Redis."),
        item("we keep the job queue in postgres, not redis", session="s2"),
    )
    assert stored(session="s2")[0].near_duplicate_of_id == report.outcomes[0].id


# Sessions.


def test_it_marks_the_session_of_a_new_turn_as_having_something_to_segment() -> None:
    post(item(), item("Later.", original_timestamp=SPOKEN + timedelta(minutes=1)))
    session = Session.objects.get()
    assert (session.source, session.key, session.pending) == ("claude-code", "s1", True)
    assert session.last_turn_at == SPOKEN + timedelta(minutes=1)
    Session.objects.update(pending=False)
    post(item())
    session.refresh_from_db()
    assert not session.pending, "a duplicate is nothing to segment"
    post(item("Earlier.", original_timestamp=SPOKEN - timedelta(days=1)))
    session.refresh_from_db()
    assert (session.pending, session.last_turn_at) == (True, SPOKEN + timedelta(minutes=1))


def test_it_keeps_the_end_of_a_session_for_segment_and_on_the_receipt() -> None:
    report = post(
        item(), session_end=SessionEnd("s1", "clear"), client_range={"seen": 9, "posted": 1}
    )
    session = Session.objects.get()
    assert (session.ended_at, session.ended_reason, session.pending) == (NOW, "clear", True)
    receipt = CaptureReceipt.objects.as_pipeline().get(pk=report.receipt or 0)
    assert receipt.session_end == {"session": "s1", "reason": "clear"}
    assert receipt.client_range == {"seen": 9, "posted": 1}
    post(item(session="s2"), session_end=SessionEnd("s2"), owner="bob")
    assert Session.objects.filter(ended_reason="clear").count() == 1


def test_it_ends_only_the_sessions_of_the_one_who_says_so() -> None:
    post(item())
    post(item(), owner="bob")
    post(session_end=SessionEnd("s1", "quit"), owner="bob")
    ended = Session.objects.exclude(ended_at=None)
    assert [session.owner.name for session in ended] == ["bob"]


def test_it_makes_no_session_of_documents() -> None:
    post(item(kind="document", session=""))
    assert not Session.objects.exists()


# The receipt.


def test_it_leaves_a_receipt_for_an_empty_post() -> None:
    report = post()
    receipt = CaptureReceipt.objects.as_pipeline().get()
    assert (report.receipt, receipt.seen, receipt.created_at) == (receipt.pk, 0, NOW)


def test_it_stores_nothing_when_it_only_tries() -> None:
    report = post(item(), item(), item(""), dry_run=True, session_end=SessionEnd("s1"))
    assert (report.stored, report.duplicates, report.refused) == (1, 1, {"empty": 1})
    assert report.receipt is None
    kept = (
        RawItem.objects.as_pipeline(),
        CaptureReceipt.objects.as_pipeline(),
        Session.objects,
        Project.objects,
    )
    assert [rows.count() for rows in kept] == [0, 0, 0, 0]


BODIES = st.one_of(
    st.sampled_from(
        ["", "We keep it.", "we keep it", "API Error: 529 overloaded_error", "a\x00", "\ud83d"]
    ),
    st.text(max_size=30),
)
ITEMS = st.builds(
    item,
    BODIES,
    role=st.sampled_from(["user", "assistant"]),
    session=st.sampled_from(["s1", "s2", ""]),
    record_id=st.sampled_from(["", "", "r1", "r2"]),
    cwd=st.sampled_from(["/src/a", ""]),
    original_timestamp=st.sampled_from([None, SPOKEN, SPOKEN + timedelta(seconds=1)]),
    kind=st.sampled_from(["turn", "document"]),
    metadata=st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=2),
)
OWNERS = itertools.count()
POSTS = st.lists(
    st.one_of(ITEMS, st.builds(Invalid, st.just("odd"), st.text(max_size=9))), max_size=8
)


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(batch=POSTS)
def test_it_accounts_for_every_item_and_stores_nothing_twice(batch: list[Any]) -> None:
    # All examples share one transaction: each has an owner of its own.
    owner = f"owner {next(OWNERS)}"
    tried = post(*batch, owner=owner, dry_run=True)
    first, second = post(*batch, owner=owner), post(*batch, owner=owner)
    for report in (first, second):
        refused = sum(report.refused.values())
        assert report.stored + report.duplicates + refused == len(batch) == len(report.outcomes)
        receipt = CaptureReceipt.objects.as_pipeline().get(pk=report.receipt or 0)
        assert (receipt.seen, receipt.stored) == (len(batch), report.stored)
        assert (receipt.duplicates, receipt.refused) == (report.duplicates, report.refused)
        assert len(receipt.refusals) == refused
    assert (tried.stored, tried.duplicates) == (first.stored, first.duplicates)
    assert tried.refused == first.refused == second.refused
    assert second.stored == 0
    assert [one.id for one in first.outcomes] == [one.id for one in second.outcomes]
    mine = RawItem.objects.as_pipeline().filter(owner=principal(owner))
    assert mine.count() == first.stored
    assert {one.id for one in first.outcomes} - {None} == set(mine.values_list("pk", flat=True))
