"""The queue runs what the settings say, and nothing else."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.conf import settings
from django.utils import timezone
from django.utils.module_loading import import_string
from django_q.models import Schedule

from argus.schedules import sync

pytestmark = pytest.mark.django_db


def test_it_makes_them_once() -> None:
    assert sync().made == list(settings.SCHEDULES)
    assert sync().unchanged == list(settings.SCHEDULES)
    assert Schedule.objects.count() == len(settings.SCHEDULES)


def test_it_names_functions_that_exist() -> None:
    for func, minutes in settings.SCHEDULES.values():
        assert callable(import_string(func))
        assert minutes >= 1


def test_it_takes_a_new_interval_at_once() -> None:
    sync()
    later = timezone.now() + timedelta(days=1)
    Schedule.objects.filter(name="process").update(minutes=1440, next_run=later)
    assert sync().changed == ["process"]
    row = Schedule.objects.get(name="process")
    assert row.minutes == settings.ARGUS.process_every_minutes
    assert row.next_run <= timezone.now()


def test_it_removes_what_the_settings_no_longer_name() -> None:
    Schedule.objects.create(name="old", func="memory.tasks.gone", schedule_type=Schedule.DAILY)
    assert sync().removed == ["old"]
