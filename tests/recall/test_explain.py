"""A hit's JSON as some six lines that say why it is where it is."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from recall.explain import explain

HIT: dict[str, Any] = {
    "note": "5f0c1d9e-7a40-4b7e-9d33-0a4c4a2d9b11", "source": "note", "rank": 2,
    "title": "Port of staging", "score": 0.039345, "fused": 0.032022, "prior": 1.0, "decay": 0.983,
    "boost": 1.25, "order": 2.135,
    "features": {
        "cosine": 1.21, "coverage": 0.84, "asks": -0.31, "bigrams": 0.22, "length": -0.1,
        "name": 0.2, "number": 0.05, "recent": 0.025,
    },
    "tracks": {"dense": {"rank": 1, "score": 0.712}, "lexical": {"rank": 3, "score": 8.41}},
    "terms": ["staging", "database", "port"], "cleared": ["dense"], "refused": "",
    "neighbour": {"turn": 17, "discount": 0.5}, "injected": True, "cosine": 0.712,
    "coverage": 0.65, "relevance": 1.8312, "turns": [21, 22, 23, 24], "twins": ["9a"],
}  # fmt: skip


def test_it_tells_the_whole_story_of_a_hit() -> None:
    assert explain(HIT).splitlines() == [
        "#2 note 5f0c1d9e-7a40-4b7e-9d33-0a4c4a2d9b11  Port of staging  injected",
        "   tracks   dense #1 (0.712), lexical #3 (8.41)",
        "   ranker   +2.135 log-odds: cosine +1.21, coverage +0.84, asks -0.31, bigrams +0.22,"
        " name +0.20, length -0.10, 2 more +0.08",
        "   score    0.03934 = fused 0.03202 x decay 0.983 x boost 1.25",
        "   words    staging, database, port",
        "   near     turn 17, discount 0.5; turns 21, 22, 23 and 1 more; twins 9a",
        "   floors   relevance 1.831, cosine 0.712, coverage 0.65; cleared dense",
    ]


def test_it_adds_up() -> None:
    line = explain(HIT).splitlines()[2]
    parts = [float(part.split()[-1]) for part in line.split(": ")[1].split(", ")]
    assert abs(sum(parts) - HIT["order"]) < 0.01


def test_it_says_why_a_hit_was_left_out_and_what_replaced_it() -> None:
    hit = HIT | {
        "injected": False, "cleared": [], "refused": "below every track's floor",
        "neighbour": None, "turns": [], "twins": [], "state": "superseded",
        "replaced_by": {"id": "77", "title": "Port 6000"},
    }  # fmt: skip
    told = explain(hit)
    assert "left out" in told and "refused: below every track's floor" in told
    assert "near     superseded today by 77 Port 6000" in told


def test_it_tells_of_a_row_only_what_was_kept() -> None:
    assert explain({"note": "5f0c", "rank": 1}) == "#1 note 5f0c"
    assert explain({"turn": 17, "rank": 1, "score": 0.5}).splitlines() == [
        "#1 turn 17", "   score    0.5",
    ]  # fmt: skip
    assert explain({}) == "#? note ?"


def test_it_lets_no_text_of_anybodys_steer_the_terminal_or_start_a_line() -> None:
    evil = "a\x1b[2J\nfloors   cleared all\r\u202e" + "x" * 5_000
    hit = HIT | {
        "title": evil, "terms": [evil], "refused": evil, "state": evil,
        "replaced_by": {"id": evil, "title": evil}, "neighbour": {evil: evil},
        "features": {evil: 1.0}, "tracks": {evil: {"rank": 1, "score": 1}}, "cleared": [evil],
    }  # fmt: skip
    told = explain(hit)
    assert len(told.splitlines()) == 7 and "\x1b" not in told and "\u202e" not in told
    assert len(told) < 2_500


VALUES = st.one_of(
    st.none(), st.text(max_size=20), st.floats(), st.integers(),
    st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=3),
)  # fmt: skip


KEYS = st.sampled_from(
    ["title", "rank", "score", "order", "neighbour", "decay", "fused", "refused", "note", "turn",
     "cosine", "relevance"]
)  # fmt: skip


@given(st.dictionaries(KEYS, VALUES))
def test_it_tells_any_row_in_few_lines(more: dict[str, Any]) -> None:
    assert 1 <= len(explain(HIT | more).splitlines()) <= 7
