"""Where an agent asks from: its session, its working directory, and the project that follows.

Reads: projects and their rules. Shared by every way of asking.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Exists, OuterRef

from memory.attribution import Registry, attribute
from memory.models import Principal, Project, SearchText
from memory.text.clean import clean_text
from memory.text.private import strip_private
from memory.text.secrets import redact
from recall.coverage import names_of


@dataclass(frozen=True)
class Facts:
    """What a client knows of its folder beyond the path: the repository, by git's own words, and
    the project that its repository says it is of."""

    git_root: str = ""
    git_common_dir: str = ""
    project: str = ""


NO_FACTS = Facts()


@dataclass(frozen=True)
class Where:
    """Session and folder as capture would store them, so that the two find each other again.

    `project` is a name that need not be in the registry; `project_id` is its row, when it is.
    `names` are the terms of the names of projects that the asker has texts of, `ids` all projects
    by name and alias, one that was merged by the id of the one it went into. `family` are the ids
    of all that count as `project_id`.
    """

    session: str = ""
    cwd: str = ""
    project: str | None = None
    project_id: int | None = None
    names: frozenset[str] = frozenset()
    ids: tuple[tuple[str, int], ...] = ()
    family: tuple[int, ...] = ()

    def named(self, project: str) -> int | None:
        """The project of this name or alias; None when there is none."""
        return dict(self.ids).get(project)

    def named_alike(self, project: str | None) -> frozenset[str]:
        """All names of the project of this name, those of projects merged into it as well."""
        if project is None or (pk := self.named(project)) is None:
            return frozenset([project] if project else [])
        return frozenset(name for name, one in self.ids if one == pk)


def where(
    *, principal: Principal, session: str = "", cwd: str = "", facts: Facts = NO_FACTS
) -> Where:
    """Clean what the client said, and name the project by the rules of capture."""
    session, cwd = tidy(session), tidy(cwd)
    # What others call their projects silences no word here: `own` are those with texts of ours.
    texts = SearchText.objects.visible_to(principal).filter(project=OuterRef("pk"), owner=principal)
    known = Project.objects.annotate(own=Exists(texts))
    rows = list(known.values_list("pk", "name", "merged_into", "own"))
    registry = Registry.load((pk, name, into) for pk, name, into, _ in rows)
    read_as = {pk: registry.merged.get(pk, pk) for pk, *_ in rows}
    ids = {name: read_as[pk] for pk, name, *_ in rows}
    aliases = {alias: ids[name] for alias, name in registry.names.items() if name in ids}
    own = {read_as[pk] for pk, *_, has in rows if has}
    name = named_by(registry, cwd, facts)
    project = ids.get(name or "")
    return Where(
        session,
        cwd,
        name,
        project,
        names_of([name for name, project in (aliases | ids).items() if project in own]),
        tuple((aliases | ids).items()),
        tuple(pk for pk, end in read_as.items() if end == project),
    )


def named_by(registry: Registry, cwd: str, facts: Facts = NO_FACTS) -> str | None:
    """The project's name as capture would give it to what is said here."""
    git = {"git_root": tidy(facts.git_root), "git_common_dir": tidy(facts.git_common_dir)}
    return attribute(registry, project=tidy(facts.project), cwd=cwd, metadata=git).name


def tidy(text: str) -> str:
    """A short text as capture would store it: cleaned, without what is private or secret."""
    return redact(strip_private(clean_text(text)[0])[0]).text
