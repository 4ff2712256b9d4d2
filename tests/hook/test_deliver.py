"""Offsets move over what the server acknowledged; everything arrives once, whatever went wrong."""

from __future__ import annotations

import json
from typing import Any

import pytest

from argus.hook import deliver, home, sending, sessions, spool, tally, trouble
from argus.hook.door import Door
from argus.hook.reading import Gate
from memory.models import CaptureReceipt
from tests.hook.ground import Home, Toll
from tests.hook.talks import Talk, load, look_around, stored, tend

pytestmark = pytest.mark.usefixtures("here")

QUESTION, ANSWER = "Where is the deploy script?", "In tools/deploy.sh, and it needs FOO=1."


@pytest.fixture
def here(wired: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(wired.path))


TROUBLES: dict[str, dict[str, Any]] = {
    "refused": {"mode": "off"},
    "key": {"mode": "status", "status": 401},
    "forbidden": {"mode": "status", "status": 403},
    "busy": {"mode": "status", "status": 429, "headers": {"Retry-After": "7"}},
    "broken": {"mode": "status", "status": 500},
    "moved": {"mode": "status", "status": 302},
    "html": {"mode": "html"},
    "cut": {"mode": "cut"},
    "lost": {"mode": "lose"},
}


def spoil(toll: Toll, **how: Any) -> None:
    for name, value in how.items():
        setattr(toll, name, value)
    if toll.mode == "off":
        toll.close()


def mend(toll: Toll) -> None:
    if toll.mode == "off":
        toll.open()
    toll.mode, toll.poison = "pass", ()


@pytest.mark.parametrize("how", TROUBLES.values(), ids=TROUBLES)
def test_it_keeps_what_was_said_until_the_server_is_back(
    wired: Home, toll: Toll, how: dict[str, Any]
) -> None:
    talk = Talk("claude", wired.path).say(QUESTION, ANSWER)
    spoil(toll, **how)
    tend(talk)
    assert load(talk).offset == 0
    assert len(spool.waiting()) == 1
    talk.say("And the staging one?", "The same.")
    tend(talk, "SessionEnd", reason="other")
    assert load(talk).offset == 0

    mend(toll)
    report = deliver.flush(30)
    assert (report.left, report.why) == (0, "")
    assert stored() == talk.turns
    assert load(talk).offset == load(talk).spooled == talk.path.stat().st_size
    tend(talk)
    assert stored() == talk.turns
    ends = CaptureReceipt.objects.as_pipeline().exclude(session_end={})
    assert {row.session_end["session"] for row in ends} == {talk.session}


def test_it_does_not_ask_again_before_the_time_that_the_server_named(
    wired: Home, toll: Toll
) -> None:
    talk = Talk("claude", wired.path).say(QUESTION, ANSWER)
    spoil(toll, mode="status", status=429, headers={"Retry-After": "600"})
    tend(talk)
    asked = len(toll.requests)
    mend(toll)
    talk.say("And now?", "Now, too.")
    tend(talk)
    assert len(toll.requests) == asked
    assert len(spool.waiting()) == 2

    # A person who asks for it is not put off.
    assert deliver.flush(30).left == 0
    assert stored() == talk.turns


