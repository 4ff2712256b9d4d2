"""What each hook costs its client: wall time of a process against the bare start of Python.

`python -m tests.bench.hook [ROUNDS]`. The floor is `python -S -c pass`; beside it the start of a
client that imports json and http.client. `at once` is a server that answers before it has read, so
that the ratio is the hook's own; `Argus` is the real one, with its time in it. capture is what the
client waits for: the child that reads and posts goes on without it, and is waited for between two
rounds. Rounds are interleaved.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.bench.ground import database, milliseconds, server, spread, table

ROUNDS = 25

#: What a hook may cost, in bare starts, without the server's time.
AIM = 3.5

FACT = "The staging database listens on port 6543."
QUESTION = "Which port does the staging database listen on?"

# Why the real path: the launcher of a virtual environment looks for its configuration first.
PYTHON = os.path.realpath(sys.executable)

#: Seconds for which the child of a capture is waited for.
CHILD_SECONDS_MAX = 10


@contextmanager
def at_once() -> Iterator[str]:
    """A server that says the same block to everybody. Its URL."""
    from memory.text.fence import wrap

    body = json.dumps({"text": wrap([f"- [x, 2026-01-01, the user said] {FACT}"])}).encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    listener = socket.create_server(("127.0.0.1", 0), backlog=100)

    def run() -> None:
        while True:
            try:
                channel, _ = listener.accept()
            except OSError:
                return
            with channel:
                channel.recv(65_536)
                channel.sendall(f"{head}\r\n\r\n".encode() + body)

    threading.Thread(target=run, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


class Place:
    """A home with the client in it, wired to one server, and a session that grows."""

    def __init__(self, folder: Path, url: str, key: str) -> None:
        from argus.hook import bundle

        self.folder = folder
        self.argus = folder / ".argus"
        self.argus.mkdir(parents=True)
        bundle.unpack(str(self.argus / "lib"))
        (self.argus / "env").write_text(f"ARGUS_URL={url}\nARGUS_KEY={key}\n")
        (folder / "src" / ".git").mkdir(parents=True)
        (folder / "src" / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
        self.session = str(uuid.uuid4())
        self.transcript = folder / ".claude" / "projects" / "-src" / f"{self.session}.jsonl"
        self.transcript.parent.mkdir(parents=True)

    def event(self, name: str, **more: Any) -> dict[str, Any]:
        return {
            "session_id": self.session,
            "transcript_path": str(self.transcript),
            "cwd": str(self.folder / "src"),
            "hook_event_name": name,
            **more,
        }

    def run(self, verb: str, event: dict[str, Any]) -> str:
        """Run one hook as its client does; what it printed."""
        return subprocess.run(
            [PYTHON, "-I", "-S", str(self.argus / "lib" / "argus-hook"), verb],
            input=json.dumps(event).encode(),
            stdout=subprocess.PIPE,
            env={"HOME": str(self.folder), "PATH": os.environ["PATH"]},
            check=True,
        ).stdout.decode()

    def recall(self) -> None:
        printed = self.run("recall", self.event("UserPromptSubmit", prompt=QUESTION))
        assert FACT in printed, f"nothing was recalled: {printed!r}"

    def context(self) -> None:
        printed = self.run("context", self.event("SessionStart", source="resume"))
        assert FACT in printed, f"nothing was told: {printed!r}"

    def capture(self) -> None:
        assert self.run("capture", self.event("Stop", last_assistant_message="Done.")) == ""

    def grow(self) -> None:
        """A prompt and its answer, as the client writes them."""
        with self.transcript.open("a") as handle:
            for role, text in (("user", "Please go on."), ("assistant", "Done.")):
                content: Any = text if role == "user" else [{"type": "text", "text": text}]
                row = {
                    "type": role,
                    "uuid": str(uuid.uuid4()),
                    "sessionId": self.session,
                    "timestamp": datetime.now(UTC).isoformat().replace("+00:00", "Z"),
                    "cwd": str(self.folder / "src"),
                    "message": {"role": role, "content": content},
                }
                handle.write(json.dumps(row) + "\n")

    def settle(self) -> None:
        """Wait until the child has posted what the transcript holds."""
        state = self.argus / "hook" / "sessions" / "claude" / f"{self.session}.json"
        deadline = time.monotonic() + CHILD_SECONDS_MAX
        while time.monotonic() < deadline:
            try:
                if json.loads(state.read_text())["offset"] == self.transcript.stat().st_size:
                    return
            except (OSError, ValueError):
                pass
            time.sleep(0.02)
        raise SystemExit("the child of a capture did not end")


def start(*arguments: str) -> None:
    subprocess.run([PYTHON, *arguments], check=True)


def main() -> int:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    with tempfile.TemporaryDirectory() as folder, database() as address, at_once() as quick:
        from memory.access import SCOPES, create_key, principal
        from tests.recall.making import note

        key, _ = create_key(owner="me", scopes=SCOPES)
        note(principal("me"), FACT, project="src")
        with server(address) as url:
            bare = Place(Path(folder) / "bare", quick, key)
            real = Place(Path(folder) / "real", url, key)
            rows: dict[str, Callable[[], None]] = {
                "python -S -c pass": lambda: start("-S", "-c", "pass"),
                "python -c 'import json, http.client'": lambda: start(
                    "-c", "import json, http.client"
                ),
                "recall, server at once": bare.recall,
                "context, server at once": bare.context,
                "recall, Argus": real.recall,
                "context, Argus": real.context,
                "capture of a small turn, Argus": real.capture,
            }
            times: dict[str, list[float]] = {name: [] for name in rows}
            # One round more: the first compiles, loads the embedder and fills caches.
            for turn in range(rounds + 1):
                real.grow()
                for name, work in rows.items():
                    spent = milliseconds(work)
                    if turn:
                        times[name].append(spent)
                real.settle()
    print_table(times)
    return 0


def print_table(times: dict[str, list[float]]) -> None:
    floor = next(iter(times))
    table(f"Hooks as their client waits for them (aim: {AIM} x, server aside)", times, floor=floor)
    base = spread(times[floor])[0]
    for verb in ("recall, server at once", "context, server at once", "capture of a small turn"):
        name = next(row for row in times if row.startswith(verb))
        ratio = spread(times[name])[0] / base
        print(f"{verb}: {ratio:.2f} of {AIM}, {'kept' if ratio <= AIM else 'MISSED'}")


if __name__ == "__main__":
    sys.exit(main())
