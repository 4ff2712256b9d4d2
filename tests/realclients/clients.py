"""The three coding clients as a person has them on a machine: configuration, command line, files.

Each runs in a home of its own, with an environment made from nothing, on a model that says what a
script says; its proxy is that model, which refuses to reach anybody else. Knows nothing about
Argus.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.realclients.model import Model

#: The longest run of a client; one that takes longer has hung.
RUN_SECONDS_MAX = 90.0


def folder() -> Path:
    """The folder that holds the clients' programs, as `make test-clients` names it.

    Why by name only: the tests of every day do without the clients, also where they are installed.
    """
    return Path(os.environ.get("CLIENT_BIN") or "/nowhere").absolute()


@dataclass(frozen=True)
class Ask:
    """One prompt, as a person gives it: in which session, and with which options of the client."""

    prompt: str
    session: str = ""
    fork: bool = False
    options: Sequence[str] = ()


@dataclass(frozen=True)
class Client:
    """What differs from client to client.

    `prepare` writes its configuration for a model at an address and gives its environment;
    `command` is the command line of one prompt; `sessions` its folder of transcripts in a home;
    `settings` the file that an installer changes.
    """

    name: str
    source: str
    sessions: str
    settings: str
    prepare: Callable[[Path, str], dict[str, str]]
    command: Callable[[Ask], list[str]]

    @property
    def program(self) -> Path:
        return folder() / self.name


@dataclass(frozen=True)
class Ran:
    """How a run of a client ended; `asked_seconds` had passed when the model was first asked."""

    exit: int
    out: str
    err: str
    seconds: float
    asked_seconds: float


@dataclass
class Desk:
    """A person at a machine with one client, a project and a model to talk to."""

    client: Client
    home: Path
    project: Path
    model: Model
    environment: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.home.mkdir(parents=True, exist_ok=True)
        self.project.mkdir(parents=True, exist_ok=True)
        given = self.client.prepare(self.home, self.model.url)
        self.environment = surroundings(self.home, self.model.url) | given | self.environment

    def ask(
        self,
        prompt: str,
        *,
        session: str = "",
        fork: bool = False,
        options: Sequence[str] = (),
        extra: Mapping[str, str] | None = None,
        interrupt: tuple[signal.Signals, float] | None = None,
    ) -> Ran:
        """Run the client for one prompt, to its end.

        `interrupt` is a signal and how many seconds after the model's first request it comes.
        """
        command = self.client.command(Ask(prompt, session, fork, options))
        known = len(self.model.main)
        started = time.monotonic()
        # Why files and not pipes: what a hook leaves running must not hold the run open here.
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            process = subprocess.Popen(
                command, cwd=self.project, env=self.environment | dict(extra or {}),
                stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True,
            )  # fmt: skip
            if interrupt:
                threading.Thread(
                    target=self._interrupt, args=(process, known, *interrupt), daemon=True
                ).start()
            code = _ended(process)
            seconds = time.monotonic() - started
            if interrupt:
                # Why the group: Codex is a wrapper, and what it wraps may outlive it.
                _signal_group(process, signal.SIGKILL)
            texts = [_all(stream.fileno()) for stream in (out, err)]
        asked = self.model.main[known:]
        return Ran(code, texts[0], texts[1], seconds, asked[0].at - started if asked else seconds)

    def _interrupt(
        self, process: subprocess.Popen[bytes], known: int, sent: signal.Signals, after: float
    ) -> None:
        deadline = time.monotonic() + RUN_SECONDS_MAX
        while len(self.model.main) == known and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(after)
        if process.poll() is None:
            process.send_signal(sent)

    def transcripts(self) -> list[Path]:
        """The main sessions' files, oldest first."""
        found = (self.home / self.client.sessions).rglob("*.jsonl")
        main = [path for path in found if "subagents" not in path.parts]
        return sorted(main, key=lambda path: path.stat().st_mtime_ns)

    def session(self) -> str:
        """The id of the session that was written to last."""
        stem = self.transcripts()[-1].stem
        return stem if self.client is CLAUDE else stem[-36:]


def _ended(process: subprocess.Popen[bytes]) -> int:
    try:
        return process.wait(RUN_SECONDS_MAX)
    except subprocess.TimeoutExpired:
        _signal_group(process, signal.SIGKILL)
        process.wait()
        return 124


def _signal_group(process: subprocess.Popen[bytes], sent: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, sent)


