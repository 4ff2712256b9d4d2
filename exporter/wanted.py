"""What the vault shall hold: a page for each note that is live and may lie there, hubs, indexes.

Reads: note, evidence, raw_item, project, dedup_verdict. Writes nothing. Everything is read in a few
statements, as values. Knows nothing about what lies on the disk.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np
from django.db import connection
from numpy.typing import NDArray

from exporter import hubs, names, related
from exporter.document import Quote
from exporter.moves import Page
from exporter.place import Place
from memory.llm.choice import embedder
from memory.llm.thresholds import threshold
from memory.models import Evidence, Note, Principal, Project, RawItem
from memory.models.record import CONFIDENTIALITIES
from memory.querysets import NoteQuerySet, OwnedQuerySet, condition, mates_of

#: Related notes on a page.
# Why: a list that is read; the graph shows the rest.
RELATED_MAX = 8

#: Neighbours looked at for each note.
# Why: hubs are made of mutual ones of the same project, and other projects take places among them.
# Calibrate: notes in hubs at 10,000 notes, with half and twice as many; it should not move.
NEIGHBOURS_MAX = 24

#: The page of notes that belong to no project.
NOWHERE = "index:-"

#: Of what this module puts on a page; counted up when that changes.
VERSION = 1


class Told(NamedTuple):
    """A note's own columns, as the query gives them (COLUMNS)."""

    id: UUID
    title: str
    content: str
    level: str
    kind: str
    importance: float
    confidence: float
    tags: list[str]
    created: datetime
    valid_from: datetime
    valid_to: datetime | None
    project: int | None


COLUMNS = (
    "pk", "title", "content", "level", "memory_kind", "importance", "confidence", "tags",
    "created_at", "valid_from", "valid_to", "project",
)  # fmt: skip


@dataclass
class Borne:
    """What bears a note out: quotes, and where they come from."""

    quotes: dict[Quote, None] = field(default_factory=dict)
    sources: dict[str, None] = field(default_factory=dict)


@dataclass(frozen=True)
class Projects:
    """Projects as they are read: `root` of each that was merged, `names` and `folders` of roots."""

    root: Mapping[int, int]
    names: Mapping[int, str]
    folders: Mapping[int | None, str]

    def of(self, project: int | None) -> int | None:
        return None if project is None else self.root[project]

    def name(self, root: int | None) -> str:
        return "" if root is None else self.names[root]


@dataclass(frozen=True)
class Hub:
    """A cluster of notes: rows of `Wanted.notes`, the middle first, with their nearness to it."""

    key: str
    title: str
    project: int | None
    members: tuple[tuple[int, float | None], ...]


@dataclass(frozen=True)
class Wanted:
    """All that the vault shall hold, before paths are given."""

    notes: list[Told]
    borne: Mapping[UUID, Borne]
    projects: Projects
    near: list[list[tuple[int, float]]]
    hubs: list[Hub]
    refused: int
    #: Whose words the path of a page holds.
    of: Mapping[str, UUID | None]
    pages: list[Page]

    @cached_property
    def told(self) -> Mapping[str, Told]:
        """The notes, by key."""
        return {str(one.id): one for one in self.notes}

    @property
    def linked(self) -> int:
        return sum(len(row) for row in self.near)

    @property
    def largest(self) -> int:
        return max((len(hub.members) for hub in self.hubs), default=0)


def allowed(place: Place) -> list[str]:
    """The confidentialities that may lie in this vault."""
    return list(CONFIDENTIALITIES[: CONFIDENTIALITIES.index(place.confidentiality) + 1])


def seen(place: Place, owner: Principal, now: datetime) -> NoteQuerySet:
    """The notes that the vault holds."""
    return holdable(place, owner).live(now)


def holdable(place: Place, owner: Principal) -> NoteQuerySet:
    """The notes that may lie in the vault, live or not."""
    rows: NoteQuerySet = Note.objects.visible_to(owner, mates=mates_of(owner))
    return rows.filter(confidentiality__in=allowed(place))


