"""What every page shares: who may see it, what an error looks like, how an action answers.

A page is a function of (request, viewer, ...) under `page`, an action one under `action`. Both live
below the admin site, which asks for the login. Knows nothing about any verb.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

from django.contrib import admin, messages
from django.db import DataError, InterfaceError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe
from django_htmx.http import trigger_client_event
from django_htmx.middleware import HtmxDetails

from memory.acts import through
from memory.doors import RETRY_AFTER_SECONDS
from memory.errors import ArgusError, Conflict, Forbidden, InfraError, NotFound
from memory.text.seen import visible
from memory.web.viewer import Viewer, viewer_of


class HtmxHttpRequest(HttpRequest):
    htmx: HtmxDetails


View = Callable[..., HttpResponseBase]

#: Digits of a number that a page is given, at most.
# Why: whatever has so many fits a bigint, and an id has no more.
DIGITS_MAX = 18

#: Status and heading of what a verb may say instead of doing it.
PROBLEMS: tuple[tuple[type[Exception], int, str], ...] = (
    (Forbidden, 403, "Not allowed"),
    (Conflict, 409, "Somebody was faster"),
    (InfraError, 503, "Something Argus needs is away"),
    (OperationalError, 503, "The database does not answer"),
    (InterfaceError, 503, "The database does not answer"),
    # What no column holds: a form is read by its verb, and this is the net below.
    (DataError, 422, "Not done: something in the form cannot be stored"),
    (ArgusError, 422, "Not done"),
)


def page(permission: str) -> Callable[[View], View]:
    """A page (GET): staff without this permission is told that there is none."""

    def decorate(view: View) -> View:
        return require_safe(_served(permission, view))

    return decorate


def action(permission: str) -> Callable[[View], View]:
    """An action (POST): as `page`; whatever it does is on the list of acts as done by a page."""

    def decorate(view: View) -> View:
        return require_POST(_served(permission, view))

    return decorate


def _served(permission: str, view: View) -> View:
    @wraps(view)
    def served(request: HtmxHttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        with through("page"):
            viewer = viewer_of(request, now=timezone.now())
            if not viewer.may(permission):
                raise Http404
            request.viewer = viewer  # type: ignore[attr-defined]  # Read by `show`.
            try:
                return view(request, viewer, *args, **kwargs)
            except NotFound as error:
                raise Http404(str(error)) from error
            except (ArgusError, DataError, OperationalError, InterfaceError) as error:
                return problem(request, error)

    served.permission = permission  # type: ignore[attr-defined]  # Read by the tests of all pages.
    return served


def show(
    request: HttpRequest,
    template: str,
    context: Mapping[str, Any] | None = None,
    *,
    status: int = 200,
) -> HttpResponse:
    """Render a whole page: the site's frame around what the template says. `title` is its h1."""
    viewer: Viewer | None = getattr(request, "viewer", None)
    framed = {**admin.site.each_context(request), "viewer": viewer, **(context or {})}
    return render(request, template, framed, status=status)


def fragment(
    request: HttpRequest,
    template: str,
    context: Mapping[str, Any] | None = None,
    *,
    status: int = 200,
) -> HttpResponse:
    """Render a piece of a page, for htmx, without the frame."""
    viewer: Viewer | None = getattr(request, "viewer", None)
    return render(request, template, {"viewer": viewer, **(context or {})}, status=status)


def answer(
    request: HttpRequest,
    template: str,
    context: Mapping[str, Any] | None = None,
    *,
    to: str,
    said: str = "",
) -> HttpResponse:
    """What an action answers: htmx gets the piece that replaces the old one, and hears `said`; a
    plain browser goes `to` an address, where it reads `said`."""
    said = visible(said)
    if not getattr(request, "htmx", False):
        if said:
            messages.success(request, said)
        return redirect(to)
    response = fragment(request, template, context)
    return trigger_client_event(response, "said", {"text": said}) if said else response


def number(text: str, *, digits: int = DIGITS_MAX) -> int | None:
    """The number that somebody sent in an address or a form; None for what is none: other signs
    than 0 to 9, or more of them than `digits`."""
    sound = text.isascii() and text.isdigit() and len(text) <= digits
    return int(text) if sound else None


def problem(request: HttpRequest, error: Exception) -> HttpResponse:
    """Why something was not done: as a piece for htmx, which puts it where people look, else as a
    page."""
    status, heading = next((code, told) for kind, code, told in PROBLEMS if isinstance(error, kind))
    # The text of a database's error names hosts and roles.
    detail = str(error) if isinstance(error, ArgusError) else ""
    told = {"status": status, "title": heading, "detail": detail}
    if getattr(request, "htmx", False):
        response = fragment(request, "ui/_problem.html", told, status=status)
    else:
        response = show(request, "ui/problem.html", told, status=status)
    if status == 503:
        wait = getattr(error, "retry_after", None) or RETRY_AFTER_SECONDS
        response["Retry-After"] = str(math.ceil(wait))
    return response
