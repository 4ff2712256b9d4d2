"""Which notes belong together: clusters of the graph of mutual neighbours.

Two notes are joined when each is among the other's neighbours. A connected part is a cluster,
unless it is a giant: then it is split into communities, and what stays a giant is refused. One
link too many joins everything with everything, and a page that lists half a project says nothing.
Knows nothing about notes, vectors or pages.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import networkx as nx

#: Fewer are no cluster.
CLUSTER_MEMBERS_MIN = 3

#: Of a project's notes: a part that holds more is a giant ...
# Why: what a fifth of a project has in common is the project.
CLUSTER_SHARE_MAX = 0.2

#: ... if it has more members than this, too.
# Why: in a project of thirty notes, seven on one matter are a good page.
# Calibrate: a page that a person reads through; sizes of clusters in the export's report.
GIANT_MEMBERS_MIN = 24

#: Larger ones are giants whatever their share.
# Why: of ten thousand notes a fifth is no page that anybody reads.
CLUSTER_MEMBERS_MAX = 200

#: The communities' own chance, the same every time.
SEED = 6

assert CLUSTER_MEMBERS_MIN < GIANT_MEMBERS_MIN < CLUSTER_MEMBERS_MAX


@dataclass(frozen=True)
class Clusters:
    """Rows that belong together, largest cluster first; who is the middle of each; the sizes of the
    giants that were refused."""

    members: list[list[int]]
    central: list[int]
    refused: list[int]


def clusters(
    neighbours: Sequence[Sequence[tuple[int, float]]],
    *,
    size_of_group: int | Sequence[int],
    keys: Sequence[str] | None = None,
    floor: float = 0.0,
) -> Clusters:
    """Cluster the rows by their neighbours (as `related.nearest` gives them) from `floor` up.

    `size_of_group`: how many notes the row's project holds, one number for all or one a row.
    `keys`: what settles ties and order, one a row and no two alike; with the notes' ids the result
    does not depend on the order of the rows. Without: the row.
    """
    order = _order(len(neighbours), keys)
    graph = _mutual(neighbours, order, floor)
    found: list[list[int]] = []
    refused: list[int] = []
    for part in _components(graph):
        row = order[part[0]]
        size = size_of_group if isinstance(size_of_group, int) else size_of_group[row]
        most = min(max(GIANT_MEMBERS_MIN, CLUSTER_SHARE_MAX * size), CLUSTER_MEMBERS_MAX)
        for piece in _split(graph, part) if len(part) > most else [part]:
            if len(piece) > most:
                refused.append(len(piece))
            elif len(piece) >= CLUSTER_MEMBERS_MIN:
                found.append(piece)
    found.sort(key=lambda piece: (-len(piece), piece))
    middles = [_middle(graph, piece) for piece in found]
    return Clusters(
        members=[[order[place] for place in piece] for piece in found],
        central=[order[place] for place in middles],
        refused=sorted(refused, reverse=True),
    )


def _order(count: int, keys: Sequence[str] | None) -> list[int]:
    """The rows by key. Everything else works on places in this order, never on rows."""
    return list(range(count)) if keys is None else sorted(range(count), key=keys.__getitem__)


def _mutual(
    neighbours: Sequence[Sequence[tuple[int, float]]], order: list[int], floor: float
) -> nx.Graph[int]:
    place = [0] * len(order)
    for at, row in enumerate(order):
        place[row] = at
    near = [
        {place[other]: cosine for other, cosine in neighbours[row] if cosine >= floor}
        for row in order
    ]
    # Why here: every command of Argus imports this file, and few have need of it.
    import networkx as nx

    graph: nx.Graph[int] = nx.Graph()
    for at, others in enumerate(near):
        for other in sorted(others):
            if at < other and at in near[other]:
                graph.add_edge(at, other, weight=others[other])
    return graph


def _components(graph: nx.Graph[int]) -> Iterator[list[int]]:
    """Connected parts, each ascending, in the order of their first."""
    import networkx as nx

    yield from sorted(sorted(part) for part in nx.connected_components(graph))


def _split(graph: nx.Graph[int], part: list[int]) -> Iterator[list[int]]:
    """The communities of a part; each is connected."""
    import networkx as nx

    whole: nx.Graph[int] = nx.Graph()
    # In order: the communities' shuffling starts from the order of the nodes.
    whole.add_nodes_from(part)
    whole.add_weighted_edges_from(
        (at, other, graph[at][other]["weight"])
        for at in part
        for other in sorted(graph[at])
        if at < other
    )
    for piece in nx.community.louvain_communities(whole, weight="weight", seed=SEED):
        yield from _components(whole.subgraph(piece))


def _middle(graph: nx.Graph[int], piece: list[int]) -> int:
    """The member nearest to all the others together; the first of equals."""
    inside = set(piece)

    def nearness(at: int) -> float:
        # Sorted: sums of floats depend on their order.
        return sum(float(graph[at][other]["weight"]) for other in sorted(inside & set(graph[at])))

    return min(piece, key=lambda at: (-nearness(at), at))
