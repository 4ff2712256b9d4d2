"""/ui/parked/: units that were set aside, why, and what a model said; retry, dismiss.

A door: finds, calls one verb of `review.parked`, renders. Knows nothing about stages.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from django.http import HttpResponse, HttpResponseBase
from django.template.defaultfilters import pluralize
from django.urls import reverse
from django.utils import timezone

from memory import units
from memory.models import Principal
from memory.web.page import HtmxHttpRequest, action, answer, number, page, show
from memory.web.viewer import Viewer
from review import parked as verbs
from review.shown import parked as shown


@page("look")
def parked(request: HtmxHttpRequest, viewer: Viewer) -> HttpResponseBase:
    """The list of what is parked, or of what was dismissed."""
    rows = verbs.rows(_scope(viewer), mates=viewer.mates)
    listed = shown.list_parked(request, rows)
    if listed.export:
        return listed.export
    dismissed = shown.away(request)
    found = shown.described(listed.rows)
    latest = []
    if found and not dismissed:
        # To whoever may retry, what it may retry.
        if viewer.can_operate:
            rows = verbs.rows(viewer.principal, deciding=True, mates=viewer.mates)
        latest = shown.latest(rows)
    own = {claim for _, _, claim in latest} if viewer.can_operate else set()
    told = {
        "title": "Parked",
        "listed": listed,
        "dismissed": dismissed,
        "kinds": shown.kinds(latest),
        "units": found,
        **_row(viewer, found, own),
    }
    return show(request, "review/parked.html", told)


@page("look")
def unit(request: HtmxHttpRequest, viewer: Viewer, pk: int) -> HttpResponse:
    """One parked unit: its source, its failures, and what the model said each time."""
    claim = verbs.find(pk, _scope(viewer))
    whole = number(request.GET.get("reply", ""))
    (one,) = shown.described([claim])
    told = {
        "title": f"Parked unit {pk}",
        "one": one,
        **_row(viewer, [one]),
        "failures": shown.failures(claim, whole=whole),
        "whole": whole,
    }
    return show(request, "review/parked_unit.html", told)


@action("operate")
def release(request: HtmxHttpRequest, viewer: Viewer, pk: int) -> HttpResponse:
    """Let the stage try it again."""
    (one,) = shown.described(verbs.release(pk, **_by(request, viewer)))
    row = _row(viewer, [one])
    told = {"units": [one], "gone": f"{one.stage} will try it again.", **row}
    said = f"{one.stage} will try {one.unit} again."
    return answer(request, "review/_parked.html", told, to=reverse("admin:parked"), said=said)


@action("operate")
def dismiss(request: HtmxHttpRequest, viewer: Viewer, pk: int) -> HttpResponse:
    """Leave it parked and off the list, or (`back`) take that back."""
    back = bool(request.POST.get("back"))
    done = (verbs.bring_back if back else verbs.dismiss)(pk, **_by(request, viewer))
    (one,) = shown.described(done)
    said = f"{one.unit} {'is on the list again' if back else 'stays parked, off the list'}."
    told = {"units": [one], **_row(viewer, [one])}
    return answer(request, "review/_parked.html", told, to=reverse("admin:parked"), said=said)


@action("operate")
def release_all(request: HtmxHttpRequest, viewer: Viewer) -> HttpResponse:
    """Retry all of a kind: first how many that is, then, when that was confirmed, the doing."""
    given = request.POST
    like = number(given.get("like", "")) or 0
    whole_stage = bool(given.get("stage"))
    if given.get("sure"):
        freed = verbs.release_all(like, whole_stage=whole_stage, **_by(request, viewer))
        unit = pluralize(freed.released, " waits,s wait")
        are = pluralize(freed.left, "is,are")
        said = f"{freed.released} unit{unit} again, {freed.left} of the kind {are} still parked."
        return answer(request, "ui/_empty.html", to=reverse("admin:parked"), said=said)
    claim = verbs.find(like, viewer.principal, deciding=True)
    wanted = verbs.like(claim, viewer.principal, whole_stage=whole_stage)
    told = {
        "title": "Retry all of a kind",
        "claim": claim,
        "whole_stage": whole_stage,
        "count": wanted.count(),
        "most": verbs.RELEASED_MAX,
        "some": shown.described(wanted.order_by("parked_at", "pk")[: shown.KINDS_SHOWN_MAX]),
        "reason": given.get("reason", ""),
    }
    return show(request, "review/parked_all.html", told)


def _scope(viewer: Viewer) -> Principal | None:
    """Whose units are listed; None is everybody's."""
    return None if viewer.all_owners else viewer.principal


def _row(
    viewer: Viewer, listed: Sequence[shown.Parked], own: Collection[int] = ()
) -> dict[str, Any]:
    """What every row of the list needs, found once: of these units, which the viewer may settle;
    those of its `own` claims, as is known already."""
    settled = {one.unit for one in listed if one.id in own}
    if viewer.can_operate:
        others = [one.unit for one in listed if one.id not in own]
        settled |= units.decidable(others, viewer.principal, mates=viewer.mates)
    return {"settled": settled}


def _by(request: HtmxHttpRequest, viewer: Viewer) -> dict[str, Any]:
    return {
        "by": viewer.principal,
        "now": timezone.now(),
        "reason": request.POST.get("reason", ""),
    }
