"""The board at /ui/, the first steps that stand in its place while there is nothing yet, and the
line that installs the hooks."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from django.utils import timezone

from argus import board as boards
from argus.first import has_no_note, is_empty, steps
from argus.hookdoors import install_line as install_command
from memory import passes
from memory.web.page import HtmxHttpRequest, fragment, page, show
from memory.web.viewer import Viewer


@page("look")
def board(request: HtmxHttpRequest, viewer: Viewer) -> HttpResponse:
    """The board; the first steps to whoever has nothing yet, unless `?board=1` asks for it."""
    fresh = not viewer.all_owners and has_no_note(viewer.principal)
    if fresh and "board" not in request.GET and is_empty(viewer.principal):
        told = {"title": "Welcome to Argus", **_first(viewer)}
        return show(request, "argus/welcome.html", told)
    reader = None if viewer.can_operate else viewer.principal
    looks = passes.running(now=timezone.now(), reader=reader)
    context = {"title": "Is it working?", "looks": looks, **_board(viewer)}
    if fresh:
        context |= _first(viewer)
    return show(request, "argus/board.html", context)


@page("look")
def stages(request: HtmxHttpRequest, viewer: Viewer) -> HttpResponse:
    """The stages again, for whoever leaves the board open."""
    return fragment(request, "argus/_stages.html", _board(viewer))


@page("look")
def first(request: HtmxHttpRequest, viewer: Viewer) -> HttpResponse:
    """The first steps as they are now; nothing where they stand as the asker has `seen` them, so
    that a line somebody is about to copy stays where it is."""
    told = _first(viewer)
    if request.GET.get("seen") == str(told["steps"].current):
        return HttpResponse(status=204)
    return fragment(request, "argus/_first.html", told)


@page("look")
def install_line(request: HtmxHttpRequest, viewer: Viewer) -> HttpResponse:
    """The line that installs the hooks: a piece of a page for htmx, else a page."""
    context = {"title": "Install the hooks", "line": install_command()}
    if request.htmx:
        return fragment(request, "argus/_install.html", context)
    return show(request, "argus/install.html", context)


def _board(viewer: Viewer) -> dict[str, Any]:
    owner = None if viewer.all_owners else viewer.principal
    told = boards.board(owner, timezone.now(), errors=viewer.can_operate)
    return {"board": told}


def _first(viewer: Viewer) -> dict[str, Any]:
    return {"steps": steps(viewer.principal), "line": install_command()}
