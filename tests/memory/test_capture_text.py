"""Capture cleans text, takes secrets out and doubts times, wherever they stand."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from django.db import connection
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.attribution import Registry
from memory.envelope import SessionEnd
from memory.intake import (
    Invalid,
    Refusal,
    instant,
    judge,
)
from memory.models import CaptureReceipt, Project, Session
from tests.memory.posting import NOW, SECRET, SPOKEN, item, post, stored

pytestmark = pytest.mark.django_db


def test_it_cleans_nul_and_lone_surrogates_at_every_depth_and_in_keys() -> None:
    dirty = "a\x00b\ud83dc"
    deep = {dirty: [{dirty: dirty}, [dirty, 1, None]], "n": float("nan")}
    report = post(
        item(
            f"Say {dirty}", source="api", role=dirty, session=dirty, cwd=f"/src/{dirty}",
            project=dirty, record_id=dirty, metadata=deep, locator=deep,
        ),
        session_end=SessionEnd(dirty, dirty),
        client_range={dirty: 3},
    )  # fmt: skip
    clean = "ab\ufffdc"
    row = stored()[0]
    assert report.stored == 1
    assert (row.body, row.role, row.session, row.record_id) == (f"Say {clean}", clean, clean, clean)
    assert row.metadata == {clean: [{clean: clean}, [clean, 1, None]], "n": None}
    assert row.locator == row.metadata
    assert row.flags["sanitised"] is True
    assert Project.objects.get().name == clean
    assert Session.objects.get(key=clean).ended_reason == clean
    receipt = CaptureReceipt.objects.as_pipeline().get()
    assert receipt.session_end == {"session": clean, "reason": clean}
    assert receipt.client_range == {clean: 3}


def test_it_cleans_what_a_refusal_keeps() -> None:
    assert post(Invalid("odd \x00", "\x00\ud800 {"), item("\x00", source="\x00\ud800")).stored == 0
    assert CaptureReceipt.objects.as_pipeline().get().refusals[0]["excerpt"] == "\ufffd {"


def test_it_finds_the_row_again_when_dirty_text_is_posted_again() -> None:
    assert post(item("ok \ud83d end \x00")).stored == 1
    assert post(item("ok \ud83d end \x00"), item("ok \ufffd end ")).duplicates == 2


def test_it_keeps_a_secret_out_of_every_column() -> None:
    post(
        item(
            f"body {SECRET}", source=SECRET, role=SECRET, session=SECRET, cwd=f"/src/{SECRET}",
            project=SECRET, record_id=SECRET, metadata={"a": [{SECRET: SECRET}]},
            locator={SECRET: SECRET},
        ),
        item("", source=SECRET),
        item(f"API Error: {SECRET}", role="assistant"),
        Invalid(f"{SECRET} is no kind", SECRET),
        session_end=SessionEnd(SECRET, SECRET),
    )  # fmt: skip
    assert everything().count(SECRET) == 0
    assert everything().count("[redacted:") > 10
    row = stored()[0]
    assert sum(row.flags["redacted"].values()) == 11, "each find is counted, whatever the field"
    assert Session.objects.get().ended_at == NOW, "the end of a session finds its redacted key"


def everything() -> str:
    """All that the tables of this application hold, as text."""
    tables = [name for name in connection.introspection.table_names() if "memory_" in name]
    with connection.cursor() as cursor:
        found = []
        for table in tables:
            cursor.execute(f"SELECT row_to_json(t)::text FROM {table} t")
            found += [row for (row,) in cursor.fetchall()]
    return "\n".join(found)


def test_it_stores_what_it_was_given_to_the_letter() -> None:
    # Composed and decomposed letters, line ends of three systems, odd spaces, odd separators.
    for number, body in enumerate(
        ["e\u0301 \u00e9", "a\r\nb\rc\n", "\u2028x\u2029 \u0085 \x0b\x0c", " x\n"]
    ):
        post(item(body, session=f"letter {number}"))
        assert stored(session=f"letter {number}")[0].body == body


# Time.

EARLY_EAST = datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14)))
LATE_WEST = datetime(9999, 12, 31, 23, tzinfo=timezone(-timedelta(hours=12)))


@pytest.mark.parametrize(
    ("given_", "expected", "flag"),
    [
        (None, NOW, ""),
        (SPOKEN, SPOKEN, ""),
        (SPOKEN.replace(tzinfo=None), SPOKEN, "naive"),
        (NOW + timedelta(hours=23), NOW + timedelta(hours=23), ""),
        (NOW + timedelta(hours=25), NOW, "future"),
        (NOW + timedelta(days=3650), NOW, "future"),
        (datetime(9999, 12, 31, 23, 59, tzinfo=UTC), NOW, "future"),
        (LATE_WEST, NOW, "impossible"),
        (datetime(1, 1, 1), NOW, "impossible"),
        (EARLY_EAST, NOW, "impossible"),
        (datetime(1970, 1, 1, tzinfo=UTC), NOW, "impossible"),
    ],
)
def test_it_replaces_a_time_that_cannot_be_true_and_says_so(
    given_: datetime | None, expected: datetime, flag: str
) -> None:
    assert instant(given_, now=NOW) == (expected, flag)
    assert post(item(original_timestamp=given_)).stored == 1
    row = stored()[0]
    assert (row.occurred_at, row.flags.get("clock", "")) == (expected, flag)
    assert row.captured_at == NOW


def test_it_knows_an_item_of_an_impossible_time_again() -> None:
    odd = item(original_timestamp=datetime(9999, 1, 1, tzinfo=UTC))
    assert post(odd).stored == 1
    assert post(odd, now=NOW + timedelta(minutes=7)).duplicates == 1


def test_it_takes_a_naive_time_as_the_same_instant_in_utc() -> None:
    post(item(original_timestamp=SPOKEN.replace(tzinfo=None)))
    assert post(item(), item(session="s2")).duplicates == 2


@settings(max_examples=200, deadline=None)
@given(body=st.text(min_size=1, max_size=200))
def test_it_keeps_any_text_as_it_was(body: str) -> None:
    judged = judge(0, item(body, kind="document"), registry=Registry(), now=NOW)
    if isinstance(judged, Refusal):
        assert not body.replace("\x00", "").strip()
        return
    if "redacted" not in judged.flags:
        assert judged.body == body.replace("\x00", "")
