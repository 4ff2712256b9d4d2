"""Two questions that a supervisor asks: is the process there, and can it work?"""

from __future__ import annotations

from http import HTTPStatus

from django.db import Error, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, JsonResponse
from django.views.decorators.http import require_safe

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


def not_found(request: HttpRequest, exception: Exception) -> JsonResponse:
    """404 for a path that nobody serves."""
    return _problem(404, "not_found", "Nothing is served at this path.")


def broken(request: HttpRequest) -> JsonResponse:
    """500 for a fault of ours; what it was stands in the log, never in the answer."""
    return _problem(500, "broken", "Argus made a mistake; the log says which.")


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
    """Migrations that the code has and the database has not, as "app.name"."""
    executor = MigrationExecutor(connection)
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    return [f"{migration.app_label}.{migration.name}" for migration, _ in plan]
