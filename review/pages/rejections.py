"""/ui/rejections/: what the gate refused, and what a person decides about it.

A door: finds, calls one verb of `review.rejections`, renders. Knows nothing about how a note is
made of a candidate.
"""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse, HttpResponseBase
from django.urls import reverse
from django.utils import timezone

from memory.errors import NotFound
from memory.models import GateRejection, RejectedFact
from memory.web.page import HtmxHttpRequest, action, answer, number, page, show
from memory.web.viewer import Viewer
from review import rejections as verbs
from review.grounding import Words
from review.shown import rejections as shown
from review.shown.rejected_facts import wordless_facts
from review.shown.rejection import Opened, opened


@page("look")
def rejections(request: HtmxHttpRequest, viewer: Viewer) -> HttpResponseBase:
    """The list: what waits for a decision, latest first, or another shelf."""
    rows = viewer.rows(GateRejection.objects.all())
    lately = shown.lately(rows, now=timezone.now())
    listed = shown.list_refusals(request, rows, lately.models)
    if listed.export:
        return listed.export
    shelf = shown.shelf_of(request)
    # On the first page alone, and not where something else is looked for.
    first = shelf == "forbid" and not (listed.newer or listed.filtered)
    told = {
        "title": "Rejections",
        "listed": listed,
        "lately": lately,
        "days": shown.COUNTED_DAYS,
        "shelf": shelf,
        "shelves": shown.SHELVES,
        "refusals": shown.refusals(listed.rows),
        "facts": wordless_facts(viewer.rows(RejectedFact.objects.all())) if first else None,
        "deciding": viewer.can_decide,
    }
    return show(request, "review/rejections.html", told)


@page("look")
def rejection(request: HtmxHttpRequest, viewer: Viewer, pk: int) -> HttpResponse:
    """One refusal, with the text that it was made from."""
    told = {"title": f"Rejection {pk}", "opened": _opened(viewer, pk)}
    return show(request, "review/rejection.html", told)


@action("decide")
def decide(request: HtmxHttpRequest, viewer: Viewer, pk: int, verb: str) -> HttpResponse:
    """Accept, confirm, forbid or undo."""
    if verb not in verbs.VERBS:
        raise NotFound(f"nothing is called {verb}")
    given = request.POST
    more: dict[str, Any] = {}
    told: dict[str, Any]
    if verb == "accept":
        item = number(given.get("item", "")) or 0
        more["words"] = Words(given.get("quote", ""), item, given.get("title", ""))
    verbs.VERBS[verb](
        pk,
        by=viewer.principal,
        now=timezone.now(),
        reason=given.get("reason", ""),
        **more,
    )
    to = reverse("admin:rejection", args=[pk])
    said = f"Rejection {pk} {'waits again' if verb == 'undo' else f'is {verbs.PAST[verb]}'}."
    if verb == "accept":
        said += " Its note can be found by its words now, by its meaning after the next run."
    if not request.htmx:
        return answer(request, "", to=to, said=said)
    if given.get("at") == "page":
        told = {"opened": _opened(viewer, pk)}
        return answer(request, "review/_rejection_opened.html", told, to=to, said=said)
    told = {"refusals": shown.refusals([_found(viewer, pk)]), "deciding": viewer.can_decide}
    return answer(request, "review/_rejection.html", told, to=to, said=said)


@action("decide")
def lift(request: HtmxHttpRequest, viewer: Viewer, pk: int) -> HttpResponse:
    """Let a rejected fact be learned again whose words are gone."""
    verbs.lift(pk, by=viewer.principal, now=timezone.now(), reason=request.POST.get("reason", ""))
    to = f"{reverse('admin:rejections')}?shelf=forbid"
    said = f"Rejected fact {pk} may be learned again."
    return answer(request, "review/_rejected_fact_lifted.html", to=to, said=said)


def _opened(viewer: Viewer, pk: int) -> Opened:
    return opened(_found(viewer, pk))


def _found(viewer: Viewer, pk: int) -> GateRejection:
    rows = shown.decided(viewer.rows(GateRejection.objects.all()))
    row: GateRejection | None = rows.filter(pk=pk).first()
    if row is None:
        raise NotFound(f"no rejection {pk}")
    return row
