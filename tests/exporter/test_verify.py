"""The check that the exporter offers: nothing of a retired note was written into the vault."""

from __future__ import annotations

from datetime import timedelta

import pytest

from exporter.models import ExportedFile
from memory.models import Note, StageRun
from memory.retire import retire
from tests.factories import at, note, three
from tests.memory.breaking import look

pytestmark = pytest.mark.django_db

NOW = at(days=9)


def exported(one: Note, *, run_at: float, file_at: float, **fields: str) -> ExportedFile:
    """A file of this note in the log, so many minutes after the beginning."""
    run = StageRun.objects.create(stage="export", status="done", started_at=at(run_at))
    told = {"kind": "note", "key": str(one.pk), "path": "shop/x.md", "action": "written"} | fields
    made: ExportedFile = ExportedFile.objects.create(
        run=run, owner=one.owner, note=one, sha256="0", size=1, created_at=at(file_at), **told
    )
    return made


def test_it_finds_what_was_exported_after_it_was_retired_and_no_race() -> None:
    one = note(three()[0], "The number 7 bus stops at the harbour.")
    exported(one, run_at=40, file_at=40)
    retire([one.pk], reason="wrong", now=at(60))
    exported(one, run_at=59, file_at=100)  # An export that began before, and took its time.
    exported(one, run_at=65, file_at=66)  # Retired by a worker that had read its clock before.
    for action in ("removed", "retired", "conflict"):
        exported(one, run_at=200, file_at=200, action=action)
    assert look("exported", NOW) == []
    bad = exported(one, run_at=200, file_at=200)
    (found,) = look("exported", NOW)
    assert (found.kind, found.reference, found.owner_id) == ("note", str(one.pk), one.owner_id)
    assert found.detail["file"] == bad.pk and "shop" not in str(found.detail)
    assert bad.created_at - at(60) > timedelta(hours=1)
