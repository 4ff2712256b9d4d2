"""However large a transcript is, a child reads it in little memory, and goes on after a kill."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.hook.ground import Home, Toll, wait_until
from tests.hook.talks import Talk, stored

pytestmark = [
    pytest.mark.usefixtures("clone_db"),
    # Why not getrusage: there a process begins with the peak of the one that started it.
    pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no /proc to measure by"),
]

#: Bytes by which a child may grow.
GROWTH_BYTES_MAX = 60_000_000

#: Reads a session as the child does, and prints by how many bytes it grew.
READ = """
import json, sys
sys.path.insert(0, sys.argv[1])
from argus.hook import capture, home
from argus.hook.events import Event

def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))

start = peak()
from argus.hook import tending
event = Event("claude", json.loads(sys.argv[2]))
tending.WORK_SECONDS = float(sys.argv[3])
tending.tend(event, event.transcript, home.read_env())
print(peak() - start)
"""


def read(home: Home, talk: Talk, seconds: float = 60.0) -> subprocess.Popen[str]:
    event = json.dumps(talk.event("SessionEnd", reason="other"))
    lib = str(home.script.parent)
    command = [sys.executable, "-I", "-S", "-c", READ, lib, event, str(seconds)]
    return subprocess.Popen(
        command, env=home.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def grew(reader: subprocess.Popen[str]) -> int:
    out, err = reader.communicate(timeout=300)
    print("grew by", out)
    assert reader.returncode == 0, err
    return int(out)


def test_it_runs_over_a_line_of_60_megabytes(wired: Home) -> None:
    talk = Talk("claude", wired.path).say("Look at this picture.")
    picture = {"type": "user", "uuid": "big", "message": {"content": "data:" + "A" * 60_000_000}}
    with talk.path.open("ab") as handle:
        handle.write(json.dumps(picture).encode() + b"\n")
    talk.turns.append(("assistant", "It is blue."))
    row = talk._row("assistant", "It is blue.")[0]
    with talk.path.open("ab") as handle:
        handle.write(json.dumps(row).encode() + b"\n")
    assert grew(read(wired, talk)) < GROWTH_BYTES_MAX
    assert stored() == talk.turns


def backlog(talk: Talk, size: int) -> None:
    """Turns between rows of tools, up to this size."""
    tool = {"type": "tool_result", "content": "x" * 90_000}
    row = {"type": "user", "sessionId": talk.session, "toolUseResult": {}}
    filler = json.dumps({**row, "message": {"content": [tool]}}).encode() + b"\n"
    talk.path.parent.mkdir(parents=True, exist_ok=True)
    with talk.path.open("wb") as handle:
        while handle.tell() < size:
            for _ in range(2):
                role = ("user", "assistant")[len(talk.turns) % 2]
                talk.turns.append((role, f"Turn {len(talk.turns)}."))
                line = talk._row(*talk.turns[-1])[0]
                handle.write(json.dumps(line).encode() + b"\n")
            handle.write(filler * 20)


@pytest.mark.parametrize(
    "size", [40_000_000, pytest.param(300_000_000, marks=pytest.mark.slow)], ids=["40MB", "300MB"]
)
def test_it_reads_a_backlog_in_bounded_batches(wired: Home, toll: Toll, size: int) -> None:
    talk = Talk("claude", wired.path)
    backlog(talk, size)
    assert grew(read(wired, talk, 300.0)) < GROWTH_BYTES_MAX
    assert stored() == talk.turns
    assert max(len(one["items"]) for one in toll.posted()) <= 200


def test_it_goes_on_after_it_was_killed_with_its_lock(
    wired: Home, toll: Toll, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk = Talk("claude", wired.path).say(*(f"Turn {number}." for number in range(1200)))
    toll.mode, toll.seconds = "slow", 0.3
    reader = read(wired, talk)
    wait_until(lambda: len(toll.posted()) >= 3, "it is at the third post")
    os.kill(reader.pid, signal.SIGKILL)
    reader.communicate()
    assert 0 < len(stored()) < 1200

    toll.mode = "pass"
    grew(read(wired, talk))
    assert stored() == talk.turns


def test_it_stops_at_its_deadline_and_the_next_one_goes_on(wired: Home, toll: Toll) -> None:
    talk = Talk("claude", wired.path).say(*(f"Turn {number}." for number in range(1200)))
    toll.mode, toll.seconds = "slow", 0.3
    grew(read(wired, talk, 0.8))
    assert 0 < len(stored()) < 1200
    toll.mode = "pass"
    grew(read(wired, talk))
    assert stored() == talk.turns
