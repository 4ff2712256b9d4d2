"""/ui/tasks/: what was promised and asked for, where it stands, and why; confirm, deny, reopen.

A door: finds, calls one verb of `review.tasks`, renders. Knows nothing about what a status is.
"""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse, HttpResponseBase
from django.urls import reverse
from django.utils import timezone

from memory.models import TaskItem
from memory.models.task import OPENINGS
from memory.tracking.status import STATUSES
from memory.web.listing import Choice, Column, Day, Filter, Listed, Words, list_rows
from memory.web.page import HtmxHttpRequest, action, answer, number, page, show
from memory.web.places import project_choice
from memory.web.viewer import Viewer
from review import tasks as verbs

COLUMNS = (
    Column("task", lambda row: row.pk),
    Column("status", verbs.status_of),
    Column("title", lambda row: row.title),
    Column("opening", lambda row: row.opening),
    Column("project", lambda row: row.project.name if row.project else None),
    Column("source", lambda row: row.source),
    Column("session", lambda row: row.session),
    Column("opened_at", lambda row: row.opened_at),
    Column("last_event_at", lambda row: row.last_at),
    Column("quote", lambda row: row.quote),
    Column("raw_item", lambda row: row.raw_item_id),
)


#: How the tag of each status is coloured.
TAGS = {"open": "info", "claimed": "warn", "verified": "ok", "disputed": "bad"}

assert TAGS.keys() == set(STATUSES)


@page("look")
def tasks(request: HtmxHttpRequest, viewer: Viewer) -> HttpResponseBase:
    """The tasks, latest first."""
    listed = _listed(request, viewer)
    if listed.export:
        return listed.export
    rows = [(row, verbs.status_of(row)) for row in listed.rows]
    context = {"title": "Tasks", "listed": listed, "rows": rows, "tags": TAGS}
    return show(request, "review/tasks.html", context)


@page("look")
def task(request: HtmxHttpRequest, viewer: Viewer, pk: int) -> HttpResponse:
    """One task: what opened it, what happened to it, and which of it decides."""
    told = verbs.find(viewer, pk)
    return show(request, "review/task.html", {"title": f"Task {pk}", "told": told, "tags": TAGS})


@action("decide")
def decide(request: HtmxHttpRequest, viewer: Viewer, pk: int, verb: str) -> HttpResponse:
    """Confirm, deny or reopen one task."""
    given = request.POST
    after = verbs.decide(
        pk,
        verb,
        by=viewer.principal,
        now=timezone.now(),
        reason=given.get("reason", ""),
        seen=number(given.get("seen", "")),
    )
    return answer(
        request,
        "review/_task.html",
        {"told": verbs.find(viewer, pk), "tags": TAGS} if request.htmx else {},
        to=reverse("admin:task", args=[pk]),
        said=f"Task {pk} is now {after}.",
    )


def _listed(request: HtmxHttpRequest, viewer: Viewer) -> Listed:
    return list_rows(
        request,
        verbs.told_rows(viewer.rows(TaskItem.objects.all())),
        order=("-opened_at", "-pk"),
        filters=_filters(),
        columns=COLUMNS,
        title="tasks",
    )


def _filters() -> list[Filter]:
    return [
        Words("q", "Search", _search),
        Choice("status", "Status", [(one, one) for one in STATUSES], verbs.of_status),
        Choice("opening", "Opened by", [(one, one) for one in OPENINGS]),
        project_choice(),
        Words("session", "Session", lambda rows, text: rows.filter(session=text)),
        Day("since", "Since", "opened_at__gte"),
        Day("until", "Until", "opened_at__lt"),
    ]


def _search(rows: Any, text: str) -> Any:
    if (pk := number(text)) is not None:
        return rows.filter(pk=pk)
    return rows.filter(title__icontains=text)
