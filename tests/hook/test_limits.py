"""A name that is too long for the server costs no turn, and stays one of a kind."""

from __future__ import annotations

import json

import pytest

from argus.hook import limits
from memory import intake
from memory.models import CaptureReceipt, RawItem
from tests.hook.ground import Home
from tests.hook.talks import Talk, stored, tend


def test_it_knows_the_limits_of_the_server() -> None:
    assert limits.FIELD_CHARACTERS_MAX == intake.FIELD_CHARACTERS_MAX
    assert limits.NESTING_LEVELS_MAX == intake.NESTING_LEVELS_MAX


def test_it_keeps_apart_what_differs_at_its_end_only() -> None:
    one, other = (limits.short("record_id", "x" * 600 + end) for end in "ab")
    assert one != other
    assert len(one) == 500
    assert limits.short("record_id", "x" * 500) == "x" * 500


@pytest.mark.parametrize("levels", [32, 33, 5_000])
def test_it_makes_nothing_that_is_too_deep(levels: int) -> None:
    deep: object = "x"
    for _ in range(levels):
        deep = {"a": [deep]} if levels > 1_000 else [deep]
    kept = limits.shallow(deep)
    assert intake.nested(kept) <= intake.NESTING_LEVELS_MAX
    assert (kept == deep) is (levels == 32)
    json.dumps(kept)


def test_it_stores_turns_whose_names_are_too_long(
    wired: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(wired.path))
    talk = Talk("claude", wired.path, cwd="/src/" + "deep/" * 1_000).say("One.", "Two.", "Three.")
    for row in talk.rows:
        row["uuid"] = row["uuid"] * 20
        row["parentUuid"] = row["parentUuid"] and row["parentUuid"] * 20
        row["sessionId"] = talk.session * 20
    talk.path.write_bytes(talk.data())
    tend(talk)
    tend(talk, "SessionEnd", reason="other")
    assert stored() == talk.turns
    items = RawItem.objects.as_pipeline()
    assert len({item.record_id for item in items}) == 3
    (session,) = {item.session for item in items}
    ends = CaptureReceipt.objects.as_pipeline().exclude(session_end={})
    assert [row.session_end["session"] for row in ends] == [session]
    # Told again they are known.
    talk.path.unlink()
    talk.write()
    tend(talk.say("Four."))
    assert len(stored()) == 4
