"""How: random and contrived vectors against all pairs one by one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from exporter.related import Neighbours, nearest

MANY = settings(max_examples=60, deadline=None)


def alike(seed: int, count: int, size: int = 12, *, themes: int = 4) -> NDArray[np.float32]:
    """Vectors of length 1 around a few themes, some of them twice."""
    chance = np.random.default_rng(seed)
    middles = chance.normal(size=(themes, size))
    rows = middles[chance.integers(0, themes, count)] + 0.6 * chance.normal(size=(count, size))
    rows[count // 2 :: 7] = rows[: len(rows[count // 2 :: 7])]
    rows /= np.linalg.norm(rows, axis=1)[:, None]
    return rows.astype(np.float32)


def one_by_one(
    rows: NDArray[np.float32], groups: NDArray[np.int64] | None, k: int, floor: float
) -> Neighbours:
    """The same by hand: each pair by itself."""
    found: Neighbours = []
    for at, mine in enumerate(rows.astype(np.float64)):
        near = []
        for other, theirs in enumerate(rows.astype(np.float64)):
            lengths = float(np.linalg.norm(mine) * np.linalg.norm(theirs))
            if at == other or not lengths or (groups is not None and groups[at] != groups[other]):
                continue
            cosine = min(round(float(mine @ theirs) / lengths, 4), 1.0)
            if cosine >= floor:
                near.append((other, cosine))
        found.append(sorted(near, key=lambda one: (-one[1], one[0]))[:k])
    return found


@MANY
@given(
    st.integers(0, 10_000),
    st.integers(1, 50),
    st.integers(1, 8),
    st.sampled_from([-1.0, 0.0, 0.5, 0.65, 0.78, 0.99]),
    st.integers(1, 4),
)
def test_it_finds_what_all_pairs_one_by_one_find(
    seed: int, count: int, k: int, floor: float, projects: int
) -> None:
    rows = alike(seed, count)
    groups = np.random.default_rng(seed).integers(0, projects, count)
    assert nearest(rows, groups, k=k, floor=floor) == one_by_one(rows, groups, k, floor)
    assert nearest(rows, None, k=k, floor=floor) == one_by_one(rows, None, k, floor)


@pytest.mark.parametrize("cells", [1, 7, 100, 1000, 4_000_000])
def test_the_size_of_a_block_changes_nothing(cells: int) -> None:
    rows = alike(1, 300, 96)
    groups = np.arange(300) % 2
    assert nearest(rows, groups, k=5, floor=0.3, cells=cells) == nearest(
        rows, groups, k=5, floor=0.3
    )


def test_a_group_never_sees_another() -> None:
    rows = np.ones((40, 8), dtype=np.float32)
    groups = np.arange(40) % 5
    for at, near in enumerate(nearest(rows, groups, k=100, floor=0.0)):
        assert [other for other, _ in near] == [o for o in range(at % 5, 40, 5) if o != at]
        assert {cosine for _, cosine in near} == {1.0}


def test_equals_come_in_the_order_of_their_rows_and_no_more_than_asked_for() -> None:
    rows = np.ones((9, 4), dtype=np.float32)
    found = nearest(rows, None, k=3, floor=0.5)
    assert [other for other, _ in found[0]] == [1, 2, 3]
    assert [other for other, _ in found[2]] == [0, 1, 3]
    assert nearest(rows, None, k=0, floor=0.5) == [[]] * 9


def test_a_vector_of_zeros_and_padding_with_zeros_are_no_matter() -> None:
    rows = alike(2, 30)
    wide = np.concatenate([rows, np.zeros((30, 20), dtype=np.float32)], axis=1)
    assert nearest(wide, None, k=4, floor=0.2) == nearest(rows, None, k=4, floor=0.2)
    rows[3] = 0
    found = nearest(rows, None, k=30, floor=-1.0)
    assert found[3] == [] and all(other != 3 for near in found for other, _ in near)
    assert nearest(np.zeros((3, 4), dtype=np.float32), None, k=2, floor=-1.0) == [[], [], []]


def test_length_does_not_count() -> None:
    rows = alike(3, 40)
    stretched = rows * np.linspace(0.5, 3, 40, dtype=np.float32)[:, None]
    assert nearest(stretched, None, k=6, floor=0.4) == nearest(rows, None, k=6, floor=0.4)


def test_nothing_has_no_neighbours() -> None:
    assert nearest(np.zeros((0, 4), dtype=np.float32), None, k=3, floor=0.5) == []
    assert nearest(np.ones((1, 4), dtype=np.float32), np.zeros(1, int), k=3, floor=0.5) == [[]]


def test_the_floor_itself_is_in() -> None:
    rows = np.array([[1, 0], [0.6, 0.8], [0.5999, 0.8001]], dtype=np.float64)
    found = nearest(rows.astype(np.float32), None, k=2, floor=0.6)
    assert found[0] == [(1, 0.6)]
    assert nearest(rows.astype(np.float32), None, k=2, floor=0.60001)[0] == []


@pytest.mark.slow
def test_it_reads_ten_thousand_in_seconds() -> None:
    rows = alike(4, 10_000, 384, themes=600)
    found = nearest(rows, np.arange(10_000) % 3, k=12, floor=0.65)
    some = [0, 1234, 9999]
    for at in some:
        cosines = rows.astype(np.float64) @ rows[at].astype(np.float64)
        cosines[np.arange(10_000) % 3 != at % 3] = -1
        cosines[at] = -1
        assert [other for other, _ in found[at]] == [
            int(other) for other in np.lexsort((np.arange(10_000), -cosines.round(4)))[:12]
            if cosines[other].round(4) >= 0.65
        ]  # fmt: skip
