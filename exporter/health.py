"""Health: what the last export that ended left in the vault, well or not, and what it left alone.

Reads: stage_run, of the vault in force: the demo's is another. Numbers and times alone, no name of
any file: they are told to whoever may look.
Judges nothing and knows nothing about pages.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from exporter.place import NoVault, place
from memory.models import StageRun


@dataclass(frozen=True)
class Exported:
    """Whether there is a vault; files that its last export left in it, and files that it left alone
    because somebody changed them; files that wait; clusters that it refused; when it was."""

    vault: bool
    files: int = 0
    conflicts: int = 0
    refused: int = 0
    pending: int = 0
    last_at: datetime | None = None


def health() -> Exported:
    """What there is to tell of the vault; of one that was never filled, whether there is one."""
    try:
        mark = place().mark
    except NoVault:
        return Exported(vault=False)
    last = (
        StageRun.objects.filter(stage="export", report__place=mark)
        .order_by("-started_at", "-pk")
        .values_list("report", "finished_at")
        .first()
    )
    if last is None:
        return Exported(vault=True)
    report, at = last
    told = {word: count for word, count in report.items() if isinstance(count, int)}
    return Exported(
        vault=True,
        files=sum(told.get(word, 0) for word in ("written", "unchanged", "renamed", "retired")),
        conflicts=told.get("conflicts", 0),
        refused=told.get("refused", 0),
        pending=told.get("pending", 0),
        last_at=at,
    )
