"""What nobody needs any more goes, and nothing else."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from argus.hook import sessions, spool, trouble
from argus.hook.sweep import GARBAGE_DAYS, sweep
from tests.hook.ground import Home

DAY = 86400.0
NOBODY: frozenset[str] = frozenset()


@pytest.fixture(autouse=True)
def here(home: Home, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setenv("HOME", str(home.path))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    return home


def age(path: Path, days: float) -> Path:
    then = time.time() - days * DAY
    os.utime(path, (then, then))
    return path


def test_it_keeps_the_state_of_a_session_with_something_unsent(here: Home) -> None:
    for name in ("sent", "waits", "insured"):
        session = sessions.load("claude", name)
        session.path = "/gone.jsonl"
        session.insured = [{"print": "x"}] if name == "insured" else []
        sessions.save(session)
    later = time.time() + (GARBAGE_DAYS + 1) * DAY
    assert sweep(time.time(), NOBODY) == 0
    assert sweep(later, frozenset({"claude.waits"})) == 1
    assert [name for _, name in sessions.every()] == ["insured", "waits"]
    kept = json.loads((here.argus / "hook/sessions/claude/waits.json").read_text())
    assert kept["path"] == "/gone.jsonl"


def test_it_keeps_a_mark_as_long_as_there_is_a_transcript(here: Home) -> None:
    folder = here.path / ".claude" / "projects" / "-a"
    folder.mkdir(parents=True)
    (folder / "there.jsonl").write_text("{}\n")
    moved = folder.with_name("-b")
    moved.mkdir()
    (moved / "moved.jsonl").write_text("{}\n")
    for name in ("there", "moved", "gone"):
        sessions.disable("claude", name, str(folder / f"{name}.jsonl"))
    sessions.disable("claude", "nowhere")
    marks = here.argus / "hook" / "sessions" / "claude"
    for mark in marks.iterdir():
        age(mark, GARBAGE_DAYS + 1)
    sessions.disable("claude", "fresh", str(folder / "fresh.jsonl"))
    sweep(time.time(), NOBODY)
    left = {mark.stem for mark in marks.iterdir()}
    assert left == {"there", "moved", "nowhere", "fresh"}


def test_it_drops_the_drafts_of_the_dead_and_what_was_told_long_ago(here: Home) -> None:
    spool.add({"key": "claude.s"}, b"{}", False)
    trouble.complain("kind", "line")
    hook = here.argus / "hook"
    drafts = [
        hook / "spool" / "1.post.7.new",
        hook / "since.7.new",
        hook / "troubles.7",
        here.argus / "env.7.new",
    ]
    others = [here.argus / "secret_key", here.argus / "server.7.new"]
    for path in (*drafts, *others):
        path.write_text("x")
    sweep(time.time(), NOBODY)
    assert all(path.exists() for path in drafts)
    told = list((hook / "told").iterdir())
    for path in (*drafts, *others, *told):
        age(path, 2)
    age(next(path for path in (hook / "spool").iterdir() if path.suffix == ".post"), 400)
    sweep(time.time(), NOBODY)
    assert not any(path.exists() for path in (*drafts, *told))
    assert all(path.exists() for path in others)
    assert len(spool.waiting()) == 1
