"""Calibrates the topic threshold: sessions of different dialogues glued together, borders known.

    python -m tests.bench.topic_shift

Needs DJANGO_SETTINGS_MODULE=tests.settings. Prints precision and recall of topic borders by
threshold, for the default embedder. How: turns of one session after turns of another dialogue's
session make one long run; a cut is right when it stands within one turn of a seam. Topics that
change inside a session count as wrong cuts, so the true precision is higher than what is printed.
Not a test: nothing here is timed or asserted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from pathlib import Path

import django

from tests.corpus import CORPUS

django.setup()

from memory.borders import Turn, cut  # noqa: E402
from memory.llm.minilm import MiniLM  # noqa: E402
from memory.llm.vectors import Vector  # noqa: E402

START = datetime(2026, 1, 1, tzinfo=UTC)
#: Dialogues read, and sessions taken of each.
DIALOGUES_MAX = 5
SESSIONS_MAX = 8
#: How far from a seam a cut may stand.
TOLERANCE_TURNS = 1


@dataclass(frozen=True)
class Run:
    """One glued run: vectors of its turns, and the positions where a new session begins."""

    vectors: list[Vector]
    seams: tuple[int, ...]


def cuts(run: Run, threshold: float) -> list[int]:
    """Positions where the cutter ends an episode by topic; turns come a minute apart."""
    turns = [
        Turn(at, START + timedelta(minutes=at), START, vector)
        for at, vector in enumerate(run.vectors)
    ]
    done = cut(turns, now=START + timedelta(days=9), ended_at=None, topic_shift=threshold)
    ends = accumulate(len(piece.turns) for piece in done.cuts)
    return [end for end, piece in zip(ends, done.cuts, strict=True) if piece.reason == "topic"]


def measure(runs: Sequence[Run], threshold: float) -> tuple[float, float, float]:
    """Precision, recall, and cuts per 20 turns, over all runs."""
    right = made = seams = hit = turns = 0
    for run in runs:
        taken = cuts(run, threshold)
        made += len(taken)
        seams += len(run.seams)
        turns += len(run.vectors)
        right += sum(any(abs(c - s) <= TOLERANCE_TURNS for s in run.seams) for c in taken)
        hit += sum(any(abs(c - s) <= TOLERANCE_TURNS for c in taken) for s in run.seams)
    return right / max(1, made), hit / max(1, seams), 20 * made / max(1, turns)


def glue(dialogues: Sequence[Sequence[list[Vector]]]) -> list[Run]:
    """Runs that take session n of each dialogue in turn."""
    runs = []
    for sessions in zip(*dialogues, strict=True):
        vectors: list[Vector] = []
        seams = []
        for session in sessions:
            if vectors:
                seams.append(len(vectors))
            vectors += session
        runs.append(Run(vectors, tuple(seams)))
    return runs


def read(path: Path) -> list[list[list[str]]]:
    """Dialogues -> sessions -> texts of turns."""
    dialogues = []
    for sample in json.loads(path.read_text())[:DIALOGUES_MAX]:
        talk = sample["conversation"]
        names = sorted(
            (name for name in talk if re.fullmatch(r"session_\d+", name)),
            key=lambda name: int(name.split("_")[1]),
        )
        dialogues.append(
            [[turn["text"] or "." for turn in talk[name]] for name in names[:SESSIONS_MAX]]
        )
    return dialogues


def main() -> None:
    """Print the table."""
    path = CORPUS / "bench" / "locomo_dev.json"
    if not path.exists():
        print(f"{path} is absent; nothing measured")
        return
    embedder = MiniLM()
    dialogues = [
        [[embedder.encode(text) for text in session] for session in sessions]
        for sessions in read(path)
    ]
    runs = glue(dialogues)
    print(f"{len(runs)} runs, {sum(len(run.vectors) for run in runs)} turns")
    print("threshold  precision  recall  cuts per 20 turns")
    for step in range(10, 75, 5):
        precision, recall, rate = measure(runs, step / 100)
        print(f"{step / 100:9.2f}  {precision:9.2f}  {recall:6.2f}  {rate:17.1f}")


if __name__ == "__main__":
    main()
