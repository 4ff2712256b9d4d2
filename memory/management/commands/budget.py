"""`manage.py budget [--since WHEN] [--lift TOKENS --reason WHY]`: what models cost today."""

from __future__ import annotations

import re
from argparse import ArgumentTypeError
from dataclasses import asdict
from datetime import UTC, date, datetime, timedelta
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.utils import timezone

from memory.access import principal
from memory.lately import midnight
from memory.llm.budget import Budget, standing
from memory.management.base import EXIT_USAGE, ArgusCommand, plain_errors, positive
from memory.spending import Spent, lift, spent
from memory.text.seen import one_line
from memory.wording import inline

#: Days that calls are added up for at most.
# Why: every call of them is read, and a person waits.
# Calibrate: seconds of `manage.py budget --since` over a year of the busiest house.
SINCE_DAYS_MAX = 366


class Command(ArgusCommand):
    help = "Show the day's budget of model tokens and who spent it, or widen it for today."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--since", type=_since, help="calls since this day (2026-11-30), or so long (12h, 7d)"
        )
        parser.add_argument("--lift", type=positive, metavar="TOKENS", help="so many more today")
        parser.add_argument("--reason", default="", help="why; needed to lift")
        parser.add_argument("--dry-run", action="store_true", help="show it, lift nothing")

    def handle(self, *args: Any, **options: Any) -> None:
        now = timezone.now()
        if options["reason"] and not options["lift"]:
            raise CommandError("--reason is for --lift TOKENS", returncode=EXIT_USAGE)
        if options["lift"] and not options["dry_run"]:
            with plain_errors(refused=EXIT_USAGE):
                lift(options["lift"], by=principal(), reason=options["reason"], now=now)
        budget, since = standing(now), options["since"] or midnight(now)
        rows = spent(since)
        line = _told(budget, since, rows)
        if options["lift"] and options["dry_run"]:
            line = f"would allow {budget.allowed + options['lift']:,} tokens today; now:\n{line}"
        self.say(_report(budget, since, rows), as_json=options["json"], line=line)


def _since(text: str) -> datetime:
    if found := re.fullmatch(r"(\d{1,4})([hd])", text):
        many, unit = int(found[1]), found[2]
        since = timezone.now() - timedelta(hours=many if unit == "h" else 24 * many)
    else:
        try:
            day = date.fromisoformat(text)
        except ValueError:
            raise ArgumentTypeError(
                f"{text!r} is no day (2026-11-30) and no time (12h, 7d)"
            ) from None
        since = datetime.combine(day, datetime.min.time(), UTC)
    if timezone.now() - since > timedelta(days=SINCE_DAYS_MAX):
        raise ArgumentTypeError(f"at most {SINCE_DAYS_MAX} days: the ledger is read whole")
    return since


def _report(budget: Budget, since: datetime, rows: list[Spent]) -> dict[str, Any]:
    return {
        **asdict(budget),
        "allowed": budget.allowed,
        "left": budget.left,
        "stopped": budget.stopped,
        "resumes_at": budget.resumes_at,
        "since": since,
        "calls": [asdict(row) | {"tokens": row.tokens} for row in rows],
    }


def _told(budget: Budget, since: datetime, rows: list[Spent]) -> str:
    """The budget in a sentence, and a line for each stage, port and model."""
    lifted = f" ({budget.extra:,} of them lifted for today)" if budget.extra else ""
    first = f"{budget.day}: {budget.tokens:,} of {budget.allowed:,} tokens{lifted}, "
    lines = [first + f"{budget.left:,} left"]
    if budget.stopped or not budget.limit:
        lines.append(f"STOPPED  {budget.sentence}")
    lines += [
        f"  refused {one.stage}/{one.port} since {one.at:%H:%M:%SZ}" for one in budget.refused
    ]
    if not rows:
        return "\n".join([*lines, f"no call of a model since {since:%Y-%m-%d %H:%MZ}"])
    lines.append(f"calls since {since:%Y-%m-%d %H:%MZ}:")
    lines.append(f"{'stage':<10} {'port':<10} {'calls':>7} {'in':>10} {'out':>9} {'ms':>7}  model")
    for row in rows:
        model = row.model_asked
        if row.model_real and row.model_real != row.model_asked:
            model += f" -> {row.model_real}"
        bad = {word: count for word, count in row.outcomes.items() if word != "ok"}
        lines.append(
            f"{row.stage:<10} {row.port:<10} {row.calls:>7,} {row.tokens_in:>10,}"
            f" {row.tokens_out:>9,} {row.milliseconds / row.calls:>7,.0f}  {one_line(model)}"
            + (f"  ({inline(bad)})" if bad else "")
        )
    return "\n".join(lines)
