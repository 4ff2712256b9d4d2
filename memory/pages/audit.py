"""The audit: who did what to which thing, when, why and by which door."""

from __future__ import annotations

from django.http import HttpResponseBase

from memory.shown.acts import COLUMNS, filters, told, visible_acts
from memory.web.listing import list_rows
from memory.web.page import HtmxHttpRequest, page, show
from memory.web.viewer import Viewer


@page("look")
def audit(request: HtmxHttpRequest, viewer: Viewer) -> HttpResponseBase:
    """The viewer's own acts, and others' on its keys and its roles; everybody's with all owners
    on. What was done to a note or a verdict stands on the page of that."""
    listed = list_rows(
        request,
        visible_acts(viewer.principal, everyones=viewer.all_owners),
        order=("-pk",),
        filters=filters(everyones=viewer.all_owners),
        columns=COLUMNS,
        title="audit",
    )
    if listed.export:
        return listed.export
    context = {"title": "Who did what", "listed": listed, "acts": [told(a) for a in listed.rows]}
    return show(request, "memory/audit.html", context)
