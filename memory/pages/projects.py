"""Projects: the registry, how work came to each, and two that are one.

Shows `memory.shown.projects`, changes by `memory.projects`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from django.http import Http404, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils import timezone

from memory import projects as verbs
from memory.attribution import GLOBAL, family
from memory.models import Act, Episode, Note, Principal, Project, RawItem
from memory.querysets import OwnerQuerySet
from memory.shown import projects as shown
from memory.web.listing import Listed
from memory.web.page import HtmxHttpRequest, action, answer, fragment, number, page, show
from memory.web.viewer import Viewer

#: Acts on a project that its page tells.
ACTS_SHOWN = 10

#: What is folded away, and fetched when it is opened: names to merge with, and acts.
PARTS = ("offered", "acts")

#: What each change needs, and what it says afterwards.
CHANGES = {
    "alias-add": ("operate", "The name holds from the next capture on."),
    "alias-remove": ("operate", "The name is gone."),
    "path-add": ("operate", "The folder holds from the next capture on."),
    "path-remove": ("operate", "The folder is gone."),
    "merge": ("decide", "Merged: every read follows. It can be taken back here."),
    "unmerge": ("decide", "Taken back: the project is one of its own again."),
}


@page("look")
def projects(request: HtmxHttpRequest, viewer: Viewer) -> HttpResponseBase:
    """The registry, by name."""
    listed = shown.list_projects(request)
    if listed.export:
        return listed.export
    latest = shown.lately(viewer.rows(Episode.objects.all()))
    _count(listed, viewer, latest)
    context = {"title": "Projects", "listed": listed, "latest": latest, "registry": shown}
    return show(request, "memory/projects.html", context)


@page("look")
def project(request: HtmxHttpRequest, viewer: Viewer, pk: int) -> HttpResponseBase:
    """One project: names, folders, what it was merged with, and how its episodes came to it; with
    `part` what is folded away, for htmx that alone."""
    one = get_object_or_404(shown.listed(), pk=pk)
    part = request.GET.get("part")
    if request.htmx and part in PARTS:
        return fragment(request, f"memory/_project_{part}.html", _part(part, one, viewer))
    ids = family(pk) if one.merged_into_id is None else [pk]
    listed = shown.list_attributions(request, one, ids, viewer.rows(Episode.objects.all()))
    if listed.export:
        return listed.export
    told = _told(one, ids, viewer)
    if part in PARTS:
        told |= _part(part, one, viewer)
    return show(request, "memory/project.html", {"title": one.name, "listed": listed, **told})


def _part(part: str, one: Project, viewer: Viewer) -> dict[str, Any]:
    if part == "offered":
        return {"offered": shown.offered(one) if viewer.can_decide else []}
    rows = Act.objects.filter(kind="project", reference=str(one.pk)).select_related("principal")
    # As on the list of acts: what somebody did is known, the reason is words of its own.
    acts = [
        (act, act.reason if viewer.all_owners or act.principal == viewer.principal else "")
        for act in rows.order_by("-pk")[:ACTS_SHOWN]
    ]
    return {"acts": acts}


@action("look")
def change(request: HtmxHttpRequest, viewer: Viewer, pk: int, verb: str) -> HttpResponse:
    """Alias, folder, merge, unmerge; each needs its own permission."""
    needed, said = CHANGES.get(verb, ("", ""))
    if not needed or not viewer.may(needed):
        raise Http404
    given = request.POST
    act: dict[str, Any] = {
        "by": viewer.principal,
        "now": timezone.now(),
        "reason": given.get("reason", ""),
    }
    _DO[verb](pk, given, act)
    one = get_object_or_404(shown.listed(), pk=pk)
    context = _told(one, family(pk) if one.merged_into_id is None else [pk], viewer)
    to = reverse("admin:project", args=[pk])
    return answer(request, "memory/_registry.html", context, to=to, said=said)


def _merge(pk: int, given: Mapping[str, str], act: dict[str, Any]) -> None:
    verbs.merge(pk, verbs.find(given.get("into", "").strip()).pk, **act)


_DO: dict[str, Callable[[int, Mapping[str, str], dict[str, Any]], object]] = {
    "alias-add": lambda pk, given, act: verbs.add_alias(pk, given.get("name", ""), **act),
    "alias-remove": lambda pk, given, act: verbs.remove_alias(pk, _id(given), **act),
    "path-add": lambda pk, given, act: verbs.add_path(pk, given.get("folder", ""), **act),
    "path-remove": lambda pk, given, act: verbs.remove_path(pk, _id(given), **act),
    "merge": _merge,
    "unmerge": lambda pk, given, act: verbs.unmerge(pk, **act),
}


def _id(given: Mapping[str, str]) -> int:
    """The id of what is to go; one that is none is the id of nothing."""
    return number(given.get("id", "")) or 0


def _sources(viewer: Viewer, now: datetime) -> dict[str, OwnerQuerySet]:
    return {
        "notes": viewer.rows(Note.objects.all()).live(now),
        "episodes": viewer.rows(Episode.objects.all()),
    }


def _count(listed: Listed, viewer: Viewer, latest: shown.Lately) -> None:
    """Give each row of the page its names and numbers, in three queries for all of them."""
    rows = listed.rows
    sources = _sources(viewer, timezone.now())
    ids = [one.pk for one in rows]
    counted = shown.counts([[pk] for pk in ids], sources, most=shown.LISTED_ROWS_MAX)
    names = shown.names(ids)
    learned: dict[int, Any] = {}
    for centroid in shown.centroids(ids, _owner(viewer)).select_related(None):
        learned.setdefault(centroid.project_id, centroid)
    for one, numbers in zip(rows, counted, strict=True):
        one.counted = numbers
        one.names = names[one.pk]
        one.last = latest.last.get(one.pk)
        one.centroid = learned.get(one.pk)


def _owner(viewer: Viewer) -> Principal | None:
    return None if viewer.all_owners else viewer.principal


def _told(one: Project, ids: list[int], viewer: Viewer) -> dict[str, Any]:
    """What the page tells of a project beside the audit."""
    sources = _sources(viewer, timezone.now()) | {"raw items": viewer.rows(RawItem.objects.all())}
    merged = Project.objects.filter(pk__in=ids).exclude(pk=one.pk).order_by("name")
    return {
        "one": one,
        "counted": shown.counts([ids], sources, most=shown.COUNTED_ROWS_MAX)[0],
        "centroids": shown.centroids(ids, _owner(viewer)),
        "merged": merged if len(ids) > 1 else [],
        "names": shown.names([one.pk])[one.pk],
        "is_global": one.name == GLOBAL,
    }
