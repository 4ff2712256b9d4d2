"""Runs: begin one in the background, see how it goes, stop it between two units."""

from __future__ import annotations

from django.http import HttpResponse
from django.urls import reverse
from django.utils import timezone

from memory import passes, runs
from memory.models import Principal
from memory.web.page import HtmxHttpRequest, action, answer, fragment, page, show
from memory.web.viewer import Viewer


@page("look")
def run(request: HtmxHttpRequest, viewer: Viewer, pk: int) -> HttpResponse:
    """A run: as a page, and for htmx the piece that asks for itself until the run has ended."""
    look = passes.look(pk, now=timezone.now(), reader=_reader(viewer))
    # On its own page its name leads nowhere.
    alone = not request.htmx or request.htmx.current_url_abs_path == request.path
    told = {"look": look, "alone": alone}
    if request.htmx:
        return fragment(request, "memory/_run.html", told)
    return show(request, "memory/run.html", {"title": f"Run {pk}", **told})


@action("operate")
def start(request: HtmxHttpRequest, viewer: Viewer, stage: str) -> HttpResponse:
    """Put a stage, or all of them, into the queue."""
    begun = passes.start(stage, by=viewer.principal, now=timezone.now())
    return _answer(request, viewer, begun.pk, "Put into the queue.")


@action("operate")
def cancel(request: HtmxHttpRequest, viewer: Viewer, pk: int) -> HttpResponse:
    """Ask a run to stop: any operator, whoever asked for it; it works on what is everybody's."""
    told = runs.cancel(pk, by=viewer.principal, now=timezone.now())
    said = "Cancelled." if told.status == "cancelled" else "It stops before its next unit."
    return _answer(request, viewer, pk, said)


def _reader(viewer: Viewer) -> Principal | None:
    """Whose runs are told with the words of their errors: an operator is told of all."""
    return None if viewer.can_operate else viewer.principal


def _answer(request: HtmxHttpRequest, viewer: Viewer, pk: int, said: str) -> HttpResponse:
    look = passes.look(pk, now=timezone.now(), reader=_reader(viewer))
    to = reverse("admin:run", args=[pk])
    return answer(request, "memory/_run.html", {"look": look}, to=to, said=said)
