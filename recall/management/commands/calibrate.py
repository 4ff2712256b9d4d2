"""`manage.py calibrate`: floors, or the ranker, by what people labelled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser
from django.utils import timezone

from memory.access import principal
from memory.errors import RefusedError
from memory.management.base import EXIT_PARTIAL, EXIT_USAGE, ArgusCommand, plain_errors
from recall.calibrating import learn_floors, learn_ranker, standing
from recall.evaluation.offtopic import PROMPTS
from recall.labels import LabelledQuestion, read
from recall.proposal import FALSE_SHARE

#: Bytes of a file of questions.
# Why: it is held in memory whole; ten thousand questions are two megabytes, all of LoCoMo three.
FILE_BYTES_MAX = 16 * 1024 * 1024


class Command(ArgusCommand):
    help = (
        "Propose recall's floors from labelled questions or from feedback on the ledger, with "
        "precision and recall at each, or train the ranker on them; --adopt puts the result into "
        "force. Alone: what is in force."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        add = parser.add_argument
        add("--questions", action="append", default=[], metavar="FILE",
            help='JSON lines: {"question", "evidence": [words, or ids of notes or raw items]}, or '
                 '"answerable": false; "project": where it is asked. Of LoCoMo\'s JSON the '
                 'questions that have no answer')  # fmt: skip
        add("--ledger", action="store_true", help="injections with feedback")
        add("--off-topic", action="store_true", help="add prompts that no memory answers")
        add("--target", type=share, default=FALSE_SHARE, help="share of false injections allowed")
        add("--rank", action="store_true", help="train the ranker; refused when not better")
        add("--adopt", action="store_true", help="put the result into force")
        add("--reason", default="", help="kept with the adoption")
        add("--no-progress", action="store_true")

    def handle(self, *args: Any, **options: Any) -> None:
        with plain_errors(EXIT_USAGE):
            questions = gather(options["questions"], off_topic=options["off_topic"])
            if not (questions or options["ledger"]) and (options["adopt"] or options["rank"]):
                raise RefusedError("nothing to learn from: name --questions or --ledger")
        given = {
            "ledger": options["ledger"],
            "adopting": options["adopt"],
            "reason": options["reason"],
            "principal": principal(),
            "now": timezone.now(),
            "progress": not (options["no_progress"] or options["json"]),
        }
        with plain_errors():
            if not (questions or options["ledger"]):
                told = standing()
            elif options["rank"]:
                told = learn_ranker(questions, **given)
            else:
                told = learn_floors(questions, target=options["target"], **given)
        self.say(told.report, as_json=options["json"], line="\n".join(told.lines))
        self.leave(EXIT_PARTIAL if told.partial else 0)


def share(text: str) -> float:
    """An argument of at least 0 and below 1."""
    value = float(text)
    if not 0 <= value < 1:
        raise ValueError(text)
    return value


def gather(names: list[str], *, off_topic: bool) -> list[LabelledQuestion]:
    """The questions of these files, and prompts that no memory answers when asked for."""
    questions = [LabelledQuestion(prompt) for prompt in PROMPTS] if off_topic else []
    for name in names:
        try:
            if (size := Path(name).stat().st_size) > FILE_BYTES_MAX:
                raise RefusedError(f"{name} has {size} bytes, {FILE_BYTES_MAX} at most")
            text = Path(name).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise RefusedError(f"{name} cannot be read: {error}") from None
        questions += read(text, name)
    return questions