def _all(descriptor: int) -> str:
    return os.pread(descriptor, 1 << 24, 0).decode("utf-8", "replace")


def surroundings(home: Path, proxy: str) -> dict[str, str]:
    """An environment from nothing: nobody's keys, no way to another host."""
    node = Path(shutil.which("node") or "/usr/bin/node").parent
    proxies = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), proxy)
    here = dict.fromkeys(("NO_PROXY", "no_proxy"), "127.0.0.1,localhost")
    path = f"{node}:/usr/local/bin:/usr/bin:/bin"
    named = {"PATH": path, "HOME": str(home), "LANG": "C.UTF-8", "TERM": "dumb", "TZ": "UTC"}
    return {**named, **proxies, **here}


def _claude_home(home: Path, url: str) -> dict[str, str]:
    settings = home / ".claude" / "settings.json"
    settings.parent.mkdir(parents=True, exist_ok=True)
    # Why odd bytes: an installer must leave them as they are.
    settings.write_text('{\n   "cleanupPeriodDays": 30, "env": {"SEEN":"\\u00e9"}\n}')
    quiet = ("DISABLE_AUTOUPDATER", "DISABLE_TELEMETRY", "DISABLE_ERROR_REPORTING")
    return {
        "ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "dummy", "CLAUDE_CODE_MAX_RETRIES": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", **dict.fromkeys(quiet, "1"),
    }  # fmt: skip


def _claude(ask: Ask) -> list[str]:
    line = [str(CLAUDE.program), "-p", "--allowedTools", "Bash,Agent,Task"]
    if ask.session:
        line += ["--resume", ask.session]
    if ask.fork:
        line.append("--fork-session")
    return [*line, *ask.options, "--", ask.prompt]


_CODEX_TOML = """\
# The person's own settings.
model = "gpt-5.5"
model_provider = "scripted"
approval_policy = "never"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false

[analytics]
enabled = false

[feedback]
enabled = false

[features]
apps = false
plugins = false
memories = false

[model_providers.scripted]
name = "scripted"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "SCRIPTED_KEY"
request_max_retries = 1
stream_max_retries = 1
supports_websockets = false
"""


def _codex_home(home: Path, url: str) -> dict[str, str]:
    config = home / ".codex" / "config.toml"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text(_CODEX_TOML.format(url=url))
    return {"SCRIPTED_KEY": "dummy", "CODEX_HOME": str(config.parent), "RUST_LOG": "error"}


def _codex(ask: Ask) -> list[str]:
    line = [str(CODEX.program), "exec", "--skip-git-repo-check", *ask.options]
    if ask.session:
        line += ["fork" if ask.fork else "resume", ask.session]
    return [*line, "--", ask.prompt]


def _pi_home(home: Path, url: str) -> dict[str, str]:
    agent = home / ".pi" / "agent"
    agent.mkdir(parents=True, exist_ok=True)
    model = {
        "id": "scripted", "name": "Scripted", "reasoning": False, "input": ["text"],
        "contextWindow": 128_000, "maxTokens": 8_000,
        "cost": dict.fromkeys(("input", "output", "cacheRead", "cacheWrite"), 0),
    }  # fmt: skip
    provider = {"baseUrl": f"{url}/v1", "api": "openai-completions", "apiKey": "dummy"}
    providers = {"providers": {"scripted": {**provider, "models": [model]}}}
    (agent / "models.json").write_text(json.dumps(providers))
    retry = {"enabled": True, "maxRetries": 1, "baseDelayMs": 100}
    chosen = {"defaultProvider": "scripted", "defaultModel": "scripted", "retry": retry}
    (agent / "settings.json").write_text(json.dumps(chosen))
    return {"PI_OFFLINE": "1", "PI_TELEMETRY": "0", "PI_SKIP_VERSION_CHECK": "1"}


def _pi(ask: Ask) -> list[str]:
    line = [str(PI.program), "-p", "--provider", "scripted", "--model", "scripted"]
    if ask.session:
        line += ["--fork" if ask.fork else "--session", ask.session]
    return [*line, *ask.options, ask.prompt]


CLAUDE = Client(
    "claude", "claude-code", ".claude/projects", ".claude/settings.json", _claude_home, _claude
)
CODEX = Client("codex", "codex", ".codex/sessions", ".codex/hooks.json", _codex_home, _codex)
PI = Client("pi", "pi", ".pi/agent/sessions", ".pi/agent/extensions/argus.ts", _pi_home, _pi)
CLIENTS = (CLAUDE, CODEX, PI)
