"""What a command writes, safe to read in a terminal.

Names, captured text and a model's words are others'. On a terminal an escape sequence colours,
moves, copies or forges; so nothing of a command's output is one. Knows nothing about the database:
what runs without one writes by it, too.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from django.core.management.base import BaseCommand, OutputWrapper

from memory.text.seen import visible


class Terminal(OutputWrapper):
    """Writes text with a mark for each character that steers a terminal, hides or turns text.

    A style of the command's own is laid on behind that: pass it as `style_func`.
    """

    # Django's own signature, which is not that of a stream either.
    def write(  # type: ignore[override]
        self,
        msg: str = "",
        style_func: Callable[[str], str] | None = None,
        ending: str | None = None,
    ) -> None:
        super().write(visible(str(msg)), style_func, ending)


class PlainCommand(BaseCommand):
    """A command whose output and errors no terminal obeys."""

    def __init__(self, stdout: Any = None, stderr: Any = None, **options: Any) -> None:
        super().__init__(stdout, stderr, **options)
        self.stdout = Terminal(stdout or sys.stdout)
        self.stderr = self._errors(stderr or sys.stderr)

    def execute(self, *args: Any, **options: Any) -> str | None:
        """As Django's, with the streams that a caller gives wrapped alike."""
        if options.get("stdout"):
            self.stdout = Terminal(options.pop("stdout"))
        if options.get("stderr"):
            self.stderr = self._errors(options.pop("stderr"))
        return super().execute(*args, **options)

    def _errors(self, stream: Any) -> Terminal:
        written = Terminal(stream)
        written.style_func = self.style.ERROR
        return written
