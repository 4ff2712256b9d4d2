"""Pages made of what the vault shall hold: our part of each file, and the sample it is known by.

Pure but for what it is given. Knows nothing about what lies on the disk.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from exporter import document, pages
from exporter.document import Face, Link
from exporter.wanted import Borne, Projects, Told, Wanted, index_key
from memory.text.shingles import shingles


def render(wanted: Wanted, paths: Mapping[str, str]) -> dict[str, bytes]:
    """Our part of every page, by key; `paths` say where the links go."""
    links = [Link(paths[str(one.id)].removesuffix(".md"), one.title) for one in wanted.notes]
    hub_links: dict[int, list[Link]] = defaultdict(list)
    by_project: dict[int | None, list[Link]] = defaultdict(list)
    for hub in wanted.hubs:
        link = Link(paths[hub.key].removesuffix(".md"), hub.title)
        by_project[hub.project].append(link)
        for row, _ in hub.members:
            hub_links[row].append(link)
    made: dict[str, bytes] = {}
    entries: dict[int | None, list[pages.Entry]] = defaultdict(list)
    for row, one in enumerate(wanted.notes):
        near = [
            Link(links[other].target, links[other].title, cosine)
            for other, cosine in wanted.near[row]
        ]
        shown = face(one, wanted.borne.get(one.id, Borne()), wanted.projects)
        made[str(one.id)] = document.note_page(shown, related=near, hubs=hub_links.get(row, ()))
        project = wanted.projects.of(one.project)
        entries[project].append(pages.Entry(links[row], one.level, one.kind))
    for hub in wanted.hubs:
        members = [Link(links[row].target, links[row].title, cosine) for row, cosine in hub.members]
        named = wanted.projects.name(hub.project)
        made[hub.key] = pages.hub_page(hub.title, hub.key, named, members)
    for project, listed in entries.items():
        key, named = index_key(project), wanted.projects.name(project)
        made[key] = pages.index_page(named, key, by_project[project], listed)
    return made


def face(one: Told, borne: Borne, projects: Projects) -> Face:
    """A note as its page shows it."""
    return Face(
        argus_id=str(one.id),
        title=one.title,
        project=projects.name(projects.of(one.project)),
        level=one.level,
        kind=one.kind,
        importance=one.importance,
        confidence=one.confidence,
        tags=tuple(one.tags),
        created=one.created,
        valid_from=one.valid_from,
        valid_to=one.valid_to,
        sources=tuple(borne.sources),
        content=one.content,
        quotes=tuple(borne.quotes),
    )


def echo(wanted: Wanted, key: str) -> list[int]:
    """The sample by which capture knows a page again.

    Without what is quoted: whoever said it may say it again, and is no echo of ours. Where nothing
    else is left one number stands for the page: it is on the books, and no text is refused for it.
    """
    one = wanted.told.get(key)
    sample = set(shingles(f"{one.title}\n{one.content}")) if one else set()
    for quote in wanted.borne[one.id].quotes if one and one.id in wanted.borne else ():
        sample.difference_update(shingles(quote.text))
    return sorted(sample) or shingles(key)[:1]
