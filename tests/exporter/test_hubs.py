"""How: graphs drawn by hand (cliques, chains, a giant) and random ones, their rows shuffled."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from random import Random

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exporter.hubs import (
    CLUSTER_MEMBERS_MAX,
    CLUSTER_MEMBERS_MIN,
    CLUSTER_SHARE_MAX,
    GIANT_MEMBERS_MIN,
    Clusters,
    clusters,
)
from exporter.related import Neighbours, nearest
from tests.exporter.test_related import alike

MANY = settings(max_examples=60, deadline=None)

Edge = tuple[int, int, float]


def drawn(count: int, edges: Sequence[Edge]) -> Neighbours:
    """Neighbour lists of which each edge is in both."""
    found: Neighbours = [[] for _ in range(count)]
    for one, other, cosine in edges:
        found[one].append((other, cosine))
        found[other].append((one, cosine))
    return found


def clique(rows: Sequence[int], cosine: float = 0.9) -> list[Edge]:
    return [(one, other, cosine) for one, other in combinations(rows, 2)]


def names(found: Clusters, keys: Sequence[str]) -> tuple[list[list[str]], list[str], list[int]]:
    """The result by keys."""
    members = [[keys[row] for row in piece] for piece in found.members]
    return members, [keys[row] for row in found.central], found.refused


def test_notes_that_are_near_each_other_are_a_cluster_from_three_on() -> None:
    edges = [*clique([0, 1, 2, 3]), *clique([4, 5, 6]), (7, 8, 0.99)]
    found = clusters(drawn(10, edges), size_of_group=10)
    assert found == Clusters(members=[[0, 1, 2, 3], [4, 5, 6]], central=[0, 4], refused=[])


def test_a_neighbour_that_is_not_one_in_return_joins_nothing() -> None:
    near: Neighbours = [[(1, 0.9), (2, 0.9)], [(0, 0.9)], [(1, 0.9)], [(0, 0.9)]]
    assert clusters(near, size_of_group=4).members == []
    near[2].append((0, 0.9))
    assert clusters(near, size_of_group=4).members == [[0, 1, 2]]


def test_only_what_is_near_enough_joins() -> None:
    edges = [*clique([0, 1, 2], 0.8), *clique([3, 4, 5], 0.7), (2, 3, 0.75)]
    assert clusters(drawn(6, edges), size_of_group=6, floor=0.78).members == [[0, 1, 2]]
    assert clusters(drawn(6, edges), size_of_group=6, floor=0.8).members == [[0, 1, 2]]
    assert clusters(drawn(6, edges), size_of_group=6, floor=0.7).members == [[0, 1, 2, 3, 4, 5]]


def test_the_middle_is_who_is_nearest_to_all_the_others() -> None:
    edges = [(0, 1, 0.8), (1, 2, 0.8), (1, 3, 0.8), (2, 3, 0.95)]
    assert clusters(drawn(4, edges), size_of_group=4).central == [1]


@pytest.mark.parametrize("bridge", [0.78, 0.95])
def test_a_giant_that_hangs_together_by_single_links_is_split(bridge: float) -> None:
    # Ten matters of twelve notes, each joined to the next by one link: a component of 120 of 200.
    groups = [list(range(at, at + 12)) for at in range(0, 120, 12)]
    edges = [edge for rows in groups for edge in clique(rows)]
    edges += [(rows[-1], other[0], bridge) for rows, other in zip(groups, groups[1:], strict=False)]
    near = drawn(200, edges)
    assert len(max(nx.connected_components(nx.Graph([e[:2] for e in edges])))) == 120
    found = clusters(near, size_of_group=200)
    assert sorted(found.members) == groups and found.refused == []


def test_a_giant_that_no_split_makes_small_is_refused_and_counted() -> None:
    found = clusters(drawn(150, [*clique(range(60)), *clique([60, 61, 62])]), size_of_group=150)
    assert found == Clusters(members=[[60, 61, 62]], central=[60], refused=[60])


def test_of_a_split_giant_only_the_parts_that_stay_giants_are_refused() -> None:
    edges = [*clique(range(40)), *clique(range(40, 60)), (39, 40, 0.8), (60, 59, 0.8)]
    found = clusters(drawn(100, edges), size_of_group=100)
    assert found.refused == [40]
    assert len(found.members) == 1 and set(range(41, 60)) <= set(found.members[0])


def test_what_is_large_for_a_small_project_is_none_for_a_large_one() -> None:
    near = drawn(500, clique(range(GIANT_MEMBERS_MIN + 1)))
    size = len(near)
    assert size * CLUSTER_SHARE_MAX > GIANT_MEMBERS_MIN + 1
    assert clusters(near, size_of_group=size).refused == []
    assert clusters(near, size_of_group=100).refused == [GIANT_MEMBERS_MIN + 1]
    sizes = [100] * (GIANT_MEMBERS_MIN + 1) + [500] * (size - GIANT_MEMBERS_MIN - 1)
    assert clusters(near, size_of_group=sizes).refused == [GIANT_MEMBERS_MIN + 1]


def test_nobody_reads_a_page_of_hundreds_however_large_the_project() -> None:
    near = drawn(CLUSTER_MEMBERS_MAX + 1, clique(range(CLUSTER_MEMBERS_MAX + 1)))
    assert clusters(near, size_of_group=10**6).refused == [CLUSTER_MEMBERS_MAX + 1]
    near = drawn(CLUSTER_MEMBERS_MAX, clique(range(CLUSTER_MEMBERS_MAX)))
    assert clusters(near, size_of_group=10**6).refused == []


def test_a_few_notes_are_no_giant_however_few_there_are_in_all() -> None:
    near = drawn(GIANT_MEMBERS_MIN, clique(range(GIANT_MEMBERS_MIN)))
    assert len(clusters(near, size_of_group=GIANT_MEMBERS_MIN).members) == 1


def test_nothing_has_no_clusters() -> None:
    assert clusters([], size_of_group=0) == Clusters([], [], [])
    assert clusters([[], []], size_of_group=2) == Clusters([], [], [])


@MANY
@given(st.integers(0, 10_000), st.integers(0, 160), st.sampled_from([0.3, 0.6, 0.78, 0.9]))
def test_clusters_are_apart_from_three_on_and_never_giants(
    seed: int, count: int, floor: float
) -> None:
    near = nearest(alike(seed, count, 8), None, k=10, floor=floor)
    found = clusters(near, size_of_group=count, floor=floor)
    rows = [row for piece in found.members for row in piece]
    assert len(rows) == len(set(rows)) and len(rows) + sum(found.refused) <= count
    most = max(GIANT_MEMBERS_MIN, CLUSTER_SHARE_MAX * count)
    for piece, middle in zip(found.members, found.central, strict=True):
        assert CLUSTER_MEMBERS_MIN <= len(piece) <= most and middle in piece
        joined = [
            (one, other)
            for one in piece
            for other, _ in near[one]
            if other in piece and any(back == one for back, _ in near[other])
        ]
        assert nx.is_connected(nx.Graph(joined)) and set(nx.Graph(joined)) == set(piece)
    assert all(size > most for size in found.refused)


@MANY
@given(st.integers(0, 10_000), st.integers(60, 140), st.sampled_from([0.3, 0.5, 0.78]))
def test_the_order_of_the_notes_changes_nothing(seed: int, count: int, floor: float) -> None:
    rows = alike(seed, count, 8)
    keys = [f"{Random(seed + at).getrandbits(64):016x}" for at in range(count)]
    order = np.random.default_rng(seed).permutation(count)
    first = clusters(nearest(rows, None, k=count, floor=0.3), size_of_group=count, keys=keys,
                     floor=floor)  # fmt: skip
    mixed = [keys[row] for row in order]
    second = clusters(nearest(rows[order], None, k=count, floor=0.3), size_of_group=count,
                      keys=mixed, floor=floor)  # fmt: skip
    assert names(first, keys) == names(second, mixed)
