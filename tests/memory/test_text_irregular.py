"""Irregular forms: one base for a word however it is bent, and nothing else touched."""

from __future__ import annotations

import pytest

from memory.lexical import lexemes, query_terms
from memory.text import irregular
from memory.text.irregular import base


@pytest.mark.parametrize(
    ("form", "word"),
    [("went", "go"), ("bought", "buy"), ("drew", "draw"), ("children", "child"), ("won", "win")],
)
def test_it_finds_the_base_of_what_no_rule_makes(form: str, word: str) -> None:
    assert base(form) == word


def test_it_leaves_other_words_alone() -> None:
    assert [base(word) for word in ("walked", "redis", "日本", "")] == [
        "walked", "redis", "日本", "",
    ]  # fmt: skip


def test_a_base_is_its_own_base() -> None:
    bases = irregular._BASES
    assert len(bases) > 100
    # A base that is a form itself would be kept under two names.
    assert {word for word in bases.values() if base(word) != word} == set()


def test_what_is_asked_meets_what_was_said() -> None:
    said = set(lexemes("We bought the children a drum and went home."))
    assert set(query_terms("What did they buy for a child?")) <= said
