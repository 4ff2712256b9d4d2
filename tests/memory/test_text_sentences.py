"""Sentences: spans of the text itself, in chat, Markdown and scripts with stops of their own."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.text.sentences import sentences
from tests.growth import GROWTH_MAX, growth


def texts(text: str) -> list[str]:
    return [span.text for span in sentences(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It works now. thanks! Really?", ["It works now.", "thanks!", "Really?"]),
        ("We use e.g. Redis 7.2 in app.py. Next.", ["We use e.g. Redis 7.2 in app.py.", "Next."]),
        ("Am 3. Oktober war z. B. Ruhe. Gut.", ["Am 3. Oktober war z. B. Ruhe.", "Gut."]),
        ("# Plan\n- one. Two\n2. three\n- [x] four", ["Plan", "one.", "Two", "three", "four"]),
        ("a line\nanother line", ["a line", "another line"]),
        ("我们用Postgres。很好！「是吗？」对", ["我们用Postgres。", "很好！", "「是吗？」", "对"]),
        ("See `a. b` here. End", ["See `a. b` here.", "End"]),
        ('He said "stop." Then left.', ['He said "stop."', "Then left."]),
        ("---\n| a | b |\n|---|---|\n", ["| a | b |"]),
        ("", []),
        ("...\n\n  \n", []),
    ],
)
def test_it_knows_where_sentences_end(text: str, expected: list[str]) -> None:
    assert texts(text) == expected


def test_it_keeps_a_code_fence_whole() -> None:
    fence = "```py\nx = 1. \n\ny = 2\n```"
    assert texts(f"Before.\n{fence}\nAfter.") == ["Before.", fence, "After."]
    assert texts("Before.\n```\nnever closed. Really.") == ["Before.", "```\nnever closed. Really."]


def test_it_joins_a_sentence_wrapped_by_a_margin() -> None:
    wrapped = (
        "This sentence is wrapped by a margin at about seventy characters so\nit goes on here."
    )
    assert texts(wrapped + " Next.") == [wrapped, "Next."]


PIECES = st.sampled_from(
    [
        "word",
        " ",
        ". ",
        "\n",
        "```\n",
        "`",
        "- ",
        "# ",
        "。",
        "? ",
        "e.g. ",
        "1. ",
        "> ",
        "|",
        '"',
        "é",
        "\r\n",
        "\u2028",
    ]
)


@given(st.one_of(st.text(), st.lists(PIECES, max_size=30).map("".join)))
def test_its_spans_are_the_text_in_order(text: str) -> None:
    last = 0
    for span in sentences(text):
        assert text[span.start : span.end] == span.text == span.text.strip() != ""
        assert span.start >= last
        last = span.end


@given(st.lists(PIECES, max_size=30).map("".join))
def test_it_loses_no_word(text: str) -> None:
    kept = "".join(span.text for span in sentences(text))
    assert kept.count("word") == text.count("word")


def test_it_ends_a_sentence_after_code_bold_and_a_quote():
    text = 'Use `make seed`. We say **never**. He said "ok". Then left.'
    assert [span.text for span in sentences(text)] == [
        "Use `make seed`.",
        "We say **never**.",
        'He said "ok".',
        "Then left.",
    ]


@pytest.mark.parametrize(
    "unit",
    [".", "!", "?", "…", ".x", "?!", ". ", "。", "`", "```\n", " ", "\n", "- ", "> ", ".)", "e.g."],
)
def test_its_time_grows_with_the_text_and_not_faster(unit: str) -> None:
    assert growth(lambda chars: sentences(unit * (chars // len(unit)) + "x"), 12_000) <= GROWTH_MAX


def test_it_ends_a_sentence_at_a_run_of_stops_and_no_earlier() -> None:
    assert texts("Well... yes?!? No.... Go on") == ["Well...", "yes?!?", "No....", "Go on"]
    assert texts("a..b and ...c. Next") == ["a..b and ...c.", "Next"]
