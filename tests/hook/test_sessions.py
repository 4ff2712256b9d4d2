"""The state of a session: what is kept of it, and who is at it."""

from __future__ import annotations

import threading
import time

import pytest

from argus.hook import sessions
from tests.hook.ground import HANG_SECONDS, Home


@pytest.fixture(autouse=True)
def here(home: Home, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setenv("HOME", str(home.path))
    return home


def test_it_finds_again_what_it_kept(here: Home) -> None:
    session = sessions.load("claude", "s1")
    session.offset, session.spooled, session.mark, session.said = 10, 20, "m", ["a"]
    sessions.save(session)
    found = sessions.load("claude", "s1")
    assert (found.offset, found.spooled, found.mark, found.said) == (10, 20, "m", ["a"])
    assert list(sessions.every()) == [("claude", "s1")]
    path = here.argus / "hook" / "sessions" / "claude" / "s1.json"
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    "kept",
    [
        b"",
        b"{",
        b"[1]",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"offset": "9", "spooled": [9]}',
        b'{"offset": true}',
        b'{"offset": -5, "spooled": 9}',
        b'{"offset": 9, "spooled": 5}',
    ],
)
def test_it_reads_from_the_beginning_by_a_state_that_is_broken(here: Home, kept: bytes) -> None:
    folder = here.argus / "hook" / "sessions" / "claude"
    folder.mkdir(parents=True)
    (folder / "s1.json").write_bytes(kept)
    session = sessions.load("claude", "s1")
    assert session.spooled in (0, 9)
    assert session.offset == 0
    assert session.id == "s1"


def test_it_gives_a_lock_to_one_at_a_time(here: Home) -> None:
    held = sessions.take("a")
    assert held is not None
    assert sessions.take("a") is None
    assert sessions.take("b") is not None
    threading.Timer(0.2, sessions.leave, (held,)).start()
    started = time.monotonic()
    assert sessions.take("a", 20) is not None
    # It would wait for twenty seconds.
    assert time.monotonic() - started < HANG_SECONDS


def test_it_gives_no_lock_on_a_file_that_was_collected(here: Home) -> None:
    first = sessions.take("a")
    assert first is not None
    (here.argus / "hook" / "locks" / "a").unlink()
    second = sessions.take("a")
    assert second is not None
    assert sessions.take("a") is None
    sessions.leave(first)
    assert sessions.take("a") is None


def test_it_marks_a_session_for_good_also_one_with_a_hostile_name(here: Home) -> None:
    sessions.disable("claude", "../../x", "/t.jsonl")
    assert not (here.argus / "x.off").exists()
    assert not sessions.disabled("claude", "x")
    sessions.disable("claude", "s1")
    assert sessions.disabled("claude", "s1")
    assert not sessions.disabled("codex", "s1")
    sessions.disable("claude", "")
    marks = list((here.argus / "hook" / "sessions" / "claude").iterdir())
    assert len(marks) == 2


def test_it_leaves_the_end_of_a_session_to_whoever_is_at_it(here: Home) -> None:
    session = sessions.load("claude", "s1")
    assert sessions.handed_end(session) is None
    sessions.end_told(session)
    sessions.hand_end(session, "other")
    assert sessions.handed_end(session) == {"reason": "other"}
    assert list(sessions.every()) == []
    sessions.end_told(session)
    assert sessions.handed_end(session) is None
