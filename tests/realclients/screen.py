"""Claude Code's full screen, driven through a terminal of its own, as a person at it types."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import struct
import subprocess
import termios
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tests.realclients.clients import Desk

ESCAPE = "\x1b"

#: Seconds between the last letter and Return.
# Why: letters and Return in one go are taken for a paste.
TYPING_SECONDS = 0.4


class Screen:
    """The running screen: what is typed goes in, what it paints is kept."""

    def __init__(self, desk: Desk) -> None:
        _answered(desk)
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        environment = desk.environment | {"TERM": "xterm-256color"}
        self._terminal = ours
        self._process = subprocess.Popen(
            [str(desk.client.program), "--allowedTools", "Bash"], cwd=desk.project,
            env=environment, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
        )  # fmt: skip
        os.close(theirs)
        self.painted = bytearray()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        with contextlib.suppress(OSError):
            while piece := os.read(self._terminal, 65_536):
                self.painted += piece

    def type(self, text: str) -> None:
        """Type a line and press Return."""
        self.press(text)
        time.sleep(TYPING_SECONDS)
        self.press("\r")

    def press(self, keys: str) -> None:
        os.write(self._terminal, keys.encode())

    def leave(self) -> int:
        """`/exit`; the exit code, 124 when it did not go."""
        self.type("/exit")
        try:
            return self._process.wait(20)
        except subprocess.TimeoutExpired:
            return 124

    def close(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        self._reader.join(5)
        os.close(self._terminal)


@contextmanager
def shown(desk: Desk) -> Iterator[Screen]:
    """The screen at this desk; gone afterwards."""
    screen = Screen(desk)
    try:
        yield screen
    finally:
        screen.close()


def _answered(desk: Desk) -> None:
    """What Claude Code asks a person at the very first start, answered."""
    trusted = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
    answers = {
        "hasCompletedOnboarding": True, "theme": "dark", "lastOnboardingVersion": "2.1.197",
        "customApiKeyResponses": {"approved": ["dummy"], "rejected": []},
        "projects": {str(desk.project): trusted},
    }  # fmt: skip
    (desk.home / ".claude.json").write_text(json.dumps(answers))
