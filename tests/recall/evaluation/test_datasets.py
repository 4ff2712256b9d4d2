"""LoCoMo's JSON and lines of one's own become items and questions; faults are said by line."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from recall.evaluation import files, lines
from recall.evaluation.dataset import NO_ANSWER, DatasetProblem
from tests.corpus import CORPUS, needs_corpus

DIALOGUES = Path(__file__).parents[2] / "fixtures" / "dialogues.json"


def test_it_makes_an_item_of_each_turn_with_speaker_time_and_caption() -> None:
    items = {item.full_name: item for item in files.read(str(DIALOGUES)).items}
    photo = items["walk-1/D1:3"]
    assert photo.text == (
        "Lovely! I spent mine repainting the kitchen."
        " [shares a photo: a photo of a turquoise kitchen wall]"
    )
    assert (photo.speaker, photo.source, photo.session) == ("Ida", "locomo", "session_1")
    assert photo.occurred_at == datetime(2024, 5, 3, 9, 5, 2, tzinfo=UTC)
    assert items["walk-2/D1:1"].occurred_at == datetime(2024, 3, 1, 12, tzinfo=UTC)
    assert len(items) == 7


def test_it_reads_crooked_evidence_and_leaves_out_what_has_none() -> None:
    dataset = files.read(str(DIALOGUES))
    asked = {question.text: question for question in dataset.questions}
    both = asked["Which two things did Ida tell about her home and her sister Vera in Lisbon?"]
    assert both.facts == (frozenset({"walk-1/D1:3"}), frozenset({"walk-1/D2:2"}))
    assert asked["When did Tom pass the sailing exam?"].facts == (frozenset({"walk-1/D2:1"}),)
    assert dataset.left_out == {"no evidence in the data": 1}
    assert [q.category for q in dataset.questions] == ["4", "1", "2", NO_ANSWER, "4"]
    assert not asked["Which motorcycle did Ida buy?"].facts


def test_it_takes_the_first_questions_with_the_items_they_need() -> None:
    few = files.read(str(DIALOGUES)).first(2)
    assert {item.pool for item in few.items} == {"walk-1"} and len(few.questions) == 2
    assert few.left_out["beyond the limit"] == 3


def test_it_names_the_dialogue_that_is_not_as_it_should_be(tmp_path: Path) -> None:
    broken = json.loads(DIALOGUES.read_text())
    del broken[1]["conversation"]["session_1_date_time"]
    path = tmp_path / "broken.json"
    path.write_text(json.dumps(broken))
    with pytest.raises(DatasetProblem, match="broken.json: dialogue walk-2"):
        files.read(str(path))


ITEMS = [
    '{"items": [{"id": "a", "text": "The queue lives in Postgres."}, {"text": "Port 8443."}]}',
    '{"pool": "b", "items": [{"id": "a", "text": "Other.", "kind": "document"}]}',
]


def test_it_reads_lines_with_ids_and_quotes() -> None:
    asked = [
        '{"question": "Where is the queue?", "evidence": ["a"], "category": "places"}',
        '{"question": "Which port?", "evidence": ["port 8443"]}',
        '{"question": "Who is the boss?", "answerable": false}',
        "",
        '{"pool": "b", "question": "And there?", "evidence": ["a"]}',
    ]
    dataset = lines.read([*asked, *ITEMS], "mine.jsonl")
    facts = [question.facts for question in dataset.questions]
    assert facts == [
        (frozenset({"default/a"}),), (frozenset({"default/item 2"}),), (), (frozenset({"b/a"}),)
    ]  # fmt: skip
    assert [q.kind for q in dataset.questions] == ["turn", "turn", "", "document"]
    assert dataset.questions[0].category == "places"
    first, second = dataset.items[:2]
    assert second.occurred_at > first.occurred_at and first.occurred_at.tzinfo


def test_it_counts_words_that_several_items_hold_as_borne_out_by_any() -> None:
    twins = '{"items": [{"id": "x", "text": "Use uv."}, {"id": "y", "text": "Yes: use UV!"}]}'
    dataset = lines.read([twins, '{"question": "Which tool?", "evidence": ["use uv"]}'], "m")
    assert dataset.questions[0].facts == (frozenset({"default/x", "default/y"}),)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "not JSON"),
        ("[]", 'neither "items" nor "question"'),
        ('{"question": "q", "evidence": ["nowhere"]}', "'nowhere' is no item's id"),
        ('{"question": "q", "evidence": ["..."]}', "has no words"),
        ('{"question": "q"}', "needs evidence"),
        ('{"question": "q", "evidence": ["a"], "answerable": false}', "needs evidence"),
        ('{"question": " ", "evidence": ["a"]}', "the question is empty"),
        ('{"question": 3, "evidence": ["a"]}', "question must be a text"),
        ('{"question": "q", "evidence": "a"}', "evidence must be a list"),
        ('{"question": "q", "evidence": [3]}', "evidence must be a list of texts"),
        ('{"question": "q", "evidence": [true]}', "evidence must be a list of texts"),
        ('{"question": "q", "pool": "a", "project": "b", "answerable": false}', "and differ"),
        ('{"question": "q", "evidense": ["a"]}', "'evidense' is not known here"),
        ('{"items": ["a"]}', "an item must be an object"),
        ('{"items": [{"id": "n"}]}', "an item needs a text"),
        ('{"items": [{"id": "a", "text": "again"}]}', "stands in its pool already"),
        ('{"items": [{"text": "x", "kind": "song"}]}', "kind is 'song'; allowed: turn"),
        ('{"items": [{"text": "x", "occurred_at": "soon"}]}', "occurred_at is 'soon'"),
    ],
)
def test_it_says_what_is_wrong_on_which_line(line: str, said: str) -> None:
    good = '{"question": "Where?", "evidence": ["a"]}'
    with pytest.raises(DatasetProblem) as caught:
        lines.read([*ITEMS, line, good], "mine.jsonl")
    assert str(caught.value).startswith("mine.jsonl:3: ") and said in str(caught.value)


def test_it_takes_project_for_pool() -> None:
    items = '{"project": "b", "items": [{"id": "a", "text": "Port 8443."}]}'
    dataset = lines.read([items, '{"pool": "b", "question": "Which?", "evidence": ["a"]}'], "m")
    assert dataset.questions[0].facts == (frozenset({"b/a"}),)


def test_it_reads_the_questions_of_one_s_own_memory() -> None:
    given = [
        '{"question": "Which?", "evidence": ["port 8443", 17], "category": "x", "pool": "b"}',
        "",
        '{"question": "Who?", "answerable": false, "project": "b"}',
    ]
    assert list(lines.questions(given, "m")) == [
        lines.Line(1, "Which?", ("port 8443", 17), "b", "x"),
        lines.Line(3, "Who?", (), "b"),
    ]
    with pytest.raises(DatasetProblem, match="m:1: items stand here"):
        list(lines.questions(ITEMS, "m"))


def test_it_says_when_nothing_is_asked() -> None:
    with pytest.raises(DatasetProblem, match="no line asks a question"):
        lines.read(ITEMS, "mine.jsonl")


def test_it_says_when_a_file_is_none(tmp_path: Path) -> None:
    with pytest.raises(DatasetProblem, match="cannot be read: No such file"):
        files.read(str(tmp_path / "away.json"))
    (tmp_path / "list.json").write_text("[1]")
    with pytest.raises(DatasetProblem, match="not of LoCoMo's dialogues"):
        files.read(str(tmp_path / "list.json"))
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DatasetProblem, match="not UTF-8"):
        files.read(str(tmp_path / "bytes"))


def test_it_brings_a_set_that_asks_as_much_of_every_kind() -> None:
    dataset = files.read(files.MIXED)
    kinds = [question.kind for question in dataset.questions if question.facts]
    for kind in ("turn", "document", "bookmark", "synthesis"):
        assert kinds.count(kind) == 12
    assert len(kinds) == 48 and len(dataset.questions) == 60


@needs_corpus
def test_it_reads_the_real_file() -> None:
    dataset = files.read(str(CORPUS / "bench" / "locomo_dev.json"))
    answerable = [question for question in dataset.questions if question.facts]
    names = {item.full_name for item in dataset.items}
    assert len({item.pool for item in dataset.items}) == 5 and len(names) == len(dataset.items)
    assert {q.category for q in answerable} == {"1", "2", "3", "4"}
    assert all(fact <= names for q in answerable for fact in q.facts)
