"""What a question asks for, and how it sounds in the mouth of whom it asks about."""

from __future__ import annotations

import pytest

from memory.lexical import lexemes
from recall.questions import impersonate, kinds, of_date


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("When did Ada move to Leeds?", "when"),
        ("What year did the office open?", "when"),
        ("Wann wurde der Port geändert?", "when"),
        ("Where does the staging server stand?", "where"),
        ("How many replicas does the queue have?", "many"),
        ("Why did we leave Redis?", "why"),
        ("Which books has Ada read?", "several"),
    ],
)
def test_it_knows_what_a_question_asks_for(question: str, kind: str) -> None:
    assert kind in kinds(question)


def test_it_takes_a_prompt_that_asks_for_nothing_for_no_kind() -> None:
    assert kinds("Deploy the billing service to staging.") == frozenset()


@pytest.mark.parametrize(
    ("word", "date"), [("octob", True), ("24", True), ("3rd", True), ("harbor", False)]
)
def test_it_tells_the_words_of_a_date_from_names(word: str, date: bool) -> None:
    assert of_date(word) is date


SPEAKERS = {*lexemes("Ada Lovelace"), *lexemes("James")}


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("When did Ada move to Leeds?", "When did I move to Leeds?"),
        ("What is Ada's dog called?", "What is my dog called?"),
        ("What is James’s dog called?", "What is my dog called?"),
        ("Where is James' dog?", "Where is my dog?"),
        ("When did Ada and James move?", "When did we move?"),
        ("Is Ada and James's dog old?", "Is our dog old?"),
        ("When did Grace move?", "When did Grace move?"),
        # Only a name is written with a capital.
        ("Is the ada compiler slow?", "Is the ada compiler slow?"),
    ],
)
def test_it_asks_as_the_speaker_would_say_it(asked: str, said: str) -> None:
    assert impersonate(asked, SPEAKERS) == said


def test_it_leaves_a_question_alone_where_nobody_is_known() -> None:
    assert impersonate("When did Ada move?", ()) == "When did Ada move?"
