"""Identity: the same turn has the same key, another has another; parts are known again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.text.identity import copy_key, dedup_key, near_key, sha256
from memory.text.shingles import shingles

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
BERLIN = timezone(timedelta(hours=1))
LONG = (
    "We moved the ledger from SQLite to Postgres because two workers could not write at once, and "
    "since then the nightly run takes four minutes instead of eleven; the old file stays in the "
    "archive bucket for a year."
)


def test_it_knows_the_same_instant_in_another_zone() -> None:
    here = dedup_key("s", NOON, "user", "hi")
    assert here == dedup_key("s", NOON.astimezone(BERLIN), "user", "hi")
    assert len(here) == 32


def test_it_tells_apart_session_instant_role_and_body() -> None:
    keys = {
        dedup_key("s", NOON, "user", "hi"),
        dedup_key("t", NOON, "user", "hi"),
        dedup_key("s", NOON + timedelta(microseconds=1), "user", "hi"),
        dedup_key("s", NOON, "assistant", "hi"),
        dedup_key("s", NOON, "user", "hi "),
        dedup_key("s", None, "user", "hi"),
        copy_key("s", NOON, "user", "hi"),
    }
    assert len(keys) == 7


def test_it_is_not_fooled_by_a_separator_in_a_name() -> None:
    stamp = NOON.isoformat(timespec="microseconds")
    assert dedup_key("a", NOON, "user", f"b|{stamp}|user|c") != dedup_key(
        f"a|{stamp}|user|b", NOON, "user", "c"
    )


def test_it_refuses_an_instant_without_a_zone() -> None:
    with pytest.raises(ValueError, match="time zone"):
        dedup_key("s", datetime(2026, 3, 1), "user", "hi")


def test_it_knows_a_near_copy_and_leaves_small_talk_alone() -> None:
    assert near_key(LONG) == near_key("  " + LONG.upper().replace(",", " ,") + "!!")
    assert near_key(LONG) != near_key(LONG.replace("eleven", "twelve"))
    assert near_key("ok, go on then please") is None
    assert near_key("我们决定使用数据库") == near_key("我们决定，使用数据库。") is not None


def test_it_hashes_any_text() -> None:
    assert len(sha256("\ud800")) == 64


def test_a_quotation_shares_shingles_with_its_source() -> None:
    quote = " ".join(LONG.split()[5:30])
    source = set(shingles("Something else first. " + LONG + " And something after."))
    found = shingles("He said: " + quote.upper())
    assert len(source & set(found)) >= 2
    assert not source & set(
        shingles("The weather in the mountains was fine all week, and nobody wrote a line.")
    )


def test_a_quotation_without_spaces_is_known_too() -> None:
    chinese = (
        "我们把账本从旧的数据库迁移到新的数据库因为两个进程不能同时写入"
        "从那以后每晚的任务只需要四分钟而不是十一分钟旧文件保留一年"
    )
    assert set(shingles(chinese)) & set(shingles(chinese[4:50]))


@given(st.text())
def test_its_shingles_fit_a_bigint(text: str) -> None:
    numbers = shingles(text)
    assert all(-(2**63) <= number < 2**63 for number in numbers)
    assert len(set(numbers)) == len(numbers)


def test_a_short_text_is_one_shingle() -> None:
    assert len(shingles("three little words")) == 1
    assert shingles("...") == []
