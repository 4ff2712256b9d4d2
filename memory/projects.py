"""The registry of projects as people keep it: other names, folders, and two that are one.

Writes: project (merged_into only), project_alias, path_rule. Audits: act, in the same transaction.
Verify: no chain of merges is a ring, what is merged already is merged into nothing more, and
`global` is no part of one. Knows nothing about how work is attributed: that reads the registry
(`memory.attribution`).
"""

from __future__ import annotations

import re
from datetime import datetime

from django.db import transaction

from memory.acts import record_act
from memory.attribution import GLOBAL, NAME_CHARACTERS_MAX, slashed
from memory.errors import Conflict, NotFound, RefusedError
from memory.models import PathRule, Principal, Project, ProjectAlias
from memory.text.clean import clean_text
from memory.text.secrets import redact

#: Characters of a folder.
# Why: what Linux allows a path; a longer one is none.
FOLDER_CHARACTERS_MAX = 4_096


def find(name: str) -> Project:
    """The project of this name or alias; raises NotFound."""
    if (found := _found(name)) is None:
        raise NotFound(f"no project {name}: see `manage.py project list`")
    return found


def enter(name: str) -> Project:
    """The project of this name or alias, entered when it is new."""
    return _found(name) or Project.objects.get_or_create(name=_name(name))[0]


def _found(name: str) -> Project | None:
    # Asked for as it would be kept: no name holds what Postgres cannot.
    name = clean_text(name)[0]
    own = Project.objects.filter(name=name).first()
    return own or Project.objects.filter(aliases__name=name).first()


def add_alias(project: int, name: str, *, by: Principal, now: datetime, reason: str = "") -> None:
    """The project is called `name`, too, from the next capture on.

    Raises NotFound, RefusedError for no name at all and for a secret, Conflict for one that is
    another's.
    """
    name = _name(name)
    if name == GLOBAL:
        raise RefusedError(f"{GLOBAL} is a project of its own and no other name of one")
    with transaction.atomic():
        row = _locked(project)[project]
        other = Project.objects.filter(name=name).exclude(merged_into=row).first()
        if other is not None:
            raise Conflict(f"{name} is a project itself: merge the two")
        _give(ProjectAlias, row, name=name)
        _note(by, "alias", project, now, reason, name=name)


def remove_alias(
    project: int, alias: int, *, by: Principal, now: datetime, reason: str = ""
) -> None:
    """The project goes by this name no more; what had it stays. Raises NotFound."""
    with transaction.atomic():
        row = ProjectAlias.objects.select_for_update().filter(pk=alias, project=project).first()
        if row is None:
            raise NotFound("the project has no such alias")
        row.delete()
        _note(by, "unalias", project, now, reason, name=row.name)


def add_path(project: int, folder: str, *, by: Principal, now: datetime, reason: str = "") -> None:
    """Work below this whole path belongs to the project, from the next capture on.

    Raises NotFound, RefusedError for no folder, one that holds all work or a secret, Conflict for
    another's.
    """
    prefix = whole(folder)
    with transaction.atomic():
        row = _locked(project)[project]
        _give(PathRule, row, prefix=prefix)
        _note(by, "path", project, now, reason, prefix=prefix)


def remove_path(project: int, rule: int, *, by: Principal, now: datetime, reason: str = "") -> None:
    """The folder says nothing about the project any more; what was named by it stays. Raises
    NotFound."""
    with transaction.atomic():
        row = PathRule.objects.select_for_update().filter(pk=rule, project=project).first()
        if row is None:
            raise NotFound("the project has no such folder")
        row.delete()
        _note(by, "unpath", project, now, reason, prefix=row.prefix)