def test_it_goes_on_where_a_server_that_dies_between_two_batches_left_off(
    wired: Home, toll: Toll, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("argus.hook.reading.BATCH_ITEMS_MAX", 4)
    talk = Talk("claude", wired.path).say(*(f"Turn {number}." for number in range(20)))
    toll.script = ["pass", "pass", "cut"]
    toll.mode = "status"
    tend(talk)
    session = load(talk)
    assert 0 < session.offset < session.spooled
    mend(toll)
    deliver.flush(30)
    assert stored() == talk.turns
    assert load(talk).offset == talk.path.stat().st_size


def test_it_sends_what_the_spool_lost_from_the_file_again(wired: Home, toll: Toll) -> None:
    talk = Talk("pi", wired.path).say(QUESTION, ANSWER)
    toll.mode = "status"
    tend(talk)
    for name in spool.waiting():
        spool.remove(name)
    mend(toll)
    (wired.argus / "hook" / "shut.json").unlink()
    tend(talk)
    assert stored() == talk.turns


def test_it_leaves_in_the_file_what_the_spool_has_no_room_for(
    wired: Home, toll: Toll, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("argus.hook.spool.SPOOL_FILES_MAX", 1)
    talks = [Talk("claude", wired.path).say(f"{QUESTION} {n}", f"{ANSWER} {n}") for n in range(3)]
    toll.mode = "status"
    for talk in talks:
        tend(talk, "SessionEnd", reason="other")
    assert sum(load(talk).spooled > 0 for talk in talks) == 1

    mend(toll)
    deliver.flush(30)
    for talk in talks:
        talk.age()
    look_around(Talk("claude", wired.path))
    assert sorted(stored()) == sorted(turn for talk in talks for turn in talk.turns)
    ends = CaptureReceipt.objects.as_pipeline().exclude(session_end={})
    assert {row.session_end["session"] for row in ends} >= {talk.session for talk in talks[1:]}


def test_it_halves_a_post_that_is_too_large(wired: Home, toll: Toll) -> None:
    talk = Talk("claude", wired.path).say(*(f"Turn {number}." for number in range(8)))
    toll.status = 413
    toll.script = ["status", "status"]
    tend(talk)
    assert stored() == talk.turns
    assert [len(one["items"]) for one in toll.posted()] == [8, 4, 2, 2, 4]
    assert sum(one.get("range", {}).get("posted", 0) for one in toll.posted()[2:]) == 8


def test_it_leaves_out_the_one_item_that_the_server_refuses(wired: Home, toll: Toll) -> None:
    talk = Talk("claude", wired.path).say("One.", "Two.", "Three.", "Four.")
    toll.status = 422
    toll.script = ["status", "pass", "status", "status"]
    tend(talk)
    assert stored() == [talk.turns[0], talk.turns[1], talk.turns[3]]
    assert load(talk).offset == talk.path.stat().st_size
    misses = [one for post in toll.posted() for one in post.get("misses", [])]
    assert [(one["reason"], one["session"]) for one in misses] == [("refused", talk.session)]
    assert "Three" not in json.dumps(misses)


def test_it_loses_nothing_to_a_server_that_refuses_everything(wired: Home, toll: Toll) -> None:
    talk = Talk("claude", wired.path).say(QUESTION, ANSWER)
    spoil(toll, mode="status", status=422)
    tend(talk)
    # Halved to its items and no further.
    assert len(toll.requests) < 10
    assert load(talk).offset == 0
    mend(toll)
    deliver.flush(30)
    assert stored() == talk.turns


def test_it_tells_seen_filtered_and_posted_of_every_range(wired: Home, toll: Toll) -> None:
    talk = Talk("claude", wired.path).say(QUESTION, ANSWER)
    talk.rows.append({"type": "mode", "sessionId": talk.session})
    talk.write()
    tend(talk)
    talk.rows.append({"type": "mode", "sessionId": talk.session})
    talk.write()
    tend(talk)
    tend(talk, "SessionEnd", reason="other")
    ranges = [one["range"] for one in toll.posted() if "range" in one]
    assert [(r["seen"], r["filtered"], r["posted"]) for r in ranges] == [(3, 1, 2), (1, 1, 0)]
    assert ranges[0]["reasons"] == {"plumbing": 1}
    assert {r["session"] for r in ranges} == {talk.session}
    assert toll.posted()[0]["client"]["client"] == "claude"


def test_it_reports_what_was_missed_once_the_server_is_back(wired: Home, toll: Toll) -> None:
    trouble.miss("claude", "gone", "no_transcript", "/nowhere/gone.jsonl")
    spoil(toll, mode="off")
    deliver.flush(5)
    mend(toll)
    deliver.flush(5)
    deliver.flush(5)
    receipts = CaptureReceipt.objects.as_pipeline().exclude(misses=[])
    assert [row.misses[0]["session"] for row in receipts] == ["gone"]


def test_it_drops_a_post_that_the_disk_broke_and_goes_on(wired: Home, toll: Toll) -> None:
    first = Talk("claude", wired.path).say(QUESTION, ANSWER)
    second = Talk("claude", wired.path).say("Something else?", "Nothing else.")
    toll.mode = "status"
    tend(first)
    tend(second)
    broken = wired.argus / "hook" / "spool" / spool.waiting()[0]
    broken.write_bytes(broken.read_bytes()[:100])
    mend(toll)
    assert deliver.flush(30).left == 0
    tend(first)
    assert sorted(stored()) == sorted(first.turns + second.turns)


STUMBLES: dict[str, dict[str, Any]] = {
    "broken": {"mode": "status", "status": 500},
    "forbidden": {"mode": "status", "status": 403},
    "html": {"mode": "html"},
}


def door_is_shut(home: Home) -> bool:
    return (home.argus / "hook" / "shut.json").exists()


def open_door(home: Home) -> None:
    (home.argus / "hook" / "shut.json").unlink(missing_ok=True)


@pytest.mark.parametrize("how", STUMBLES.values(), ids=STUMBLES)
def test_it_sets_aside_what_the_server_always_fails_at(
    wired: Home, toll: Toll, how: dict[str, Any]
) -> None:
    ill = Talk("claude", wired.path).say("One.", "Poison.", "Three.")
    well = Talk("claude", wired.path)
    spoil(toll, poison=(b"Poison",), **how)
    tend(ill)
    for number in range(4):
        # The door is shut after the failure: this is spooled.
        tend(well.say(f"Number {number}?"))
        tend(ill.say(f"And {number}?"))
        open_door(wired)
        deliver.flush(30, patient=False)
        assert stored(well.session) == well.turns
    assert stored(ill.session) == [turn for turn in ill.turns if turn[1] != "Poison."]
    assert spool.waiting() == []
    assert load(ill).offset == ill.path.stat().st_size
    misses = [one for post in toll.posted() for one in post.get("misses", [])]
    assert [(one["reason"], one["session"]) for one in misses] == [("refused", ill.session)]
    aside = list((wired.argus / "hook" / "aside").iterdir())
    assert ["Poison." in path.read_text() for path in aside] == [True]

    # Mended, and a person asks.
    mend(toll)
    deliver.flush(30)
    assert stored(ill.session) == ill.turns
    assert list((wired.argus / "hook" / "aside").iterdir()) == []


@pytest.mark.parametrize("how", STUMBLES.values(), ids=STUMBLES)
def test_it_sets_aside_what_the_server_fails_at_when_nothing_else_waits(
    wired: Home, toll: Toll, how: dict[str, Any]
) -> None:
    ill = Talk("claude", wired.path).say("One.", "Poison.", "Three.")
    spoil(toll, poison=(b"Poison",), **how)
    tend(ill)
    for number in range(4):
        assert len(spool.waiting()) == 1, number
        open_door(wired)
        deliver.flush(30, patient=False)
    assert spool.waiting() == []
    assert stored() == [ill.turns[0], ill.turns[2]]
    assert len(list((wired.argus / "hook" / "aside").iterdir())) == 1


@pytest.mark.parametrize("other", [{"mode": "html"}, {"mode": "status"}], ids=["html", "refused"])
def test_it_holds_nothing_against_the_only_post_while_the_server_takes_none(
    wired: Home, toll: Toll, other: dict[str, Any]
) -> None:
    talk = Talk("claude", wired.path).say(QUESTION, ANSWER)
    spoil(toll, mode="html")
    tend(talk)
    spoil(toll, status=422, **other)
    for _ in range(5):
        open_door(wired)
        # The post is met by a page, and what it is probed with as well, or it is refused.
        toll.script = ["html"]
        toll.requests.clear()
        deliver.flush(30, patient=False)
        assert [len(post["items"]) for post in toll.posted()] == [2, 0]
        assert door_is_shut(wired)
    mend(toll)
    deliver.flush(30)
    assert stored() == talk.turns
    assert not (wired.argus / "hook" / "aside").exists()


def test_it_is_not_held_up_by_two_sessions_that_the_server_fails_at(
    wired: Home, toll: Toll
) -> None:
    talks = [Talk("claude", wired.path).say(f"Poison {n}.") for n in range(2)]
    talks.append(Talk("claude", wired.path).say("Well."))
    spoil(toll, mode="off")
    for talk in talks:
        tend(talk)
    toll.open()
    spoil(toll, mode="status", status=500, poison=(b"Poison",))
    for _ in range(3):
        open_door(wired)
        deliver.flush(30, patient=False)
    assert stored() == talks[2].turns
    assert len(spool.waiting()) == 2


def test_it_asks_a_server_in_trouble_twice_and_no_more(wired: Home, toll: Toll) -> None:
    talks = [Talk("claude", wired.path).say(f"Number {n}.") for n in range(5)]
    spoil(toll, mode="off")
    for talk in talks:
        tend(talk)
    toll.open()
    spoil(toll, mode="status", status=500)
    toll.requests.clear()
    open_door(wired)
    report = deliver.flush(30, patient=False)
    assert (len(toll.requests), report.left) == (2, 5)
    assert "500" in report.why
    assert deliver.flush(30, patient=False).why
    assert len(toll.requests) == 2
    # As long as it was away, nothing is held against a post.
    for _ in range(5):
        open_door(wired)
        deliver.flush(30, patient=False)
    mend(toll)
    deliver.flush(30)
    assert sorted(stored()) == sorted(turn for talk in talks for turn in talk.turns)
    assert not (wired.argus / "hook" / "aside").exists()


def test_it_moves_no_offset_over_what_the_spool_lost_meanwhile(
    wired: Home, toll: Toll, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("argus.hook.reading.BATCH_ITEMS_MAX", 2)
    talk = Talk("claude", wired.path).say(QUESTION, ANSWER)
    spoil(toll, mode="status", status=500)
    tend(talk)
    mend(toll)
    open_door(wired)
    talk.say("Three.", "Four.", "Five.", "Six.")
    session = load(talk)

    def lose(batch: Any) -> None:
        for name in spool.waiting():
            spool.remove(name)

    sending.advance(session, Door(home.read_env()), Gate(session), tell=lose)
    assert session.offset == 0
    tend(talk)
    assert stored() == talk.turns
    assert load(talk).offset == talk.path.stat().st_size


def test_it_drops_the_one_row_of_a_journal_that_the_server_refuses(wired: Home, toll: Toll) -> None:
    names = ["one", "two", "broken", "four", "five"]
    for name in names:
        trouble.miss("claude", name, "no_transcript", "/nowhere")
    spoil(toll, mode="status", status=422, poison=(b"broken",))
    deliver.flush(10)
    mend(toll)
    deliver.flush(10)
    receipts = CaptureReceipt.objects.as_pipeline().exclude(misses=[])
    told = sorted(one["session"] for row in receipts for one in row.misses)
    assert told == sorted(set(names) - {"broken"})


@pytest.mark.parametrize("status", [400, 413, 422])
def test_it_gives_up_nothing_because_another_program_refuses_everything(
    wired: Home, toll: Toll, status: int
) -> None:
    talk = Talk("claude", wired.path).say(QUESTION, ANSWER)
    tend(talk)
    over = Talk("claude", wired.path).say("All of it is stored.")
    tend(over)
    trouble.miss("claude", "gone", "no_transcript")
    trouble.skipped("prompt", "claude", talk.session, "/src/shop", "timeout", 2000)
    spoil(toll, mode="status", status=status)
    tend(talk.say("And staging?"), "SessionEnd", reason="other")
    open_door(wired)
    tend(over, "SessionEnd", reason="other")
    deliver.flush(10)
    mend(toll)
    deliver.flush(10)
    assert stored(talk.session) == talk.turns
    receipts = CaptureReceipt.objects.as_pipeline().order_by("id")
    ended = {row.session_end["session"] for row in receipts if row.session_end}
    assert ended == {talk.session, over.session}
    assert [row.misses[0]["session"] for row in receipts if row.misses] == ["gone"]
    skipped = toll.posted("/recall/skipped")[-1]["skipped"]
    assert [one["session"] for one in skipped] == [talk.session]
    assert deliver.flush(10).left == 0
    assert not (wired.argus / "hook" / "aside").exists()


def test_it_keeps_the_journals_when_another_program_answers(wired: Home, toll: Toll) -> None:
    trouble.miss("claude", "gone", "no_transcript")
    spoil(toll, mode="html")
    deliver.flush(10)
    mend(toll)
    deliver.flush(10)
    assert CaptureReceipt.objects.as_pipeline().exclude(misses=[]).count() == 1


def test_it_counts_what_it_sent_before_it_gave_way_to_another(
    wired: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "LOCK_SECONDS", 0.1)
    talk = Talk("pi", wired.path)
    row = talk._row("user", "A prompt.")[0]
    held = sessions.take(f"pi.{talk.session}")
    assert held is not None
    tend(talk, "message_end", message=row["message"])
    sessions.leave(held)
    assert stored() == [("user", "A prompt.")]
    assert tally.sent()["items"] == 1


def test_it_counts_what_was_sent(wired: Home, toll: Toll) -> None:
    assert tally.sent()["since"] == ""
    talk = Talk("claude", wired.path).say("The token is ghp_" + "a1B2" * 9 + ".", ANSWER)
    talk.rows.append({"type": "mode", "sessionId": talk.session})
    tend(talk.write())
    spoil(toll, mode="status", status=500)
    tend(talk.say("And staging?"))
    first = tally.sent()
    assert (first["posts"], first["items"], first["filtered"]) == (1, 2, 1)
    assert sum(first["redacted"].values()) == 1
    mend(toll)
    deliver.flush(10)
    second = tally.sent()
    assert (second["items"], second["since"]) == (3, first["since"])
    assert second["last"] > first["last"]
