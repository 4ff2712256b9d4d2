"""The admin site at /ui/: our pages first, then what the theme's admin has.

Knows which app has pages, and nothing about what they show.
"""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.urls import URLPattern, URLResolver, path
from django.utils.safestring import mark_safe
from unfold.sites import UnfoldAdminSite

from argus.navigation import pages_for, ways

#: Apps that have pages, in the order in which an address is looked for.
APPS = ("argus", "memory", "review", "recall")

#: What the theme brings for pages of its own: none of ours has a chart that a script draws, a part
#: that scrolls by one, or rows to drag.
# Why: a browser reads and runs it on every page, a tenth of all that it does there.
UNUSED = re.compile(
    r"<(?:script|link)\b[^>]*/(?:chart|simplebar|alpine\.(?:anchor|sort|resize))\.[^>]*>(?:</script>)?"
)

#: What of a page's skeleton is the page's own, in the order in which it comes.
HOLES = ("title", "head", "base")


# The theme has no types.
class ArgusSite(UnfoldAdminSite):  # type: ignore[misc]
    """One site for whoever is staff; what each may see and do, the pages themselves ask."""

    def __init__(self, name: str = "admin") -> None:
        super().__init__(name)
        self._framed: dict[str, str] = {}

    def get_urls(self) -> list[URLPattern | URLResolver]:
        # Why first: `/ui/review/` is Django's index of an app as well.
        return [*self.pages(), *super().get_urls()]

    def pages(self) -> list[URLPattern]:
        """The addresses of our pages, each behind the login."""
        return [
            path(str(route.pattern), self.admin_view(route.callback), name=route.name)
            for app in APPS
            for route in import_module(f"{app}.pages.urls").urlpatterns
        ]

    def each_context(self, request: HttpRequest) -> dict[str, Any]:
        """What the frame of a page reads. Of our pages only that: the theme's own ask for more."""
        if not hasattr(request, "viewer"):
            return {**super().each_context(request), "frame": self._frame(request)}
        beside = {"navigation": pages_for(request), "ways": ways()}
        return {"frame": self._frame(request), **beside}

    def _frame(self, request: HttpRequest) -> dict[str, str]:
        """The theme's skeleton around HOLES, as `ui/frame.html` puts it together again: no request
        changes it, and its colours alone take as long to write as a page of ours."""
        if not self._framed:
            whole = super().each_context(request)
            text = UNUSED.sub("", render_to_string("ui/_skeleton.html", whole, request))
            parts = re.split("|".join(f"<!--{hole}-->" for hole in HOLES), text)
            assert len(parts) == len(HOLES) + 1
            # Why unescaped: it is the theme's own text.
            self._framed = dict(zip((*HOLES, "end"), map(mark_safe, parts), strict=True))
        return self._framed

    def app_index(
        self, request: HttpRequest, app_label: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Django's own page of one app: the apps that have ours have no other."""
        if app_label in APPS:
            raise Http404
        answer: HttpResponse = super().app_index(request, app_label, extra_context)
        return answer
