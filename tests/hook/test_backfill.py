"""All past sessions, once, however often the command is stopped and started."""

from __future__ import annotations

import argparse
import json
import os
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from argus.hook import deliver, sessions, spool, tally
from argus.hook.backfill import backfill, command, lines
from memory.models import CaptureReceipt, RawItem, Session
from tests.hook.ground import Home, Toll
from tests.hook.talks import Talk, break_at, load, stored, tend

pytestmark = pytest.mark.usefixtures("here")


@pytest.fixture
def here(wired: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(wired.path))


def past(home: Home) -> list[Talk]:
    """A session of each client, quiet for a long time."""
    return [
        Talk(client, home.path).say(f"{client} asks.", f"{client} answers.").age(90_000 - at * 1000)
        for at, client in enumerate(("claude", "codex", "pi"))
    ]


def test_it_sends_the_sessions_of_all_clients_once(wired: Home, toll: Toll) -> None:
    talks = past(wired)
    report = backfill()
    assert (report.files, report.posted, report.stored, report.left) == (3, 6, 6, 0)
    assert report.sources == {"claude-code": 2, "codex": 2, "pi": 2}
    assert sorted(stored()) == sorted(turn for talk in talks for turn in talk.turns)
    assert [post["items"][0]["source"] for post in toll.posted()] == ["claude-code", "codex", "pi"]
    # What is over is told to be over, so that its tail can be segmented.
    ended = Session.objects.exclude(ended_at=None)
    assert {row.key for row in ended} == {talk.session for talk in talks}

    asked = len(toll.requests)
    again = backfill()
    assert (again.files, again.posted) == (3, 0)
    assert len(toll.requests) == asked
    talks[0].say("One more.").age(90_000)
    assert backfill().posted == 1
    tend(talks[0])
    assert sorted(stored()) == sorted(turn for talk in talks for turn in talk.turns)


def test_it_counts_and_sends_nothing_in_a_dry_run(wired: Home, toll: Toll) -> None:
    past(wired)
    report = backfill(dry_run=True)
    assert (report.files, report.posted, report.stored) == (3, 6, 0)
    assert report.reasons
    assert toll.requests == []
    assert not (wired.argus / "hook" / "sessions").exists()
    assert "would be sent" in lines(report)[0]


def test_it_leaves_out_what_was_said_before_a_day_and_takes_it_later(wired: Home) -> None:
    talk = Talk("claude", wired.path).say("Old.", "Older.", "Late.")
    talk.rows[2]["timestamp"] = "2026-11-20T09:00:00.000Z"
    talk.path.write_bytes(talk.data())
    report = backfill(since="2026-11-15T00:00:00+00:00")
    assert report.reasons["before"] == 2
    assert [words for _, words in stored()] == ["Late."]
    assert backfill(since="2026-11-15T00:00:00+00:00").posted == 0
    backfill()
    assert len(stored()) == 3
    assert backfill().posted == 0


def test_it_leaves_out_a_session_that_began_before_a_day_in_a_folder_that_is_none_of_ours(
    wired: Home, tmp_path: Path
) -> None:
    closed, plain = tmp_path / "closed", tmp_path / "plain"
    closed.mkdir()
    plain.mkdir()
    (closed / ".argus.json").write_text('{"enabled": false}')
    talk = Talk("claude", wired.path).say("Old.", "Older.", "Late.")
    for row, folder in zip(talk.rows, (closed, closed, plain), strict=True):
        row["cwd"] = str(folder)
    talk.rows[2]["timestamp"] = "2026-11-20T09:00:00.000Z"
    talk.path.write_bytes(talk.data())
    report = backfill(since="2026-11-15T00:00:00+00:00")
    assert report.reasons == {"before": 2, "opted_out": 1}
    assert stored() == []


def test_it_takes_later_what_it_left_out_of_a_file_that_was_written_anew(wired: Home) -> None:
    day = "2026-11-15T00:00:00+00:00"
    talk = Talk("claude", wired.path).say("Gone.")
    talk.rows[0]["timestamp"] = "2026-11-20T09:00:00.000Z"
    talk.path.write_bytes(talk.data())
    backfill(since=day)
    talk.path.unlink()
    talk.rows.clear()
    talk.say("Old.", "Late.")
    talk.rows[1]["timestamp"] = "2026-11-20T09:00:00.000Z"
    talk.path.write_bytes(talk.data())
    assert backfill(since=day).reasons == {"before": 1}
    assert backfill().stored == 1
    assert "Old." in {words for _, words in stored()}


