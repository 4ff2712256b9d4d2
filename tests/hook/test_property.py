"""Whatever happens to a transcript and its readers, each visible turn is stored exactly once."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from argus.hook import deliver
from memory.access import SCOPES, create_key
from tests.hook.ground import Home, Toll, serve
from tests.hook.talks import Talk, stored, tend

#: Makes a row without words longer than one with words.
PAD = "." * 600

#: What may happen between two looks at a session, and how much of it.
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("say"), st.integers(1, 3)),
        st.tuples(st.just("half"), st.integers(1, 200)),
        st.tuples(st.just("cut"), st.integers(0, 100)),
        st.tuples(st.just("rewrite"), st.sampled_from(("same", "moved", "noise", "thin", "crlf"))),
        st.tuples(st.just("noise"), st.integers(1, 3)),
        st.tuples(st.just("run"), st.sampled_from(("pass", "status", "lose", "cut", "html"))),
        st.tuples(st.just("race"), st.integers(2, 3)),
        st.tuples(st.just("flush"), st.just(0)),
    ),
    min_size=1,
    max_size=12,
)


class Act:
    """One conversation and what befalls its file."""

    def __init__(self, client: str, home: Home, toll: Toll) -> None:
        self.talk, self.toll = Talk(client, home.path), toll
        self.talk.write()

    def do(self, step: str, how: Any) -> None:
        getattr(self, step)(how)

    def say(self, turns: int) -> None:
        # Whoever writes on writes the whole line first, also after a cut.
        self.whole()
        for _ in range(turns):
            said = len(self.talk.turns)
            self.talk.say(f"Turn {said} of {self.talk.session}: 🚀\u2028 and so on.")

    def half(self, size: int) -> None:
        """A line is being written: its first bytes are there, maybe half a sign."""
        self.whole()
        before = len(self.talk.data())
        said = len(self.talk.turns)
        turns, rows = list(self.talk.turns), list(self.talk.rows)
        role = ("user", "assistant")[said % 2]
        self.talk.turns.append((role, f"Half of {self.talk.session} 🚀🚀🚀 turn {said}."))
        self.talk.rows += self.talk._row(*self.talk.turns[-1])
        line = self.talk.data()[before:]
        with self.talk.path.open("ab") as handle:
            handle.write(line[: min(size, len(line) - 2)])
        assert (turns, rows) != (self.talk.turns, self.talk.rows)

    def whole(self) -> None:
        data = self.talk.data()
        found = self.talk.path.read_bytes()
        if data.startswith(found):
            with self.talk.path.open("ab") as handle:
                handle.write(data[len(found) :])
        else:
            self.talk.path.write_bytes(data)

    def cut(self, share: int) -> None:
        """The file loses its end, for now."""
        os.truncate(self.talk.path, self.talk.path.stat().st_size * share // 100)

    def rewrite(self, how: str) -> None:
        """Other bytes for the same words: in place, in a new file, with rows before or between."""
        if how == "noise":
            self.talk.rows.insert(len(self.talk.rows) // 2, self._noise())
        if how == "thin":
            self.talk.rows = [row for row in self.talk.rows if "pad" not in row]
        data = self.talk.data()
        if how == "crlf":
            data = data.replace(b"\n", b"\r\n")
        if how == "moved":
            fresh = self.talk.path.with_suffix(".new")
            fresh.write_bytes(data)
            os.replace(fresh, self.talk.path)
        else:
            self.talk.path.write_bytes(data)

    def noise(self, rows: int) -> None:
        self.whole()
        self.talk.rows += [self._noise() for _ in range(rows)]
        self.talk.write()

    def _noise(self) -> dict[str, Any]:
        if self.talk.client == "codex":
            payload = {"type": "token_count"}
            when = "2026-11-01T09:00:00Z"
            return {"timestamp": when, "type": "event_msg", "payload": payload, "pad": PAD}
        kind = "label" if self.talk.client == "pi" else "mode"
        return {"type": kind, "sessionId": self.talk.session, "pad": PAD}

    def run(self, mode: str) -> None:
        self.toll.mode, self.toll.status = mode, 503
        tend(self.talk)
        self.toll.mode = "pass"

    def race(self, readers: int) -> None:
        threads = [threading.Thread(target=tend, args=(self.talk,)) for _ in range(readers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def flush(self, _: int) -> None:
        deliver.flush(10)


@pytest.fixture
def ground(
    home: Home, clone_db: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Home, Toll]]:
    monkeypatch.setenv("HOME", str(home.path))
    with serve() as url:
        toll = Toll(url)
        toll.open()
        home.env(ARGUS_URL=toll.url, ARGUS_KEY=create_key(owner="me", scopes=SCOPES)[0])
        yield home, toll
        toll.close()


@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@example(
    client="pi",
    steps=[("say", 2), ("noise", 3), ("run", "pass"), *[("say", 3)] * 4, ("rewrite", "thin")],
)
@example(client="claude", steps=[("say", 2), ("half", 150), ("run", "lose"), ("cut", 30)])
@given(client=st.sampled_from(("claude", "codex", "pi")), steps=STEPS)
def test_it_stores_each_visible_turn_exactly_once(
    ground: tuple[Home, Toll], client: str, steps: list[tuple[str, Any]]
) -> None:
    home, toll = ground
    act = Act(client, home, toll)
    for step, how in steps:
        act.do(step, how)
    act.whole()
    deliver.flush(10)
    tend(act.talk)
    deliver.flush(10)
    # What fails is shown with all its values, and bodies of requests are long.
    toll.requests.clear()
    assert stored(act.talk.session) == act.talk.turns


def test_it_stores_one_copy_when_hooks_of_the_same_moment_race(
    ground: tuple[Home, Toll],
) -> None:
    home, _ = ground
    talk = Talk("claude", home.path).say(*(f"Turn {number}." for number in range(30)))
    command = [sys.executable, "-I", "-S", str(home.script), "capture", "--client", "claude"]
    events = [talk.event(name) for name in ("Stop", "SessionEnd", "PreCompact")] * 2
    started = [_start(command, home, event) for event in events]
    for one in started:
        assert one.wait(30) == 0
    tend(talk)
    assert stored() == talk.turns


def _start(command: list[str], home: Home, event: dict[str, Any]) -> subprocess.Popen[bytes]:
    import json

    one = subprocess.Popen(command, stdin=subprocess.PIPE, env=home.environment(), cwd=Path("/"))
    assert one.stdin is not None
    one.stdin.write(json.dumps(event).encode())
    one.stdin.close()
    return one
