"""The part of a long text that a question is about."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recall.excerpt import ELLIPSIS, EXCERPT_CHARACTERS_MAX, excerpt

ASKED = frozenset(["staging", "port"])
FACT = "The staging database listens on port 5433."
FILLER = "Semicolons separate the columns of the export. "


def test_it_gives_a_short_text_whole() -> None:
    assert excerpt(f"  {FACT}\n", ASKED) == FACT
    assert excerpt("", ASKED) == excerpt("   \n", ASKED) == ""


@pytest.mark.parametrize("before", [0, 1, 20, 100])
def test_it_begins_at_the_sentence_that_has_most_of_what_is_asked(before: int) -> None:
    got = excerpt(FILLER * before + FACT + " " + FILLER * 40, ASKED)
    assert FACT in got and len(got) <= EXCERPT_CHARACTERS_MAX
    assert got.startswith(FACT if not before else ELLIPSIS + FACT)
    assert got.endswith(ELLIPSIS)


def test_it_begins_at_the_start_when_nothing_that_is_asked_stands_there() -> None:
    for asked in (ASKED, frozenset[str]()):
        got = excerpt(FILLER * 40, asked)
        assert got.startswith("Semicolons") and got.endswith(ELLIPSIS)


def test_it_cuts_between_words() -> None:
    words = set(FILLER.split())
    assert set(excerpt(FILLER * 40, ASKED).rstrip(ELLIPSIS).split()) <= words


def test_it_looks_inside_a_sentence_that_is_longer_than_there_is_room() -> None:
    log = "x=1 " * 600 + "staging port=5433 " + "y=2 " * 600
    got = excerpt(log, ASKED)
    assert "port=5433" in got and len(got) <= EXCERPT_CHARACTERS_MAX
    fence = "```\n" + "row of a table\n" * 200 + "staging on port 5433\n" + "row\n" * 200 + "```"
    assert "staging on port 5433" in excerpt(fence, ASKED)


def test_it_finds_its_place_in_a_script_without_spaces() -> None:
    got = excerpt("設備清單很長。" * 200 + "數據庫端口是五四三三。" + "其他事情。" * 200, ["端口"])
    assert "端口" in got and len(got) <= EXCERPT_CHARACTERS_MAX


@given(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=400),
    st.integers(20, 120),
    st.frozensets(st.sampled_from(["staging", "port", "0", "a"]), max_size=3),
)
def test_it_never_gives_more_than_it_may_nor_what_is_not_there(
    text: str, characters: int, asked: frozenset[str]
) -> None:
    got = excerpt(text, asked, characters=characters)
    assert len(got) <= characters
    assert got.removeprefix(ELLIPSIS).removesuffix(ELLIPSIS) in text


def test_it_is_quick_with_a_pasted_megabyte() -> None:
    started = time.process_time()
    for text in ("x1y2 " * 200_000, "x" * 1_000_000, "。" * 1_000_000, "\n" * 500_000 + "port"):
        excerpt(text, ASKED)
    assert time.process_time() - started < 5
