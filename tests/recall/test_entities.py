"""What a question names: each kind of identifier, quotes, people, and how much each weighs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.text.words import words
from recall.entities import ENTITIES_MAX, EXACT_WEIGHT, KINDS, PART_WEIGHT, entities, weights
from tests.growth import GROWTH_MAX, growth


@pytest.mark.parametrize(
    ("question", "kind", "exact"),
    [
        ("why does src/app/user.py:42 fail", "path", "src/app/user.py:42"),
        (r"open C:\repo\src\main.py", "path", r"c:\repo\src\main.py"),
        ("who reads .env here", "path", ".env"),
        ("what is tests/conftest.py for", "path", "tests/conftest.py"),
        ("see https://github.com/a/b.", "url", "https://github.com/a/b"),
        ("does it take --dry-run?", "flag", "--dry-run"),
        ("is DATABASE_URL set?", "variable", "database_url"),
        ("is $HOME set?", "variable", "home"),
        ("it raised E0599", "code", "e0599"),
        ("and ORA-00942 then", "code", "ora-00942"),
        ("it says ECONNREFUSED", "code", "econnrefused"),
        ("we got HTTP 500 there", "code", "500"),
        ("it ended with exit code 137", "code", "137"),
        ("what of #123?", "issue", "123"),
        ("what of ABC-123?", "issue", "abc-123"),
        ("is it broken in 3.11?", "version", "3.11"),
        ("why numpy@2.1", "package", "numpy 2.1"),
        ("why django==5.2", "package", "django 5.2"),
        ("what is on feature/login-page", "branch", "feature/login-page"),
        ("merge branch wip-2 then", "branch", "wip-2"),
        ("what does os.path do", "dotted", "os.path"),
        ("where is getUserName()?", "symbol", "getusername"),
        ("where is snake_case used", "symbol", "snake_case"),
        ("does std::map<int> fit", "symbol", "std::map int"),
        ("is C++ fine", "symbol", "c++"),
        ("does k8s run", "symbol", "k8s"),
        ("who wrote 1a2b3c4d", "symbol", "1a2b3c4d"),
        ('why is "row security" off', "quoted", "row security"),
        ("why is `ledger` slow", "quoted", "ledger"),
        ("「設備清單」在哪", "quoted", "設備 備清 清單"),
        ("what did Caroline paint", "name", "caroline"),
        ("Caroline's hobby is what?", "name", "caroline"),
        ("who lives near Fort Wayne now", "name", "fort wayne"),
    ],
)
def test_it_finds_what_is_named_under_its_exact_terms(question: str, kind: str, exact: str) -> None:
    (entity,) = entities(question)
    assert (entity.kind, " ".join(entity.exact)) == (kind, exact)
    assert set(entity.exact) <= set(words(question))


@pytest.mark.parametrize(
    "question",
    [
        "",
        "and/or he/she, 24/7, e.g. this, i.e. that",
        "which port does the staging database use",
        "WHY DOES THE BUILD FAIL?",
        "Why Does The Build Fail On The Server",
        "Wie heißt der Port der Datenbank in Köln?",
        "Do I have to? Then I will. Never!",
        "what happened in May, on Monday?",
        "it's the well-known dry-run",
        "- one\n- Two\n- three",
        "- -- --- ** ``",
        "用哪个端口",
    ],
)
def test_it_finds_nothing_where_nothing_is_named(question: str) -> None:
    assert entities(question) == ()


def test_it_takes_an_identifier_apart() -> None:
    (entity,) = entities("where is foo_bar.getName used")
    assert entity.exact == ("foo_bar.getname",)
    assert entity.parts == ("foo_bar", "foo", "bar", "getname", "get", "name")
    (version,) = entities("since v2.3.1")
    assert version.exact == ("v2.3.1", "2.3.1")


def test_it_knows_a_speaker_however_the_name_is_written() -> None:
    named = entities("what did caroline paint with will", {"caroline", "will"})
    assert [entity.exact for entity in named] == [("caroline",), ("will",)]
    assert entities("what did caroline paint") == ()
    assert "will" in weights("what will caroline paint with Will", {"will"})


def test_it_weighs_a_whole_above_a_word_and_a_word_above_a_part() -> None:
    asked = weights("does getUserName return the user twice?")
    assert asked == {
        "getusername": EXACT_WEIGHT, "get": PART_WEIGHT, "user": 1.0, "name": PART_WEIGHT,
        "return": 1.0, "twice": 1.0,
    }  # fmt: skip
    assert weights("the of and") == {}


@given(st.text(max_size=300))
def test_it_names_only_what_an_index_can_hold(text: str) -> None:
    held = set(words(text))
    for entity in entities(text, {"a"}):
        assert entity.kind in KINDS and entity.exact
        assert not set(entity.exact) & set(entity.parts)
        assert held or not entity.exact
    assert all(weight > 0 for weight in weights(text).values())


def test_it_finds_a_bounded_number() -> None:
    assert len(entities(" ".join(f"foo_{n}" for n in range(99)))) == ENTITIES_MAX


@pytest.mark.parametrize(
    "piece",
    ["a", "A b ", "foo_bar ", "`", '"', "'a ", "a/", "x-", "Fort Wayne ", "1a", "(", "a.", "::"],
)  # fmt: skip
def test_it_takes_no_longer_than_the_text(piece: str) -> None:
    assert growth(lambda size: weights(piece * (size // len(piece))), 1_000) < GROWTH_MAX
