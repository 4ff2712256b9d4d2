"""An export in a process of its own, which kills itself before one of the things it does to files.

`python -m tests.exporter.process FOLDER [N]`: export Alice's notes into FOLDER; with N, `kill -9`
right before the Nth such thing. Prints how many there were.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

#: What an export does to files, as the system is asked.
DONE_TO_FILES = ("open", "write", "fsync", "link", "rename", "unlink", "mkdir", "rmdir", "chmod")


def start(
    folder: Path, environment: dict[str, str], at: int = 0, **options: Any
) -> subprocess.Popen[str]:
    """Such a process, on the database of this environment."""
    return subprocess.Popen(
        [sys.executable, "-m", "tests.exporter.process", str(folder), str(at)],
        env=environment | {"DJANGO_SETTINGS_MODULE": "argus.settings"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


class Count:
    """How many things were done to files."""

    def __init__(self, at: int) -> None:
        self.at, self.done = at, 0

    def around(self, name: str) -> None:
        """Count one of the system's calls, and die before the one that was asked for."""
        real: Callable[..., Any] = getattr(os, name)

        def counted(*args: Any, **named: Any) -> Any:
            self.done += 1
            if self.done == self.at:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*args, **named)

        setattr(os, name, counted)


def main(folder: Path, at: int) -> None:
    import django

    django.setup()
    from exporter.export import export
    from exporter.place import Place, around_vault
    from tests.exporter.exports import LATER
    from tests.factories import clock

    count = Count(at)
    for name in DONE_TO_FILES:
        count.around(name)
    with around_vault(Place(folder, "alice")):
        export(clock=clock(LATER))
    # Read by the test that started this process.
    print(count.done)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
