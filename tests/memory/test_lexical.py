"""The lexical half: what is indexed of a text, what a query asks for, and what is too common."""

from __future__ import annotations

import pytest
from django.db import connection
from hypothesis import given
from hypothesis import strategies as st

from argus.owner import as_owner
from memory import lexical
from memory.access import principal
from memory.lexical import (
    COMMON_SHARE_MAX,
    POSITIONS_MAX,
    QUERY_TERMS_MAX,
    Statistics,
    document,
    query_terms,
    quoted,
    selective,
    statistics,
)
from tests.recall.making import notes

#: Any text as it is after cleaning.
TEXTS = st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), max_size=80)


def cast(text: str, kind: str) -> str:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT %s::{kind}::text", [text])
        row = cursor.fetchone()
    assert row is not None
    return str(row[0])


@pytest.mark.django_db
@given(TEXTS.filter(bool))
def test_it_quotes_any_lexeme_so_that_no_operator_acts(text: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT numnode(%s::tsquery)", [quoted(text)])
        assert cursor.fetchone() == (1,)


@pytest.mark.django_db
@given(TEXTS)
def test_it_makes_a_document_of_any_text(text: str) -> None:
    cast(document((text,)), "tsvector")


@pytest.mark.django_db
def test_it_makes_a_document_of_a_very_long_text() -> None:
    literal = document(("word " * 300_000,))
    assert literal.count(",") == POSITIONS_MAX - 1
    cast(literal, "tsvector")


def test_it_asks_for_distinct_stems_without_stop_words() -> None:
    asked = "Which ports do the port of the databases use?"
    assert query_terms(asked) == ["port", "databas", "use"]
    assert query_terms("the of and") == []
    assert len(query_terms(" ".join(f"w{n}x" for n in range(100)))) == QUERY_TERMS_MAX


def test_it_looks_notes_up_by_the_rarer_terms_and_by_one_in_any_case() -> None:
    shares = {"port": 0.5, "use": 0.9, "stage": 0.3, "databas": 0.4, "berth": 0.15, "quai": 0.1}
    small, large = Statistics(1_000, shares), Statistics(20_000, shares)
    assert selective(["port", "berth", "xyzzi"], small) == ["berth", "xyzzi"]
    assert selective(["port", "use", "stage", "databas"], small) == ["stage"]
    asked = ["berth", "quai", "xyzzi"]
    assert selective(asked, small) == asked
    assert selective(asked, large) == ["quai", "xyzzi"], "so that at most 3,000 are ranked"
    assert selective([]) == []
    assert selective(asked) == asked


def test_it_keeps_the_rarest_of_too_many_terms() -> None:
    shares = {f"w{n}x": n / 1_000 for n in range(100)}
    asked = " ".join(sorted(shares, key=lambda term: -shares[term]))
    kept = query_terms(asked, Statistics(10, shares))
    assert set(kept) == {f"w{n}x" for n in range(QUERY_TERMS_MAX)}


def test_it_learns_from_postgres_which_terms_are_common(clone_db: str) -> None:
    alice = principal("alice")
    texts = [f"harbor fact number{n} is {'even' if n % 2 else 'odd'}" for n in range(40)]
    notes(alice, [*texts, "one rare berth"], embedding=None)
    lexical.forget_statistics()
    assert statistics() == lexical.UNKNOWN
    with as_owner(), connection.cursor() as cursor:
        cursor.execute("ANALYZE memory_note")
    lexical.forget_statistics()
    try:
        known = statistics()
    finally:
        lexical.forget_statistics()
    assert known.notes == 41
    assert known.share("harbor") == pytest.approx(40 / 41)
    assert known.share("berth") < COMMON_SHARE_MAX
    asked = query_terms("harbor fact about a berth", known)
    assert asked == ["harbor", "fact", "berth"] and selective(asked, known) == ["berth"]
