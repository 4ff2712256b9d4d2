"""What runs by the clock: `settings.SCHEDULES` is the truth, the queue's table its copy."""

from __future__ import annotations

from dataclasses import dataclass

from django.conf import settings
from django.db import transaction
from django.utils import timezone
from django_q.models import Schedule


@dataclass(frozen=True)
class ScheduleReport:
    """Names of schedules, by what became of them."""

    made: list[str]
    changed: list[str]
    removed: list[str]
    unchanged: list[str]


def wanted(func: str, minutes: int) -> dict[str, object]:
    """A schedule of the settings, as the queue's row has it. Pure."""
    return {
        "func": func,
        "minutes": minutes,
        "schedule_type": Schedule.MINUTES,
        # Below zero: for ever.
        "repeats": -1,
    }


def differences() -> list[str]:
    """What of the queue's schedules is not as the settings say, a phrase each."""
    rows = {row.name: row for row in Schedule.objects.all()}
    found = []
    for name, (func, minutes) in settings.SCHEDULES.items():
        row = rows.pop(name, None)
        if row is None:
            found.append(f"{name} is missing")
        elif any(getattr(row, key) != value for key, value in wanted(func, minutes).items()):
            found.append(f"{name} is another than in the settings")
    return [*found, *(f"{name} is in no settings" for name in rows)]


@transaction.atomic
def sync() -> ScheduleReport:
    """Make the queue's schedules those of the settings; others of the same cluster go."""
    report = ScheduleReport([], [], [], [])
    for name, (func, minutes) in settings.SCHEDULES.items():
        fields = wanted(func, minutes)
        row = Schedule.objects.select_for_update().filter(name=name).first()
        if row is None:
            Schedule.objects.create(name=name, next_run=timezone.now(), **fields)
            report.made.append(name)
        elif any(getattr(row, key) != value for key, value in fields.items()):
            # Why the next run, too: a shorter interval must not wait for the longer one's end.
            Schedule.objects.filter(pk=row.pk).update(next_run=timezone.now(), **fields)
            report.changed.append(name)
        else:
            report.unchanged.append(name)
    stale = Schedule.objects.exclude(name__in=settings.SCHEDULES)
    report.removed.extend(stale.values_list("name", flat=True))
    stale.delete()
    return report