def merge(source: int, target: int, *, by: Principal, now: datetime, reason: str = "") -> Project:
    """`source` is read as `target` from now on, by its names, folders, episodes and notes; the
    latter, as it stands then.

    No row moves: each keeps the project that it was given, and `unmerge` takes it back. Raises
    NotFound, RefusedError for `global` and for a project with itself, Conflict when either was
    merged already.
    """
    if source == target:
        raise RefusedError("a project is merged with another one")
    with transaction.atomic():
        # Both locked: with no edge into what is merged, the last edge of a ring is never written.
        rows = _locked(source, target)
        gone, kept = rows[source], rows[target]
        if GLOBAL in (gone.name, kept.name):
            raise RefusedError(
                f"{GLOBAL} is merged with nothing: what holds there holds everywhere"
            )
        for one in (gone, kept):
            if one.merged_into_id is not None:
                raise Conflict(f"{one} is merged into {one.merged_into} already")
        Project.objects.filter(pk=source).update(merged_into=target)
        _note(by, "merge", source, now, reason, into=target)
    return kept


def unmerge(source: int, *, by: Principal, now: datetime, reason: str = "") -> Project:
    """Take a merge back: the project is one of its own again. Raises NotFound, and Conflict when it
    is merged into nothing or its name was given away since."""
    with transaction.atomic():
        # Where its name may have gone: locked with it, as `add_alias` does, in one order.
        into = Project.objects.filter(pk=source).values_list("merged_into", flat=True).first()
        row = _locked(source, *([into] if into else []))[source]
        if row.merged_into_id is None:
            raise Conflict(f"{row} is merged into nothing")
        given = ProjectAlias.objects.filter(name=row.name).exclude(project=row)
        if (alias := given.select_related("project").first()) is not None:
            raise Conflict(f"{row} is another name of {alias.project}: take that away first")
        Project.objects.filter(pk=source).update(merged_into=None)
        _note(by, "unmerge", source, now, reason, into=row.merged_into_id)
    row.merged_into_id = None
    return row


def whole(folder: str) -> str:
    """A folder as cwds are compared with it. Raises RefusedError for none, a relative one and one
    that holds a secret."""
    place = slashed(clean_text(folder)[0])
    if place in ("", "/"):
        raise RefusedError("name a folder: not all work is of one project")
    if len(place) > FOLDER_CHARACTERS_MAX:
        raise RefusedError(f"a folder has {FOLDER_CHARACTERS_MAX} characters at most")
    if not re.match(r"^(?:/|[A-Za-z]:)", place):
        raise RefusedError("name the whole path, from the root on")
    return _open(place)


def _locked(*projects: int) -> dict[int, Project]:
    """These rows, locked in one order; raises NotFound when one is missing."""
    rows = Project.objects.filter(pk__in=projects).order_by("pk")
    found = {row.pk: row for row in rows.select_for_update(no_key=True)}
    for pk in projects:
        if pk not in found:
            raise NotFound(f"no project {pk}")
    return found


def _give(model: type[ProjectAlias | PathRule], project: Project, **key: str) -> None:
    """An alias or a folder for the project; what another one has is not taken from it unseen."""
    row, _ = model._base_manager.get_or_create(**key, defaults={"project": project})
    if row.project_id != project.pk:
        raise Conflict(f"{row}: it belongs to that project already")


def _name(text: str) -> str:
    name = " ".join(clean_text(text)[0].split())
    if not name:
        raise RefusedError("a project has a name")
    if len(name) > NAME_CHARACTERS_MAX:
        raise RefusedError(f"a name has {NAME_CHARACTERS_MAX} characters at most")
    return _open(name)


def _open(text: str) -> str:
    """The same text. Raises RefusedError when it holds a secret: names and folders stand on every
    page, and in acts, which nobody can take back."""
    if found := redact(text).counts:
        raise RefusedError(f"it holds a secret ({', '.join(sorted(found))}), which is kept nowhere")
    return text


def _note(
    by: Principal, verb: str, project: int, now: datetime, reason: str, **detail: object
) -> None:
    record_act(by, verb, "project", project, now=now, reason=reason, detail=detail)
