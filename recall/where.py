"""Where an agent asks from: its session, its working directory, and the project that follows.

Reads: projects and their rules. Shared by every way of asking.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Exists, OuterRef

from memory.attribution import Registry, attribute
from memory.models import Principal, Project, SearchText
from memory.text.clean import clean_text
from memory.text.secrets import redact
from recall.coverage import names_of


@dataclass(frozen=True)
class Where:
    """Session and folder as capture would store them, so that the two find each other again.

    `project` is a name that need not be in the registry; `project_id` is its row, when it is.
    `names` are the terms of the names of projects that the asker has texts of, `ids` all projects
    by name and alias.
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


def where(*, principal: Principal, session: str = "", cwd: str = "") -> Where:
    """Clean what the client said, and name the project by the rules of capture."""
    session, cwd = (redact(clean_text(text)[0]).text for text in (session, cwd))
    registry = Registry.load()
    # What others call their projects silences no word here: `own` are those with texts of ours.
    texts = SearchText.objects.visible_to(principal).filter(project=OuterRef("pk"), owner=principal)
    rows = Project.objects.annotate(own=Exists(texts)).values_list("name", "pk", "own")
    ids = {name: pk for name, pk, _ in rows}
    aliases = {alias: ids[name] for alias, name in registry.names.items() if name in ids}
    own = {pk for _, pk, has in rows if has}
    name = attribute(registry, cwd=cwd).name
    return Where(
        session,
        cwd,
        name,
        ids.get(name or ""),
        names_of([name for name, project in (aliases | ids).items() if project in own]),
        tuple((aliases | ids).items()),
    )
