"""A client on the other side of HTTP, for the tests of the doors."""

from __future__ import annotations

import json
from typing import Any

from django.test import Client

TURN = {
    "source": "claude-code",
    "role": "user",
    "session": "s1",
    "cwd": "/src/argus",
    "body": "We keep the queue in Postgres.",
    "original_timestamp": "2026-05-04T10:00:00Z",
}


def send(
    key: str | None, data: Any, client: Client | None = None, path: str = "/capture", **extra: Any
) -> Any:
    """Post JSON (or raw bytes) with this key; `extra` goes to Django's test client."""
    raw = data if isinstance(data, bytes) else json.dumps(data).encode()
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    headers |= extra.pop("headers", {})
    extra.setdefault("content_type", "application/json")
    return (client or Client()).post(path, raw, headers=headers, **extra)


def problem(answer: Any, status: int, code: str) -> dict[str, Any]:
    """The problem that this answer must be."""
    assert answer.status_code == status, answer.content
    assert answer["Content-Type"] == "application/problem+json"
    body: dict[str, Any] = answer.json()
    assert {"type", "title", "status", "code", "detail"} <= set(body)
    assert (body["status"], body["code"]) == (status, code)
    return body
