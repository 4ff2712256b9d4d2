"""What was said in a session that is never captured stays out of what was forked from it, too."""

from __future__ import annotations

import time
from typing import BinaryIO

import pytest

from argus.hook import forks, locate, sessions
from argus.hook.backfill import backfill
from tests.hook.ground import Home
from tests.hook.talks import Talk, stored, tend

pytestmark = pytest.mark.usefixtures("here")

OFF = ("Off the record.", "As you like.")


@pytest.fixture
def here(wired: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(wired.path))


def off(home: Home, client: str = "claude") -> Talk:
    """A session during which Argus was disabled, as its hook marks it."""
    talk = Talk(client, home.path).say(*OFF)
    event = talk.event("agent_end" if client == "pi" else "Stop")
    home.run("capture", "--client", client, stdin=event, extra={"ARGUS_DISABLED": "1"})
    return talk


def fork(talk: Talk, home: Home) -> Talk:
    """A session of Claude that begins with all rows of this one."""
    copy = Talk("claude", home.path)
    copy.rows = [{**row, "sessionId": copy.session} for row in talk.rows]
    return copy.write()


@pytest.mark.parametrize("piece", [1024, 1024 * 1024])
def test_it_leaves_out_the_rows_that_claude_copied(
    wired: Home, monkeypatch: pytest.MonkeyPatch, piece: int
) -> None:
    monkeypatch.setattr(forks, "_PIECE_BYTES", piece)
    talk = off(wired)
    copy = fork(talk, wired).say("On the record.", "Noted.")
    tend(copy)
    copy.say("And on.")
    tend(copy)
    assert stored() == copy.turns
    # Neither does a backfill take them.
    other = fork(talk, wired).say("Another one.").age()
    report = backfill()
    assert report.reasons["opted_out"] == len(OFF)
    assert sorted(stored()) == sorted(copy.turns + other.turns)


def test_it_stores_what_was_copied_from_a_session_that_is_captured(wired: Home) -> None:
    off(wired)
    talk = Talk("claude", wired.path).say("One.", "Two.")
    copy = fork(talk, wired).say("Three.")
    tend(copy)
    assert sorted(stored()) == sorted(talk.turns + copy.turns)


def test_it_reads_no_file_for_the_turns_of_now(
    wired: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk = off(wired).age()
    other = Talk("claude", wired.path).say("Now.")
    other.rows[0]["timestamp"] = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime())
    other.path.write_bytes(other.data())
    opened: list[str] = []
    plain = locate.open_plain

    def open_plain(path: str) -> BinaryIO:
        opened.append(path)
        return plain(path)

    monkeypatch.setattr(locate, "open_plain", open_plain)
    tend(other)
    assert str(other.path) in opened
    assert str(talk.path) not in opened
    assert stored() == other.turns


@pytest.mark.parametrize("client", ["codex", "pi"])
def test_it_leaves_out_a_fork_whose_head_names_such_a_session(wired: Home, client: str) -> None:
    talk = off(wired, client)
    copy = Talk(client, wired.path)
    if client == "pi":
        copy.rows[0]["parentSession"] = str(talk.path)
    else:
        copy.rows[0]["payload"]["forked_from_id"] = talk.session
    copy.rows += talk.rows[1:]
    copy.write()
    tend(copy)
    assert stored() == []
    assert sessions.disabled(client, talk.session)
