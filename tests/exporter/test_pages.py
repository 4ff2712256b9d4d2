"""How: a page of each kind to the letter, and hostile titles read as Obsidian reads them."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from exporter.document import Link, heading
from exporter.found import parts
from exporter.names import stem
from exporter.pages import Entry, hub_page, index_page
from memory.text.region import HEADING, MARKER, identity
from tests.exporter.captured import TEXTS, active
from tests.exporter.vaults import front

MANY = settings(max_examples=100, deadline=None)

KEY = "hub:0f8fad5b-d9cb-469f-a165-70867728950e"
WIKILINK = re.compile(r"\[\[([^\[\]|#^]+)\|[^\[\]|]+\]\]")


def test_a_hub_lists_its_members_as_they_came() -> None:
    members = [Link("shop/Ports", "Ports", 1.0), Link("shop/A [b]", "A [b]", 0.81249)]
    assert hub_page("Ports & TLS", KEY, "shop", members).decode() == (
        f"""---
argus_id: "{KEY}"
project: "shop"
kind: "hub"
aliases:
- "Ports & TLS"
members: 2
---
# Ports & TLS

## Members

- [[shop/Ports|Ports]] (1.00)
- [[shop/A [b]|A (b)]] (0.81)

{HEADING}
{MARKER}
"""
    )


def test_an_index_begins_with_what_sums_up_and_sorts_by_title() -> None:
    notes = [
        Entry(Link("shop/b", "b"), "note", "semantic"),
        Entry(Link("shop/A", "A"), "L0", "semantic"),
        Entry(Link("shop/run", "run"), "note", "procedural"),
        Entry(Link("shop/was", "was"), "note", "episodic"),
        Entry(Link("shop/new", "new"), "note", "odd [[kind]]"),
        Entry(Link("shop/q", "Which port?"), "L1", "semantic"),
        Entry(Link("shop/all", "All of it"), "L2", "semantic"),
    ]
    made = index_page("shop", "index:7", [Link("shop/_hubs/h", "Hub")], notes)
    assert made == index_page("shop", "index:7", [Link("shop/_hubs/h", "Hub")], notes[::-1])
    assert made.decode() == (
        f"""---
argus_id: "index:7"
project: "shop"
kind: "index"
aliases:
- "shop"
notes: 7
hubs: 1
---
# shop

## Project

- [[shop/all|All of it]]

## Standing queries

- [[shop/q|Which port?]]

## Hubs

- [[shop/_hubs/h|Hub]]

## Facts

- [[shop/A|A]]
- [[shop/b|b]]

## How-tos

- [[shop/run|run]]

## Events

- [[shop/was|was]]

## odd \\[\\[kind]]

- [[shop/new|new]]

{HEADING}
{MARKER}
"""
    )


def test_an_index_of_nothing_is_a_page() -> None:
    made = index_page("shop", "index:7", [], [])
    assert made.decode().endswith(f"---\n# shop\n\n{HEADING}\n{MARKER}\n")


@MANY
@given(TEXTS, TEXTS, st.lists(TEXTS, max_size=6))
def test_every_link_of_a_page_is_found_and_nothing_else_is_active(
    title: str, project: str, titles: list[str]
) -> None:
    links = [Link(f"shop/{stem(one)}", one, 0.5) for one in titles]
    notes = [Entry(one, "note", "semantic") for one in links]
    hub = hub_page(title, KEY, project, links)
    index = index_page(project, "index:7", links, notes)
    for made, key, times in ((hub, KEY, 1), (index, "index:7", 2)):
        assert identity(made) == key and parts(made + b"mine") == (made, b"mine")
        text = made.decode()
        own = text.split("\n---\n", 1)[1].removesuffix(f"{MARKER}\n")
        found = WIKILINK.findall(own)
        assert sorted(found) == sorted([one.target for one in links] * times)
        assert active(WIKILINK.sub("link", own)) == []
        assert text.split("\n").count(MARKER) == 1 and text.count("\n# ") == 1
    values = front(hub)
    assert values is not None and values["aliases"] == [heading(title)]
