"""How much waits for a person, beside the pages where it waits; asked for after a page is there."""

from __future__ import annotations

from django.http import HttpResponse

from memory.web.page import HtmxHttpRequest, fragment, page
from memory.web.viewer import Viewer
from review.health import health


@page("look")
def waiting(request: HtmxHttpRequest, viewer: Viewer) -> HttpResponse:
    """The numbers, each as the piece of the navigation that it replaces."""
    held = health(None if viewer.all_owners else viewer.principal)
    told = {"review": held.holds and held.holds_told,
            "rejections": held.undecided and held.undecided_told}  # fmt: skip
    return fragment(request, "ui/_waiting.html", {"told": told})
