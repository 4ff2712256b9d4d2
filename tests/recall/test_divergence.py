"""How: texts and lists of log-probabilities made here; no database, no model."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recall.divergence import compare, divergence, reply_of

NOTE = "The staging server listens on port 8443 behind Caddy."


@pytest.mark.parametrize(
    ("reply", "found", "used"),
    [
        ("Open port 8443: Caddy listens there.", 4, True),
        ("Use port 8443.", 2, True),
        ("Caddy.", 1, False),
        ("I moved the tests to another folder.", 0, False),
        ("", 0, False),
    ],
)
def test_it_counts_the_words_that_only_the_note_had(reply: str, found: int, used: bool) -> None:
    overlap = compare({"n": NOTE}, known=["how do I reach the staging server?"], reply=reply)
    assert overlap.as_json() == {"n": {"telling": 5, "found": found, "used": used}}
    assert overlap.score == found / 5


@pytest.mark.parametrize(
    "known", [[NOTE], ["listening on 8443", "a port behind Caddy"], ["port 8443 behind"]]
)
def test_it_tells_nothing_by_words_that_were_said_before(known: list[str]) -> None:
    overlap = compare({"n": NOTE}, known=["staging server?", *known], reply=NOTE)
    assert not overlap.told and not overlap.used and overlap.score == 0


def test_it_tells_nothing_by_words_of_every_day() -> None:
    everyday = frozenset({"port", "server", "listen", "behind"})
    overlap = compare({"n": NOTE}, known=[], reply=NOTE, common=lambda words: words & everyday)
    assert overlap.as_json() == {"n": {"telling": 3, "found": 3, "used": True}}


def test_it_takes_the_best_of_several_texts() -> None:
    texts = {"n": NOTE, "m": "Marlene prefers tabs over spaces everywhere."}
    overlap = compare(texts, known=[], reply="Marlene prefers tabs, so I used tabs.")
    assert overlap.used and overlap.score == overlap.texts["m"].share > 0.5
    assert not overlap.texts["n"].used


def test_it_reads_an_answer_up_to_the_next_question() -> None:
    turns = [
        ("user", "prompt"), ("assistant", "one"), ("assistant", "two"), ("user", "thanks"),
        ("assistant", "three"),
    ]  # fmt: skip
    assert reply_of(turns) == "one\ntwo"
    assert reply_of(turns[:1]) == reply_of([]) == ""


def test_it_finds_no_difference_between_equal_openings() -> None:
    opening = [{"a": -0.1, "b": -2.5}, {"c": -0.7}]
    compared = divergence(opening, opening)
    assert compared.mean == pytest.approx(0) and compared.alike == 2


def test_it_agrees_with_the_formula_where_everything_is_listed() -> None:
    p, q = {"a": 0.75, "b": 0.25}, {"a": 0.5, "b": 0.5}
    logs = [{key: math.log(one) for key, one in chances.items()} for chances in (p, q)]
    expected = 0.75 * math.log(0.75 / 0.5) + 0.25 * math.log(0.25 / 0.5)
    compared = divergence([logs[0]], [logs[1]])
    assert compared.nats[0] == pytest.approx(expected, abs=1e-3)


def test_it_sees_a_model_change_its_mind_and_counts_until_where_it_did_not() -> None:
    compared = divergence([{"It": -0.01}, {"is": -0.01}], [{"It": -0.01}, {"was": -0.01}])
    assert compared.nats[0] < 0.01 < 2 < compared.nats[1]
    assert compared.alike == 1


TOKEN = st.dictionaries(
    st.sampled_from("abcdefgh"), st.floats(-30, 0), min_size=1, max_size=8
)  # fmt: skip


@given(st.lists(st.tuples(TOKEN, TOKEN), max_size=4))
def test_it_is_a_finite_number_and_never_below_nothing(
    pairs: list[tuple[dict[str, float], dict[str, float]]],
) -> None:
    compared = divergence([one for one, _ in pairs], [other for _, other in pairs])
    assert all(math.isfinite(nats) and nats >= 0 for nats in compared.nats)
    assert len(compared.nats) == len(pairs) and 0 <= compared.alike <= len(pairs)