def test_it_notes_nothing_of_an_answer_and_counts_nothing_twice_in_a_dry_run(wired: Home) -> None:
    talk = Talk("claude", wired.path).say("Where is it?")
    tend(talk, last_assistant_message="In the attic.")
    note = next((wired.argus / "hook" / "insured").iterdir())
    before = note.read_bytes()
    fork = Talk("claude", wired.path)
    row = fork._row("assistant", "In the attic.")[0]
    fork.rows = [{**row, "timestamp": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")}]
    fork.write()
    session = load(talk)
    session.carried = {"seen": 5, "filtered": 5, "posted": 0, "reasons": {"plumbing": 5}}
    sessions.save(session)
    report = backfill(dry_run=True)
    assert (report.posted, report.reasons) == (1, {})
    assert note.read_bytes() == before


def test_it_counts_what_was_sent_before_the_server_went(
    wired: Home, toll: Toll, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("argus.hook.reading.BATCH_ITEMS_MAX", 1)
    Talk("claude", wired.path).say("One.", "Two.").age()
    toll.script, toll.mode, toll.status = ["pass"], "status", 401
    assert backfill().left == 1
    assert tally.sent()["items"] == 1


def test_it_does_not_hold_a_session_for_over_that_it_could_not_read_to_its_end(
    wired: Home, toll: Toll, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("argus.hook.spool.SPOOL_FILES_MAX", 0)
    monkeypatch.setattr("argus.hook.past.PAUSE_SECONDS", 0.1)
    talk = Talk("claude", wired.path).say("Poison.").age(90_000)
    toll.mode, toll.status, toll.poison = "status", 500, (b"Poison",)
    backfill()
    assert load(talk).ended == ""
    toll.mode = "pass"
    (wired.argus / "hook" / "shut.json").unlink(missing_ok=True)
    backfill()
    assert Session.objects.get(key=talk.session).ended_at


def test_it_passes_over_what_is_no_session_of_the_person(wired: Home) -> None:
    talk = past(wired)[0]
    agents = talk.path.parent / talk.session / "subagents"
    agents.mkdir(parents=True)
    (agents / "agent-1.jsonl").write_bytes(talk.data())
    (talk.path.parent / "notes.md").write_text("# Notes\n\nA note.\n")
    off = Talk("claude", wired.path).say("Off.", "Off.").age(5000)
    wired.run(
        "capture", "--client", "claude", stdin=off.event("Stop"), extra={"ARGUS_DISABLED": "1"}
    )
    report = backfill()
    assert report.passed == {"sidechain": 1, "no_session": 1, "disabled": 1}
    assert "Off." not in {words for _, words in stored()}


def test_it_puts_everything_under_the_project_that_was_named(wired: Home) -> None:
    past(wired)
    backfill(project="attic")
    named = {item.project.name for item in RawItem.objects.as_pipeline() if item.project}
    assert named == {"attic"}


def test_it_takes_the_folders_that_were_named(wired: Home, tmp_path: Path) -> None:
    talks = past(wired)
    assert backfill([str(talks[1].path.parent)]).sources == {"codex": 2}
    with pytest.raises(FileNotFoundError):
        backfill([str(tmp_path / "nowhere")])


def test_it_waits_as_long_as_the_server_asks(wired: Home, toll: Toll) -> None:
    talks = past(wired)
    toll.status, toll.headers = 429, {"Retry-After": "2"}
    toll.script = ["pass", "status"]
    started = time.monotonic()
    report = backfill()
    assert time.monotonic() - started >= 2
    assert (report.stored, report.left) == (6, 0)
    assert sorted(stored()) == sorted(turn for talk in talks for turn in talk.turns)


def test_it_goes_on_another_time_when_the_server_stays_away(
    wired: Home, toll: Toll, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("argus.hook.reading.BATCH_ITEMS_MAX", 3)
    talk = Talk("claude", wired.path).say(*(f"Turn {number}." for number in range(10))).age()
    toll.script, toll.mode, toll.status = ["pass"], "status", 503
    report = backfill(patience=1.5)
    assert report.why
    assert report.left == 1
    assert load(talk).offset > 0
    assert len(stored()) == 3
    assert not (wired.argus / "hook" / "spool").exists()

    toll.mode = "pass"
    assert backfill().stored == 7
    assert stored() == talk.turns


def test_it_does_not_ask_for_long_with_a_key_that_is_refused(wired: Home, toll: Toll) -> None:
    past(wired)
    toll.mode, toll.status = "status", 401
    report = backfill()
    assert len(toll.requests) == 1
    assert "key" in report.why
    assert report.left == 3


def test_it_reads_a_second_copy_of_a_session_without_harm(wired: Home) -> None:
    talk = past(wired)[0]
    backfill()
    copy = talk.path.parent.with_name("-copy") / talk.path.name
    copy.parent.mkdir()
    copy.write_bytes(talk.data())
    report = backfill()
    assert (report.duplicates, report.stored) == (2, 0)
    assert backfill().posted == 0
    talk.say("One more.")
    tend(talk)
    assert len(stored()) == 7


def test_it_tells_what_it_did(wired: Home, toll: Toll, capsys: pytest.CaptureFixture[str]) -> None:
    past(wired)
    shared: dict[str, Any] = {"paths": [], "project": None, "dry_run": False}
    options = argparse.Namespace(**shared, since="2026-10-01", json=False)
    assert command(options) == 0
    told = capsys.readouterr()
    assert "3 files read, 6 items sent" in told.out
    assert told.err == ""
    assert command(argparse.Namespace(**shared, since="soon", json=False)) == 1
    assert "no date" in capsys.readouterr().err
    toll.close()
    Talk("pi", wired.path).say("New.").age()
    assert command(argparse.Namespace(**{**shared, "dry_run": True}, since=None, json=True)) == 0
    assert json.loads(capsys.readouterr().out)["posted"] == 1
    toll.open()


def test_it_counts_ranges_for_the_server_as_hooks_do(wired: Home, toll: Toll) -> None:
    past(wired)
    backfill()
    ranges = [row.client_range for row in CaptureReceipt.objects.as_pipeline()]
    assert sum(one["posted"] for one in ranges) == 6
    assert all(one["seen"] == one["filtered"] + one["posted"] for one in ranges)


def options(**more: Any) -> argparse.Namespace:
    given: dict[str, Any] = {"paths": [], "since": None, "project": None, "dry_run": False}
    return argparse.Namespace(**{**given, "json": True, **more})


def test_it_says_that_files_are_left_whose_posts_still_wait(
    wired: Home, toll: Toll, capsys: pytest.CaptureFixture[str]
) -> None:
    talks = past(wired)
    toll.mode = "status"
    tend(talks[0])
    held = sessions.take(f"pi.{talks[2].session}")
    assert held is not None
    (wired.argus / "hook" / "shut.json").unlink()
    # Another flush is at work, so what waits in the spool stays there.
    flushing = sessions.take("flush")
    assert flushing is not None
    toll.mode = "pass"
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sessions, "LOCK_SECONDS", 0.1)
            assert command(options()) == 75
    finally:
        sessions.leave(flushing)
        sessions.leave(held)
    told = json.loads(capsys.readouterr().out)
    assert (told["files"], told["left"], told["passed"]) == (1, 2, {"busy": 2})
    assert command(options(json=False)) == 0
    assert "left" not in capsys.readouterr().out.splitlines()[-1]
    assert sorted(stored()) == sorted(turn for talk in talks for turn in talk.turns)


def test_it_never_takes_a_second_file_of_a_session_that_was_off(wired: Home) -> None:
    talk = past(wired)[0]
    backfill()
    sessions.disable("claude", talk.session, str(talk.path))
    copy = talk.path.parent.with_name("-copy") / talk.path.name
    copy.parent.mkdir()
    copy.write_bytes(talk.say("Said while it was off.").data())
    report = backfill()
    assert report.passed["disabled"] == 2
    assert "Said while it was off." not in {words for _, words in stored()}


def test_it_goes_on_past_a_file_that_the_server_always_fails_at(
    wired: Home, toll: Toll, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("argus.hook.door.SHUT_SECONDS", 0.1)
    monkeypatch.setattr("argus.hook.past.PAUSE_SECONDS", 0.1)
    talks = past(wired)
    ill = talks[0].say("Poison.").age(100_000)
    toll.mode, toll.status, toll.poison = "status", 500, (b"Poison",)
    report = backfill()
    assert (report.files, report.left) == (2, 1)
    assert sorted(stored()) == sorted(turn for talk in talks[1:] for turn in talk.turns)
    assert len(spool.waiting()) == 1

    for number in range(4):
        # The door is shut after a failure, and others' posts wait behind.
        deliver.flush(30, patient=False)
        tend(talks[1].say(f"Number {number}."))
        time.sleep(0.3)
        (wired.argus / "hook" / "shut.json").unlink(missing_ok=True)
        deliver.flush(30, patient=False)
    assert stored(ill.session) == ill.turns[:2]
    assert spool.waiting() == []


def test_it_goes_on_past_pipes_and_files_at_which_our_code_fails(
    wired: Home, toll: Toll, monkeypatch: pytest.MonkeyPatch
) -> None:
    talks = [Talk("claude", wired.path).say(f"One {n}.", f"Two {n}.") for n in range(3)]
    for talk in talks:
        talk.age(300)
    pipe = talks[0].path.with_name("pipe.jsonl")
    os.mkfifo(pipe)
    mend = break_at(talks[1], monkeypatch)
    for dry_run in (True, False):
        report = backfill(dry_run=dry_run)
        assert (report.files, report.passed) == (2, {"unreadable": 1})
    assert sorted(stored()) == sorted(talks[0].turns + talks[2].turns)
    assert load(talks[1]).offset == 0
    mend()
    backfill([str(pipe), str(talks[1].path)])
    assert sorted(stored()) == sorted(turn for talk in talks for turn in talk.turns)
