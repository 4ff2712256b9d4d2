"""A session's file, wherever its client has put it by now."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from argus.hook.locate import beside, find, name_of, open_plain, readable

UUID = "01999f3e-7a52-7e30-8f7c-0123456789ab"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def make(path: Path) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{}\n")
    return str(path)


def test_it_takes_the_file_that_was_told_when_it_is_there(here: Path) -> None:
    told = make(here / "somewhere" / "s.jsonl")
    assert find("claude", "other", told) == told


@pytest.mark.parametrize(
    ("client", "place"),
    [
        ("claude", f".claude/projects/-other/{UUID}.jsonl"),
        ("codex", f".codex/sessions/2026/11/02/rollout-2026-11-02T10-00-00-{UUID}.jsonl"),
        ("codex", f".codex/archived_sessions/rollout-2026-11-02T10-00-00-{UUID}.jsonl"),
        ("pi", f".pi/agent/sessions/--x--/2026-11-02T10-00-00-000Z_{UUID}.jsonl"),
    ],
)
def test_it_finds_a_session_by_its_id(here: Path, client: str, place: str) -> None:
    path = make(here / place)
    assert find(client, UUID, "/gone/x.jsonl") == path
    assert find(client, UUID) == path
    assert find(client, UUID[:-1]) == ""
    assert name_of(client, path) == UUID


def test_it_looks_beside_the_folder_that_was_told(here: Path) -> None:
    path = make(here / "config" / "projects" / "-b" / f"{UUID}.jsonl")
    assert find("claude", UUID, str(here / "config" / "projects" / "-a" / f"{UUID}.jsonl")) == path
    rollout = make(here / "own" / "archived_sessions" / f"rollout-2026-11-02T10-00-00-{UUID}.jsonl")
    told = here / "own" / "sessions" / "2026" / "11" / "02" / Path(rollout).name
    assert find("codex", UUID, str(told)) == rollout


@pytest.mark.parametrize("session", ["", "../secret", "/etc/passwd", "a\0b", ".", "*", "x" * 500])
def test_it_looks_for_no_id_that_is_a_path(here: Path, session: str) -> None:
    make(here / ".claude" / "secret.jsonl")
    make(here / ".claude" / "projects" / "-x" / "y.jsonl")
    assert find("claude", session) == ""


def test_it_opens_neither_pipes_nor_folders(here: Path) -> None:
    os.mkfifo(here / "pipe.jsonl")
    (here / "folder.jsonl").mkdir()
    assert not readable(str(here / "pipe.jsonl"))
    assert not readable(str(here / "folder.jsonl"))
    assert not readable("a\0b.jsonl")
    assert not readable(make(here / "notes.txt"))
    for path in (here / "pipe.jsonl", here / "folder.jsonl", Path("/dev/null"), Path("a\0b")):
        with pytest.raises(OSError):
            open_plain(str(path))
    with open_plain(make(here / "own.jsonl")) as handle:
        assert handle.read() == Path(here / "own.jsonl").read_bytes()


def test_it_sees_the_other_sessions_of_a_folder_and_no_sub_agents(here: Path) -> None:
    path = make(here / "p" / "one.jsonl")
    other = make(here / "p" / "two.jsonl")
    make(here / "p" / "agent-1.jsonl")
    make(here / "p" / "notes.md")
    assert beside(path) == [path, other]
    assert beside(str(here / "none" / "x.jsonl")) == []
