"""What no event told of is found again: once, cheaply, and never what nobody was to capture."""

from __future__ import annotations

import os
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from argus.hook import outbox, sending, sessions, spool
from argus.hook.backfill import backfill
from memory.models import CaptureReceipt
from tests.hook.ground import HANG_SECONDS, Home, Toll, wait_until
from tests.hook.talks import Talk, break_at, load, look_around, stored, tend

pytestmark = pytest.mark.usefixtures("here")

DAY = 86400.0


@pytest.fixture
def here(wired: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(wired.path))


def since(home: Home, at: float) -> None:
    """Let the client have been installed at this instant, in seconds."""
    (home.argus / "hook").mkdir(exist_ok=True)
    (home.argus / "hook" / "since").write_text(str(at))


def next_day(talk: Talk) -> Talk:
    """Another session of Codex, in the folder of another day."""
    other = Talk("codex", Path("/"))
    day = talk.path.parent.with_name("02")
    other.path = day / other.path.name.replace("2026-11-01", "2026-11-02")
    return other


@pytest.mark.parametrize("event", ["SessionStart", "UserPromptSubmit"])
def test_it_finds_a_session_of_yesterday_that_was_killed_in_its_first_turn(
    wired: Home, event: str
) -> None:
    talk = Talk("codex", wired.path)
    look_around(talk, event, flush=event == "SessionStart")
    assert not talk.path.exists()
    talk.say("Deploy it, please.").age()
    look_around(next_day(talk))
    assert stored() == talk.turns


def test_it_remembers_no_session_that_is_never_captured(wired: Home) -> None:
    talk = Talk("codex", wired.path)
    sessions.disable("codex", talk.session)
    look_around(talk)
    assert list(sessions.every()) == []


def test_it_leaves_to_a_backfill_what_was_said_while_it_was_not_installed(wired: Home) -> None:
    over = Talk("claude", wired.path).say("One.", "Two.")
    on = Talk("claude", wired.path).say("Three.", "Four.")
    for talk in (over, on):
        tend(talk)
        talk.say(f"{talk.session} to nobody.", f"Nobody to {talk.session}.").age()
        state = wired.argus / "hook" / "sessions" / "claude" / f"{talk.session}.json"
        os.utime(state, (time.time() - DAY, time.time() - DAY))
    since(wired, time.time() - 1)
    on.say("It is back.")
    on.rows[-1]["timestamp"] = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    on.path.write_bytes(on.data())
    look_around(Talk("claude", wired.path))
    tend(on)
    heard = [words for _, words in stored()]
    assert sorted(heard) == sorted(["One.", "Two.", "Three.", "Four.", "It is back."])
    look_around(Talk("claude", wired.path))
    assert len(stored()) == 5

    backfill()
    assert sorted(stored()) == sorted(over.turns + on.turns)


def test_it_sees_the_gap_of_a_session_whose_post_still_waited(wired: Home, toll: Toll) -> None:
    talk = Talk("claude", wired.path).say("One.", "Two.")
    toll.mode = "status"
    tend(talk)
    talk.say("To nobody.", "By nobody.").age()
    state = wired.argus / "hook" / "sessions" / "claude" / f"{talk.session}.json"
    os.utime(state, (time.time() - DAY, time.time() - DAY))
    since(wired, time.time() - 1)
    toll.mode = "pass"
    (wired.argus / "hook" / "shut.json").unlink()
    # Sends what waits in the spool first.
    look_around(Talk("claude", wired.path))
    assert stored() == talk.turns[:2]
    assert load(talk).offset > 0
    backfill()
    assert stored() == talk.turns


def test_it_reads_a_second_copy_of_a_session_once(wired: Home, toll: Toll) -> None:
    talk = Talk("claude", wired.path).say("One.", "Two.")
    since(wired, 1.0)
    tend(talk)
    copy = talk.path.parent.with_name("-copy") / talk.path.name
    copy.parent.mkdir()
    copy.write_bytes(talk.data())
    os.utime(copy, (time.time() - 120, time.time() - 120))
    beside = Talk("claude", wired.path)
    beside.path = copy.with_name(beside.path.name)
    look_around(beside)
    asked = len(toll.requests)
    for _ in range(2):
        look_around(beside)
        look_around(Talk("claude", wired.path))
    assert len(toll.requests) == asked
    assert load(talk).path == str(talk.path)
    assert {sessions.load(*one).id for one in sessions.every()} >= {talk.session}
    assert stored() == talk.turns

    # The copy, too, is one of a session that is off from now on.
    sessions.disable("claude", talk.session)
    copy.write_bytes(talk.say("Off.").data())
    os.utime(copy, (time.time() - 120, time.time() - 120))
    look_around(beside)
    assert stored() == talk.turns[:2]


def test_it_visits_no_old_session_for_a_prompt(wired: Home, toll: Toll) -> None:
    talk = Talk("claude", wired.path).say("One.", "Two.")
    tend(talk)
    since(wired, 1.0)
    talk.say("Three.").age()
    state = wired.argus / "hook" / "sessions" / "claude" / f"{talk.session}.json"
    os.utime(state, (time.time() - 3 * DAY, time.time() - 3 * DAY))
    fresh = Talk("claude", wired.path).say("New here.").age()
    look_around(Talk("claude", wired.path), "UserPromptSubmit", flush=False)
    assert sorted(stored()) == sorted(talk.turns[:2] + fresh.turns)
    # The start of a session looks at all.
    look_around(Talk("claude", wired.path))
    assert sorted(stored()) == sorted(talk.turns + fresh.turns)


