"""Start-up checks: settings that would lose work are errors before anything runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, register

#: The tag of our own checks, which every command runs. Django's are for whoever writes code, and
#: asking them takes as long as a command's start.
OURS = "argus"


def register_all() -> None:
    """Called once by the app's `ready`."""
    register(queue, OURS)


def queue(app_configs: Sequence[Any] | None, **kwargs: Any) -> list[CheckMessage]:
    """The queue's own defaults repeat tasks for ever, or twice at once."""
    cluster: dict[str, Any] = settings.Q_CLUSTER
    found: list[CheckMessage] = []
    if cluster.get("retry", 0) <= cluster.get("timeout", 0):
        found.append(
            Error(
                "Q_CLUSTER['retry'] must be longer than Q_CLUSTER['timeout'].",
                hint="A task would run twice at the same time.",
                id="memory.E001",
            )
        )
    if not cluster.get("max_attempts"):
        found.append(
            Error(
                "Q_CLUSTER['max_attempts'] must be set.",
                hint="0 repeats a failing task for ever.",
                id="memory.E002",
            )
        )
    if cluster.get("catch_up", True):
        found.append(
            Error(
                "Q_CLUSTER['catch_up'] must be False.",
                hint="After a pause every missed slot would run at once.",
                id="memory.E003",
            )
        )
    longest = settings.PROCESS_SECONDS + settings.ARGUS.model_timeout_seconds
    if cluster.get("timeout", 0) <= longest:
        found.append(
            Error(
                f"Q_CLUSTER['timeout'] must be longer than {longest:g} s: PROCESS_SECONDS and one "
                "model call (ARGUS_MODEL_TIMEOUT_SECONDS).",
                hint="A pass would be cut off in the middle of a unit, again and again.",
                id="memory.E004",
            )
        )
    return found
