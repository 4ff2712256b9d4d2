"""How ranker.json is made: every candidate of every dialogue counts, and what comes out is read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from memory.access import principal
from recall import found
from recall.evaluation import files
from recall.features import FEATURES
from recall.ranker import parse, shipped
from recall.training import Example
from tests.bench.ranker import asked, learn, table

DIALOGUES = Path(__file__).parents[1] / "fixtures" / "dialogues.json"


def examples(count: int) -> list[Example]:
    """Questions of three dialogues whose evidence stands out by its cosine."""
    random = np.random.default_rng(1)
    made = []
    for number in range(count):
        matrix = random.normal(size=(12, len(FEATURES)))
        matrix[0, FEATURES.index("cosine")] += 3.0
        made.append(Example(matrix, np.arange(12) == 0, 2, f"dialogue {number % 3}"))
    return made


def test_it_makes_weights_that_say_how_they_were_made() -> None:
    made = learn(examples(60))
    ranker = parse(made)
    assert np.argmax(ranker.weights) == FEATURES.index("cosine")
    trained = made["trained"]
    assert set(shipped().trained) <= set(trained)
    assert trained["held_out"]["questions"] == trained["questions"] == 60
    assert 0.4 < trained["held_out"]["recall5"] <= 0.5, "half of the evidence is no candidate"


def test_it_holds_out_each_dialogue_in_turn() -> None:
    made = examples(60)
    lines = table(made, shipped())
    named = [line.split(":")[1].split()[0] for line in lines if line.startswith("held out")]
    assert named == ["dialogue", "dialogue", "dialogue", "all"]
    assert lines[-1].startswith("0.500 of the evidence")


@pytest.mark.django_db
def test_it_asks_every_question_of_its_own_dialogue() -> None:
    kept = found.FOUND_MAX
    made = asked(files.read(str(DIALOGUES)), principal())
    assert kept == found.FOUND_MAX
    assert [(one.group, one.evidence) for one in made] == [
        ("walk-1", 1), ("walk-1", 2), ("walk-1", 1), ("walk-2", 1),
    ]  # fmt: skip
    assert [int(one.labels.sum()) for one in made] == [1, 2, 1, 1]
    assert all(one.matrix.shape == (len(one.labels), len(FEATURES)) for one in made)
