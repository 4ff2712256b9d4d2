"""Argus on the desk of a person who uses a coding client: installed by its own installer.

What is asked here is asked of the record and of the model, never of the hook's own files.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import psutil
from django.utils import timezone

from memory.access import principal
from memory.models import RawItem
from memory.text.fence import MARK
from tests.hook.ground import PATIENCE_SECONDS, wait_until
from tests.realclients.clients import Desk, Ran, folder
from tests.realclients.model import Asked
from tests.recall.making import note

#: What a session is told at its start: a note of its own project, which no prompt asks for.
AT_START = "The webshop deploys with tools/deploy.sh from the harbour branch."

#: What the prompts below ask for; of no project, so that no session starts with it.
AT_PROMPT = "The payment worker retries five times before it parks a job."

QUESTION = "How often does the payment worker retry before it parks a job?"

#: Two planes of Unicode, a separator that some take for a line's end, and right-to-left script.
ODD = "👩‍👩‍👧 𝔘𝔫𝔦 日本語、한국어 \u2028 עברית e\u0301"

#: A turn: the role and what it said.
Turns = Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Argus:
    """The client as a person downloads it, at the desk where it runs."""

    archive: Path
    desk: Desk

    def run(
        self, *arguments: str, stdin: str = "", extra: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run one command of the archive, to its end."""
        environment = {**self.desk.environment, **(extra or {})}
        environment["PATH"] = f"{folder()}{os.pathsep}{environment['PATH']}"
        return subprocess.run(
            [sys.executable, "-I", str(self.archive), *arguments], input=stdin, text=True,
            capture_output=True, cwd=self.desk.project, env=environment, timeout=60,
        )  # fmt: skip

    def install(self, url: str, key: str, *options: str, trust: bool = True) -> None:
        """Install at this desk; `trust`: Codex is to run the hooks without a question."""
        named = ("--client", self.desk.client.name, "--url", url, "--key-stdin", *options)
        named += ("--trust",) if trust else ()
        done = self.run("install", *named, stdin=f"{key}\n")
        assert done.returncode == 0, done.stdout + done.stderr

    def uninstall(self) -> None:
        done = self.run("uninstall", "--client", self.desk.client.name)
        assert done.returncode == 0, done.stdout + done.stderr

    def flush(self) -> None:
        """Send what is unsent, as `argus-hook flush` does."""
        done = self.run("flush")
        assert done.returncode == 0, done.stdout + done.stderr


def remember() -> None:
    """What the memory holds before anybody asks."""
    me, old = principal("me"), timezone.now() - timedelta(days=2)
    note(me, AT_START, project="webshop", valid_from=old, created_at=old)
    note(me, AT_PROMPT, valid_from=old, created_at=old)


def stored() -> list[tuple[str, str]]:
    """Every turn in the record, in the order in which it was said."""
    rows = RawItem.objects.as_pipeline().order_by("occurred_at", "pk")
    return [(row.role, row.body) for row in rows]


def settle(desk: Desk) -> None:
    """Wait until nothing of ours runs at this desk any more."""
    ours = str(desk.home / ".argus")
    wait_until(lambda: not _running(ours), "nothing of Argus runs")


def _running(part: str) -> bool:
    lines = [process.info["cmdline"] or [] for process in psutil.process_iter(["cmdline"])]
    return any(part in word for line in lines for word in line)


def holds(desk: Desk, turns: Turns) -> None:
    """The record holds exactly these turns, in this order, once; now, and when all is quiet."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while len(stored()) < len(turns) and time.monotonic() < deadline:
        time.sleep(0.05)
    settle(desk)
    found = stored()
    assert found == list(turns), f"in the record:\n{_brief(found)}\nexpected:\n{_brief(turns)}"


def _brief(turns: Turns) -> str:
    lines = [f"  {role:<9} {len(text):>7} {text[:60]!r}...{text[-20:]!r}" for role, text in turns]
    return "\n".join(lines)


def facts(asked: Asked) -> list[str]:
    """The lines of memory that the model was shown, in order; outside a block there are none."""
    shown = "\n".join(_strings(asked.body))
    inside = [part.partition("</argus-memory>")[0] for part in shown.split(f'mark="{MARK}">')[1:]]
    lines = [line for part in inside for line in part.splitlines() if line.startswith("- [")]
    assert shown.count(AT_START) + shown.count(AT_PROMPT) == len(lines)
    return [line.partition("] ")[2] for line in lines]


def _strings(value: object) -> list[str]:
    """Every text in a document, in its order."""
    if isinstance(value, str):
        return [value]
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for part in parts for text in _strings(part)]


def told(ran: Ran) -> tuple[int, str]:
    """What the person sees of a run: its exit code and its output."""
    return ran.exit, ran.out


def complaints(desk: Desk, ran: Ran) -> str:
    """What a run says on stderr beyond what its client says by itself."""
    # Codex retells the whole session there.
    return ran.err if desk.client.name != "codex" else ""


def configuration(desk: Desk) -> dict[str, bytes]:
    """The client's own files that an installer may touch."""
    names = {
        "claude": (".claude/settings.json", ".claude/settings.local.json"),
        "codex": (".codex/config.toml", ".codex/hooks.json"),
        "pi": (".pi/agent/settings.json", ".pi/agent/models.json"),
    }[desk.client.name]
    extensions = (desk.home / ".pi" / "agent" / "extensions").glob("*")
    paths = [*(desk.home / name for name in names), *extensions]
    return {str(p.relative_to(desk.home)): p.read_bytes() for p in paths if p.exists()}


def said(desk: Desk) -> str:
    """All that stands in the transcripts, unescaped where it is JSON."""
    rows = [
        json.loads(line)
        for path in (desk.home / desk.client.sessions).rglob("*.jsonl")
        for line in path.read_bytes().split(b"\n")
        if line.strip()
    ]
    return "\n".join(text for row in rows for text in _strings(row))
