"""A retrained ranker: adopted when better, obeyed at the very next recall, refused when not."""

from __future__ import annotations

import json
from dataclasses import replace
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from django.core.management import CommandError, call_command

from memory.access import principal
from memory.errors import RefusedError
from memory.llm.minilm import NAME
from recall.calibration import adopt_ranker, in_force
from recall.features import FEATURES, FEW
from recall.labels import LabelledQuestion, examples
from recall.models import Calibration
from recall.query import recall_query
from recall.ranker import Ranker, shipped
from recall.training import FOLDS, Comparison, Measured, measure
from tests.recall.making import NOW, note, said

pytestmark = pytest.mark.django_db

GOOD = Measured(40, 1.0, 0.8, 0.9, 0.7)
SHORTEST_FIRST = Ranker(tuple(-5.0 if name == "length" else 0.0 for name in FEATURES))
LONG = "The staging database of the bakery listens on port 5433 because production does."
SHORT = "The bakery has a port."
ASKED = "Which port does the staging database of the bakery use?"


def adopt(ranker: Ranker, comparison: Comparison) -> Calibration:
    return adopt_ranker(
        ranker, comparison, embedder=NAME, principal=principal(), reason="a test", now=NOW
    )


def found() -> list[str]:
    hits = recall_query(ASKED, principal=principal(), now=NOW).hits
    return [str(hit.key) for hit in hits]


def test_it_orders_by_an_adopted_ranker_at_the_very_next_recall() -> None:
    long, short = note(principal(), LONG), note(principal(), SHORT)
    assert found() == [str(long.pk), str(short.pk)]
    row = adopt(SHORTEST_FIRST, Comparison(GOOD, replace(GOOD, loss=2.0), 3.0))
    assert (row.kind, row.reason, row.principal) == ("ranker", "a test", principal())
    assert row.evidence["before"]["loss"] == 2.0
    assert found() == [str(short.pk), str(long.pk)]
    assert in_force("another embedder").ranker == shipped()


def test_it_refuses_a_ranker_that_is_worse_on_folds_held_out() -> None:
    with pytest.raises(RefusedError, match="held-out"):
        adopt(SHORTEST_FIRST, Comparison(GOOD, replace(GOOD, loss=2.0, recall5=0.81), 3.0))
    assert not Calibration.objects.exists()


def test_a_ranker_for_other_features_is_not_in_force() -> None:
    adopt(SHORTEST_FIRST, Comparison(GOOD, replace(GOOD, loss=2.0), 3.0))
    values = SHORTEST_FIRST.as_json()
    values["weights"]["luck"] = 1.0
    Calibration.objects.create(
        kind="ranker", embedder=NAME, values=values, evidence={}, principal=principal(),
        reason="", created_at=NOW,
    )  # fmt: skip
    assert in_force(NAME).ranker == shipped()


def test_it_learns_from_what_recall_weighs_now() -> None:
    long, short = note(principal(), LONG), note(principal(), SHORT)
    made = examples([LabelledQuestion(ASKED, (str(long.pk),))], principal=principal(), now=NOW)
    (one,) = made
    assert one.matrix.shape == (2, len(FEATURES))
    assert one.labels.sum() == one.evidence == 1
    right = one.matrix[one.labels][0]
    # Two candidates are one deviation apart, which counts as little as two are few.
    assert right[FEATURES.index("coverage")] == pytest.approx(2 / (2 + FEW))
    assert str(short.pk) not in str(one)


def test_it_counts_evidence_that_no_candidate_bears() -> None:
    long, _ = note(principal(), LONG), note(principal(), SHORT)
    asked = [
        LabelledQuestion(ASKED, (str(long.pk), "words that stand nowhere")),
        LabelledQuestion(ASKED, ("words that stand nowhere",)),
        LabelledQuestion(ASKED),
        LabelledQuestion("ok", (str(long.pk),)),
    ]
    made = examples(asked, principal=principal(), now=NOW)
    notes = [one for one in made if len(one.labels)]
    assert [(int(one.labels.sum()), one.evidence) for one in notes] == [(1, 2), (0, 1)]
    judged = measure(made, np.zeros(len(FEATURES)))
    assert judged.recall10 < 0.5


def test_what_the_other_source_bears_is_not_missed() -> None:
    item = said(principal(), "They said that the staging database of the bakery has port 5433.")
    note(principal(), SHORT)
    (one,) = examples([LabelledQuestion(ASKED, (item.pk,))], principal=principal(), now=NOW)
    assert (int(one.labels.sum()), one.evidence) == (1, 1)


def test_it_holds_both_sources_of_a_question_out_together() -> None:
    said(principal(), "They said that the staging database of the bakery has port 5433.")
    note(principal(), LONG)
    asked = [LabelledQuestion(ASKED, ("5433",))] * (FOLDS + 1)
    made = examples(asked, principal=principal(), now=NOW)
    groups = [one.group for one in made]
    assert groups[0::2] == groups[1::2] == ["0", "1", "2", "3", "4", "0"]


def test_the_command_trains_on_nothing_from_a_handful_of_questions(tmp_path: Path) -> None:
    written = note(principal(), LONG)
    file = tmp_path / "questions.jsonl"
    file.write_text(json.dumps({"question": ASKED, "evidence": [str(written.pk)]}) + "\n")
    with pytest.raises(CommandError, match="needed"):
        call_command("calibrate", "--rank", "--questions", str(file), stdout=StringIO())