def _quotable(place: Place, owner: Principal) -> OwnedQuerySet:
    """The raw items whose words may stand in the vault: a note of others may quote what is theirs
    alone."""
    rows: OwnedQuerySet = RawItem.objects.visible_to(owner, mates=mates_of(owner))
    return rows.filter(confidentiality__in=allowed(place))


def gather(
    place: Place,
    owner: Principal,
    *,
    now: datetime,
    kept: Mapping[str, str],
    lying: Collection[str],
) -> Wanted:
    """Read all that the vault shall hold. `kept`: folders that projects have, by key of their
    index; `lying`: folders that lie in the vault."""
    notes = tell(seen(place, owner, now))
    projects = _projects({one.project for one in notes}, kept, lying, lowercase=place.lowercase)
    model = embedder().name
    near = _near(notes, seen(place, owner, now), model)
    found, refused = _hubs(notes, near, projects, threshold(model, "clustered"))
    made = _pages(notes, found, projects, lowercase=place.lowercase)
    return Wanted(
        notes=notes,
        borne=borne(place, owner, seen(place, owner, now), now=now),
        projects=projects,
        near=[row[:RELATED_MAX] for row in near],
        hubs=found,
        refused=refused,
        of={str(one.id): one.id for one in notes}
        | {hub.key: notes[hub.members[0][0]].id for hub in found},
        pages=made,
    )


def tell(rows: NoteQuerySet) -> list[Told]:
    """These notes as values, the oldest first."""
    return [Told(*row) for row in rows.order_by("created_at", "pk").values_list(*COLUMNS)]


def _projects(
    used: Collection[int | None],
    kept: Mapping[str, str],
    lying: Collection[str],
    *,
    lowercase: bool,
) -> Projects:
    """The registry, and a folder for each project that has notes: the one it has, or one that lies
    there under a name that some file system takes for the same."""
    rows = list(Project.objects.order_by("pk").values_list("pk", "name", "merged_into"))
    into = {pk: merged for pk, _, merged in rows}
    named = {pk: name for pk, name, _ in rows}
    root: dict[int, int] = {}
    for pk in into:
        here, passed = pk, {pk}
        while (further := into[here]) is not None and further not in passed:
            passed.add(further)
            here = further
        root[pk] = here
    roots = {root[pk] for pk in used if pk is not None}
    there = {names.fold(folder): folder for folder in sorted(lying) if "/" not in folder}
    holding: dict[str, str] = {}
    for pk in sorted(roots):
        has = kept.get(f"index:{pk}")
        plain = has or names.folder(named[pk], lowercase=lowercase)
        same = there.get(names.fold(plain))
        if plain not in lying and same is not None:
            has = same
        if has is not None:
            holding[named[pk]] = has
    given = names.folders([named[pk] for pk in sorted(roots)], holding, lowercase=lowercase)
    folders: dict[int | None, str] = {pk: given[named[pk]] for pk in sorted(roots)}
    folders[None] = names.folder(None, lowercase=lowercase)
    return Projects(root, named, folders)


def _near(notes: list[Told], rows: NoteQuerySet, model: str) -> list[list[tuple[int, float]]]:
    """The neighbours of each note by the vectors of the model in force."""
    vectors, at = _vectors(notes, rows, model)
    near: list[list[tuple[int, float]]] = [[] for _ in notes]
    if not at:
        return near
    floor = min(threshold(model, "linked"), threshold(model, "clustered"))
    for row, others in zip(
        at, related.nearest(vectors, None, k=NEIGHBOURS_MAX, floor=floor), strict=True
    ):
        near[row] = [(at[other], cosine) for other, cosine in others]
    return near


