"""How: the checks on settings of the test's own."""

from __future__ import annotations

from typing import Any

import pytest

from memory.checks import queue


def found(settings: Any, **changes: Any) -> list[str | None]:
    settings.Q_CLUSTER = settings.Q_CLUSTER | changes
    return [message.id for message in queue(None)]


@pytest.mark.parametrize("seconds", [1.0, 60.0, 600.0])
def test_it_finds_nothing_wrong_with_our_own(settings: Any, seconds: float) -> None:
    from argus.settings import task_seconds

    timeout = task_seconds(seconds)
    settings.ARGUS = settings.ARGUS.model_copy(update={"model_timeout_seconds": seconds})
    assert found(settings, timeout=timeout, retry=timeout + 60) == []


@pytest.mark.parametrize(
    ("changes", "id_"),
    [
        ({"retry": 100}, "memory.E001"),
        ({"max_attempts": 0}, "memory.E002"),
        ({"catch_up": True}, "memory.E003"),
        ({"timeout": 240}, "memory.E004"),
    ],
)
def test_it_refuses_a_queue_that_would_lose_work(
    settings: Any, changes: dict[str, Any], id_: str
) -> None:
    assert found(settings, **changes) == [id_]
