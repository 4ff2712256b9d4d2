"""`manage.py project`: the registry: names, aliases, folders, and projects that are one."""

from __future__ import annotations

import os
import re
from typing import Any

from django.core.management.base import CommandParser
from django.db import transaction
from django.utils import timezone

from memory import projects
from memory.access import principal
from memory.attribution import slashed
from memory.errors import RefusedError
from memory.management.base import EXIT_USAGE, ArgusCommand, plain_errors
from memory.models import Project
from memory.text.seen import one_line


class Command(ArgusCommand):
    help = "List projects, give one another name or a folder, merge two and take that back."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        action = self.actions(parser)
        action("list", help="every project with its aliases and folders")
        alias = action("alias", help="PROJECT is also called NAME")
        alias.add_argument("project")
        alias.add_argument("name")
        folder = action("path", help="work below FOLDER belongs to PROJECT")
        folder.add_argument("project")
        folder.add_argument("folder")
        merge = action("merge", help="PROJECT is read as INTO from now on; no row moves")
        merge.add_argument("project")
        merge.add_argument("into")
        merge.add_argument("--reason", default="")
        unmerge = action("unmerge", help="PROJECT is one of its own again")
        unmerge.add_argument("project")
        unmerge.add_argument("--reason", default="")

    def handle(self, *args: Any, **options: Any) -> None:
        with plain_errors(EXIT_USAGE):
            if options["action"] != "list":
                with transaction.atomic():
                    change(options)
        rows = [
            {
                "project": project.name,
                "origin": project.origin,
                "aliases": [alias.name for alias in project.aliases.all()],
                "paths": [rule.prefix for rule in project.paths.all()],
                "merged_into": project.merged_into.name if project.merged_into else None,
            }
            for project in Project.objects.select_related("merged_into")
            .prefetch_related("aliases", "paths")
            .order_by("name")
        ]
        lines = [line(row) for row in rows]
        self.say({"projects": rows}, as_json=options["json"], line="\n".join(lines) or "none yet")


def change(options: dict[str, Any]) -> None:
    """Carry out what was asked for."""
    act: dict[str, Any] = {"by": principal(), "now": timezone.now()}
    if options["action"] == "alias":
        projects.add_alias(projects.enter(options["project"]).pk, options["name"], **act)
    elif options["action"] == "path":
        # Looked at before the project is entered: what is refused leaves nothing behind.
        folder = projects.whole(here(options["folder"]))
        projects.add_path(projects.enter(options["project"]).pk, folder, **act)
    elif options["action"] == "merge":
        source, target = projects.find(options["project"]), projects.find(options["into"])
        projects.merge(source.pk, target.pk, reason=options["reason"], **act)
    else:
        source = projects.find(options["project"])
        projects.unmerge(source.pk, reason=options["reason"], **act)


def line(row: dict[str, Any]) -> str:
    into = [f"merged into {row['merged_into']}"] if row["merged_into"] else []
    told = ", ".join([*into, *row["aliases"], *row["paths"]])
    return f"{one_line(row['project']):<20} {row['origin']:<9} {one_line(told)}"


def here(folder: str) -> str:
    """A relative folder as it is meant from where the command runs."""
    place = slashed(folder)
    if not place:
        raise RefusedError("name a folder: not all work is of one project")
    return place if re.match(r"^(?:/|[A-Za-z]:)", place) else slashed(os.path.abspath(place))
