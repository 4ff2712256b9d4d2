"""Prior, decay, boost and floors: which hits go out, in which order, and from which numbers."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import uuid4

import numpy as np
import pytest

from memory.llm.thresholds import recall_floor
from recall.features import FEATURES
from recall.floors import SOURCES, Floors, Weights, shipped
from recall.found import Found, Question
from recall.fusion import RRF_K, Placed
from recall.ranker import Ranker
from recall.scoring import REST, SAME_PROJECT_BOOST, Hit, Scales, freshness, weigh, weigh_all
from recall.search import Searched
from tests.recall.making import NOW

MODEL = "minilm-l6-v2-int8-pad768"
#: The embedder's own floor of an English prompt; floors of recall count from there.
OWN = recall_floor(MODEL, "english")
#: Relevance that anything has, so that the other floors decide.
ANY = Weights(cosine=0.0, coverage=0.0, here=0.0, intercept=0.0)
FLOORS = Floors(semantic=0.0, keyword=0.15, relevance=0.0, score=0.015, weights=ANY)


def found(source: str = "note", **fields: Any) -> Found:
    """A find as the search gives it; `cosine` and `keyword` are what the main tracks saw."""
    keyword = fields.pop("keyword", 0.0)
    rank = fields.pop("rank", 1)
    cosine = fields.get("cosine")
    tracks = {
        name: Placed(rank, score)
        for name, score in (("semantic", cosine), ("keyword", keyword))
        if score
    }
    facts = {
        "id": uuid4(), "memory_kind": "semantic", "project__name": None, "at": NOW,
    } | fields.pop("facts", {})  # fmt: skip
    given: dict[str, Any] = {
        "source": source, "key": facts["id"] if source == "note" else 7, "text": 1, "facts": facts,
        "tracks": tracks, "fused": sum(1 / (RRF_K + at.rank) for at in tracks.values()),
        "order": 1.5, "cosine": None,
        "coverage": 0.5, "words": ("port",), "content": b"",
    }  # fmt: skip
    parts = {"intercept": 0.5, "cosine": 1.0} | fields.pop("parts", {})
    row = np.array([parts.get(name, 0.0) for name in FEATURES])
    ranker = Ranker((1.0,) * len(FEATURES), parts["intercept"])
    return Found(**given | {"row": row, "ranker": ranker} | fields)


def weighed(
    one: Found, *, floors: Floors = FLOORS, asks: str | None = None, half_life_days: float = 0
) -> Hit:
    both = dict.fromkeys(SOURCES, floors)
    return weigh(one, Scales(asks, both, MODEL, "english", half_life_days, NOW))


def test_it_keeps_what_is_equal_to_a_floor_and_drops_what_is_below() -> None:
    assert weighed(found(cosine=OWN)).judged.refused == ""
    below = weighed(found(cosine=OWN - 1e-9))
    assert below.judged.refused == "below every track's floor"
    assert weighed(found(keyword=0.15)).judged.refused == ""
    assert weighed(found(keyword=0.1499999)).judged.refused == "below every track's floor"
    score = Floors(0.0, 0.15, 0.0, 1 / 61, ANY)
    assert weighed(found(cosine=OWN), floors=score).judged.refused == ""
    above = Floors(0.0, 0.15, 0.0, 1 / 61 + 1e-12, ANY)
    refused = weighed(found(cosine=OWN), floors=above).judged.refused
    assert refused == "below the floor of the final score"
    half = replace(ANY, coverage=1.0)
    assert weighed(found(cosine=OWN), floors=Floors(0.0, 1, 0.5, 0.0, half)).judged.refused == ""
    more = weighed(found(cosine=OWN), floors=Floors(0.0, 1, 0.5 + 1e-9, 0.0, half))
    assert more.judged.refused == "below the floor of relevance"


@pytest.mark.parametrize("track", ["cosine", "keyword"])
@pytest.mark.parametrize("rank", [1, 5])
def test_it_lets_no_rank_of_one_track_pass_without_that_tracks_own_floor(
    track: str, rank: int
) -> None:
    seen: dict[str, Any] = {track: 0.001}
    hit = weighed(found(rank=rank, **seen))
    assert hit.score > FLOORS.score, "the fused floor alone would have let it pass"
    assert hit.judged.refused and not {"semantic", "keyword"} & set(hit.judged.cleared)


def test_it_is_enough_to_clear_the_floor_of_one_track() -> None:
    hit = weighed(found(cosine=0.1, keyword=0.2))
    assert hit.judged.refused == "" and "keyword" in hit.judged.cleared
    assert "semantic" not in hit.judged.cleared


def test_it_weighs_each_source_by_its_own_floors() -> None:
    floors = shipped(MODEL, score=0.0)
    scales = Scales(None, floors, MODEL, "english", 0, NOW)
    note, turn = (
        weigh(found(source, cosine=OWN + 0.1, keyword=0.3, coverage=0.4), scales)
        for source in ("note", "turn")
    )
    assert note.judged.refused == "" and turn.judged.refused == "below the floor of relevance"
    sure = weigh(found("turn", cosine=OWN + 0.3, keyword=0.9, coverage=1.0), scales)
    assert sure.judged.refused == ""


def test_it_reads_the_floor_after_the_boost_and_keeps_the_fused_score_beside_it() -> None:
    floors = Floors(0.0, 0.15, 0.0, 1.2 / 61, ANY)
    assert weighed(found(cosine=0.9), floors=floors, asks="harbor").judged.refused
    ours = found(cosine=0.9, facts={"project__name": "harbor"})
    own = weighed(ours, floors=floors, asks="harbor")
    assert own.judged.refused == "" and own.boost == SAME_PROJECT_BOOST == 1.25
    told = own.as_json(rank=1, injected=True)
    assert told["fused"] == pytest.approx(1 / 61, abs=1e-6)
    assert told["score"] == pytest.approx(1.25 / 61, abs=1e-6)


def test_it_lets_the_project_that_asks_speak_for_relevance() -> None:
    floors = Floors(0.0, 0.15, 0.5, 0.0, replace(ANY, here=0.75))
    ours = found(cosine=0.9, facts={"project__name": "harbor"})
    assert weighed(ours, floors=floors, asks="harbor").judged.relevance == 0.75
    for asks in ("tidepool", None, ""):
        refused = weighed(ours, floors=floors, asks=asks).judged
        assert (refused.relevance, refused.refused) == (0.0, "below the floor of relevance")


def test_it_gives_no_boost_for_having_no_project_in_common() -> None:
    assert weighed(found(cosine=0.5), asks=None).boost == 1.0
    assert weighed(found(cosine=0.5, facts={"project__name": "b"}), asks="a").boost == 1.0


def test_it_halves_the_weight_of_a_note_every_half_life_when_that_is_on() -> None:
    old = NOW - timedelta(days=20)
    assert freshness(old, half_life_days=10, now=NOW) == pytest.approx(0.25)
    assert freshness(old, half_life_days=0, now=NOW) == 1.0
    assert freshness(NOW + timedelta(days=3), half_life_days=10, now=NOW) == 1.0
    fresh = weighed(found(cosine=0.5, rank=2), half_life_days=10)
    stale = weighed(found(cosine=0.5, facts={"at": old}), half_life_days=10)
    assert fresh.score > stale.score and stale.decay == pytest.approx(0.25)
    assert stale.judged.refused == "below the floor of the final score"
    said = weighed(found("turn", cosine=0.5, facts={"at": old}), half_life_days=10)
    assert said.decay == pytest.approx(0.25), "a turn ages from when it was said"


@pytest.mark.parametrize("most", [None, 1, 2, 3, 8])
def test_it_orders_by_a_sum_whose_parts_it_tells(most: int | None) -> None:
    parts = {"intercept": -1.0, "cosine": 2.0, "bm25": 0.25, "asks": -0.125, "length": 0.0625}
    one = found(parts=parts, order=math.fsum(parts.values()), facts={"project__name": "harbor"})
    hit = weighed(one, asks="harbor", half_life_days=30)
    assert hit.order == pytest.approx(one.order + math.log(1.25))
    told = hit.sums(most)
    assert math.fsum(told.values()) == pytest.approx(hit.order)
    if most is None or most > 5:
        assert set(told) == {*parts, "boost"}
    else:
        assert len(told) == most + 1 and REST in told
        assert "cosine" in told, "the weightiest are told first"


def test_it_keeps_an_order_finite_whatever_fades() -> None:
    ancient = found(facts={"at": NOW - timedelta(days=400_000)})
    hit = weighed(ancient, half_life_days=1)
    assert math.isfinite(hit.order) and hit.decay == 0.0
    json.dumps(hit.as_json(rank=1, injected=False), allow_nan=False)


def test_it_puts_notes_and_turns_into_one_order_the_same_way_every_time() -> None:
    finds = [found("note", order=1.0), found("turn", order=9.0), found("note", order=1.0)]
    question = Question("which port?", (), (), MODEL)
    floors = shipped(MODEL, score=0.0)
    orders = {
        tuple(
            str(hit.key)
            for hit in weigh_all(Searched(some, question), floors, project=None, now=NOW)
        )
        for some in (finds, finds[::-1])
    }
    assert len(orders) == 1


def test_it_keeps_each_sources_order_and_lets_relevance_decide_between_them() -> None:
    """The ranker's sums of two sources are of two scales."""
    notes = [
        found("note", order=9.0, coverage=0.1), found("note", order=8.0, coverage=0.9),
        found("note", order=7.0, coverage=0.2),
    ]  # fmt: skip
    turns = [
        found("turn", order=0.2, coverage=1.0, key=1), found("turn", order=0.1, coverage=0.0, key=2)
    ]  # fmt: skip
    floors = dict.fromkeys(SOURCES, Floors(0, 0, 0, 0, replace(ANY, coverage=1.0)))
    question = Question("which port?", (), (), MODEL)
    hits = weigh_all(Searched([*notes, *turns], question), floors, project=None, now=NOW)
    keys = [notes[0].key, notes[1].key, notes[2].key]
    assert [hit.key for hit in hits] == [1, *keys, 2]


def test_it_tells_the_ledger_numbers_ids_and_words_of_the_question_alone() -> None:
    secret = {"content": "the body of a note", "title": "its title", "excerpt": "what was said"}
    told = weighed(found(cosine=0.5, facts=secret)).as_json(rank=1, injected=True)
    written = json.dumps(told, allow_nan=False)
    assert not any(text in written for text in secret.values())
    assert told["terms"] == ["port"] and told["relevance"] == 0.0
    turn = weighed(found("turn", cosine=0.5, near=9)).as_json(rank=2, injected=False)
    assert (turn["turn"], turn["source"], turn["neighbour"]) == (7, "turn", 9)
