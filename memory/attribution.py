"""Which project a raw item or an episode belongs to, by what rule, and how sure that is.

Order: explicit name > path rule > git root or worktree > last folder of cwd > nearest centroid.
Pure but for `Registry.load`, `merges`, `family` and `project_rows`. Never guesses `global`: that is
explicit only.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from posixpath import join, normpath
from typing import Any

from django.db import connection
from django.db.models import Q

from memory.llm.vectors import cosine
from memory.models import PathRule, Project, ProjectAlias
from memory.querysets import FAMILY

GLOBAL = "global"

#: Characters of a project's name.
# Why: it is a folder's name as a rule, and 255 bytes is all that a file system gives one.
NAME_CHARACTERS_MAX = 200

#: How sure each rule is, 0 to 1; strongest first.
# Why: an order, not a probability; a reader sorts by it and sees at a glance what was a guess.
# Calibrate: share of `Attribution` rows per method that a person moved to another project.
CONFIDENCES = {"explicit": 1.0, "path": 0.95, "git": 0.9, "basename": 0.6}

#: Folders inside a repository where tools put worktrees; what stands before them is the repository.
WORKTREE_FOLDERS = re.compile(r"^(.+?)/(?:\.claude/worktrees|\.worktrees|\.git/worktrees)/[^/]+")

#: A person's home, the folder of all homes, the root of a disk or of a share is no project.
HOMES = re.compile(
    r"^(?:/|[A-Za-z]:/?|//[^/]+(?:/[^/]+)?|/root|/mnt/[a-z]"
    r"|(?:/home|/Users|(?:[A-Za-z]:|/[a-z]|/mnt/[a-z])/Users|//wsl[^/]*/[^/]+/home)(?:/[^/]+)?)$"
)


@dataclass(frozen=True)
class Attributed:
    """A project's name (None: unattributed), the rule that named it and how sure that is."""

    name: str | None = None
    method: str = ""
    confidence: float = 0.0


@dataclass(frozen=True)
class Registry:
    """Aliases and path rules as they stand: names to project names, prefixes to project names, and
    ids of merged projects to those they are read as. The name of a merged project is one more name
    of that one."""

    names: Mapping[str, str] = field(default_factory=dict)
    prefixes: Mapping[str, str] = field(default_factory=dict)
    merged: Mapping[int, int] = field(default_factory=dict)

    @classmethod
    def load(cls, projects: Iterable[tuple[int, str, int | None]] | None = None) -> Registry:
        """The registry as it stands; `projects` are all of (id, name, id of the one it was merged
        into), for whoever has read them already."""
        if projects is None:
            some = Project.objects.filter(Q(merged_into__isnull=False) | Q(merged__isnull=False))
            projects = some.values_list("pk", "name", "merged_into")
        rows = list(projects)
        merged = followed({pk: into for pk, _, into in rows if into})
        told = {pk: name for pk, name, _ in rows}
        gone = {told[pk]: told[end] for pk, end in merged.items()}
        aliases = ProjectAlias.objects.values_list("name", "project__name")
        rules = PathRule.objects.values_list("prefix", "project__name")
        return cls(
            gone | {alias: gone.get(name, name) for alias, name in aliases},
            {slashed(prefix): gone.get(name, name) for prefix, name in rules},
            merged,
        )

    def canonical(self, project: int | None) -> int | None:
        """The id of the project that this one was merged into, its own when it was not."""
        return None if project is None else self.merged.get(project, project)


def followed(into: Mapping[int, int]) -> dict[int, int]:
    """Pure: where each step ends, from project to the one it was merged into; in a ring, which no
    verb makes, before it closes."""
    ends = {}
    for start in into:
        seen, end = {start}, into[start]
        while end in into and into[end] not in seen | {end}:
            seen.add(end)
            end = into[end]
        ends[start] = end
    return ends


def merges() -> dict[int, int]:
    """The projects that were merged, each with the one that it is read as."""
    rows = Project.objects.filter(merged_into__isnull=False).values_list("pk", "merged_into")
    return followed({pk: into for pk, into in rows if into})


def family(project: int | None) -> list[int]:
    """The ids of a project and of all that it was merged with, for `project__in`: every read of
    what is of a project goes through this. Nothing for None."""
    if project is None:
        return []
    with connection.cursor() as cursor:
        cursor.execute(f"WITH RECURSIVE {FAMILY} SELECT id FROM family ORDER BY id", [project])
        return [pk for (pk,) in cursor.fetchall()]


