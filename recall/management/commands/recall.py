"""`manage.py recall "PROMPT"`: what an agent would get, and with --explain every number of it."""

from __future__ import annotations

import os
from datetime import UTC, datetime, time
from typing import Any

from django.core.management.base import CommandParser
from django.utils import timezone
from django.utils.dateparse import parse_date, parse_datetime

from memory.access import principal
from memory.errors import RefusedError
from memory.management.base import ArgusCommand, plain_errors
from memory.text.seen import one_line
from recall.block import BLOCK_CHARACTERS_MAX
from recall.explain import explain
from recall.notes import NOTES_ASKED_MAX, NOTES_MAX, Recalled, Wanted, recall_notes
from recall.query import Answered, recall_query
from recall.results import as_json
from recall.scoring import Hit
from recall.search import Past

#: Hits explained.
EXPLAINED_MAX = 10

#: The highest floor that makes sense: no fused score comes near it.
FLOOR_MAX = 10


class Command(ArgusCommand):
    help = "Recall for a prompt, or answer a query; says why with --explain. Writes a ledger row."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("prompt")
        parser.add_argument("--cwd", default=os.getcwd(), help="where the prompt is typed")
        parser.add_argument("--session", default="")
        parser.add_argument("--floor", type=float, help="floor of the final score")
        parser.add_argument("--project", default="", help="only what is of this project")
        parser.add_argument("--query", action="store_true", help="ask on purpose: turns, no floors")
        parser.add_argument("--notes", type=int, default=NOTES_MAX, metavar="N", help="at most N")
        parser.add_argument("--characters", type=int, default=BLOCK_CHARACTERS_MAX, metavar="N")
        parser.add_argument("--as-of", type=_moment, help="what held then: a date or an instant")
        parser.add_argument("--known-at", type=_moment, help="what Argus knew then")
        parser.add_argument("--explain", action="store_true", help="why each hit is where it is")

    def handle(self, *args: Any, **options: Any) -> None:
        now = timezone.now()
        asked = {"principal": principal(), "cwd": options["cwd"], "session": options["session"]}
        past = Past.asked(as_of=options["as_of"], known_at=options["known_at"], now=now)
        with plain_errors():
            _check(options)
            told: Answered | Recalled
            if options["query"]:
                told = recall_query(
                    options["prompt"],
                    **asked,
                    project=options["project"],
                    limit=options["notes"],
                    characters=options["characters"],
                    past=past,
                    now=now,
                )
                line = _results(told, why=options["explain"])
            else:
                wanted = Wanted(
                    options["notes"],
                    options["characters"],
                    options["floor"],
                    options["project"],
                    past,
                )
                told = recall_notes(options["prompt"], **asked, wanted=wanted, now=now)
                line = _recalled(told, why=options["explain"])
        self.say(told.as_json(explain=options["explain"]), as_json=options["json"], line=line)


def _check(options: dict[str, Any]) -> None:
    if not 1 <= options["notes"] <= NOTES_ASKED_MAX:
        raise RefusedError(f"--notes is from 1 to {NOTES_ASKED_MAX}")
    if not 1 <= options["characters"] <= BLOCK_CHARACTERS_MAX:
        raise RefusedError(f"--characters is from 1 to {BLOCK_CHARACTERS_MAX}")
    # Written so that what is no number is refused, too.
    if options["floor"] is not None and not 0 <= options["floor"] <= FLOOR_MAX:
        raise RefusedError(f"--floor is from 0 to {FLOOR_MAX}")


def _moment(text: str) -> datetime:
    """A date (its end, in UTC) or an instant."""
    if day := parse_date(text):
        return datetime.combine(day, time.max, UTC)
    if at := parse_datetime(text):
        return at if at.tzinfo else at.replace(tzinfo=UTC)
    raise ValueError(text)


def _recalled(recalled: Recalled, *, why: bool) -> str:
    """The recall for people: gates, floors, each hit with its ranks, scores and fate; what went
    out first, as it was read."""
    asked, searched = recalled.asked, recalled.searched
    gate = f"gate: {asked.gate} ({asked.detail})" if asked.gate else "gates: passed"
    lines = [f"{recalled.outcome}; {gate}"]
    for source, floors in recalled.floors_told.items():
        told = ", ".join(f"{name} {value:g}" for name, value in floors.items())
        lines.append(f"floors of a {source}: {told}")
    if searched:
        question = searched.question
        lines.append(f"embedder: {question.model}; terms: {' '.join(question.words)}")
        lines += [f"without {name}: {why_not}" for name, why_not in searched.degraded.items()]
    hits = [(hit, True) for hit in recalled.hits]
    hits += [(hit, False) for hit in _left_out(recalled)]
    lines += [_why(hit, rank, out) if why else _row(hit, rank, out)
              for rank, (hit, out) in enumerate(hits[:EXPLAINED_MAX], start=1)]  # fmt: skip
    lines.append(f"{recalled.milliseconds:.0f} ms, injection {recalled.injection}")
    return "\n".join([*lines, recalled.text] if recalled.text else lines)


def _results(answered: Answered, *, why: bool) -> str:
    """The results of a query for people."""
    lines = [_why(hit, rank, True) if why else _row(hit, rank, True)
             for rank, hit in enumerate(answered.hits, start=1)]  # fmt: skip
    more = f"{answered.omitted} more; " if answered.omitted else ""
    return "\n".join([*lines, f"{more}{answered.milliseconds:.0f} ms"])


def _left_out(recalled: Recalled) -> list[Hit]:
    """What was weighed and neither went out nor is told by what did."""
    told: set[Any] = set()
    for hit in recalled.hits:
        told |= {str(hit.key), *map(str, hit.turns), *hit.twins}
    return [hit for hit in recalled.weighed if str(hit.key) not in told]


def _why(hit: Hit, rank: int, out: bool) -> str:
    # What did not go out was not read: nobody is told more of it than its numbers.
    told = as_json(hit, rank, explain=True) if out else hit.as_json(rank=rank, injected=False)
    return explain(told | {"title": _title(hit)})


def _row(hit: Hit, rank: int, out: bool) -> str:
    places = [
        f"{name} {at.score:.3f} (#{at.rank})" for name, at in sorted(hit.found.tracks.items())
    ]
    boost = f" x{hit.boost:g}" if hit.boost != 1.0 else ""
    refused = f" [{hit.judged.refused}]" if hit.judged.refused else ""
    mark = "*" if out else " "
    told = f"{mark}{rank:>2} {hit.source} {hit.score:.5f}{boost}  {', '.join(places)}"
    return f"{told}  {_title(hit)}{refused}"


def _title(hit: Hit) -> str:
    return one_line(str(hit.facts.get("title") or hit.facts.get("excerpt") or f"turn {hit.key}"))[
        :80
    ]
