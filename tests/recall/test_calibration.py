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
from recall import labels
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
from tests.recall.making import NOW, note, said

pytestmark = pytest.mark.django_db

DIALOGUES = Path(__file__).parents[1] / "fixtures" / "dialogues.json"
FACT = "The staging database of the bakery listens on port 5433 because production does."
ASKED = "Which port does the staging database of the bakery use?"
BETTER = Comparison(Measured(40, 1.0, 0.9, 0.9, 0.9), Measured(40, 2.0, 0.8, 0.8, 0.8), ridge=10.0)


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
        ("{", "file:2: not JSON"),
        ('{"evidence": ["a"]}', 'file:2: neither "items" nor "question"'),
        ('{"question": "q", "evidence": ["a"], "answer": 1}', "file:2: 'answer' is not known"),
        ('{"question": "q", "answerable": true}', "file:2: a question needs evidence"),
        ('{"question": "q", "evidence": ["a"], "answerable": false}', "file:2: a question needs"),
        ('{"question": "q", "evidence": "a"}', "file:2: evidence must be a list"),
        ('{"items": [{"text": "a"}]}', "file:2: items stand here"),
    ],
)
def test_it_names_the_line_that_it_cannot_read(line: str, said: str) -> None:
    with pytest.raises(RefusedError, match=said):
        read(f'{{"question": "q", "answerable": false}}\n{line}', "file")


def test_it_reads_what_an_evaluation_reads() -> None:
    line = '{"question": "q", "evidence": ["a", 17], "category": "ports", "pool": "bakery"}'
    assert read(line, "file") == [LabelledQuestion("q", ("a", 17), "bakery")]


def test_it_takes_of_dialogues_the_questions_that_have_no_answer() -> None:
    found = read(DIALOGUES.read_text(), DIALOGUES.name)
    assert found == [LabelledQuestion("Which motorcycle did Ida buy?")]


