"""What the commands share: `--json`, exit codes, the summary line."""

from __future__ import annotations

import argparse
import json
import signal
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.utils import timezone

from memory.acts import through
from memory.checks import OURS
from memory.errors import ArgusError, InfraError, NotFound, RefusedError
from memory.llm.budget import stop_of
from memory.management.plain import PlainCommand
from memory.wording import inline, words

#: Digits of a number that a command takes; an id of the database has no more.
DIGITS_MAX = 18

EXIT_OK, EXIT_FAILED, EXIT_USAGE, EXIT_PARTIAL, EXIT_AWAY = 0, 1, 2, 3, 75


class ArgusCommand(PlainCommand):
    """A thin door: arguments -> verb -> report -> exit code."""

    requires_system_checks: tuple[str, ...] = (OURS,)

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", help="one JSON object on stdout")

    def actions(self, parser: CommandParser) -> Callable[..., CommandParser]:
        """A maker of sub-commands, each of which takes `--json` as well."""
        made = parser.add_subparsers(dest="action", required=True)

        def action(name: str, **options: Any) -> CommandParser:
            one = made.add_parser(name, **options)
            one.add_argument("--json", action="store_true", default=argparse.SUPPRESS)
            return one

        return action

    def execute(self, *args: Any, **options: Any) -> str | None:
        """Run the command; with `--json` an error is an object on stdout, too. Whatever it does is
        on the list of acts as done by a command."""
        try:
            with through("command"):
                return super().execute(*args, **options)
        except CommandError as error:
            if options.get("json"):
                self.stdout.write(json.dumps({"error": str(error), "exit": error.returncode}))
            raise

    def say(self, report: dict[str, Any], *, as_json: bool, line: str = "") -> None:
        """Print the report: as JSON, or as a line for people."""
        self.stdout.write(json.dumps(report, default=str) if as_json else line or summary(report))

    def leave(self, code: int) -> None:
        """End with an exit code other than 0, after the report was printed."""
        if code:
            raise SystemExit(code)


class StageCommand(ArgusCommand, ABC):
    """A command that runs one stage; each names its verb and counts what waits for it."""

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--limit", type=positive, help="at most this many units")
        parser.add_argument("--dry-run", action="store_true", help="count what waits, do nothing")

    @abstractmethod
    def run(self, limit: int | None) -> dict[str, Any]:
        """The report of one run over at most `limit` units."""

    @abstractmethod
    def pending(self, now: datetime) -> dict[str, int]:
        """Units that wait, by stage."""

    def handle(self, *args: Any, **options: Any) -> None:
        if options["dry_run"]:
            with plain_errors():
                waiting = self.pending(timezone.now())
            self.say({"pending": waiting}, as_json=options["json"])
            return
        with plain_errors(), ended_by_sigterm():
            report = self.run(options["limit"])
            report = stop_of(report, timezone.now()) | report
        self.say(report, as_json=options["json"])
        self.leave(exit_code(report))


@contextmanager
def ended_by_sigterm() -> Iterator[None]:
    """SIGTERM ends the block as Ctrl-C does: the run is closed and its units are free at once."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(number: int, frame: object) -> None:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def exit_code(report: dict[str, Any]) -> int:
    """75 when something we need was away, 3 when units failed or were parked, else 0."""
    stages = [report, *(value for value in report.values() if isinstance(value, dict))]
    if any(stage.get("transient_failures") for stage in stages):
        return EXIT_AWAY
    if any(
        stage.get(word) for stage in stages for word in ("parked", "content_failures", "failed")
    ):
        return EXIT_PARTIAL
    return EXIT_OK


def summary(report: dict[str, Any]) -> str:
    """A report as lines: counts first, then a line per stage or reason; zeros left out."""
    nested = {key: value for key, value in report.items() if isinstance(value, dict) and value}
    lines = [inline({key: value for key, value in report.items() if key not in nested})]
    lines += [f"{words(key)}: {inline(value) or 'nothing'}" for key, value in nested.items()]
    return "\n".join(line for line in lines if line) or "nothing to do"


def positive(text: str) -> int:
    """An argument that is a whole number above zero."""
    if not (number := _number(text)):
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is no whole number above zero")
    return number


def id_number(text: str) -> int:
    """An argument that is the id of a row."""
    if not (number := _number(text)):
        raise argparse.ArgumentTypeError(
            f"{text[:40]!r} is no id: a whole number above zero, as lists and pages name it"
        )
    return number


def _number(text: str) -> int:
    """The number that this is; 0 for what is none, or none that a row or a LIMIT can have."""
    # Why ASCII: a superscript two is a digit, too, and no number.
    sound = text.isascii() and text.isdigit() and len(text) <= DIGITS_MAX
    return int(text) if sound else 0


@contextmanager
def plain_errors(refused: int = EXIT_FAILED) -> Iterator[None]:
    """Errors of ours end a command with one sentence and the right exit code.

    `refused` is the code for input that was refused: EXIT_USAGE where it can only be an argument.
    What is not there was named by one in any case.
    """
    try:
        yield
    except InfraError as error:
        raise CommandError(error.told or str(error), returncode=EXIT_AWAY) from error
    except RefusedError as error:
        raise CommandError(error.told or str(error), returncode=refused) from error
    except NotFound as error:
        raise CommandError(error.told or str(error), returncode=EXIT_USAGE) from error
    except ArgusError as error:
        raise CommandError(error.told or str(error), returncode=EXIT_FAILED) from error
