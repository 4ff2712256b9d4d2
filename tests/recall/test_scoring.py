"""Prior, decay, boost and floors: which hits go out, and in which order."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from recall.fusion import RRF_K, Fused, Placed
from recall.scoring import SAME_PROJECT_BOOST, Floors, Hit, freshness, weigh
from tests.recall.making import NOW

FLOORS = Floors(score=0.015, semantic=0.3, keyword=0.03)


def weighed(
    tracks: dict[str, tuple[int, float]], *, floors: Floors = FLOORS, half_life_days: float = 0,
    asks: str | None = None, **note: Any,
) -> Hit:  # fmt: skip
    places = {name: Placed(*at) for name, at in tracks.items()}
    score = sum(1 / (RRF_K + at.rank) for at in places.values())
    columns = {"id": uuid4(), "memory_kind": "semantic", "project__name": None, "valid_from": NOW}
    fused: Fused[UUID] = Fused(uuid4(), score, places)
    return weigh(
        fused, columns | note, project=asks, floors=floors, half_life_days=half_life_days, now=NOW
    )


def test_it_keeps_a_score_equal_to_a_floor_and_drops_one_below() -> None:
    equal = weighed({"semantic": (1, 0.3)}, floors=Floors(1 / 61, 0.3, 0.03))
    assert equal.refused == ""
    assert weighed({"semantic": (1, 0.2999999)}).refused == "below every track's floor"
    above = Floors(1 / 61 + 1e-12, 0.3, 0.03)
    refused = weighed({"semantic": (1, 0.3)}, floors=above).refused
    assert refused == "below the floor of the final score"


@pytest.mark.parametrize("track", ["semantic", "keyword"])
@pytest.mark.parametrize("rank", [1, 5])
def test_it_lets_no_rank_of_one_track_pass_without_that_tracks_own_floor(
    track: str, rank: int
) -> None:
    hit = weighed({track: (rank, 0.001)})
    assert hit.score > FLOORS.score, "the fused floor alone would have let it pass"
    assert hit.refused and hit.cleared == ()


def test_it_is_enough_to_clear_the_floor_of_one_track() -> None:
    hit = weighed({"semantic": (3, 0.1), "keyword": (1, 0.05)})
    assert (hit.refused, hit.cleared) == ("", ("keyword",))


def test_it_reads_the_floor_after_the_boost_and_keeps_the_fused_score_beside_it() -> None:
    floors = Floors(1.2 / 61, 0.3, 0.03)
    assert weighed({"semantic": (1, 0.5)}, floors=floors, asks="harbor").refused
    own = weighed({"semantic": (1, 0.5)}, floors=floors, asks="harbor", project__name="harbor")
    assert own.refused == "" and own.boost == SAME_PROJECT_BOOST == 1.25
    told = own.as_json(rank=1, injected=True)
    assert told["fused"] == pytest.approx(1 / 61, abs=1e-6)
    assert told["score"] == pytest.approx(1.25 / 61, abs=1e-6)


def test_it_gives_no_boost_for_having_no_project_in_common() -> None:
    assert weighed({"semantic": (1, 0.5)}, asks=None, project__name=None).boost == 1.0
    assert weighed({"semantic": (1, 0.5)}, asks="a", project__name="b").boost == 1.0


def test_it_halves_the_weight_of_a_note_every_half_life_when_that_is_on() -> None:
    old = NOW - timedelta(days=20)
    assert freshness(old, half_life_days=10, now=NOW) == pytest.approx(0.25)
    assert freshness(old, half_life_days=0, now=NOW) == 1.0
    assert freshness(NOW + timedelta(days=3), half_life_days=10, now=NOW) == 1.0
    fresh = weighed({"semantic": (2, 0.5)}, half_life_days=10)
    stale = weighed({"semantic": (1, 0.5)}, half_life_days=10, valid_from=old)
    assert fresh.score > stale.score and stale.decay == pytest.approx(0.25)
    assert stale.refused == "below the floor of the final score"
