"""`eval`: questions with known answers, asked of the real engine in a throwaway database."""

from __future__ import annotations

import json
import os
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TextIO

from django.core.management.base import CommandError, CommandParser

from argus.evaluating import run
from memory.management.base import (
    EXIT_USAGE,
    ArgusCommand,
    ended_by_sigterm,
    plain_errors,
    positive,
)
from recall.evaluation import files
from recall.evaluation.table import lines


class Command(ArgusCommand):
    help = (
        "How well recall finds what it should, beside BM25, dense, grep and keep-recent. Your own "
        "data are not touched: all of it happens in a database that is dropped at the end."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "dataset", nargs="?", metavar="DATASET",
            help=f'LoCoMo\'s JSON, JSON lines of your own, or "{files.MIXED}"',
        )  # fmt: skip
        parser.add_argument(
            "--own", action="store_true", help="questions made from your own notes, on a copy"
        )
        parser.add_argument("--limit", type=positive, help="the first so many questions")
        parser.add_argument(
            "--predictions", metavar="FILE", help="write what was ranked, a JSON line a question"
        )
        parser.add_argument("--no-progress", action="store_true")

    def handle(self, *args: Any, **options: Any) -> None:
        if bool(options["dataset"]) == options["own"]:
            raise CommandError("Give a DATASET, or --own.", returncode=EXIT_USAGE)
        progress = not (options["no_progress"] or options["json"])
        with plain_errors(refused=EXIT_USAGE), ended_by_sigterm(), ExitStack() as stack:
            # First, so that nothing is made for a file that cannot be read, or written.
            dataset = files.read(options["dataset"]) if options["dataset"] else None
            _check(options)
            out = _opened(options["predictions"], stack)
            done = run(dataset, limit=options["limit"], progress=progress)
            if out:
                for one in done.predictions:
                    out.write(json.dumps(one.as_json(), ensure_ascii=False) + "\n")
                out.close()
                # Only now: a run that fails leaves the file of the run before.
                os.replace(out.name, options["predictions"])
        self.say(dict(done.report), as_json=options["json"], line="\n".join(lines(done.report)))


def _check(options: dict[str, Any]) -> None:
    out, given = options["predictions"], options["dataset"]
    if out and given and Path(out).exists() and Path(given).exists() and Path(out).samefile(given):
        raise CommandError(f"--predictions would write over {given}.", returncode=EXIT_USAGE)


def _opened(path: str | None, stack: ExitStack) -> TextIO | None:
    if path is None:
        return None
    try:
        return stack.enter_context(Path(f"{path}.part").open("w", encoding="utf-8"))
    except OSError as error:
        raise CommandError(
            f"{path} cannot be written: {error.strerror}", returncode=EXIT_USAGE
        ) from None
