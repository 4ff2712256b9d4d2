"""Calibration: adopted floors are what the very next recall obeys, for their embedder alone."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import DatabaseError, transaction

from memory.access import principal
from memory.errors import RefusedError
from memory.llm.minilm import NAME
from memory.models import Principal
from recall.calibration import adopt, adopt_ranker, in_force
from recall.features import FEATURES
from recall.feedback import give_feedback
from recall.floors import Floors, Source
from recall.labels import LabelledQuestion, examples, from_ledger, label, read, useful
from recall.models import Calibration
from recall.notes import recall_notes
from recall.proposal import Outcome, Proposal
from recall.ranker import Ranker
from recall.ranker import shipped as shipped_ranker
from recall.training import Comparison, Measured
from tests.recall.making import NOW, note

pytestmark = pytest.mark.django_db

FACT = "The staging database of the bakery listens on port 5433 because production does."
ASKED = "Which port does the staging database of the bakery use?"


@pytest.fixture
def me() -> Principal:
    return principal()


@pytest.fixture
def fact(me: Principal) -> Any:
    return note(me, FACT, project="bakery")


def proposal(relevance: float | None = None, score: float | None = None) -> Proposal:
    base = dict(in_force(NAME).floors)
    floors: Mapping[Source, Floors] = {
        source: replace(
            one,
            relevance=one.relevance if relevance is None else relevance,
            score=one.score if score is None else score,
        )
        for source, one in base.items()
    }
    return Proposal(base, floors, held_out=Outcome(50, 0.9, 50, 0.0))


def ask(me: Principal, text: str = ASKED) -> Any:
    return recall_notes(text, principal=me, now=NOW)


def test_it_obeys_adopted_floors_at_the_very_next_recall(me: Principal, fact: Any) -> None:
    assert "5433" in ask(me).text
    row = adopt(proposal(relevance=99.0), embedder=NAME, principal=me, reason="too loud", now=NOW)
    silent = ask(me)
    assert silent.text == ""
    assert silent.outcome == "below_floor"
    assert silent.calibration == row.pk
    adopt(proposal(relevance=-3.0), embedder=NAME, principal=me, reason="too quiet", now=NOW)
    assert "5433" in ask(me).text


def test_it_keeps_who_adopted_what_when_and_why(me: Principal) -> None:
    adopt(proposal(relevance=-1.5), embedder=NAME, principal=me, reason="200 prompts", now=NOW)
    row = Calibration.objects.get()
    assert (row.kind, row.embedder, row.principal, row.reason) == (
        "floors", NAME, me, "200 prompts",
    )  # fmt: skip
    assert row.created_at == NOW
    assert row.values["note"]["relevance"] == -1.5
    assert row.evidence["held_out"]["right"] == 0.9


def test_it_never_changes_an_adoption(me: Principal) -> None:
    row = adopt(proposal(relevance=-1.5), embedder=NAME, principal=me, reason="", now=NOW)
    with pytest.raises(DatabaseError), transaction.atomic():
        Calibration.objects.filter(pk=row.pk).update(reason="another")


def test_it_does_not_count_the_calibration_of_another_embedder(me: Principal) -> None:
    before = in_force(NAME)
    adopt(proposal(relevance=99.0), embedder="another", principal=me, reason="", now=NOW)
    assert in_force(NAME) == before
    assert in_force("another").floors["note"].relevance == 99.0


def test_it_leaves_the_final_score_to_the_setting(me: Principal, settings: Any) -> None:
    adopt(proposal(score=0.5), embedder=NAME, principal=me, reason="", now=NOW)
    assert in_force(NAME).floors["note"].score == settings.ARGUS.recall_floor


def test_it_refuses_to_adopt_nothing(me: Principal) -> None:
    with pytest.raises(RefusedError, match="nothing to adopt"):
        adopt(proposal(), embedder=NAME, principal=me, reason="", now=NOW)


def test_it_refuses_floors_that_do_worse_on_what_was_held_out(me: Principal) -> None:
    worse = replace(
        proposal(relevance=-1.0),
        held_out=Outcome(50, 0.5, 50, 0.0),
        before=Outcome(50, 0.9, 50, 0.0),
    )
    with pytest.raises(RefusedError, match="right answers go from 90.0% to 50.0%"):
        adopt(worse, embedder=NAME, principal=me, reason="", now=NOW)
    assert not Calibration.objects.exists()


def test_it_redacts_the_reason(me: Principal) -> None:
    secret = "see postgres://app:hunter2hunter2@db.example.net/app"
    adopt(proposal(relevance=-1.0), embedder=NAME, principal=me, reason=secret, now=NOW)
    assert "hunter2" not in Calibration.objects.get().reason


def test_it_labels_a_hit_by_words_by_id_and_by_the_item_that_it_cites(
    me: Principal, fact: Any
) -> None:
    questions = [
        LabelledQuestion(ASKED, ("on port 5433",)),
        LabelledQuestion(ASKED, (str(fact.pk),)),
        LabelledQuestion(ASKED, ("on port 5999",)),
        LabelledQuestion(ASKED),
    ]
    words, ident, wrong, none = label(questions, principal=me, now=NOW)
    assert [any(hit.right for hit in one.hits) for one in (words, ident, wrong, none)] == [
        True, True, False, False,
    ]  # fmt: skip
    assert [one.answerable for one in (words, ident, wrong, none)] == [True, True, True, False]
    assert words.hits[0].evidence.coverage > 0.3


def test_it_finds_nothing_for_a_question_that_a_gate_refuses(me: Principal, fact: Any) -> None:
    assert label([LabelledQuestion("ok, go on")], principal=me, now=NOW)[0].hits == ()


def test_it_reads_labels_from_feedback_on_the_ledger(me: Principal, fact: Any) -> None:
    ask(me)
    assert from_ledger(me) == []
    got = ask(me)
    give_feedback(fact.pk, "useful", principal=me, now=NOW, injection=got.injection)
    (one,) = from_ledger(me)
    assert one.answerable
    assert [hit.right for hit in one.hits] == [True]
    assert one.hits[0].evidence.above is not None


def test_it_takes_an_injection_with_wrong_notes_alone_as_one_without_an_answer(
    me: Principal, fact: Any
) -> None:
    got = ask(me)
    give_feedback(fact.pk, "wrong", principal=me, now=NOW, injection=got.injection)
    (one,) = from_ledger(me)
    assert not one.answerable
    assert [hit.right for hit in one.hits] == [False]


def test_it_does_not_read_what_was_taken_back(me: Principal, fact: Any) -> None:
    got = ask(me)
    give_feedback(fact.pk, "wrong", principal=me, now=NOW, injection=got.injection)
    give_feedback(fact.pk, "withdrawn", principal=me, now=NOW, injection=got.injection)
    assert from_ledger(me) == []


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "file:1: "),
        ('{"evidence": ["a"]}', 'file:1: no "question"'),
        ('{"question": "q", "evidence": ["a"], "answer": 1}', "file:1: 'answer' is not known"),
        ('{"question": "q", "answerable": true}', "file:1: a question needs evidence"),
        ('{"question": "q", "evidence": ["a"], "answerable": false}', "file:1: a question needs"),
        ('{"question": "q", "evidence": "a"}', "file:1: evidence must be a list"),
    ],
)
def test_it_names_the_line_that_it_cannot_read(line: str, said: str) -> None:
    with pytest.raises(RefusedError, match=said):
        read([line], "file")


def run(*arguments: str) -> tuple[dict[str, Any], int]:
    out = StringIO()
    code = 0
    try:
        call_command("calibrate", *arguments, "--json", stdout=out)
    except SystemExit as ended:
        code = int(ended.code or 0)
    return json.loads(out.getvalue()), code


def questions(path: Path, count: int) -> str:
    """As many questions about the fact as there are prompts about nothing."""
    lines: list[dict[str, Any]] = [
        {"question": f"{ASKED} Take {number} please.", "evidence": ["5433"]}
        for number in range(count)
    ]
    lines += [
        {"question": f"How do I bake bread number {number} with rye flour?", "answerable": False}
        for number in range(count)
    ]
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    return str(path)


def test_it_prints_what_is_in_force(me: Principal) -> None:
    report, code = run()
    assert code == 0
    assert report["calibration"] is None
    assert report["floors"]["note"]["semantic"] == pytest.approx(0.36)
    assert report["adoptions"] == []


def test_it_proposes_from_a_file_and_adopts_what_it_proposed(
    me: Principal, fact: Any, tmp_path: Path
) -> None:
    given = questions(tmp_path / "questions.jsonl", 50)
    report, code = run("--questions", given)
    assert code == 3, "turns were not judged"
    assert not Calibration.objects.exists()
    assert {row["track"] for row in report["rows"]} == {
        "semantic", "keyword", "relevance", "score",
    }  # fmt: skip
    assert report["held_out"]["right"] == 1.0
    assert report["held_out"]["false"] == 0.0
    report, _ = run("--questions", given, "--adopt", "--reason", "a test")
    assert report["before"]["right"] == 1.0
    assert report["adopted"] == Calibration.objects.get().pk
    assert run()[0]["adoptions"][0]["reason"] == "a test"
    assert "5433" in ask(me).text


def test_it_proposes_nothing_from_too_few_questions(
    me: Principal, fact: Any, tmp_path: Path
) -> None:
    report, code = run("--questions", questions(tmp_path / "few.jsonl", 5))
    assert code == 3
    assert report["changes"] is False
    assert "needed" in report["kept"][0]


def test_it_ends_with_one_sentence_when_there_is_nothing_to_adopt(me: Principal) -> None:
    with pytest.raises(CommandError, match="name --questions or --ledger") as refused:
        call_command("calibrate", "--adopt")
    assert refused.value.returncode == 2
    with pytest.raises(CommandError, match="cannot be read") as refused:
        call_command("calibrate", "--questions", "/nowhere.jsonl")
    assert refused.value.returncode == 2


def test_it_trains_a_ranker_on_labels_and_adopts_it_when_it_is_better(
    me: Principal, fact: Any, tmp_path: Path
) -> None:
    for number in range(6):
        note(me, f"The oven number {number} of the bakery needs {200 + number} degrees.")
    given = questions(tmp_path / "questions.jsonl", 40)
    report, code = run("--questions", given, "--rank", "--adopt", "--reason", "a test")
    assert code == 0
    assert report["new"]["questions"] == report["before"]["questions"] == 40
    assert report["better"]
    assert report["new"]["loss"] < report["before"]["loss"]
    assert in_force(NAME).ranker_calibration == report["adopted"] == Calibration.objects.get().pk
    assert run()[0]["ranker_calibration"] == report["adopted"]


def test_it_refuses_a_ranker_that_is_worse_on_held_out_folds(me: Principal) -> None:
    good, bad = Measured(40, 1.0, 0.9, 0.9, 0.9), Measured(40, 0.9, 0.8, 0.9, 0.9)
    with pytest.raises(RefusedError, match=r"recall@5 0\.800"):
        adopt_ranker(
            shipped_ranker(), Comparison(bad, good, ridge=3.0),
            embedder=NAME, principal=me, reason="", now=NOW,
        )  # fmt: skip
    assert not Calibration.objects.exists()


def test_it_obeys_an_adopted_ranker_and_says_so(me: Principal, fact: Any) -> None:
    backwards = Ranker(tuple(-weight for weight in shipped_ranker().weights))
    note(me, "The production database of the mill listens on port 6001, not on another one.")
    first = [hit.key for hit in ask(me).weighed if hit.source == "note"]
    better = Comparison(
        Measured(40, 1.0, 0.9, 0.9, 0.9), Measured(40, 2.0, 0.8, 0.8, 0.8), ridge=10.0
    )
    row = adopt_ranker(backwards, better, embedder=NAME, principal=me, reason="a test", now=NOW)
    assert in_force(NAME).ranker_calibration == row.pk
    turned = [hit.key for hit in ask(me).weighed if hit.source == "note"]
    assert turned == first[::-1]


def test_it_learns_from_useful_notes_of_the_ledger(me: Principal, fact: Any) -> None:
    got = ask(me)
    give_feedback(fact.pk, "useful", principal=me, now=NOW, injection=got.injection)
    assert useful(me) == [LabelledQuestion(ASKED, (str(fact.pk),))]
    (one,) = [
        example for example in examples(useful(me), principal=me, now=NOW) if example.labels.any()
    ]
    assert one.matrix.shape == (1, len(FEATURES))
