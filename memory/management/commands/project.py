"""`manage.py project`: the registry: names, aliases and the folders that belong to a project."""

from __future__ import annotations

import os
import re
from typing import Any

from django.core.management.base import CommandError, CommandParser

from memory.attribution import slashed
from memory.management.base import EXIT_USAGE, ArgusCommand
from memory.models import PathRule, Project, ProjectAlias


class Command(ArgusCommand):
    help = "List projects, or give one another name (alias) or a folder (path)."

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

    def handle(self, *args: Any, **options: Any) -> None:
        prefix = whole(options["folder"]) if options["action"] == "path" else ""
        if options["action"] != "list":
            project, _ = Project.objects.get_or_create(name=options["project"])
            if options["action"] == "alias":
                free(ProjectAlias, project, name=options["name"])
                ProjectAlias.objects.update_or_create(
                    name=options["name"], defaults={"project": project}
                )
            else:
                free(PathRule, project, prefix=prefix)
                PathRule.objects.update_or_create(prefix=prefix, defaults={"project": project})
        rows = [
            {
                "project": project.name,
                "origin": project.origin,
                "aliases": [alias.name for alias in project.aliases.all()],
                "paths": [rule.prefix for rule in project.paths.all()],
            }
            for project in Project.objects.prefetch_related("aliases", "paths").order_by("name")
        ]
        lines = [
            f"{row['project']:<20} {row['origin']:<9} {', '.join([*row['aliases'], *row['paths']])}"
            for row in rows
        ]
        self.say({"projects": rows}, as_json=options["json"], line="\n".join(lines) or "none yet")


def free(model: type[ProjectAlias | PathRule], project: Project, **key: str) -> None:
    """Refuse to take an alias or a folder from another project unseen."""
    taken = model._base_manager.filter(**key).exclude(project=project).first()
    if taken:
        raise CommandError(f"{taken}: it belongs to that project already", returncode=EXIT_USAGE)


def whole(folder: str) -> str:
    """The folder as cwds are compared with it. A relative one is meant from here."""
    place = slashed(folder)
    if place and not re.match(r"^(?:/|[A-Za-z]:)", place):
        place = slashed(os.path.abspath(place))
    if place in ("", "/"):
        raise CommandError("name a folder: not all work is of one project", returncode=EXIT_USAGE)
    return place
