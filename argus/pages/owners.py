"""The switch by which a superuser looks at the rows of all owners, and back."""

from __future__ import annotations

from django.http import Http404, HttpResponse
from django.shortcuts import redirect

from memory.web.page import HtmxHttpRequest, action
from memory.web.viewer import ALL_OWNERS, Viewer


@action("look")
def switch(request: HtmxHttpRequest, viewer: Viewer) -> HttpResponse:
    """Turn it on or off for this session; each page that is looked at with it on is an act."""
    if not viewer.can_see_all:
        raise Http404
    request.session[ALL_OWNERS] = request.POST.get("all") == "on"
    return redirect("admin:index")
