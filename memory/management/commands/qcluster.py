"""`manage.py qcluster`: the workers, which work off what waits."""

from __future__ import annotations

from django_q.management.commands.qcluster import Command as QCluster

from memory.checks import OURS


# The library has no types.
class Command(QCluster):  # type: ignore[misc]
    """The library's own, without the checks for whoever writes code: it starts in half the time."""

    requires_system_checks = (OURS,)
