"""Calibrates the cosine floors of the default embedder on labelled pairs.

    DJANGO_SETTINGS_MODULE=tests.settings python -m tests.bench.cosine_floors

Recall: questions against the turns that answer them, against the best turn of another dialogue
(about 500 turns), and against any turn of it. Dedup: the hand-made pairs by verdict. Centroid:
sessions against their own dialogue (without them) and against the best other one. Prints
percentiles; asserts nothing.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import quantiles

import django

from tests.corpus import CORPUS

django.setup()

from memory.llm.minilm import MiniLM  # noqa: E402
from memory.llm.vectors import Vector, cosine, mean, unit  # noqa: E402

PAIRS = Path(__file__).parents[1] / "fixtures" / "pairs.json"

#: Dialogues read; every n-th question of them.
DIALOGUES_MAX = 3
QUESTIONS_STEP = 3

PERCENTILES = (1, 5, 10, 25, 50, 75, 90, 95, 99)


@dataclass(frozen=True)
class Dialogue:
    """Vectors of turns by session and id; questions with the ids that answer them."""

    sessions: list[list[Vector]]
    turns: dict[str, Vector]
    questions: list[tuple[Vector, list[str]]]


def main() -> None:
    """Print percentiles."""
    embedder = MiniLM()
    print(f"{'':40} n     " + "  ".join(f"p{p:<4}" for p in PERCENTILES))
    by_verdict: dict[str, list[float]] = defaultdict(list)
    for pair in json.loads(PAIRS.read_text(encoding="utf-8")):
        score = cosine(embedder.encode(pair["old"]), embedder.encode(pair["new"]))
        by_verdict[pair["verdict"]].append(score)
    for verdict, scores in by_verdict.items():
        show(f"pairs: {verdict}", scores)
    path = CORPUS / "bench" / "locomo_dev.json"
    if not path.exists():
        print(f"{path} is absent; the rest was not measured")
        return
    samples = json.loads(path.read_text(encoding="utf-8"))[:DIALOGUES_MAX]
    dialogues = [read(sample, embedder) for sample in samples]
    recall(dialogues)
    centroid(dialogues)


def read(sample: dict[str, object], embedder: MiniLM) -> Dialogue:
    """One dialogue, embedded."""
    talk = sample["conversation"]
    asked = sample["qa"]
    assert isinstance(talk, dict) and isinstance(asked, list)
    sessions: list[list[Vector]] = []
    turns: dict[str, Vector] = {}
    for name in (name for name in talk if re.fullmatch(r"session_\d+", name)):
        vectors = {turn["dia_id"]: embedder.encode(turn["text"] or ".") for turn in talk[name]}
        sessions.append(list(vectors.values()))
        turns |= vectors
    questions = []
    for qa in [qa for qa in asked if qa["category"] != 5][::QUESTIONS_STEP]:
        ids = [i for text in qa["evidence"] for i in re.findall(r"D\d+:\d+", text) if i in turns]
        if ids:
            questions.append((embedder.encode(qa["question"]), ids))
    return Dialogue(sessions, turns, questions)


def recall(dialogues: Sequence[Dialogue]) -> None:
    """Questions against evidence, and against what has nothing to do with them."""
    evidence, best, others = [], [], []
    for dialogue in dialogues:
        for question, ids in dialogue.questions:
            evidence.append(max(cosine(question, dialogue.turns[i]) for i in ids))
            for other in (o for o in dialogues if o is not dialogue):
                scores = [cosine(question, vector) for vector in other.turns.values()]
                best.append(max(scores))
                others += scores
    show("question: its evidence", evidence)
    show("question: best of another dialogue", best)
    show("question: any turn of another dialogue", others)


def centroid(dialogues: Sequence[Dialogue]) -> None:
    """Sessions against dialogues."""
    means = [[direction(session) for session in dialogue.sessions] for dialogue in dialogues]
    own, other = [], []
    for at, sessions in enumerate(means):
        for number, vector in enumerate(sessions):
            own.append(cosine(vector, direction(sessions[:number] + sessions[number + 1 :])))
            rest = [cosine(vector, direction(m)) for place, m in enumerate(means) if place != at]
            other.append(max(rest))
    show("session: its own dialogue", own)
    show("session: best other dialogue", other)


def direction(vectors: Sequence[Vector]) -> Vector:
    """The unit-length mean."""
    return unit(mean(vectors) or [])


def show(name: str, scores: Sequence[float]) -> None:
    """One line of percentiles."""
    cuts = quantiles(scores, n=100, method="inclusive")
    print(f"{name:40} {len(scores):<6}" + "  ".join(f"{cuts[p - 1]:5.2f}" for p in PERCENTILES))


if __name__ == "__main__":
    main()
