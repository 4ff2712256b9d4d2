"""Conversations as the three clients write them, for tests to append to, cut and rewrite."""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from argus.hook import around, home, locate, sessions, tending
from argus.hook.events import Event
from memory.models import RawItem
from memory.transcripts import claude_code

#: When every conversation of the tests begins.
START = datetime(2026, 11, 1, 9, tzinfo=UTC)

ROLES = ("user", "assistant")


class Talk:
    """One session's file. `turns` are the (role, words) that were said, in order."""

    def __init__(self, client: str, home: Path, cwd: str = "/src/shop", session: str = "") -> None:
        self.client, self.cwd = client, cwd
        self.session = session or str(uuid.uuid4())
        self.turns: list[tuple[str, str]] = []
        self.rows: list[dict[str, Any]] = []
        folder = {
            "claude": home / ".claude" / "projects" / "-work-shop",
            "codex": home / ".codex" / "sessions" / "2026" / "11" / "01",
            "pi": home / ".pi" / "agent" / "sessions" / "--work-shop--",
        }[client]
        name = {
            "claude": self.session,
            "codex": f"rollout-2026-11-01T09-00-00-{self.session}",
            "pi": f"2026-11-01T09-00-00-000Z_{self.session}",
        }[client]
        self.path = folder / f"{name}.jsonl"
        self.rows += self._head()

    def say(self, *words: str) -> Talk:
        """Add turns by user and assistant in turn, and write them."""
        for text in words:
            role = ROLES[len(self.turns) % 2]
            self.turns.append((role, text))
            self.rows += self._row(role, text)
        return self.write()

    def write(self) -> Talk:
        """Bring the file up to the rows by appending."""
        data = self.data()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("ab") as handle:
            handle.write(data[handle.tell() :])
        return self

    def data(self) -> bytes:
        return b"".join(json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in self.rows)

    def event(self, name: str, **more: Any) -> dict[str, Any]:
        """What the client's hook gets on stdin."""
        return {
            "session_id": self.session,
            "transcript_path": str(self.path),
            "cwd": self.cwd,
            "hook_event_name": name,
            **more,
        }

    def age(self, seconds: float = 120.0) -> Talk:
        """Make the file one that nobody has touched for a while."""
        then = time.time() - seconds
        os.utime(self.path, (then, then))
        return self

    def _head(self) -> list[dict[str, Any]]:
        when = stamp(0)
        if self.client == "codex":
            meta = {
                "id": self.session,
                "timestamp": when,
                "cwd": self.cwd,
                "cli_version": "0.171.0",
            }
            return [{"timestamp": when, "type": "session_meta", "payload": meta}]
        if self.client == "pi":
            head = {"type": "session", "version": 3, "id": self.session, "timestamp": when}
            return [{**head, "cwd": self.cwd}]
        return []

    def _row(self, role: str, text: str) -> list[dict[str, Any]]:
        number = len(self.turns)
        when = stamp(number)
        if self.client == "claude":
            content: Any = text if role == "user" else [{"type": "text", "text": text}]
            last = [row["uuid"] for row in self.rows if "uuid" in row]
            row = {
                "parentUuid": last[-1] if last else None,
                "isSidechain": False,
                "type": role,
                "message": {"role": role, "content": content},
                "uuid": str(uuid.uuid4()),
                "timestamp": when,
                "cwd": self.cwd,
                "sessionId": self.session,
            }
            return [row]
        if self.client == "pi":
            message = {"role": role, "content": [{"type": "text", "text": text}]}
            ms = round((START + timedelta(seconds=number)).timestamp() * 1000)
            entry = {"type": "message", "id": uuid.uuid4().hex[:8], "parentId": None}
            return [{**entry, "timestamp": when, "message": {**message, "timestamp": ms}}]
        turn = f"turn-{(number + 1) // 2}"
        if role == "user":
            item = {"type": "UserMessage", "content": [{"type": "text", "text": text}]}
            start = {"type": "task_started", "turn_id": turn}
            done = {"type": "item_completed", "turn_id": turn, "item": item}
            rows = [self._line("event_msg", start, when)]
            said: dict[str, Any] = {"type": "message", "role": "user"}
            said = {**said, "content": [{"type": "input_text", "text": text}]}
            return [
                *rows,
                self._line("response_item", said, when),
                self._line("event_msg", done, when),
            ]
        told: dict[str, Any] = {"type": "message", "role": "assistant"}
        said = {**told, "content": [{"type": "output_text", "text": text}]}
        return [self._line("response_item", said, when)]

    def _line(self, kind: str, payload: dict[str, Any], when: str) -> dict[str, Any]:
        return {"timestamp": when, "type": kind, "payload": payload}


def stamp(seconds: int) -> str:
    """An instant of a conversation as the clients write it."""
    return (START + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S.000Z")


def stored(session: str = "") -> list[tuple[str, str]]:
    """(role, words) of what the record holds, in the order of time and arrival."""
    items = RawItem.objects.as_pipeline().order_by("occurred_at", "id")
    if session:
        items = items.filter(session=session)
    return [(item.role, item.body) for item in items]


def tend(talk: Talk, name: str = "", **more: Any) -> None:
    """What the detached child does for one event of this session, in this process."""
    name = name or ("agent_end" if talk.client == "pi" else "Stop")
    event = Event(talk.client, talk.event(name, **more))
    path = locate.find(talk.client, event.session, event.transcript)
    tending.tend(event, path, home.read_env())


def look_around(talk: Talk, name: str = "SessionStart", flush: bool = True) -> None:
    """What the detached child does at the start of this session, in this process."""
    around.look_around(Event(talk.client, talk.event(name)), home.read_env(), flush)


def load(talk: Talk) -> sessions.Session:
    """What the client remembers of the session."""
    return sessions.load(talk.client, talk.session)


def look_around_as(client: str, path: Path, now: float) -> None:
    """What the child does at the start of another session beside this file, long after it."""
    os.utime(path, (now - 2 * 3600, now - 2 * 3600))
    told = {"session_id": "later", "transcript_path": str(path.with_name("later.jsonl"))}
    event = Event(client, {**told, "hook_event_name": "SessionStart"})
    around.look_around(event, home.read_env(), flush=True)


def break_at(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Let the adapter fail at this session's file as a fault in it would; what ends that."""
    good, broken = claude_code.read, [talk.path.name]

    def read(handle: Any, name: str, *more: Any) -> Any:
        for item in good(handle, name, *more):
            if name in broken:
                raise KeyError("A word of the file.")
            yield item

    monkeypatch.setattr(claude_code, "read", read)
    return broken.clear
