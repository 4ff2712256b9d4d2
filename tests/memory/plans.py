"""What Postgres would do for a statement, read by tests that nothing is gone through from end to
end."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any


def plan_of(cursor: Any, statement: str, params: Any) -> dict[str, Any]:
    """The topmost node of the statement's plan; the statement is not run."""
    cursor.execute(f"EXPLAIN (FORMAT json) {statement}", params)
    found = cursor.fetchone()[0]
    plan: dict[str, Any] = (json.loads(found) if isinstance(found, str) else found)[0]["Plan"]
    return plan


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The plan and all beneath it."""
    yield plan
    for part in plan.get("Plans", ()):
        yield from nodes(part)