def ends() -> list[str]:
    rows = CaptureReceipt.objects.as_pipeline().exclude(session_end={}).order_by("id")
    return [row.session_end["session"] for row in rows]


def test_it_tells_the_end_after_the_rest_when_another_was_at_work(
    wired: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "LOCK_SECONDS", 0.1)
    talk = Talk("claude", wired.path).say("One.", "Two.")
    tend(talk)
    talk.say("Three.", "Four.")
    held = sessions.take(f"claude.{talk.session}")
    assert held is not None
    tend(talk, "SessionEnd", reason="clear")
    assert ends() == []
    sessions.leave(held)
    talk.age()
    look_around(Talk("claude", wired.path))
    assert stored() == talk.turns
    last = CaptureReceipt.objects.as_pipeline().order_by("-id")[0]
    assert last.session_end == {"session": talk.session, "reason": "clear"}
    assert last.client_range["posted"] == 2
    look_around(Talk("claude", wired.path))
    assert ends() == [talk.session]


def test_it_is_told_the_end_by_another_while_it_is_at_work(
    wired: Home, toll: Toll, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "LOCK_SECONDS", 0.1)
    talk = Talk("claude", wired.path).say("One.", "Two.")
    toll.mode, toll.seconds = "slow", 2.0
    reader = threading.Thread(target=tend, args=(talk,))
    reader.start()
    wait_until(lambda: toll.requests, "it posts")
    tend(talk, "SessionEnd", reason="clear")
    assert ends() == []
    toll.mode = "pass"
    reader.join()
    assert (stored(), ends()) == (talk.turns, [talk.session])


def test_it_tells_the_end_after_the_rest_when_there_was_no_room(
    wired: Home, toll: Toll, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spool, "SPOOL_FILES_MAX", 0)
    talk = Talk("claude", wired.path).say("One.", "Two.")
    toll.mode = "status"
    tend(talk, "SessionEnd", reason="other")
    assert spool.waiting() == []
    toll.mode = "pass"
    assert ends() == []
    (wired.argus / "hook" / "shut.json").unlink()
    talk.age()
    look_around(Talk("claude", wired.path))
    assert (stored(), ends()) == (talk.turns, [talk.session])


def test_it_does_not_hang_at_a_pipe_beside_a_transcript(wired: Home) -> None:
    talk = Talk("claude", wired.path).say("One.", "Two.").age()
    since(wired, 1.0)
    pipe = talk.path.with_name("pipe.jsonl")
    os.mkfifo(pipe)
    os.utime(pipe, (time.time() - 120, time.time() - 120))
    hung = threading.Thread(target=look_around, args=(Talk("claude", wired.path),), daemon=True)
    hung.start()
    hung.join(HANG_SECONDS)
    assert not hung.is_alive()
    assert stored() == talk.turns
    log = wired.argus / "log" / "argus-hook.log"
    assert not log.exists() or "pipe" not in log.read_text()
    held = sessions.take("claude.pipe")
    assert held is not None
    sessions.leave(held)


def test_it_goes_on_past_a_file_at_which_our_code_fails(
    wired: Home, toll: Toll, monkeypatch: pytest.MonkeyPatch
) -> None:
    since(wired, 1.0)
    well, ill, last = (Talk("claude", wired.path).say(f"One {n}.", f"Two {n}.") for n in range(3))
    for age, talk in ((300, well), (200, ill), (100, last)):
        talk.age(age)
    tend(ill)
    ill.say("This fails.").age(200)
    mend = break_at(ill, monkeypatch)
    for _ in range(2):
        look_around(Talk("claude", wired.path))
        tend(ill, "SessionEnd", reason="other")
    assert sorted(stored()) == sorted(well.turns + ill.turns[:2] + last.turns)
    assert 0 < load(ill).offset < ill.path.stat().st_size
    told = [one for post in toll.posted() for one in post.get("misses", [])]
    assert [(one["session"], one["reason"]) for one in told] == [(ill.session, "unreadable")]
    assert told[0]["detail"].startswith("KeyError in ")
    assert ends() == []

    mend()
    # Another build.
    monkeypatch.setattr(sending, "sender", lambda client: {**outbox.sender(client), "version": "2"})
    look_around(Talk("claude", wired.path))
    assert sorted(stored()) == sorted(well.turns + ill.turns + last.turns)
    assert ends() == [ill.session]


def test_it_does_not_read_again_and_again_what_it_cannot(
    wired: Home, toll: Toll, monkeypatch: pytest.MonkeyPatch
) -> None:
    since(wired, 1.0)
    talk = Talk("claude", wired.path).say("One.", "Two.").age()
    break_at(talk, monkeypatch)
    log = wired.argus / "log" / "argus-hook.log"
    for _ in range(3):
        look_around(Talk("claude", wired.path))
    assert log.read_text().count("KeyError") == 1
