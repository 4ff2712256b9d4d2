"""What the tests of the record post: items, the posts of them, and the clock they are posted at."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from memory.access import principal
from memory.intake import Incoming
from memory.models import RawItem
from memory.stages.capture import CaptureReport, capture

NOW = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)
SPOKEN = NOW - timedelta(hours=2)

#: A key that a person might paste; it is nobody's.
SECRET = "ghp_" + "wWPw5k4aXcaT4fNP0UcnZwJUVFk6LO0pINUx"


def item(body: str = "We keep the queue in Postgres.", **changed: Any) -> Incoming:
    """One turn as a client posts it, with what the test wants different."""
    given: dict[str, Any] = {
        "source": "claude-code",
        "role": "user",
        "session": "s1",
        "cwd": "/src/argus",
        "original_timestamp": SPOKEN,
    }
    return Incoming(body=body, **(given | changed))


def post(*items: Any, owner: str = "alice", **changed: Any) -> CaptureReport:
    """Capture these items for a person of this name, at NOW."""
    return capture(items, owner=principal(owner), **({"now": NOW} | changed))


def the(report: CaptureReport) -> Any:
    """The row that the one item of this post is, or was already."""
    return RawItem.objects.as_pipeline().get(pk=report.outcomes[0].id or 0)


def stored(**named: Any) -> list[Any]:
    """Every owner's raw items, oldest row first."""
    return list(RawItem.objects.as_pipeline().filter(**named).order_by("pk"))
