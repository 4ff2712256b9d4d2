"""Two questions that a supervisor asks: is the process there, and can it work?"""

from __future__ import annotations

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
