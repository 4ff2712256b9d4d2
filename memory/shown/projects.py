"""What the registry's pages tell of projects: how much there is of each, and how work came to them.

Reads: project, note, episode, raw_item, attribution, centroid. Everything is counted to a bound, so
that no page grows with the tables. Which rows count is the caller's word: querysets that name for
whom they read. Knows nothing about requests or what may be changed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from django.db import connection
from django.db.models import Q, QuerySet
from django.http import HttpRequest

from memory.attribution import CONFIDENCES, GLOBAL
from memory.lately import counted_to
from memory.models import Attribution, Centroid, Principal, Project
from memory.querysets import OwnerQuerySet, condition
from memory.web.listing import Choice, Column, Day, Filter, Listed, Words, list_rows

#: Up to how many rows of a project each column of the list counts.
# Why: thirty projects of a page cost at most so many rows each; that there are more is all that a
# reader of a list asks. A project's own page counts further.
# Calibrate: p50 of the list at thirty projects that are all beyond it; a few milliseconds.
LISTED_ROWS_MAX = 50

#: The same on a project's own page.
COUNTED_ROWS_MAX = 1_000

#: Latest episodes that are asked when a project was worked on last, and how they came to theirs.
# Why: months of one person; read from an index, in the order of time.
LATEST_EPISODES = 1_000

#: Projects offered by name when two are merged.
OFFERED_MAX = 300

#: The rules by which an episode comes to a project.
METHODS = (*CONFIDENCES, "centroid")

#: Columns of an attribution that are exported.
AUDITED = (
    "id", "episode_id", "project", "method", "confidence", "cwd", "cwd_mismatch", "turns", "model",
    "score", "threshold", "runner_up", "runner_up_score", "centroid_episodes",
    "centroid_age_seconds", "created_at",
)  # fmt: skip


@dataclass(frozen=True)
class Method:
    """How often episodes of late came to a project by this rule, how sure it was on the average (0
    to 1), and how many disagree with their folder."""

    name: str
    episodes: int
    confidence: float
    mismatches: int


@dataclass(frozen=True)
class Lately:
    """The latest episodes: when the last of each project ended, and by which rules they came."""

    last: dict[int, datetime]
    methods: tuple[Method, ...]


@dataclass(frozen=True)
class Names:
    """What else a project is called, and its folders, as (id, name) each."""

    aliases: list[tuple[int, str]] = field(default_factory=list)
    folders: list[tuple[int, str]] = field(default_factory=list)


#: Columns of the registry that are exported.
COLUMNS = (
    Column("id", lambda one: one.pk),
    Column("name", lambda one: one.name),
    Column("origin", lambda one: one.origin),
    Column("merged_into", lambda one: one.merged_into and one.merged_into.name),
    Column("aliases", lambda one: [alias.name for alias in one.aliases.all()]),
    Column("folders", lambda one: [rule.prefix for rule in one.paths.all()]),
    Column("created_at", lambda one: one.created_at),
)


def list_projects(request: HttpRequest) -> Listed:
    """A page of the registry, by name."""
    rows = listed()
    if request.GET.get("format"):
        rows = rows.prefetch_related("aliases", "paths")
    filters: list[Filter] = [
        Words("q", "Name, alias or folder", _named),
        Choice("state", "State", [("own", "its own"), ("merged", "merged")], _in_state),
        Choice("origin", "First named by", [(name, name) for name in CONFIDENCES]),
        Day("since", "Entered since", "created_at__gte"),
    ]
    return list_rows(
        request, rows, order=("name",), filters=filters, columns=COLUMNS, title="projects"
    )


def list_attributions(
    request: HttpRequest, project: Project, ids: Sequence[int], episodes: OwnerQuerySet
) -> Listed:
    """A page of how these episodes came to the projects of these ids, which `project` is with those
    merged into it; latest first."""
    filters: list[Filter] = [
        Choice("method", "Rule", [(name, name) for name in METHODS]),
        Choice("mismatch", "Folder", [("yes", "disagrees"), ("no", "agrees")], _mismatched),
        Day("since", "Since", "created_at__gte"),
        Day("until", "Until", "created_at__lt"),
    ]
    return list_rows(
        request,
        attributions(ids, episodes),
        order=("-pk",),
        filters=filters,
        columns=[Column(name, _read(name)) for name in AUDITED],
        title=f"attribution of {project.name}",
    )


def _named(rows: Any, text: str) -> Any:
    found = Q(name__icontains=text)
    found |= Q(pk__in=Project.objects.filter(aliases__name__icontains=text).values("pk"))
    return rows.filter(
        found | Q(pk__in=Project.objects.filter(paths__prefix__icontains=text).values("pk"))
    )


def _in_state(rows: Any, state: str) -> Any:
    return rows.filter(merged_into__isnull=state == "own")


def _mismatched(rows: Any, word: str) -> Any:
    return rows.filter(cwd_mismatch=word == "yes")


def _read(name: str) -> Callable[[Any], Any]:
    return lambda one: one.project.name if name == "project" else getattr(one, name)


def listed() -> QuerySet[Project]:
    """The projects of the list, each with the one that it was merged into."""
    return Project.objects.select_related("merged_into")


_NAMES = """
SELECT project_id, 'aliases', id, name FROM memory_projectalias WHERE project_id = ANY(%(ids)s)
UNION ALL
SELECT project_id, 'folders', id, prefix FROM memory_pathrule WHERE project_id = ANY(%(ids)s)
ORDER BY 2, 3
"""


def names(projects: Sequence[int]) -> dict[int, Names]:
    """Other names and folders of these projects, in one query for all of them."""
    found = {pk: Names() for pk in projects}
    with connection.cursor() as cursor:
        cursor.execute(_NAMES, {"ids": list(projects)})
        for project, kind, pk, name in cursor.fetchall():
            getattr(found[project], kind).append((pk, name))
    return found


def counts(
    families: Sequence[Sequence[int]], sources: Mapping[str, OwnerQuerySet], *, most: int
) -> list[dict[str, str]]:
    """Of each family of project ids, how many rows there are of each source, as "41" or "50+"."""
    if not families:
        return []
    columns, params = [], []
    for rows in sources.values():
        where, given = condition(rows)
        table = rows.model._meta.db_table
        columns.append(
            f"(SELECT count(*) FROM (SELECT FROM unnest(string_to_array(f.ids, ',')::bigint[]) kin"
            f" CROSS JOIN LATERAL (SELECT * FROM {table} t WHERE t.project_id = kin OFFSET 0)"
            f" {table} WHERE {where} LIMIT {most + 1}) counted)"
        )
        params += given
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {', '.join(columns)} FROM unnest(%s::text[]) WITH ORDINALITY f (ids, place)"
            " ORDER BY place",
            [*params, [",".join(map(str, ids)) for ids in families]],
        )
        found = cursor.fetchall()
    return [
        dict(zip(sources, [counted_to(number, most) for number in row], strict=True))
        for row in found
    ]


_LATELY = """
WITH latest AS (
    SELECT id, project_id, ended_at FROM memory_episode WHERE {where}
    ORDER BY started_at DESC, id DESC LIMIT %s
)
SELECT 'last', project_id::text, extract(epoch FROM max(ended_at))::float8, count(*), 0
FROM latest WHERE project_id IS NOT NULL GROUP BY project_id
UNION ALL
SELECT 'method', a.method, avg(a.confidence), count(*),
    count(*) FILTER (WHERE a.cwd_mismatch)
