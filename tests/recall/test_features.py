"""Features of candidates: what each says, and that it says it of the right text."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from memory.lexical import Statistics, hashed, pack, query_terms, traits
from recall.features import CROSSED, FEATURES, FEW, PLAIN, Sought, choose, features
from recall.pool import Pool, Row, build

DAY = 86_400.0
#: What is said: place, the second, what, and what stands over it.
Said = tuple[int | None, float, str, str]


def pool_of(said: Sequence[Said], question: str, cosines: Sequence[float] = ()) -> Pool:
    """The pool of these texts in their order, all candidates; without cosines none has a vector."""
    rows = []
    for number, (place, at, body, head) in enumerate(said):
        packed = pack(body, head)
        cosine = cosines[number] if cosines else math.nan
        rows.append(
            Row(place, at, number, cosine, packed.length, traits(body),
                packed.terms, packed.counts, packed.heads)
        )  # fmt: skip
    terms = [hashed(word) for word in query_terms(question)]
    pool, order = build(rows, terms, Statistics(1_000, 10.0, (20,) * len(terms)))
    assert order == sorted(order), "the tests' texts stand in the order of the pool"
    return pool


def column(
    name: str, pool: Pool, question: str, stretches: Sequence[tuple[float, float]] = ()
) -> NDArray[np.float64]:
    sought = Sought(question, query_terms(question), stretches)
    return features(pool, sought)[:, FEATURES.index(name)]


TALK: list[Said] = [
    (1, 0.0, "Did the harbor move?", "Ada 5 May 2023"),
    (1, 1.0, "Yes, last week", "Grace 5 May 2023"),
    (2, 9 * DAY, "I like tea", "Ada 14 May 2023"),
    (2, 9 * DAY + 1, "So do I", "Grace 14 May 2023"),
]


def test_it_scores_within_the_question() -> None:
    matrix = features(pool_of(TALK, "harbor tea"), Sought("harbor tea", ["harbor", "tea"]))
    assert matrix.shape == (4, len(FEATURES))
    differing = np.abs(matrix).max(axis=0) > 0
    assert matrix.mean(axis=0) == pytest.approx(0.0, abs=1e-9)
    assert matrix[:, differing].std(axis=0) == pytest.approx(4 / (4 + FEW)), "few say less"
    assert not differing[FEATURES.index("named")], "nobody is named"


def test_it_takes_the_cosine_of_a_text_without_a_vector_for_the_lowest() -> None:
    pool = pool_of(TALK, "harbor", [0.2, math.nan, 0.8, 0.4])
    found = column("cosine", pool, "harbor")
    assert found[1] == found.min() == found[0]
    assert found.argmax() == 2


def test_it_counts_as_named_what_the_named_one_says() -> None:
    question = "What does Ada like?"
    found = column("named", pool_of(TALK, question), question)
    assert (found > 0).tolist() == [True, False, True, False]


def test_it_counts_nobody_as_named_where_two_are() -> None:
    question = "What do Ada and Grace like?"
    assert not column("named", pool_of(TALK, question), question).any()


def test_it_counts_no_match_where_a_speaker_is_only_spoken_to() -> None:
    said: list[Said] = [(1, 0.0, "Thanks, Ada, thanks", "Grace"), (1, 1.0, "I like tea", "Ada")]
    question = "What tea does Ada drink?"
    assert column("bm25", pool_of(said, question), question).argmax() == 1


def test_it_reads_an_answer_with_its_question() -> None:
    question = "when did the harbor move"
    pool = pool_of(TALK, question)
    for name in ("asked", "asked_bm25", "led", "coverage_around", "bm25_before"):
        found = column(name, pool, question)
        assert found[1] > found[2], name
    assert column("bm25", pool, question)[1] == column("bm25", pool, question)[2]


def test_it_never_reads_across_sessions() -> None:
    question = "harbor"
    said: list[Said] = [(1, 0.0, "the harbor", ""), (2, 1.0, "yes", ""), (3, 2.0, "no", "")]
    found = column("bm25_before", pool_of(said, question), question)
    assert not found.any()


def test_it_finds_the_time_that_a_question_names() -> None:
    question = "What was said on 14 May 2023?"
    stretch = [(9 * DAY, 10 * DAY)]
    pool = pool_of(TALK, question)
    near = column("date_near", pool, question, stretch)
    assert near[2] == near[3] == near.max()
    assert near[0] < near[2]
    named = column("date_named", pool, question)
    assert (named > 0).tolist() == [False, False, True, True]


def test_a_time_of_which_nothing_is_told_decides_nothing() -> None:
    question = "What was said in May?"
    later = [(400 * DAY, 431 * DAY)]
    assert not column("date_near", pool_of(TALK, question), question, later).any()


def test_it_crosses_features_with_the_kind_of_the_question_only() -> None:
    asked, stated = "When did the harbor move?", "Did the harbor move?"
    pool = pool_of(TALK, asked)
    when = column("time*when", pool, asked)
    assert when.tolist() == column("time", pool, asked).tolist()
    assert when[1] == when.max() > 0
    assert not column("time*when", pool_of(TALK, stated), stated).any()


def test_it_knows_a_session_by_what_all_of_it_holds() -> None:
    question = "harbor crane"
    said: list[Said] = [
        (1, 0.0, "the harbor", ""), (1, 1.0, "of the town", ""), (1, 2.0, "a crane", ""),
        (2, 3.0, "the harbor", ""), (2, 4.0, "of the sea", ""), (2, 5.0, "a boat", ""),
    ]  # fmt: skip
    found = column("session_bm25", pool_of(said, question), question)
    assert found[:3].tolist() == [found[0]] * 3
    assert found[1] > found[4]


def test_it_gives_notes_their_own_numbers() -> None:
    said: list[Said] = [
        (None, 0.0, "The harbor moved.", ""), (None, 1.0, "Tea is served at four.", ""),
        (None, 2.0, "Grace likes coffee.", ""),
    ]  # fmt: skip
    matrix = features(pool_of(said, "harbor"), Sought("harbor", ["harbor"]))
    for name in ("asked", "bm25_before", "bm25_after", "asked_cosine"):
        assert not matrix[:, FEATURES.index(name)].any(), name
    for name in ("bm25", "led", "coverage_around", "session_bm25", "session_best"):
        assert matrix[:, FEATURES.index(name)].argmax() == 0, name


def test_it_chooses_the_turns_around_a_find() -> None:
    said: list[Said] = [(1, float(n), "tea", "") for n in range(20)]
    said[10] = (1, 10.0, "the harbor", "")
    pool = choose(pool_of(said, "harbor"), Sought("harbor", ["harbor"]), most=5)
    assert np.flatnonzero(pool.candidate).tolist() == [8, 9, 10, 11, 12]


def test_it_measures_candidates_alone() -> None:
    said: list[Said] = [(1, float(n), "tea", "") for n in range(20)]
    pool = choose(pool_of(said, "tea"), Sought("tea", ["tea"]), most=7)
    assert features(pool, Sought("tea", ["tea"])).shape == (7, len(FEATURES))


BODIES = st.lists(st.sampled_from(["harbor", "tea?", "May", "I", "5"]), max_size=4).map(" ".join)


@given(
    st.lists(st.tuples(st.sampled_from([1, 2]), BODIES, st.floats(-1, 1)), max_size=12),
    st.sampled_from(["harbor", "", "When did Ada drink tea in May 2023?", "?"]),
)
def test_it_gives_numbers_for_anything(said: list[tuple[int, str, float]], question: str) -> None:
    said.sort(key=lambda one: one[0])
    texts: list[Said] = [(place, float(n), body, "") for n, (place, body, _) in enumerate(said)]
    pool = pool_of(texts, question, [one[2] for one in said])
    matrix = features(choose(pool, Sought(question, query_terms(question)), most=5),
                      Sought(question, query_terms(question)))  # fmt: skip
    assert matrix.shape == (min(len(said), 5), len(FEATURES))
    assert np.isfinite(matrix).all()


def test_every_crossed_feature_is_a_plain_one() -> None:
    assert {name for name, _ in CROSSED} <= set(PLAIN)
    assert len(set(FEATURES)) == len(FEATURES)
