"""`manage.py recall "PROMPT"`: what an agent would get, and every number that decided."""

from __future__ import annotations

import os
from typing import Any

from django.core.management.base import CommandParser
from django.utils import timezone

from memory.access import principal
from memory.management.base import ArgusCommand, plain_errors
from recall.notes import Recalled, recall_notes
from recall.scoring import Hit


class Command(ArgusCommand):
    help = "Recall for a prompt; prints gates, floors, ranks and scores. Writes an injection row."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("prompt")
        parser.add_argument("--cwd", default=os.getcwd(), help="where the prompt is typed")
        parser.add_argument("--session", default="")
        parser.add_argument("--floor", type=float, help="floor of the final score")

    def handle(self, *args: Any, **options: Any) -> None:
        with plain_errors():
            recalled = recall_notes(
                options["prompt"],
                principal=principal(),
                cwd=options["cwd"],
                session=options["session"],
                floor=options["floor"],
                now=timezone.now(),
            )
        self.say(recalled.as_json(), as_json=options["json"], line=explain(recalled))


def explain(recalled: Recalled) -> str:
    """The recall as a table: gates, floors, each hit with its ranks, scores and fate."""
    asked, tracks = recalled.asked, recalled.tracks
    gate = f"gate: {asked.gate} ({asked.detail})" if asked.gate else "gates: passed"
    floors = ", ".join(f"{name} {value:g}" for name, value in recalled.floors.as_json().items())
    lines = [f"{recalled.outcome}; {gate}", f"floors: {floors}"]
    if tracks:
        lines.append(f"embedder: {tracks.model}; terms: {' '.join(tracks.terms)}")
        lines += [f"without {name}: {why}" for name, why in tracks.degraded.items()]
    if recalled.weighed:
        lines.append(f"{'':>2} {'score':>8} {'fused':>8} {'semantic':>14} {'keyword':>14}  boost")
    lines += [row(rank, hit) for rank, hit in enumerate(recalled.weighed[:10], start=1)]
    lines.append(f"{recalled.milliseconds:.0f} ms, injection {recalled.injection}")
    return "\n".join([*lines, recalled.text] if recalled.text else lines)


def row(rank: int, hit: Hit) -> str:
    places = [
        f"{at.score:.3f} (#{at.rank})" if (at := hit.fused.tracks.get(name)) else "-"
        for name in ("semantic", "keyword")
    ]
    fate = f"[{hit.refused}]" if hit.refused else ""
    numbers = f"{rank:>2} {hit.score:8.5f} {hit.fused.score:8.5f} {places[0]:>14} {places[1]:>14}"
    return f"{numbers}  x{hit.boost:<4g} {hit.note['title']} {fate}".rstrip()