def _vectors(
    notes: list[Told], rows: NoteQuerySet, model: str
) -> tuple[NDArray[np.float32], list[int]]:
    """The vectors there are, and which note each is of."""
    where, parameters = condition(rows.filter(embedding_model=model, embedding__isnull=False))
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT id, halfvec_send(embedding) FROM memory_note WHERE {where}", parameters
        )
        sent = dict(cursor.fetchall())
    at = [row for row, one in enumerate(notes) if one.id in sent]
    # Each: two 16-bit numbers (how many, nothing), then as many halves; all of them big-endian.
    whole = b"".join(sent[notes[row].id] for row in at)
    halves = np.frombuffer(whole, dtype=">f2").reshape(len(at), -1) if at else np.zeros((0, 1))
    return halves[:, 2:].astype(np.float32), at


def _hubs(
    notes: list[Told], near: list[list[tuple[int, float]]], projects: Projects, floor: float
) -> tuple[list[Hub], int]:
    """Clusters within each project, and how many were refused as giants."""
    of = [projects.of(one.project) for one in notes]
    sizes: dict[int | None, int] = defaultdict(int)
    for project in of:
        sizes[project] += 1
    within = [
        [(other, cosine) for other, cosine in others if of[other] == of[row]]
        for row, others in enumerate(near)
    ]
    found = hubs.clusters(
        within,
        size_of_group=[sizes[project] for project in of],
        keys=[str(one.id) for one in notes],
        floor=floor,
    )
    made: list[Hub] = []
    for members, middle in zip(found.members, found.central, strict=True):
        nearness = dict(within[middle])
        rest = sorted(
            (row for row in members if row != middle),
            key=lambda row: (-nearness.get(row, 0.0), row),
        )
        # Notes come oldest first.
        key = f"hub:{notes[min(members)].id}"
        title = notes[middle].title
        told = ((middle, None), *((row, nearness.get(row)) for row in rest))
        made.append(Hub(key, title, of[middle], told))
    return made, len(found.refused)


def borne(
    place: Place, owner: Principal, rows: NoteQuerySet, *, now: datetime
) -> Mapping[UUID, Borne]:
    """Quotes and sources of these notes, in the order in which they were said."""
    edges = Evidence.objects.filter(note__in=rows.values("pk"))
    said = edges.filter(raw_item__in=_quotable(place, owner).values("pk")).order_by(
        "raw_item__occurred_at", "raw_item", "start", "pk"
    )
    found: dict[UUID, Borne] = defaultdict(Borne)
    for note, quote, session, at, role, source, path, url in said.values_list(
        "note", "quote", "raw_item__session", "raw_item__occurred_at", "raw_item__role",
        "raw_item__source", "raw_item__metadata__path", "raw_item__metadata__url",
    ):  # fmt: skip
        _add(
            found[note],
            Quote(quote, session, at, role, source),
            _source(session, path, url, source),
        )
    parents = edges.filter(parent__in=seen(place, owner, now).values("pk")).order_by("parent", "pk")
    for note, quote, title, at in parents.values_list(
        "note", "quote", "parent__title", "parent__valid_from"
    ):
        _add(found[note], Quote(quote, "", at, "note", title), title)
    return found


def _add(one: Borne, quote: Quote, source: str) -> None:
    one.quotes.setdefault(quote)
    if source:
        one.sources.setdefault(source)


def _source(session: str, path: Any, url: Any, source: str) -> str:
    for place in (url, path):
        if isinstance(place, str) and place:
            return place
    return f"session {session}" if session else source


def _pages(
    notes: list[Told], found: list[Hub], projects: Projects, *, lowercase: bool
) -> list[Page]:
    made = [
        Page(
            str(one.id),
            projects.folders[projects.of(one.project)],
            one.title,
            one.id.hex,
            one.created,
        )
        for one in notes
    ]
    for hub in found:
        oldest = notes[min(row for row, _ in hub.members)]
        folder = f"{projects.folders[hub.project]}/_hubs"
        made.append(Page(hub.key, folder, hub.title, oldest.id.hex, oldest.created))
    for project in sorted({projects.of(one.project) for one in notes}, key=index_key):
        folder = projects.folders[project]
        made.append(Page(index_key(project), folder, "", "0", fixed="_index.md"))
    return made


def index_key(project: int | None) -> str:
    """The key of a project's index page."""
    return NOWHERE if project is None else f"index:{project}"
