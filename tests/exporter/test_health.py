"""Is the vault well? What health counts, what the board says of it, what the doctor finds."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.cache import cache
from django.utils import timezone

from argus import board as boards
from argus.answers import Answer, export_answer
from argus.board import Cell
from argus.doctoring.ground import vault as _vault
from argus.doctoring.row import Row
from exporter.export import export
from exporter.health import Exported, health
from exporter.place import Place, around_vault, place
from memory.access import principal
from memory.models import StageRun
from tests import factories as make

WELL = Answer("ok", "Ran 3 min ago; nothing waits.")


@pytest.fixture(autouse=True)
def forget() -> Iterator[None]:
    cache.clear()
    yield
    cache.clear()


@pytest.fixture
def argus(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Change the settings of this machine for one test."""

    def change(**changed: Any) -> None:
        monkeypatch.setattr(settings, "ARGUS", settings.ARGUS.model_copy(update=changed))

    return change


def cell() -> Cell | None:
    board = boards.board(principal("alice"), timezone.now(), errors=True)
    return next((one for one in board.cells if one.name == "export"), None)


# Health and the board.


@pytest.mark.django_db
def test_without_a_vault_there_is_nothing_to_tell(argus: Any) -> None:
    assert health() == Exported(vault=False)
    assert cell() is None


@pytest.mark.django_db
def test_a_vault_that_was_never_filled_waits_for_its_first_export(
    argus: Any, tmp_path: Path
) -> None:
    argus(vault=tmp_path / "Vault")
    assert health() == Exported(vault=True)
    shown = cell()
    assert shown is not None and shown.answer.state == "idle"
    cache.clear()
    with around_vault(Place(tmp_path / "demo-vault", "demo")):
        export()
    shown = cell()
    assert shown is not None
    assert (shown.answer.state, shown.answer.sentence) == (
        "idle", "No export has filled this vault yet.",
    )  # fmt: skip


@pytest.mark.django_db
def test_it_tells_how_many_files_there_are_and_how_many_were_left_alone(
    argus: Any, tmp_path: Path
) -> None:
    argus(vault=tmp_path / "Vault", principal="alice")
    note = make.note(principal("alice"), "The jobs of the shop are held by Postgres.")
    with around_vault(Place(tmp_path / "Vault", "alice")):
        written = export().written
        assert health().files == written
        (path,) = [
            one for one in (tmp_path / "Vault").rglob("*.md") if str(note.pk) in one.read_text()
        ][:1]
        path.write_text(path.read_text().replace("held by Postgres", "held by nobody"))
        export()
    # Another vault is none of this one's: the demo's, say.
    with around_vault(Place(tmp_path / "demo-vault", "alice")):
        assert export().conflicts == 0
    told = health()
    assert (told.conflicts, told.last_at is not None) == (1, True)
    shown = cell()
    assert shown is not None
    assert shown.answer.state == "warn"
    assert shown.answer.sentence.startswith("1 file of the vault was left alone")
    assert "--dry-run" in shown.answer.fix
    figures = dict(shown.figures)
    assert figures["files written"] == f"{2 * written:,}" and figures["runs"] == "3"
    # No name of a file, which is a note's title, is told to whoever may look.
    assert path.stem not in str(shown.answer) + str(shown.report)


@pytest.mark.django_db
def test_a_failed_export_is_said_before_files_that_were_left_alone(
    argus: Any, tmp_path: Path
) -> None:
    argus(vault=tmp_path / "Vault")
    now = timezone.now()
    left = {"conflicts": 2, "place": place().mark}
    for ago, status, report in ((20, "done", left), (5, "failed", {})):
        at = now - timedelta(minutes=ago)
        StageRun.objects.create(
            stage="export", status=status, report=report, error="VaultAway: no space",
            started_at=at, heartbeat_at=at, finished_at=at,
        )  # fmt: skip
    shown = cell()
    assert shown is not None and shown.answer.state == "bad"
    assert "VaultAway: no space" in shown.answer.sentence


@pytest.mark.django_db
def test_it_counts_files_that_wait(argus: Any, tmp_path: Path) -> None:
    argus(vault=tmp_path / "Vault", principal="alice")
    for n in range(3):
        make.note(principal("alice"), f"The jobs of the shop are held by Postgres {n}.")
    report = export(limit=2)
    assert report.pending > 0
    assert (health().files, health().pending) == (2, report.pending)
    shown = cell()
    assert shown is not None and dict(shown.figures)["files that wait"] == f"{report.pending:,}"


def test_vaults_are_told_apart_by_where_they_lie_and_whose_they_are(tmp_path: Path) -> None:
    one = Place(tmp_path / "a", "alice")
    assert one.mark == Place(tmp_path / "b" / ".." / "a", "alice", "secret", "keep", git=True).mark
    assert len({one.mark, Place(tmp_path / "a", "bob").mark, Place(tmp_path, "alice").mark}) == 3


def test_answers_are_pure() -> None:
    assert export_answer(WELL, Exported(vault=True, files=9)) == WELL
    said = export_answer(WELL, Exported(vault=True, conflicts=1_200))
    assert said.sentence.startswith("1,200 files of the vault were left alone")
    bad = Answer("bad", "Export failed.")
    assert export_answer(bad, Exported(vault=True, conflicts=1)) == bad


# The doctor.


def found() -> Row | None:
    return next(iter(_vault()), None)


def test_the_doctor_says_nothing_of_a_vault_that_nobody_asked_for() -> None:
    assert found() is None


def test_the_doctor_writes_where_the_vault_is_and_leaves_nothing(
    argus: Any, tmp_path: Path
) -> None:
    argus(vault=tmp_path)
    row = found()
    assert row is not None and (row.state, row.what) == ("ok", f"{tmp_path} can be written")
    assert os.listdir(tmp_path) == []
    argus(vault=tmp_path / "not" / "yet")
    row = found()
    assert row is not None and row.state == "ok" and "first export" in row.what
    assert os.listdir(tmp_path) == []


def test_the_doctor_finds_a_vault_that_cannot_be_written(argus: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    argus(vault=tmp_path / "file" / "Vault")
    row = found()
    assert row is not None and row.state == "fail"
    assert str(tmp_path / "file") in row.what and "ARGUS_VAULT" in row.fix
    # Not even root writes there.
    argus(vault=Path("/proc/argus-vault"))
    row = found()
    assert row is not None and row.state == "fail" and "cannot be written" in row.what


# The place.


def test_the_place_is_that_of_the_settings_unless_another_is_put(
    argus: Any, tmp_path: Path
) -> None:
    argus(vault=tmp_path, vault_lowercase=True, vault_retired="keep", principal="ada")
    assert place() == Place(tmp_path, "ada", "internal", "keep", lowercase=True)
    other = Place(tmp_path / "other", "bob")
    with around_vault(other):
        assert place() is other
    assert place().owner == "ada"