def test_it_asks_no_more_questions_than_it_can(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(labels, "QUESTIONS_MAX", 2)
    three = '{"question": "q", "answerable": false}\n' * 3
    with pytest.raises(RefusedError, match="file: more than 2 questions"):
        read(three, "file")
    with pytest.raises(RefusedError, match="3 questions, 2 at most"):
        label([LabelledQuestion("q")] * 3, principal=principal(), now=NOW)


def test_it_labels_what_recall_weighs(me: Principal, fact: Any) -> None:
    note(me, "The database of the mill listens on port 6001.", project="mill")
    said(me, "The staging database of the bakery is the one on port 5433.", project="bakery")
    for project, cwd in (("", ""), ("bakery", "/src/bakery"), ("mill", "/src/mill")):
        got = recall_notes(ASKED, principal=me, now=NOW, cwd=cwd)
        (one,) = label([LabelledQuestion(ASKED, ("5433",), project)], principal=me, now=NOW)
        for source in ("note", "turn"):
            weighed = [hit.seen for hit in got.weighed if hit.source == source]
            labelled = [seen.evidence for seen in one.hits if seen.source == source]
            assert weighed and labelled == weighed, project
        assert any(seen.evidence.here for seen in one.hits) is bool(project)


def test_it_labels_no_turn_that_no_prompt_is_given(me: Principal) -> None:
    said(me, "On which port does the staging database of the bakery listen, 5433?")
    said(me, "I think the staging database of the bakery listens on port 5433.")
    (one,) = label([LabelledQuestion(ASKED, ("5433",))], principal=me, now=NOW)
    assert [hit.right for hit in one.hits] == [True]


def test_it_reads_from_the_ledger_what_was_weighed(me: Principal, fact: Any) -> None:
    got = recall_notes(ASKED, principal=me, now=NOW, cwd="/src/bakery")
    give_feedback(fact.pk, "useful", principal=me, now=NOW, injection=got.injection)
    (one,), (hit,) = from_ledger(me)[0].hits, [h for h in got.weighed if h.key == fact.pk]
    assert hit.seen.here and one.evidence.here
    for name in ("above", "keyword", "coverage", "score"):
        kept, weighed = getattr(one.evidence, name), getattr(hit.seen, name)
        assert kept == pytest.approx(weighed, abs=1e-4), name


def test_it_does_not_ask_for_what_is_silenced_where_it_is_asked(me: Principal, fact: Any) -> None:
    give_feedback(fact.pk, "never", principal=me, now=NOW, project="bakery")
    there, elsewhere = label(
        [LabelledQuestion(ASKED, ("5433",), "bakery"), LabelledQuestion(ASKED, ("5433",))],
        principal=me,
        now=NOW,
    )
    assert there.hits == ()
    assert [seen.right for seen in elsewhere.hits] == [True]


def test_it_names_a_project_that_nobody_has(me: Principal, fact: Any) -> None:
    with pytest.raises(RefusedError, match="no project bakrey"):
        label([LabelledQuestion(ASKED, ("5433",), "bakrey")], principal=me, now=NOW)


def test_it_counts_what_says_the_same_once(me: Principal, fact: Any) -> None:
    twin = note(me, FACT, project="bakery")
    (one,) = label([LabelledQuestion(ASKED, (str(twin.pk),))], principal=me, now=NOW)
    assert [seen.right for seen in one.hits] == [True]


def test_it_takes_numbers_for_ids_and_quoted_digits_for_words(me: Principal, fact: Any) -> None:
    item = said(me, "The staging database of the bakery listens on port 5433, they said.")
    other = said(me, f"The bakery has {item.pk} staging databases and a production database.")
    rights = {
        given: {hit.evidence.coverage for hit in one.hits if hit.right and hit.source == "turn"}
        for given in (item.pk, f"raw:{item.pk}", str(item.pk))
        for one in label([LabelledQuestion(ASKED, (given,))], principal=me, now=NOW)
    }
    assert rights[item.pk] == rights[f"raw:{item.pk}"]
    assert len(rights[item.pk]) == 1
    assert other.pk != item.pk and rights[str(item.pk)] != rights[item.pk]


def test_it_looks_for_words_in_the_first_pages_of_an_item_alone(
    me: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    said(me, "The staging database of the bakery listens on a port, and that port is 5433.")
    asked = [LabelledQuestion(ASKED, ("port is 5433",))]
    assert any(hit.right for hit in label(asked, principal=me, now=NOW)[0].hits)
    monkeypatch.setattr(labels, "BODY_CHARACTERS_MAX", 40)
    assert not any(hit.right for hit in label(asked, principal=me, now=NOW)[0].hits)


@pytest.mark.parametrize("injected", [True, False])
def test_it_leaves_out_what_was_taken_back_wherever_it_was(
    me: Principal, fact: Any, injected: bool
) -> None:
    got = ask(me)
    give_feedback(fact.pk, "useful", principal=me, now=NOW, injection=got.injection)
    again = got.injection if injected else None
    give_feedback(fact.pk, "withdrawn", principal=me, now=NOW, injection=again)
    assert from_ledger(me) == [] and useful(me) == []


def test_it_learns_nothing_of_finding_from_what_is_outdated(me: Principal, fact: Any) -> None:
    got = ask(me)
    give_feedback(fact.pk, "useful", principal=me, now=NOW, injection=got.injection)
    give_feedback(fact.pk, "outdated", principal=me, now=NOW, injection=got.injection)
    assert from_ledger(me) == [] and useful(me) == []


def test_it_reads_the_latest_words_alone(
    me: Principal, fact: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(2):
        got = ask(me)
        give_feedback(fact.pk, "useful", principal=me, now=NOW, injection=got.injection)
    assert len(from_ledger(me)) == 2
    monkeypatch.setattr(labels, "LEDGER_MAX", 1)
    assert len(from_ledger(me)) == 1


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


def test_it_reads_no_file_that_is_too_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = questions(tmp_path / "questions.jsonl", 9)
    monkeypatch.setattr("recall.management.commands.calibrate.FILE_BYTES_MAX", 100)
    with pytest.raises(CommandError, match="100 at most") as refused:
        call_command("calibrate", "--questions", given)
    assert refused.value.returncode == 2


def test_it_trains_a_ranker_on_labels_and_adopts_it_when_it_is_better(
    me: Principal, fact: Any, tmp_path: Path
) -> None:
    for number in range(6):
        note(me, f"The oven number {number} of the bakery needs {200 + number} degrees.")
    given = questions(tmp_path / "questions.jsonl", 40)
    backwards = Ranker(tuple(-weight for weight in shipped_ranker().weights))
    adopt_ranker(backwards, BETTER, embedder=NAME, principal=me, reason="a test", now=NOW)
    report, code = run("--questions", given, "--rank", "--adopt", "--reason", "a test")
    assert code == 0
    assert report["new"]["questions"] == report["before"]["questions"] == 40
    assert report["better"]
    assert report["new"]["mrr10"] > report["before"]["mrr10"]
    newest = Calibration.objects.latest("pk")
    assert in_force(NAME).ranker_calibration == report["adopted"] == newest.pk
    assert run()[0]["ranker_calibration"] == report["adopted"]


def test_it_refuses_a_ranker_that_no_recall_could_read(me: Principal) -> None:
    endless = Ranker(tuple(99.0 for _ in FEATURES))
    with pytest.raises(RefusedError, match="Every weight is a number between"):
        adopt_ranker(endless, BETTER, embedder=NAME, principal=me, reason="", now=NOW)
    assert not Calibration.objects.exists()


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
    row = adopt_ranker(backwards, BETTER, embedder=NAME, principal=me, reason="a test", now=NOW)
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