FROM latest JOIN memory_attribution a ON a.episode_id = latest.id GROUP BY a.method
"""


def lately(episodes: OwnerQuerySet) -> Lately:
    """What the latest of these episodes say of projects; see LATEST_EPISODES."""
    where, given = condition(episodes)
    last: dict[int, datetime] = {}
    methods = []
    with connection.cursor() as cursor:
        cursor.execute(_LATELY.format(where=where), [*given, LATEST_EPISODES])
        for kind, name, number, many, odd in cursor.fetchall():
            if kind == "last":
                last[int(name)] = datetime.fromtimestamp(number, UTC)
            else:
                methods.append(Method(name or "none", many, number, odd))
    return Lately(last, tuple(sorted(methods, key=lambda one: -one.episodes)))


def centroids(projects: Sequence[int], owner: Principal | None) -> QuerySet[Centroid]:
    """What unattributed work of this owner (None: of everybody) is compared with; no vectors."""
    rows = Centroid.objects.filter(project__in=projects).select_related("project", "owner")
    if owner is not None:
        rows = rows.filter(owner=owner)
    return rows.defer("vector").order_by("project", "-updated_at")


def attributions(projects: Sequence[int], episodes: OwnerQuerySet) -> QuerySet[Attribution]:
    """How these episodes got these projects."""
    rows = Attribution.objects.filter(project__in=projects, episode__in=episodes)
    return rows.select_related("project")


def offered(project: Project) -> list[str]:
    """Names of projects that this one can be merged into."""
    rows = Project.objects.filter(merged_into=None).exclude(pk=project.pk).exclude(name=GLOBAL)
    return list(rows.order_by("name").values_list("name", flat=True)[:OFFERED_MAX])
