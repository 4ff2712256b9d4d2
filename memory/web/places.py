"""The filter by project of every list: which projects it offers, and what is of one of them.

Reads: project. A project that was merged is not offered: what is of it is found under the one that
it was merged into. Knows nothing about what is listed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db import connection
from django.db.models import Q

from memory.attribution import family
from memory.text.seen import visible
from memory.web.listing import Choice
from memory.web.page import number

#: Projects offered, by name.
# Why: a select that is longer is no help to anybody; the list of projects leads to the others.
PROJECTS_MAX = 200


def projects_offered() -> list[tuple[int, str]]:
    """Ids and names of the projects that are offered."""
    # Why SQL: every list asks this, and a queryset takes longer to put together.
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id, name FROM memory_project WHERE merged_into_id IS NULL"
            " ORDER BY name LIMIT %s",
            [PROJECTS_MAX],
        )
        found: list[tuple[int, str]] = cursor.fetchall()
    return found


@dataclass(frozen=True)
class ByProject(Choice):
    """The filter. `columns`: where a row says its project; of several, any of them."""

    columns: tuple[str, ...] = ("project",)

    def narrow(self, rows: Any, given: str) -> Any:
        """The rows of this project and of what was merged with it. A link may name one that is not
        offered: it was merged since, or others came before it."""
        if given == "none":
            return rows.filter(self._of_none())
        if (pk := number(given)) is None:
            return rows.none()
        same = family(pk)
        wanted = Q()
        for column in self.columns:
            wanted |= Q(**{f"{column}__in": same})
        return rows.filter(wanted)

    def _of_none(self) -> Q:
        wanted = Q()
        for column in self.columns:
            # A row without what has a project is not one whose project is none.
            holder = column.rpartition("__")[0]
            there = Q(**{f"{holder}__isnull": False}) if holder else Q()
            wanted |= there & Q(**{column: None})
        return wanted


def project_choice(*columns: str) -> ByProject:
    """The filter with the projects that stand in the registry; without columns by `project`."""
    named = [(str(pk), visible(name)) for pk, name in projects_offered()]
    values = [("none", "no project"), *named]
    return ByProject("project", "Project", values, columns=columns or ("project",))
