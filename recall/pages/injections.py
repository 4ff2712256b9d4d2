"""/ui/injections/: every recall, one recall with its numbers, and the floors that decided.

A door: finds, calls one verb of `recall.shown` or `recall.feedback`, renders.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.http import HttpResponse, HttpResponseBase, QueryDict
from django.urls import reverse
from django.utils import timezone

from memory.errors import RefusedError
from memory.llm.choice import embedder
from memory.models import Injection
from memory.web.page import HtmxHttpRequest, action, answer, fragment, number, page, show
from memory.web.viewer import Viewer
from recall.adopting import set_again, set_floors
from recall.calibration import history, in_force
from recall.feedback import give_feedback
from recall.shown.floors import sliders
from recall.shown.histogram import histograms
from recall.shown.hits import titles
from recall.shown.injections import OUTCOMES, list_injections, tell, tell_hit
from recall.trial import MODES, Trial, try_floors
from recall.whatif import Change

#: Adoptions that are listed.
ADOPTIONS_SHOWN_MAX = 20

#: Hits named of those that would have come or gone; the rest is a number.
CHANGES_SHOWN_MAX = 10

#: What can be said of a note, in the order of the buttons.
VERDICTS = (
    ("useful", "Useful"),
    ("wrong", "Wrong"),
    ("outdated", "Outdated"),
    ("never", "Never again"),
)


@page("look")
def injections(request: HtmxHttpRequest, viewer: Viewer) -> HttpResponseBase:
    """Every recall, latest first."""
    listed = list_injections(request, viewer)
    if listed.export:
        return listed.export
    context = {"title": "Injections", "listed": listed, "outcomes": OUTCOMES}
    return show(request, "recall/injections.html", context)


@page("look")
def injection(request: HtmxHttpRequest, viewer: Viewer, pk: int) -> HttpResponse:
    """One recall: what was asked, offered, dropped below which floor, and what went out."""
    told = tell(pk, viewer, whole=bool(request.GET.get("all")))
    context = {
        "title": f"Injection {pk}", "told": told, "verdicts": VERDICTS, "outcomes": OUTCOMES,
    }  # fmt: skip
    return show(request, "recall/injection.html", context)


@action("look")
def feedback(request: HtmxHttpRequest, viewer: Viewer, pk: int) -> HttpResponse:
    """Say something of a note that this recall weighed; it counts for who says it alone."""
    given = request.POST
    note = _uuid(given.get("note", ""))
    said = give_feedback(
        note,
        given.get("verdict", ""),
        principal=viewer.principal,
        now=timezone.now(),
        project=given.get("project") or None,
        injection=pk,
        reason=given.get("reason", ""),
    )
    row, hit = tell_hit(pk, note, viewer)
    return answer(
        request,
        "recall/_words.html",
        {"hit": hit, "row": row, "verdicts": VERDICTS},
        to=reverse("admin:injection", args=[pk]),
        said="Taken back." if said.verdict == "withdrawn" else f"Noted: {said.verdict}.",
    )


@page("look")
def floors(request: HtmxHttpRequest, viewer: Viewer) -> HttpResponse:
    """The scores of past hits with the floors among them, and what others would have done."""
    of = request.GET.get("of", "")
    trial = try_floors(
        _given(request.GET),
        rows=viewer.rows(Injection.objects.all()),
        principal=viewer.principal,
        modes=of,
    )
    context = _whatif(trial, viewer) | {"of": of if of in MODES else "prompts"}
    if request.htmx:
        return fragment(request, "recall/_whatif.html", context)
    rows = history(trial.model, limit=ADOPTIONS_SHOWN_MAX)
    context |= {"title": "Floors of recall", "adoptions": rows}
    return show(request, "recall/calibration.html", context)


@action("decide")
def save_floors(request: HtmxHttpRequest, viewer: Viewer) -> HttpResponse:
    """Put the floors that were tried, or those of an earlier adoption, into force."""
    given = request.POST
    how: dict[str, Any] = {
        "instead_of": _id(given.get("instead_of", "")),
        "principal": viewer.principal,
        "reason": given.get("reason", ""),
        "now": timezone.now(),
    }
    if again := given.get("again"):
        row = set_again(None if again == "shipped" else _id(again), **how)
    else:
        row = set_floors(_given(given), **how)
    said = f"Floors {row.pk} are in force: the next recall obeys them."
    rows = history(embedder().name, limit=ADOPTIONS_SHOWN_MAX)
    context = {"adoptions": rows, "calibration": in_force(row.embedder).calibration}
    return answer(request, "recall/_adoptions.html", context, to=reverse("admin:floors"), said=said)


def _whatif(trial: Trial, viewer: Viewer) -> dict[str, Any]:
    """What the page and its fragment share: the trial, its pictures, and what is named."""
    added, lost = (some[:CHANGES_SHOWN_MAX] for some in (trial.whatif.added, trial.whatif.lost))
    named = titles(((one.source, one.key) for one in (*added, *lost)), viewer)
    return {
        "trial": trial,
        "sliders": sliders(trial),
        "calibration": trial.calibration,
        "plots": histograms(trial.rows, now=trial.now, then=trial.then),
        "changes": [
            (word, len(whole), [_named(one, named) for one in some])
            for word, whole, some in (
                ("Would come", trial.whatif.added, added),
                ("Would go", trial.whatif.lost, lost),
            )
        ],
    }


def _named(change: Change, named: dict[tuple[str, str], str]) -> tuple[Change, str]:
    return change, named.get((change.source, change.key), "")


def _given(given: QueryDict) -> dict[str, str]:
    """The floors among what a form sent, by name."""
    return {name: value for name, value in given.items() if isinstance(value, str)}


def _id(text: str) -> int | None:
    """An id of a form; nothing means none. Raises RefusedError for what is no number."""
    if not text:
        return None
    if (found := number(text)) is None:
        raise RefusedError(f"{text[:40]!r} is no id")
    return found


def _uuid(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise RefusedError(f"{text[:40]!r} is no note's id") from None
