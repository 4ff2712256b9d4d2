"""`purge` as a script asks it."""

from __future__ import annotations

import io
import json
from typing import Any

from django.core.management import call_command
from django.core.management.base import CommandError


def run(*words: str) -> tuple[int, dict[str, Any]]:
    """Exit code and report of `purge --json`."""
    out = io.StringIO()
    try:
        call_command("purge", *words, "--json", stdout=out)
    except SystemExit as left:
        return int(left.code or 0), json.loads(out.getvalue())
    except CommandError as error:
        return error.returncode, json.loads(out.getvalue() or "{}")
    return 0, json.loads(out.getvalue())
