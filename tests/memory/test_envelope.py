"""What a client says of its post beside the items, as the receipt keeps it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from memory.access import create_key
from memory.envelope import (
    COUNTS_MAX,
    MISSES_MAX,
    NAME_CHARACTERS_MAX,
    WORD_CHARACTERS_MAX,
    kept_range,
)
from memory.models import CaptureReceipt
from tests.memory.door import TURN, problem, send
from tests.memory.posting import SECRET

pytestmark = pytest.mark.django_db

RANGE = {
    "seen": 9, "filtered": 6, "posted": 1, "session": "s1",
    "reasons": {"tool": 5, "sidechain": 1}, "redacted": {"github_token": 2},
}  # fmt: skip
SENDER = {"name": "argus-hook", "version": "0.1.0", "machine": "desk", "client": "claude"}
MISS = {
    "session": "s0", "client": "codex", "reason": "no_transcript", "at": "2026-05-04T09:00:00Z",
    "detail": "the file was gone",
}  # fmt: skip


@pytest.fixture
def key() -> str:
    return create_key(owner="alice", scopes=["capture"])[0]


def receipt(key: str, **envelope: Any) -> Any:
    """The receipt of a post with this envelope."""
    answer = send(key, {"items": [TURN]} | envelope)
    assert answer.status_code == 200, answer.content
    return CaptureReceipt.objects.as_pipeline().get(pk=answer.json()["receipt"])


def test_it_keeps_what_the_client_says_of_itself_and_of_what_it_missed(key: str) -> None:
    row = receipt(key, range=RANGE, client=SENDER, misses=[MISS, {"reason": "locked"}])
    assert row.client_range == RANGE
    assert row.client == SENDER
    assert row.misses == [MISS, {"reason": "locked"}]


def test_it_keeps_nothing_where_nothing_was_said(key: str) -> None:
    row = receipt(key, client={}, misses=[], range={"posted": 1})
    assert (row.client, row.misses) == ({}, [])
    assert row.client_range == {"seen": 0, "filtered": 0, "posted": 1}
    assert send(key, TURN).status_code == 200
    single = CaptureReceipt.objects.as_pipeline().latest("pk")
    assert (single.client, single.misses, single.client_range) == ({}, [], {})


def test_it_takes_a_post_with_misses_or_an_end_and_no_item(key: str) -> None:
    row = receipt(key, items=[], misses=[MISS], session_end={"session": "s1", "reason": "quit"})
    assert (row.seen, row.misses) == (0, [MISS])
    assert row.session_end == {"session": "s1", "reason": "quit"}


def test_no_word_of_the_client_costs_the_items_that_came_with_it(key: str) -> None:
    """Too long, too many, dirty: cut and counted, never refused."""
    many = {f"reason {number}": number for number in range(COUNTS_MAX + 10)}
    row = receipt(
        key,
        client={"name": "n" * 10_000, "machine": "de\x00sk\ud83d"},
        range={"reasons": many, "redacted": {"x" * 1_000: 3}, "session": "s" * 10_000},
        misses=[MISS | {"detail": "d" * 10_000}] * (MISSES_MAX + 5),
    )
    assert row.stored == 1
    assert len(row.client["name"]) == WORD_CHARACTERS_MAX and row.client["machine"] == "desk\ufffd"
    reasons = row.client_range["reasons"]
    assert len(reasons) == COUNTS_MAX and sum(reasons.values()) == sum(many.values())
    assert reasons["others"] == sum(range(11)) and reasons[f"reason {COUNTS_MAX + 9}"]
    assert row.client_range["redacted"] == {"x" * NAME_CHARACTERS_MAX: 3}
    assert len(row.misses) == MISSES_MAX + 1
    assert row.misses[-1] == {"reason": "left_out", "detail": "5 more misses in this post"}


def test_names_that_cutting_makes_alike_are_counted_together() -> None:
    long = "x" * NAME_CHARACTERS_MAX
    assert kept_range({"reasons": {long + "a": 1, long + "b": 2}}) == {"reasons": {long: 3}}


def test_it_keeps_no_secret_and_nothing_private(key: str) -> None:
    dirty = f"{SECRET} <private>hunter2</private>"
    row = receipt(
        key,
        client=dict.fromkeys(SENDER, dirty),
        misses=[dict.fromkeys(MISS, dirty)],
        range={"session": dirty, "reasons": {dirty: 1}, "redacted": {dirty: 1}},
        session_end={"session": dirty, "reason": dirty},
    )
    kept = json.dumps([row.client, row.misses, row.client_range, row.session_end])
    assert SECRET not in kept and "hunter2" not in kept
    assert kept.count("[private]") == 4 + 5 + 3 + 2


@pytest.mark.parametrize(
    ("wrong", "pointer"),
    [
        ({"client": "argus-hook"}, "/client"),
        ({"client": {"name": 5}}, "/client/name"),
        ({"misses": {}}, "/misses"),
        ({"misses": ["gone"]}, "/misses/0"),
        ({"range": {"reasons": {"tool": "many"}}}, "/range/reasons/tool"),
    ],
)
def test_it_says_what_is_of_the_wrong_kind(key: str, wrong: Any, pointer: str) -> None:
    told = problem(send(key, {"items": [TURN]} | wrong), 422, "invalid")
    assert pointer in [error["pointer"] for error in told["errors"]]
    assert not CaptureReceipt.objects.as_pipeline().exists()
