"""The baselines: exact, over every text, and BM25 as the reference library has it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from memory.lexical import BM25_B, BM25_K1
from memory.text.stem import stem
from memory.text.stopwords import STOP_WORDS
from memory.text.words import terms, words
from recall.evaluation.baselines import Shelf, Text
from tests.hashing_embedder import vector_of

SAID = (
    "The job queue moved from Redis to Postgres on Monday.",
    "Redis keeps the sessions, the sessions, and the sessions.",
    "The staging server listens on port 8443.",
    "We bake bread on Sundays.",
    "Redis, Redis, Redis: restart it when the port is taken.",
)


def shelf(*said: str) -> Shelf:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    return Shelf(
        [
            Text(f"t{at}", text, start + timedelta(days=at), "turn", vector_of(text))
            for at, text in enumerate(said or SAID)
        ]
    )


def names(ranked: list[tuple[Text, float]]) -> list[str]:
    return [text.key for text, _ in ranked]


def test_it_ranks_rare_words_first() -> None:
    made = shelf()
    assert names(made.rank(made.bm25("Where did the queue move?", ()), 3)) == ["t0"]
    assert names(made.rank(made.bm25("redis port", ()), 9))[0] == "t4"


def test_it_scores_as_the_reference_does() -> None:
    bm25s = pytest.importorskip("bm25s")
    made = shelf()
    tokens = [[stem(w) for w in words(text) if w not in STOP_WORDS] for text in SAID]
    reference = bm25s.BM25(method="lucene", k1=BM25_K1, b=BM25_B)
    reference.index(tokens, show_progress=False)
    for question in ("redis port", "sessions on monday", "bread queue server"):
        asked = [stem(term) for term in terms(question)]
        expected = reference.get_scores(asked)
        ours = made.bm25(question, ())
        for mine, theirs in zip(ours, expected, strict=True):
            assert max(0.0, mine) == pytest.approx(float(theirs), abs=1e-5)


def test_it_counts_words_for_grep_and_lists_only_what_has_one() -> None:
    made = shelf()
    ranked = made.rank(made.grep("is redis on the port?", ()), 9)
    assert names(ranked) == ["t4", "t2", "t1", "t0"]
    assert [score for _, score in ranked] == [2, 1, 1, 1]


def test_it_keeps_the_latest() -> None:
    made = shelf()
    assert names(made.rank(made.keep_recent("anything", ()), 2)) == ["t4", "t3"]


def test_it_finds_the_nearest_and_passes_over_what_has_no_vector() -> None:
    made = shelf()
    assert names(made.rank(made.dense("", vector_of(SAID[3])), 1)) == ["t3"]
    bare = Shelf([Text("b", "bread", datetime(2026, 1, 1, tzinfo=UTC), "turn"), *made.texts])
    assert "b" not in names(bare.rank(bare.dense("", vector_of("bread")), 9))
    assert made.rank(made.dense("", ()), 9) == []


def test_it_stands_an_empty_pool() -> None:
    empty = Shelf([])
    assert empty.rank(empty.bm25("redis", ()), 5) == []
    assert empty.rank(empty.dense("redis", vector_of("redis")), 5) == []
