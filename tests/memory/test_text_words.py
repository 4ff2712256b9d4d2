"""Words: identifiers whole and in parts, scripts without spaces, what is meaningful, what is equal."""

# ruff: noqa: E501 - cases stand one a line
from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.text.stem import stem
from memory.text.words import (
    TERM_CHARS_MAX,
    meaningful,
    normalise,
    spellings,
    terms,
    words,
)
from tests.growth import GROWTH_MAX, growth


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("foo_bar.baz()", ["foo_bar.baz", "foo_bar", "foo", "bar", "baz"]),
        ("src/api/app.py", ["src/api/app.py", "src", "api", "app.py", "app", "py"]),
        ("getUserName", ["getusername", "get", "user", "name"]),
        ("HTTPServer", ["httpserver", "http", "server"]),
        ("v2.3.1", ["v2.3.1", "2.3.1", "v2"]),
        ("ERR_CONN_RESET", ["err_conn_reset", "err", "conn", "reset"]),
        ("E1234", ["e1234"]),
        ("--dry-run", ["--dry-run", "dry-run", "dry", "run"]),
        ("C++ or C#", ["c++", "c", "or", "c#", "c"]),
        (".env", [".env", "env"]),
        ("the user's don't", ["the", "user", "dont"]),
        ("I'd we'll they’ve O'Reilly", ["i", "we", "they", "oreilly", "reilly"]),
        ("app.py:42", ["app.py:42", "app.py", "42", "app", "py"]),
        ("std::map", ["std::map", "std", "map"]),
        ("ภาษา", ["ภา", "าษ", "ษา"]),
        ("데이터베이스", ["데이", "이터", "터베", "베이", "이스"]),
        ("Привет, мир", ["привет", "мир"]),
        ("k8s 🚀 pods", ["k8s", "pods"]),
        ("Über Straße naïve", ["uber", "strasse", "naive"]),
        ("設備清單", ["設備", "備清", "清單"]),
        ("用", ["用"]),
        ("テスト", ["テス", "スト"]),
        ("用Postgres吧", ["用", "postgres", "吧"]),
        ("ﬁle ＡＢＣ", ["file", "abc"]),
    ],
)
def test_it_gives_exact_terms_and_their_parts(text: str, expected: list[str]) -> None:
    assert words(text) == expected


def test_it_finds_a_query_in_a_document_however_it_is_spelled() -> None:
    document = set(
        words("We renamed `getUserName()` in src/api/users.py and pass --no-cache (v2.3.1).")
    )
    for query in ["getusername", "users.py", "src/api/users.py", "no-cache", "2.3.1", "user name"]:
        assert set(terms(query)) & document, query


def test_it_asks_without_stop_words() -> None:
    assert terms("Which database did we choose for the ledger, and which queue?") == [
        "database", "choose", "ledger", "queue",
    ]  # fmt: skip
    assert terms("Warum haben wir die Datenbank gewechselt?") == ["datenbank", "gewechselt"]
    assert terms("not never") == ["not", "never"]


def test_it_finds_a_place_in_code_by_its_path_and_a_link_without_its_scheme() -> None:
    assert "src/api/users.py" in words("it raised at src/api/users.py:42:7")
    assert "example.org/a/b" in words("see https://example.org/a/b")
    assert "repo\\src\\main.py" in words("C:\\repo\\src\\main.py")


@pytest.mark.parametrize(
    ("question", "asked"),
    [
        ("What kind of dog does Audrey have?", ["dog", "audrey"]),
        ("How many retries, and which type of queue?", ["retries", "queue"]),
        ("What type is the id column?", ["type", "id", "column"]),
        ("Wie viele Zeilen hat welche Art von Datei?", ["zeilen", "datei"]),
        ("Where is the bin folder, and is it MIT or ES?", ["bin", "folder", "mit", "es"]),
        ("Wo ist die Datei mit den Ports?", ["datei", "ports"]),
        ("I'd like what you've got", ["like", "got"]),
        ("the of and to in for with", []),
        ("was wie wo der die das", []),
        ("設備", ["設備"]),
    ],
)
def test_it_leaves_out_what_asks_and_keeps_what_is_asked_for(
    question: str, asked: list[str]
) -> None:
    assert terms(question) == asked


@given(st.text(max_size=400))
def test_it_groups_the_same_words_by_what_they_spell(text: str) -> None:
    assert [form for group in spellings(text) for form in group] == words(text)


@pytest.mark.parametrize("piece", ["a:", "a/", "what kind ", "'d ", "a-B_", "用", "://", "e\u0301"])
def test_it_takes_no_longer_than_the_text(piece: str) -> None:
    assert growth(lambda size: terms(piece * (size // len(piece))), 4_000) < GROWTH_MAX


@given(st.text(max_size=400))
def test_it_gives_terms_that_an_index_can_hold(text: str) -> None:
    for term in words(text):
        assert term and len(term) <= TERM_CHARS_MAX
        assert not any(char.isspace() or char == "\x00" for char in term)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("", 0),
        ("🎉🎉🎉", 0),
        ("ok", 0),
        ("yes please do it", 0),
        ("go go go go go go", 1),
        ("為什麼這樣做", 6),
        ("哈哈哈哈哈哈", 1),
        ("1 2 3 4 5 6", 0),
    ],
)
def test_it_counts_what_is_meaningful(text: str, count: int) -> None:
    assert meaningful(text) == count


def test_it_finds_little_in_a_bare_link_and_enough_in_a_question() -> None:
    assert meaningful("https://github.com/someone/project/issues/12345") < 5
    assert meaningful("why does the login return 502 after each deploy") >= 5
    assert meaningful("a" * 1_000_000) == 1


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("We use Postgres 16.", "- we  use **Postgres** 16"),
        ("“Use tabs”, please!", '"use tabs" please'),
        ("1. Run make test", "Run `make test`."),
        ("我们用Postgres。", "我们用Postgres"),
        ("ＡＢＣ", "abc"),
    ],
)
def test_it_normalises_alike_what_says_the_same(left: str, right: str) -> None:
    assert normalise(left) == normalise(right)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("Use C++", "Use C#"),
        ("version 1.2", "version 12"),
        ("We use Redis", "We use Redis?"),
        ("timeout > 5", "timeout < 5"),
        ("returns []", "returns {}"),
        ("if x", "if !x"),
        ("do not retry", "do retry"),
        ("load env", "load .env"),
        ("offset 5", "offset -5"),
        ("resume", "résumé"),
    ],
)
def test_it_keeps_apart_what_differs_in_meaning(left: str, right: str) -> None:
    assert normalise(left) != normalise(right)


@given(st.text())
def test_it_normalises_once_for_all(text: str) -> None:
    once = normalise(text)
    assert normalise(once) == once


def test_it_stems_english_alone() -> None:
    assert stem("decided") == stem("decide") == stem("decides")
    assert stem("databases") == stem("database")
    assert stem("retries") == stem("retry")
    assert stem("src/apis") == "src/apis"
    assert stem("über") == "über"
