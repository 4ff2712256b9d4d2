"""What went wrong with other memories, by kind: hooks at their worst moment."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from argus.hook import deliver, sessions, spool, trouble
from argus.hook.backfill import backfill
from memory.models import CaptureReceipt, RawItem
from tests.hook.ground import Home, Toll, settled, wait_until
from tests.hook.talks import Talk, look_around, stored, tend

pytestmark = pytest.mark.usefixtures("here")


@pytest.fixture
def here(wired: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(wired.path))


def test_it_stores_one_copy_of_three_hooks_at_the_same_moment(wired: Home) -> None:
    talk = Talk("claude", wired.path).say("One.", "Two.")
    event = json.dumps(talk.event("Stop")).encode()
    command = [sys.executable, "-I", "-S", str(wired.script), "capture", "--client", "claude"]
    running = [
        subprocess.Popen(command, stdin=subprocess.PIPE, env=wired.environment()) for _ in range(3)
    ]
    for one in running:
        one.communicate(event, timeout=30)
        assert one.returncode == 0
    wait_until(lambda: len(stored()) == 2, "both turns are stored")
    settled(wired)
    assert stored() == talk.turns


def test_it_takes_over_from_a_hook_that_was_killed_with_the_lock(wired: Home) -> None:
    talk = Talk("claude", wired.path).say("One.", "Two.")
    holder = "import sys,time; sys.path.insert(0, sys.argv[1]); from argus.hook import sessions;"
    holder += "sessions.take(sys.argv[2]); print('held', flush=True); time.sleep(60)"
    lib, key = str(wired.script.parent), f"claude.{talk.session}"
    command = [sys.executable, "-I", "-S", "-c", holder, lib, key]
    held = subprocess.Popen(command, env=wired.environment(), stdout=subprocess.PIPE, text=True)
    assert held.stdout is not None
    assert held.stdout.readline() == "held\n"
    assert sessions.take(key) is None
    held.send_signal(signal.SIGKILL)
    held.communicate()
    tend(talk)
    assert stored() == talk.turns
    log = wired.argus / "log" / "argus-hook.log"
    assert not log.exists() or "another child" not in log.read_text()


def test_it_says_once_that_a_transcript_is_missing_and_reports_it(wired: Home) -> None:
    talk = Talk("claude", wired.path)
    told = []
    for _ in range(3):
        told.append(wired.run("capture", "--client", "claude", stdin=talk.event("Stop")))
        settled(wired)
    assert [(done.returncode, done.stdout) for done in told] == [(0, "")] * 3
    # The first hook's child looks again before anybody is told.
    assert [talk.session in done.stderr for done in told] == [False, True, False]
    deliver.flush(10)
    misses = CaptureReceipt.objects.as_pipeline().exclude(misses=[]).get().misses
    assert [(one["session"], one["reason"]) for one in misses] == [(talk.session, "no_transcript")]
    # A path names the folder in which somebody worked.
    assert "work-shop" not in json.dumps(misses)


def test_it_says_nothing_of_a_transcript_that_comes_a_moment_later(wired: Home, toll: Toll) -> None:
    talk = Talk("claude", wired.path)
    late = threading.Timer(0.5, talk.say, ("One.", "Two."))
    late.start()
    tend(talk)
    late.join()
    assert stored() == talk.turns
    assert not (wired.argus / "hook" / "troubles").exists()
    assert not (wired.argus / "hook" / "misses.jsonl").exists()
    assert [post for post in toll.posted() if post.get("misses")] == []


@pytest.mark.parametrize("file", ["whole", "broken", "empty", "none"])
def test_it_leaves_nothing_on_the_server_of_a_folder_where_the_person_said_no(
    wired: Home, toll: Toll, tmp_path: Path, file: str
) -> None:
    quiet = tmp_path / "quiet"
    quiet.mkdir()
    (quiet / ".argus.json").write_text('{"enabled": false}')
    talk = Talk("claude", wired.path, cwd=str(quiet))
    if file != "none":
        talk.say(*(("Hidden.", "Hidden, too.") if file != "empty" else ()))
        with talk.path.open("ab") as handle:
            handle.write({"broken": b"{broken\n", "empty": b'{"type":"mode"}\n'}.get(file, b""))
    tend(talk, last_assistant_message="Hidden for good.")
    tend(talk, "SessionEnd", reason="other")
    if file != "none":
        talk.age()
    for _ in range(2):
        look_around(Talk("claude", wired.path))
    deliver.flush(10)
    backfill()
    assert CaptureReceipt.objects.as_pipeline().count() == 0
    assert toll.requests == []


def test_it_says_nothing_of_a_session_that_ends_before_it_began(wired: Home) -> None:
    talk = Talk("claude", wired.path)
    done = wired.run("capture", "--client", "claude", stdin=talk.event("SessionEnd"))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_it_works_with_closed_pipes_and_an_open_stdin(wired: Home) -> None:
    talk = Talk("claude", wired.path).say("One.", "Two.")
    script = f'exec "{sys.executable}" -I -S "{wired.script}" capture --client claude >&- 2>&-'
    running = subprocess.Popen(["sh", "-c", script], stdin=subprocess.PIPE, env=wired.environment())
    assert running.stdin is not None
    running.stdin.write(json.dumps(talk.event("Stop")).encode())
    running.stdin.flush()
    # With its stdin still open.
    assert running.wait(30) == 0
    running.stdin.close()
    wait_until(lambda: len(stored()) == 2, "both turns are stored")


@pytest.mark.parametrize(
    "more",
    [
        {"hook_event_name": "StopFailure", "last_assistant_message": "API Error: 529"},
        {"hook_event_name": "SubagentStop", "agent_id": "a", "agent_type": ""},
        {"hook_event_name": "SubagentStop", "agent_id": "a", "agent_type": "explore"},
        {"hook_event_name": "Stop", "agent_id": "a", "agent_type": "explore"},
        {"hook_event_name": "PostCompact", "compact_summary": "A digest."},
    ],
    ids=["failure", "compaction", "sub-agent", "inside", "digest"],
)
def test_it_drops_events_that_speak_of_nobody(wired: Home, more: dict[str, Any]) -> None:
    talk = Talk("claude", wired.path).say("One.", "Two.")
    done = wired.run("capture", "--client", "claude", stdin={**talk.event("Stop"), **more})
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    settled(wired)
    assert stored() == []


def test_it_captures_a_sub_agent_where_that_is_wanted(wired: Home, toll: Toll, key: str) -> None:
    wired.env(ARGUS_URL=toll.url, ARGUS_KEY=key, ARGUS_SUBAGENTS="true")
    talk = Talk("claude", wired.path).say("One.", "Two.")
    agent = Talk("claude", wired.path, session=talk.session).say("Explore it.", "It is small.")
    agent.rows = [{**row, "isSidechain": True} for row in agent.rows]
    path = talk.path.parent / talk.session / "subagents" / "agent-a1.jsonl"
    path.parent.mkdir(parents=True)
    # As the client writes it: without blanks.
    path.write_text("".join(json.dumps(r, separators=(",", ":")) + "\n" for r in agent.rows))
    talk.path.write_bytes(talk.data())
    more = {"agent_id": "a1", "agent_type": "explore", "agent_transcript_path": str(path)}
    event = talk.event("SubagentStop", **more, last_assistant_message="Never this.")
    wired.run("capture", "--client", "claude", stdin=event)
    wait_until(lambda: len(stored()) == 2, "the sub-agent's turns are stored")
    assert stored() == agent.turns
    item = RawItem.objects.as_pipeline().first()
    assert item is not None
    assert (item.metadata["agent"], item.metadata["agent_type"]) == ("a1", "explore")
    tend(talk)
    assert sorted(stored()) == sorted(agent.turns + talk.turns)


@pytest.mark.parametrize("how", ["disabled", "env"])
def test_it_never_takes_what_was_said_while_it_was_off(
    wired: Home, toll: Toll, key: str, how: str
) -> None:
    talk = Talk("claude", wired.path).say("Nothing of this.", "Promised.")
    extra = {"ARGUS_DISABLED": "1"} if how == "disabled" else {}
    if how == "env":
        wired.env(ARGUS_URL=toll.url, ARGUS_KEY=key, ARGUS_CAPTURE="false")
    wired.run("capture", "--client", "claude", stdin=talk.event("Stop"), extra=extra)
    wired.env(ARGUS_URL=toll.url, ARGUS_KEY=key)
    other = Talk("claude", wired.path)
    (wired.argus / "hook").mkdir(exist_ok=True)
    (wired.argus / "hook" / "since").write_text("1.0")
    talk.age()
    look_around(other)
    tend(talk)
    assert stored() == []
    assert toll.posted() == []


def test_it_obeys_the_rules_of_each_folder_for_each_turn(
    wired: Home, toll: Toll, tmp_path: Path
) -> None:
    quiet, named = tmp_path / "quiet", tmp_path / "named"
    for folder, rules in ((quiet, {"enabled": False}), (named, {"project": "x"})):
        (folder / "deep").mkdir(parents=True)
        (folder / ".argus.json").write_text(json.dumps(rules))
    talk = Talk("claude", wired.path, cwd=str(named / "deep")).say("One.", "Two.")
    talk.cwd = str(quiet / "deep")
    talk.say("Hidden question.", "Hidden answer.")
    talk.cwd = str(named)
    talk.say("Five.")
    tend(talk)
    assert [words for _, words in stored()] == ["One.", "Two.", "Five."]
    assert {item.project.name for item in RawItem.objects.as_pipeline()} == {"x"}
    assert toll.posted()[0]["range"]["reasons"] == {"opted_out": 2}
    assert b"Hidden" not in b"".join(body for _, _, body in toll.requests)


def test_it_stays_out_of_a_session_that_began_where_the_person_said_no(
    wired: Home, toll: Toll, tmp_path: Path
) -> None:
    quiet = tmp_path / "quiet"
    quiet.mkdir()
    (quiet / ".argus.json").write_text('{"capture": false}')
    talk = Talk("claude", wired.path, cwd=str(quiet)).say("Hidden.", "Hidden, too.")
    talk.cwd = str(tmp_path)
    talk.say("Still hidden.")
    tend(talk, last_assistant_message="Hidden for good.")
    tend(talk, "SessionEnd", reason="other")
    talk.say("And this.").age()
    for _ in range(2):
        look_around(Talk("claude", wired.path))
    assert stored() == []
    assert b"idden" not in b"".join(body for _, _, body in toll.requests)


@pytest.mark.parametrize("kept", ["{", "[]", '{"until": "x", "tries": "y"}', '{"until": 1e400}'])
def test_it_works_on_with_a_broken_note_about_the_server(wired: Home, kept: str) -> None:
    talk = Talk("claude", wired.path).say("One.", "Two.")
    (wired.argus / "hook").mkdir()
    (wired.argus / "hook" / "shut.json").write_text(kept)
    tend(talk)
    assert stored() == talk.turns


def test_it_lets_no_secret_and_nothing_private_leave_or_reach_the_disk(
    wired: Home, toll: Toll
) -> None:
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    folder = "ghp_" + "z9Y8x7W6v5U4t3S2r1Q0p9O8n7M6l5K4j3I2"
    talk = Talk("claude", wired.path, cwd=f"/src/{folder}")
    talk.say(
        f"Use {secret} and <private>my diary</private> please.", "Done.", "<private>all</private>"
    )
    toll.mode = "status"
    tend(talk, "Stop", last_assistant_message=f"The token {secret} <private>again</private> works.")
    sent = b"".join(body for _, _, body in toll.requests)
    kept = b"".join(
        path.read_bytes() for path in (wired.argus / "hook").rglob("*") if path.is_file()
    )
    log = wired.argus / "log" / "argus-hook.log"
    for place in (sent, kept, log.read_bytes()):
        assert secret.encode() not in place
        assert b"diary" not in place
    assert sent
    # Where its own folder is, the client must remember; nobody else is told.
    waiting = [(wired.argus / "hook" / "spool" / name).read_bytes() for name in spool.waiting()]
    assert waiting
    assert folder.encode() not in sent + b"".join(waiting)
    toll.mode = "pass"
    deliver.flush(10)
    assert [words for _, words in stored()][0].startswith("Use [redacted:")
    ranges = [post["range"] for post in toll.posted() if "range" in post]
    assert ranges[0]["reasons"] == {"private": 1}
    assert ranges[0]["redacted"]["private"] == 1


def test_it_loses_nothing_where_its_own_folder_cannot_be_written(wired: Home) -> None:
    talk = Talk("claude", wired.path).say("One.", "Two.")
    (wired.argus / "hook").write_text("A file where the folder should be.")
    done = wired.run("capture", "--client", "claude", stdin=talk.event("Stop"))
    assert (done.returncode, done.stdout) == (0, "")
    settled(wired)
    (wired.argus / "hook").unlink()
    tend(talk)
    assert stored() == talk.turns


def test_it_loses_nothing_to_a_disk_that_is_full(wired: Home, toll: Toll) -> None:
    talk = Talk("claude", wired.path).say("One.", "Two.")
    script = f'ulimit -f 0; exec "{sys.executable}" -I -S "{wired.script}" capture --client claude'
    event = json.dumps(talk.event("SessionEnd", reason="other")).encode()
    toll.mode = "status"
    for _ in range(2):
        done = subprocess.run(
            ["sh", "-c", script], input=event, env=wired.environment(), capture_output=True
        )
        assert (done.returncode, done.stdout) == (0, b"")
        settled(wired)
        toll.mode = "pass"
    tend(talk)
    assert stored() == talk.turns


def test_it_captures_a_sub_agent_of_codex_where_that_is_wanted(
    wired: Home, toll: Toll, key: str
) -> None:
    wired.env(ARGUS_URL=toll.url, ARGUS_KEY=key, ARGUS_SUBAGENTS="true")
    agent = Talk("codex", wired.path)
    source = {"subagent": {"thread_spawn": {"parent_thread_id": "p"}}}
    agent.rows[0]["payload"]["source"] = source
    agent.rows[0]["payload"]["thread_source"] = "subagent"
    agent.say("Explore it.", "It is small.")
    tend(agent)
    assert stored() == []
    parent = Talk("codex", wired.path).say("One.", "Two.")
    more = {"agent_id": "a1", "agent_type": "explore", "agent_transcript_path": str(agent.path)}
    event = parent.event("SubagentStop", **more)
    wired.run("capture", "--client", "codex", stdin=event)
    wait_until(lambda: len(stored()) == 2, "the sub-agent's turns are stored")
    assert stored() == agent.turns


def test_it_goes_by_a_clock_that_was_set_back(
    wired: Home, toll: Toll, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk = Talk("claude", wired.path).say("One.", "Two.")
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + 10 * 365 * 86400)
    monkeypatch.setattr(time, "time_ns", lambda: int((real() + 10 * 365 * 86400) * 1e9))
    toll.mode = "status"
    tend(talk)
    monkeypatch.undo()
    monkeypatch.setenv("HOME", str(wired.path))
    talk.say("Three.", "Four.")
    toll.mode = "pass"
    tend(talk, "SessionEnd", reason="other")
    assert stored() == talk.turns
    assert spool.waiting() == []


def test_it_stores_once_what_two_machines_send(wired: Home) -> None:
    talk = Talk("claude", wired.path).say("One.", "Two.")
    tend(talk)
    for path in (wired.argus / "hook").rglob("*.json"):
        path.unlink()
    tend(talk)
    assert stored() == talk.turns


def test_it_stores_what_pi_heard_before_any_file_and_once_with_it(wired: Home) -> None:
    talk = Talk("pi", wired.path)
    talk.turns.append(("user", "A prompt that is interrupted."))
    row = talk._row("user", "A prompt that is interrupted.")[0]
    event = talk.event("message_end", message=row["message"])
    done = wired.run("capture", "--client", "pi", stdin=event)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    wait_until(lambda: len(stored()) == 1, "the prompt is stored")
    talk.rows.append(row)
    talk.say("An answer.")
    tend(talk)
    assert stored() == talk.turns


def test_it_sends_nothing_that_waits_while_pi_takes_a_prompt(wired: Home, toll: Toll) -> None:
    other = Talk("claude", wired.path).say("One.", "Two.")
    toll.mode = "status"
    tend(other)
    trouble.miss("claude", "gone", "no_transcript")
    toll.mode = "pass"
    (wired.argus / "hook" / "shut.json").unlink()
    toll.requests.clear()
    talk = Talk("pi", wired.path)
    talk.turns.append(("user", "A prompt."))
    row = talk._row("user", "A prompt.")[0]
    tend(talk, "message_end", message=row["message"])
    assert [[item["body"] for item in post["items"]] for post in toll.posted()] == [["A prompt."]]
    assert len(spool.waiting()) == 1
    # Its answer's event does.
    talk.rows.append(row)
    tend(talk.say("An answer."))
    assert spool.waiting() == []
    assert len(stored()) == 4
    assert any(post.get("misses") for post in toll.posted())


def test_it_marks_the_end_of_a_session_also_when_nothing_is_new(wired: Home) -> None:
    talk = Talk("claude", wired.path).say("One.", "Two.")
    tend(talk)
    tend(talk, "SessionEnd", reason="clear")
    ends = [r.session_end for r in CaptureReceipt.objects.as_pipeline() if r.session_end]
    assert ends == [{"session": talk.session, "reason": "clear"}]


def test_it_finds_what_a_killed_session_left_behind_and_not_what_is_still_written(
    wired: Home,
) -> None:
    killed = Talk("claude", wired.path).say("Killed.").age()
    known = Talk("claude", wired.path).say("Known.", "Yes.")
    tend(known)
    known.say("Esc was pressed.").age()
    busy = Talk("claude", wired.path).say("Still typing.")
    old = Talk("claude", wired.path).say("Before Argus.").age(9e6)
    (wired.argus / "hook" / "since").write_text(str(time.time() - 1000))
    own = Talk("claude", wired.path).say("Mine.").age()
    look_around(own)
    told = [words for _, words in stored()]
    assert sorted(told) == sorted(["Killed.", "Known.", "Yes.", "Esc was pressed."])
    assert busy.path.exists() and old.path.exists() and killed.path.exists()


def test_it_never_empties_the_spool_for_a_prompt(wired: Home, toll: Toll) -> None:
    talk = Talk("claude", wired.path).say("One.", "Two.")
    toll.mode = "status"
    tend(talk)
    toll.mode = "pass"
    (wired.argus / "hook" / "shut.json").unlink()
    look_around(Talk("claude", wired.path), "UserPromptSubmit", flush=False)
    assert stored() == []
    assert len(spool.waiting()) == 1


def test_it_collects_what_it_knew_of_sessions_long_gone(wired: Home) -> None:
    talk = Talk("claude", wired.path).say("One.", "Two.")
    tend(talk)
    talk.path.unlink()
    state = wired.argus / "hook" / "sessions" / "claude" / f"{talk.session}.json"
    then = time.time() - 70 * 86400
    look_around(Talk("claude", wired.path))
    assert state.exists()
    os.utime(state, (then, then))
    look_around(Talk("claude", wired.path))
    assert not state.exists()
