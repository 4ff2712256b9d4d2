"""What Argus costs a prompt in the real clients: wall time with and without its hooks.

`python -m tests.bench.clients`. The floor is the client alone on a scripted model that answers at
once; each round runs every row once, in turn, so that the machine's load meets them all. A run has
the hooks of a session's start, of its one prompt, and of its end; what comes before the model is
asked is what a person waits for. Says so and goes on where the clients are not installed.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from tests.bench.ground import database, server, table
from tests.realclients.clients import CLAUDE, CODEX, PI, Client, Desk, Ran
from tests.realclients.model import Model, listening

#: Rounds after a first one that warms the caches.
ROUNDS = 12

PROMPT = "How often does the payment worker retry before it parks a job?"

#: What is installed in each row of a client; None is the client alone.
ROWS: dict[Client, dict[str, tuple[str, ...] | None]] = {
    CLAUDE: {
        "claude -p": None,
        "claude -p, hooks, http prompt": ("--mode", "http"),
        "claude -p, hooks, command prompt": ("--mode", "command"),
    },
    CODEX: {"codex exec": None, "codex exec, hooks": ()},
    PI: {"pi -p": None, "pi -p, extension": ()},
}


def desks(
    client: Client, rows: dict[str, tuple[str, ...] | None], folder: Path, model: Model, url: str
) -> dict[str, Desk]:
    """A desk for each row."""
    from argus.hook import bundle
    from memory.access import SCOPES, create_key
    from tests.realclients.ground import Argus

    archive = folder / "argus-hook.pyz"
    archive.write_bytes(bundle.build())
    made = {}
    for place, (name, options) in enumerate(rows.items()):
        home = folder / f"home-{place}"
        desk = Desk(client, home, home / "src" / "webshop", model)
        if options is not None:
            key = create_key(owner="me", scopes=SCOPES)[0]
            Argus(archive, desk).install(url, key, *options)
        made[name] = desk
    return made


def measure(desks: dict[str, Desk], rounds: int) -> dict[str, list[Ran]]:
    """Each row's runs, rounds interleaved; the first round is not counted."""
    runs: dict[str, list[Ran]] = {name: [] for name in desks}
    for n in range(rounds + 1):
        for name, desk in desks.items():
            ran = desk.ask(PROMPT)
            assert ran.exit == 0, ran.out + ran.err
            if n:
                runs[name].append(ran)
    return runs


def added(runs: dict[str, list[Ran]]) -> Sequence[str]:
    """Milliseconds that each row adds to the first, round by round; the medians."""
    alone, *others = runs
    lines = []
    for name in others:
        pairs = list(zip(runs[name], runs[alone], strict=True))
        before = statistics.median(
            with_us.asked_seconds - bare.asked_seconds for with_us, bare in pairs
        )
        whole = statistics.median(with_us.seconds - bare.seconds for with_us, bare in pairs)
        lines.append(
            f"{name:<34} {before * 1000:+6.0f} ms until asked {whole * 1000:+6.0f} ms a run"
        )
    return lines


class Sitting:
    """One session of Claude Code that stays open and is given prompt after prompt."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        streams = ("--input-format", "stream-json", "--output-format", "stream-json", "--verbose")
        self._process = subprocess.Popen(
            [str(CLAUDE.program), "-p", *streams], cwd=desk.project, env=desk.environment,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def ask(self) -> tuple[float, float]:
        """Give one prompt; milliseconds until the model was asked, and until the turn was over."""
        assert self._process.stdin and self._process.stdout
        known, started = len(self.desk.model.main), time.monotonic()
        message = {"role": "user", "content": [{"type": "text", "text": PROMPT}]}
        row = json.dumps({"type": "user", "message": message})
        self._process.stdin.write(row.encode() + b"\n")
        self._process.stdin.flush()
        for line in self._process.stdout:
            if json.loads(line).get("type") == "result":
                break
        over = time.monotonic()
        return (self.desk.model.main[known].at - started) * 1000, (over - started) * 1000

    def leave(self) -> None:
        self._process.communicate(timeout=60)


def sit(desks: dict[str, Desk]) -> None:
    """Print what a prompt costs in sessions of Claude Code that go on, prompts interleaved."""
    sittings = {name: Sitting(desk) for name, desk in desks.items()}
    asked: dict[str, list[float]] = {name: [] for name in desks}
    over: dict[str, list[float]] = {name: [] for name in desks}
    for n in range(ROUNDS + 1):
        for name, sitting in sittings.items():
            times = sitting.ask()
            if n:
                asked[name].append(times[0])
                over[name].append(times[1])
    for sitting in sittings.values():
        sitting.leave()
    alone = next(iter(desks))
    table("claude, in a session that goes on: until the model is asked", asked, floor=alone)
    table("claude, in a session that goes on: until the turn is over", over, floor=alone)


def main() -> None:
    here = [client for client in ROWS if client.program.exists()]
    for client in ROWS:
        if client not in here:
            print(f"{client.name} is not installed: run `make test-clients`")
    if not here:
        return
    with ExitStack() as stack:
        address = stack.enter_context(database())
        url = stack.enter_context(server(address))
        model = stack.enter_context(listening())
        from tests.realclients.ground import remember, settle

        remember()
        for client in here:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            made = desks(client, ROWS[client], folder, model, url)
            runs = measure(made, ROUNDS)
            alone = next(iter(runs))
            asked = {
                name: [ran.asked_seconds * 1000 for ran in rans] for name, rans in runs.items()
            }
            whole = {name: [ran.seconds * 1000 for ran in rans] for name, rans in runs.items()}
            table(f"{client.name}: until the model is asked", asked, floor=alone)
            table(f"{client.name}: one run of one prompt", whole, floor=alone)
            print("\n".join(added(runs)))
            if client is CLAUDE:
                sit(made)
            for desk in made.values():
                settle(desk)


if __name__ == "__main__":
    main()
