"""POST /export: who may ask, what is answered, and what each trouble is called."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.test import Client

from exporter import api
from exporter.folder import Folder
from exporter.models import ExportedFile
from exporter.place import Place, around_vault
from memory.access import create_key, principal
from memory.models import Emission, StageRun
from memory.text import region
from tests import factories as make
from tests.memory.door import problem, send

pytestmark = pytest.mark.django_db


@pytest.fixture
def vault(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "Vault"
    with around_vault(Place(folder, "alice")):
        yield folder


def key(owner: str = "alice", *scopes: str) -> str:
    return create_key(owner=owner, scopes=list(scopes or ("operate",)))[0]


def export(given: str) -> Any:
    return send(given, {}, path="/export")


def test_it_writes_the_vault_and_answers_the_report(vault: Path) -> None:
    note = make.note(principal("alice"), "The jobs of the shop are held by Postgres.")
    answer = export(key())
    assert answer.status_code == 200, answer.content
    report = answer.json()
    assert {
        "written", "unchanged", "removed", "renamed", "conflicts", "linked", "clusters", "largest",
    } <= set(report)  # fmt: skip
    assert report["written"] >= 1 and report["conflicts"] == report["unchanged"] == 0
    run = StageRun.objects.get(stage="export")
    assert (run.status, run.trigger_source) == ("done", "api")
    assert run.report["written"] == report["written"]
    rows = ExportedFile.objects.as_pipeline().filter(note=note)
    (row,) = rows
    data = (vault / row.path).read_bytes()
    assert region.identity(data) == str(note.pk)
    assert note.content.encode() in data
    assert (row.run, row.owner, row.action) == (run, principal("alice"), "written")
    assert Emission.objects.filter(kind="vault", reference=str(note.pk)).count() == 1

    again = export(key()).json()
    assert (again["written"], again["unchanged"]) == (0, report["written"])
    assert ExportedFile.objects.as_pipeline().count() == report["written"]
    assert Emission.objects.filter(kind="vault").count() == 1


@pytest.mark.parametrize(
    ("scopes", "status", "code"),
    [(["capture", "recall", "resolve"], 403, "permission_denied"), ([], 401, "not_authenticated")],
)
def test_it_needs_a_key_that_may_operate(
    vault: Path, scopes: list[str], status: int, code: str
) -> None:
    answer = export(key("alice", *scopes) if scopes else "")
    problem(answer, status, code)
    assert not vault.exists() and not StageRun.objects.exists()


def test_a_vault_is_one_persons(vault: Path) -> None:
    told = problem(export(key("bob")), 403, "forbidden")
    assert told["detail"] == "The vault is alice's, and this key stands for bob."
    assert not vault.exists() and not StageRun.objects.exists()


def test_without_a_vault_it_says_so() -> None:
    assert settings.ARGUS.vault is None
    told = problem(export(key(settings.ARGUS.principal)), 422, "refused")
    assert told["detail"] == "No vault: set ARGUS_VAULT to a folder."
    assert not StageRun.objects.exists()


def test_a_folder_that_cannot_be_written_is_away(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("here")
    make.note(principal("alice"), "The jobs of the shop are held by Postgres.")
    with around_vault(Place(tmp_path / "file" / "Vault", "alice")):
        answer = export(key())
    problem(answer, 503, "away")
    assert answer["Retry-After"]
    assert StageRun.objects.get(stage="export").status == "failed"


def test_it_answers_to_post_alone(vault: Path) -> None:
    headers = {"Authorization": f"Bearer {key()}"}
    assert Client().get("/export", headers=headers).status_code == 405
    assert not vault.exists()


def test_while_another_export_is_running_it_says_so(vault: Path) -> None:
    with Folder.hold(vault):
        answer = export(key())
    told = problem(answer, 409, "conflict")
    assert "running" in told["detail"]
    assert export(key()).status_code == 200


def test_what_it_left_alone_is_named_with_what_to_do(vault: Path) -> None:
    note = make.note(principal("alice"), "The jobs of the shop are held by Postgres.")
    export(key())
    (row,) = ExportedFile.objects.as_pipeline().filter(note=note)
    path = vault / row.path
    path.write_text(path.read_text().replace("held by", "no longer held by"))
    report = export(key()).json()
    assert report["conflicts"] == 1
    (trouble,) = report["troubles"]
    assert trouble["path"] == row.path and trouble["why"] and region.HEADING in trouble["fix"]
    assert "no longer held by" in path.read_text()


def test_an_answer_waits_for_no_long_export(vault: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make.note(principal("alice"), "The jobs of the shop are held by Postgres.")
    monkeypatch.setattr(api, "ANSWER_SECONDS", 0)
    report = export(key()).json()
    assert (report["written"], report["pending"]) == (0, 2)
    monkeypatch.undo()
    assert export(key()).json()["written"] == 2
