"""Two questions that a supervisor asks: is the process there, and can it work?"""

from __future__ import annotations

import sys
from functools import cache
from http import HTTPStatus

from django.conf import settings
from django.db import Error, InterfaceError, OperationalError, connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.template.loader import get_template
from django.views.decorators.http import require_safe

from argus.policy import THEMED

#: When to ask again.
RETRY_SECONDS = 5


@require_safe
def healthz(request: HttpRequest) -> JsonResponse:
    """200 as long as the process answers; asks nobody else."""
    return JsonResponse({"status": "ok"})


@require_safe
def readyz(request: HttpRequest) -> JsonResponse:
    """200 when the database answers and is migrated; else 503 with what is amiss."""
    failing = _failing()
    if not failing:
        return JsonResponse({"status": "ok"})
    problem = {
        "type": "about:blank",
        "title": "Not ready",
        "status": 503,
        "code": "not_ready",
        "detail": " ".join(failing.values()),
        "failing": failing,
    }
    return JsonResponse(
        problem,
        status=503,
        content_type="application/problem+json",
        headers={"Retry-After": str(RETRY_SECONDS)},
    )


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """404 for a path that nobody serves, or that is not for whoever asks."""
    if request.path.startswith(THEMED):
        told = {"title": "There is no such page", "detail": "Or it is not for you to see."}
        if getattr(request, "htmx", False):
            return render(request, "ui/_problem.html", told, status=404)
        return render(request, "ui/404.html", told, status=404)
    return _problem(404, "not_found", "Nothing is served at this path.")


def broken(request: HttpRequest) -> HttpResponse:
    """500 for a fault of ours; what it was stands in the log, never in the answer."""
    away = isinstance(sys.exc_info()[1], OperationalError | InterfaceError)
    if request.path.startswith(THEMED):
        # Why without the request: what broke may be what the frame of a page asks for.
        told = {"away": away, "retry_seconds": RETRY_SECONDS}
        response = HttpResponse(
            get_template("ui/500.html").render(told), status=503 if away else 500
        )
        if away:
            response["Retry-After"] = str(RETRY_SECONDS)
        return response
    return _problem(500, "broken", "Argus made a mistake; the log says which.")


def locked_out(request: HttpRequest, *args: object, **kwargs: object) -> HttpResponse:
    """429 for a login that was tried too often."""
    wait = settings.LOCKED_OUT_MINUTES
    told = {"title": "Too many attempts", "detail": f"Try again in {wait} minutes."}
    response = render(request, "ui/404.html", told, status=429)
    response["Retry-After"] = str(wait * 60)
    return response


def _problem(status: int, code: str, detail: str) -> JsonResponse:
    body = {"type": f"about:blank#{code}", "title": HTTPStatus(status).phrase, "status": status}
    return JsonResponse(
        {**body, "code": code, "detail": detail},
        status=status,
        content_type="application/problem+json",
    )


def _failing() -> dict[str, str]:
    try:
        waiting = unapplied()
    except Error:
        # Why not the error's text: it names hosts and roles, and anyone may ask here.
        return {"database": "The database does not answer."}
    if waiting:
        return {"migrations": f"{len(waiting)} migrations are not applied."}
    return {}


def unapplied() -> list[str]:
    """Migrations that the code has and the database has not, as "app.name", in their order."""
    applied = set(MigrationRecorder(connection).applied_migrations())
    return [
        ".".join(key)
        for key, replaces in _migrations().items()
        # A squashed one is there as soon as all that it stands for are.
        if key not in applied and not (replaces and replaces <= applied)
    ]


@cache
def _migrations() -> dict[tuple[str, str], set[tuple[str, str]]]:
    """Every migration of the code in its order, and which ones it stands for."""
    # Why kept: a supervisor asks every few seconds, and the files do not change under a process.
    loader = MigrationLoader(None)
    plans = (loader.graph.forwards_plan(leaf) for leaf in loader.graph.leaf_nodes())
    keys = dict.fromkeys(key for plan in plans for key in plan)
    return {key: set(loader.get_migration(*key).replaces) for key in keys}
