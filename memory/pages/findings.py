"""Findings: what verify and reconcile found, with a way to each thing."""

from __future__ import annotations

from django.http import HttpResponseBase

from memory import findings as books
from memory.shown.findings import COLUMNS, filters, told, visible_findings
from memory.web.listing import list_rows
from memory.web.page import HtmxHttpRequest, page, show
from memory.web.viewer import Viewer


@page("look")
def findings(request: HtmxHttpRequest, viewer: Viewer) -> HttpResponseBase:
    """What was found of the viewer's things and of the house; everybody's with all owners on."""
    listed = list_rows(
        request,
        visible_findings(viewer.principal, everyones=viewer.all_owners),
        order=("-pk",),
        filters=filters(),
        columns=COLUMNS,
        title="findings",
    )
    if listed.export:
        return listed.export
    last = {stage: books.last(stage) for stage in books.STAGES}
    context = {
        "title": "Findings",
        "listed": listed,
        "findings": [told(one) for one in listed.rows],
        "narrowed": any(one.given for one in listed.filters),
        "last": last,
        # What is told as a sum is everybody's; the rows are the viewer's and the house's.
        "others": not viewer.all_owners and any(one and one.total for one in last.values()),
    }
    return show(request, "memory/findings.html", context)