def attribute(
    registry: Registry,
    *,
    project: str = "",
    cwd: str = "",
    metadata: Mapping[str, Any] | None = None,
) -> Attributed:
    """Name the project of one raw item from what its client said about it."""
    if name := project.strip():
        return _named(registry, name, "explicit")
    path = slashed(cwd)
    for prefix in sorted(registry.prefixes, key=len, reverse=True):
        if path == prefix or path.startswith(prefix + "/"):
            return Attributed(registry.prefixes[prefix], "path", CONFIDENCES["path"])
    if name := repository(path, metadata or {}):
        return _named(registry, name, "git")
    if name := last_folder(path):
        return _named(registry, name, "basename")
    return Attributed()


def _named(registry: Registry, name: str, method: str) -> Attributed:
    resolved = registry.names.get(name, name)
    if len(resolved) > NAME_CHARACTERS_MAX:
        return Attributed()
    if resolved == GLOBAL and method != "explicit":
        return Attributed()
    return Attributed(resolved, method, CONFIDENCES[method])


def repository(path: str, metadata: Mapping[str, Any]) -> str:
    """The repository's name from git facts that the client sent, or from a worktree's path."""
    for key in ("git_common_dir", "git_root"):
        if value := metadata.get(key):
            # `git rev-parse --git-common-dir` answers relative to cwd from inside the main tree.
            place = slashed(str(value))
            if not re.match(r"^(?:/|[A-Za-z]:)", place):
                place = normpath(join(path, place))
            place = re.sub(r"/(?:\.git|\.bare)(?:/worktrees/[^/]+)?$", "", place)
            return re.sub(r"\.git$", "", last_folder(place))
    if match := WORKTREE_FOLDERS.match(path):
        return last_folder(match.group(1))
    if url := metadata.get("repo"):
        return re.sub(r"\.git$", "", re.split(r"[/:]", str(url).rstrip("/"))[-1])
    return ""


def slashed(path: str) -> str:
    """One spelling of a path: forward slashes, no trailing slash; Windows and UNC paths too."""
    path = path.strip()
    if re.match(r"^(?:[A-Za-z]:|\\\\)", path):
        path = path.replace("\\", "/")
    return path.rstrip("/") or ("/" if path.startswith("/") else "")


def last_folder(path: str) -> str:
    """Last part of a path, "" for a root, a home and an empty path."""
    return "" if not path or HOMES.match(path) else path.rsplit("/", 1)[-1]


@dataclass(frozen=True)
class Nearest:
    """The best centroid for a mean vector, and the one behind it."""

    name: str
    score: float
    runner_up: str = ""
    runner_up_score: float | None = None


def nearest_centroid(
    vector: Sequence[float], centroids: Mapping[str, Sequence[float]]
) -> Nearest | None:
    """Rank centroids by cosine to `vector`; None when there are none."""
    ranked = sorted(((cosine(vector, c), name) for name, c in centroids.items()), reverse=True)
    if not ranked:
        return None
    best_score, best = ranked[0]
    second_score, second = ranked[1] if len(ranked) > 1 else (None, "")
    return Nearest(best, best_score, second, second_score)


def majority(projects: Iterable[tuple[str | None, str]]) -> tuple[Attributed, dict[str, int]]:
    """The project of most turns, from (name, method) pairs, and the count of each.

    A stronger rule wins over a larger count: one explicit turn names the episode.
    """
    pairs = [(name, method) for name, method in projects if name]
    counts = Counter(name for name, _ in pairs)
    if not counts:
        return Attributed(), {}
    strongest = max(CONFIDENCES.get(method, 0.0) for _, method in pairs)
    strong = Counter(name for name, method in pairs if CONFIDENCES.get(method, 0.0) == strongest)
    name = min(strong, key=lambda one: (-strong[one], one))
    method = next(m for n, m in pairs if n == name and CONFIDENCES.get(m, 0.0) == strongest)
    share = counts[name] / sum(counts.values())
    return Attributed(name, method, round(strongest * share, 4)), dict(counts)


def project_rows(named: Iterable[Attributed]) -> dict[str, int]:
    """Ids of these projects by name; those seen for the first time are entered in the registry."""
    methods: dict[str, str] = {}
    for one in named:
        if one.name:
            methods.setdefault(one.name, one.method)
    known = dict(Project.objects.filter(name__in=methods).values_list("name", "id"))
    if fresh := sorted(set(methods) - set(known)):
        Project.objects.bulk_create(
            [Project(name=name, origin=methods[name]) for name in fresh], ignore_conflicts=True
        )
        known |= dict(Project.objects.filter(name__in=fresh).values_list("name", "id"))
    return known
