"""Where an agent asks from: its session, its working directory, and the project that follows.

Reads: projects and their rules. Shared by every way of asking.
"""

from __future__ import annotations

from dataclasses import dataclass

from memory.attribution import Registry, attribute
from memory.lexical import lexemes
from memory.models import Project
from memory.text.clean import clean_text
from memory.text.secrets import redact


@dataclass(frozen=True)
class Where:
    """Session and folder as capture would store them, so that the two find each other again.

    `project` is a name that need not be in the registry; `project_id` is its row, when it is.
    `names` are the terms of all projects' names, `ids` the projects by name and alias.
    """

    session: str = ""
    cwd: str = ""
    project: str | None = None
    project_id: int | None = None
    names: frozenset[str] = frozenset()
    ids: tuple[tuple[str, int], ...] = ()

    def named(self, project: str) -> int | None:
        """The project of this name or alias; None when there is none."""
        return dict(self.ids).get(project)


def where(*, session: str = "", cwd: str = "") -> Where:
    """Clean what the client said, and name the project by the rules of capture."""
    session, cwd = (redact(clean_text(text)[0]).text for text in (session, cwd))
    registry = Registry.load()
    ids = dict(Project.objects.values_list("name", "pk"))
    aliases = {alias: ids[name] for alias, name in registry.names.items() if name in ids}
    name = attribute(registry, cwd=cwd).name
    return Where(
        session,
        cwd,
        name,
        ids.get(name or ""),
        frozenset(term for one in (*ids, *aliases) for term in lexemes(one)),
        tuple((aliases | ids).items()),
    )
