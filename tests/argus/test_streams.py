"""What a command writes reaches whoever reads it, or ends quietly when nobody does."""

from __future__ import annotations

import os
import subprocess
import sys

from django.contrib.auth.models import User

from tests import cluster


def test_a_reader_that_has_read_enough_ends_a_command_without_a_traceback(
    clone_db: str, clone_environment: dict[str, str]
) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [sys.executable, "-u", "manage.py", "doctor"],
            env=clone_environment,
            cwd=cluster.ROOT,
            stdout=writing,
            stderr=subprocess.PIPE,
            text=True,
        )
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (141, "")


def test_a_terminal_that_lacks_a_letter_gets_another_one(
    clone_db: str, clone_environment: dict[str, str]
) -> None:
    User.objects.create(username="Zoë")
    done = subprocess.run(
        [sys.executable, "manage.py", "person", "list"],
        env={**clone_environment, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"},
        cwd=cluster.ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "Zo?" in done.stdout
