"""A person at whose home the client is installed, by the commands that they would type."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]

#: An address where nobody listens: port 9 is nobody's.
AWAY = "http://127.0.0.1:9"


@dataclass(frozen=True)
class Person:
    """A home, and what is typed in it."""

    home: Path
    url: str = AWAY
    key: str = "argus_typed_by_the_person"
    path: str = "/usr/bin:/bin"

    @property
    def settings(self) -> Path:
        return self.home / ".claude" / "settings.json"

    @property
    def codex(self) -> Path:
        return self.home / ".codex"

    @property
    def extension(self) -> Path:
        return self.home / ".pi" / "agent" / "extensions" / "argus.ts"

    def does(
        self, *words: str, stdin: str = "", **variables: str
    ) -> subprocess.CompletedProcess[str]:
        environment = {
            "HOME": str(self.home),
            "PATH": self.path,
            "PYTHONPATH": str(ROOT),
            "LANG": "C.UTF-8",
            **variables,
        }
        return subprocess.run(
            [sys.executable, "-m", "argus.hook", *words],
            input=stdin,
            capture_output=True,
            text=True,
            encoding="utf-8",
            env=environment,
            cwd=self.home,
            timeout=60,
        )

    def installs(self, client: str, *words: str, **variables: str) -> str:
        """Install and expect no refusal; what was printed, warnings too."""
        arguments = ["install", "--client", client, "--url", self.url, "--key-stdin", *words]
        done = self.does(*arguments, stdin=self.key + "\n", **variables)
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    def refused(self, client: str, *words: str) -> str:
        """Install and expect a refusal; what was said."""
        arguments = ["install", "--client", client, "--url", self.url, "--key-stdin", *words]
        done = self.does(*arguments, stdin=self.key + "\n")
        assert done.returncode == 1
        assert not done.stdout
        return done.stderr

    def uninstalls(self, *words: str) -> str:
        done = self.does("uninstall", *words)
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    def wrote(self, text: str | bytes, path: Path | None = None) -> bytes:
        """Put a file of the person's own there; its bytes."""
        data = text.encode() if isinstance(text, str) else text
        path = path or self.settings
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return data

    def hooks(self, path: Path | None = None) -> dict[str, list[dict[str, Any]]]:
        """Every handler by event, as the client reads them."""
        found = json.loads((path or self.settings).read_text("utf-8-sig")).get("hooks", {})
        return {
            event: [handler for group in groups for handler in group["hooks"]]
            for event, groups in found.items()
        }


def snapshot(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Every file below a folder: when it was written and what it holds."""
    return {
        str(path.relative_to(folder)): (path.stat().st_mtime_ns, path.read_bytes())
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def mode(path: Path) -> int:
    return os.stat(path).st_mode & 0o777
