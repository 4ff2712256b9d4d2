"""Pages that are of no one note: a hub for notes that belong together, an index for each project.

Made as notes' pages are: front matter, title, links, and the marker line below which everything is
a person's. Knows nothing about which notes there are, or where files lie.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from exporter.document import Link, Value, heading, listed, page
from exporter.inert import verbatim
from exporter.names import fold
from memory.text.region import FIELD

#: What a note is called on an index, by its kind; other kinds come after, under their own name.
KINDS = {"semantic": "Facts", "procedural": "How-tos", "episodic": "Events"}

#: Levels that sum up come before everything else, the widest first.
LEVELS = {"L2": "Project", "L1": "Standing queries"}


@dataclass(frozen=True)
class Entry:
    """A note as an index lists it."""

    link: Link
    level: str
    kind: str


def hub_page(title: str, key: str, project: str, members: Sequence[Link]) -> bytes:
    """The page of a cluster: its members in the order given, with their nearness to the centre. One
    that rests has none."""
    values: dict[str, Value] = {
        FIELD: key,
        "project": project,
        "kind": "hub",
        "aliases": [heading(title)],
        "members": len(members),
    }
    lines = ["", "## Members", "", *map(listed, members)] if members else []
    return page(values, title, lines)


def index_page(project: str, key: str, hubs: Sequence[Link], notes: Sequence[Entry]) -> bytes:
    """The page of a project: what sums it up, its hubs, then its notes by kind.

    Sorted by title within each part, whatever the order given.
    """
    values: dict[str, Value] = {
        FIELD: key,
        "project": project,
        "kind": "index",
        "aliases": [heading(project)],
        "notes": len(notes),
        "hubs": len(hubs),
    }
    lines: list[str] = []
    for level, name in LEVELS.items():
        lines += _part(name, (one.link for one in notes if one.level == level))
    lines += _part("Hubs", hubs)
    plain = [one for one in notes if one.level not in LEVELS]
    others = sorted({one.kind for one in plain} - set(KINDS))
    for kind in [*KINDS, *others]:
        lines += _part(
            KINDS.get(kind) or verbatim(heading(kind)),
            (one.link for one in plain if one.kind == kind),
        )
    return page(values, project, lines)


def _part(name: str, links: Iterable[Link]) -> list[str]:
    """An empty line, a heading and its links; nothing for no links."""
    rows = sorted(links, key=lambda one: (fold(one.title), one.title, one.target))
    return ["", f"## {name}", "", *map(listed, rows)] if rows else []
