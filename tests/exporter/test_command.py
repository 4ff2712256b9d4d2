"""`manage.py export`: counts, exit codes, JSON, the difference of a dry run, the bar."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from exporter.export import Change, ExportReport
from exporter.management.commands.export import DIFF_LINES_MAX, code_of, diff, shown
from exporter.models import ExportedFile
from exporter.place import Place, around_vault
from exporter.tasks import run_export
from memory.access import principal
from memory.models import Note, Principal, StageRun
from memory.passes import look
from memory.text import region
from tests import factories as make
from tests.cluster import ROOT


class Ran:
    """What one run of the command answered."""

    def __init__(self, *arguments: str) -> None:
        out, self.code = StringIO(), 0
        try:
            call_command("export", *arguments, stdout=out)
        except SystemExit as leave:
            self.code = int(leave.code or 0)
        self.text = out.getvalue()

    @property
    def json(self) -> dict[str, Any]:
        report: dict[str, Any] = json.loads(self.text)
        return report


@pytest.fixture
def alice(db: None) -> Principal:
    return principal("alice")


@pytest.fixture
def vault(tmp_path: Path, alice: Principal) -> Iterator[Path]:
    folder = tmp_path / "Vault"
    with around_vault(Place(folder, alice.name)):
        yield folder


def files(vault: Path) -> dict[str, bytes]:
    found = (one for one in vault.rglob("*") if one.is_file())
    named = {one.relative_to(vault).as_posix(): one.read_bytes() for one in found}
    return {name: data for name, data in named.items() if not name.startswith(".argus/")}


def of(vault: Path, note: Note) -> Path:
    """The file of this note."""
    for name, data in files(vault).items():
        if region.identity(data) == str(note.pk):
            return vault / name
    raise AssertionError(f"no file of {note.pk}")


def test_it_counts_and_says_where(vault: Path, alice: Principal) -> None:
    make.note(alice, "The jobs of the shop are held by Postgres.")
    first = Ran("--no-progress")
    assert (first.code, first.text.startswith(f"{vault}: written ")) == (0, True)
    before = {one: (one.stat().st_mtime_ns, one.stat().st_ino) for one in vault.rglob("*.md")}
    again = Ran("--json").json
    assert (again["written"], again["unchanged"]) == (0, len(files(vault)))
    assert again["vault"] == str(vault)
    assert before == {
        one: (one.stat().st_mtime_ns, one.stat().st_ino) for one in vault.rglob("*.md")
    }


def test_it_leaves_alone_what_a_person_changed_and_says_what_to_do(
    vault: Path, alice: Principal
) -> None:
    note = make.note(alice, "The jobs of the shop are held by Postgres.")
    Ran()
    path = of(vault, note)
    changed = path.read_text().replace("held by Postgres", "held by nobody")
    path.write_text(changed)
    ran = Ran()
    assert ran.code == 3
    assert "conflicts 1" in ran.text
    (line,) = [one for one in ran.text.splitlines() if one.startswith("left alone: ")]
    assert path.relative_to(vault).as_posix() in line
    assert region.HEADING in line and "delete" in line
    assert path.read_text() == changed
    assert Ran("--json").json["conflicts"] == 1


@pytest.mark.parametrize(
    ("report", "code"),
    [
        (ExportReport(written=1), 0),
        (ExportReport(conflicts=1), 3),
        (ExportReport(written=1, pending=1), 3),
        # A cluster without a page is for ever, and nothing that a person could settle.
        (ExportReport(refused=1), 0),
    ],
)
def test_its_exit_code_says_whether_a_file_has_yet_to_be_written(
    report: ExportReport, code: int
) -> None:
    assert code_of(report) == code


def test_no_row_keeps_the_name_of_a_file_that_was_left_alone(vault: Path, alice: Principal) -> None:
    """A run's report is told to whoever may look and outlives a purge; so does the queue's."""
    note = make.note(alice, "The jobs of the shop are held by Postgres.", title="Very private")
    Ran()
    path = of(vault, note)
    path.write_text(path.read_text().replace("held by Postgres", "held by nobody"))
    told = run_export()
    assert told["conflicts"] == 1 and "private" not in str(told)
    row = StageRun.objects.latest("pk")
    assert row.report["conflicts"] == 1
    seen = look(row.pk, now=timezone.now(), reader=principal("bob"))
    assert ("conflicts", "1") in seen.report
    assert "private" not in str(row.report) + str(row.progress) + str(seen)
    # The name stands in the row that goes with the note, and in what who asked is told.
    left = ExportedFile.objects.as_pipeline().filter(note=note, action="conflict")
    assert path.name in [one.path.rpartition("/")[2] for one in left]
    assert Ran("--json").json["troubles"][0]["path"] == path.relative_to(vault).as_posix()


def test_a_dry_run_prints_the_difference_and_does_nothing(vault: Path, alice: Principal) -> None:
    make.note(alice, "The jobs of the shop are held by Postgres.")
    dry = Ran("--dry-run")
    assert dry.code == 0
    assert "\n--- /dev/null\n+++ b/" in dry.text
    assert "\n+The jobs of the shop are held by Postgres.\n" in dry.text
    assert not vault.exists()
    assert not StageRun.objects.exists() and not ExportedFile.objects.as_pipeline().exists()
    told = Ran("--dry-run", "--json").json
    real = Ran("--json").json
    assert {one["path"] for one in told["changes"]} == set(files(vault))
    assert {one["action"] for one in told["changes"]} == {"written"}
    same = ("written", "unchanged", "removed", "renamed", "retired", "conflicts", "linked")
    assert {word: told[word] for word in same} == {word: real[word] for word in same}

    quiet = Ran("--dry-run")
    assert "---" not in quiet.text and quiet.code == 0


def test_a_dry_run_names_conflicts(vault: Path, alice: Principal) -> None:
    note = make.note(alice, "The jobs of the shop are held by Postgres.")
    Ran()
    path = of(vault, note)
    path.write_text(path.read_text().replace("held by Postgres", "held by nobody"))
    dry = Ran("--dry-run")
    assert dry.code == 3
    assert f"left alone: {path.relative_to(vault).as_posix()}: " in dry.text


def test_a_dry_run_shows_no_more_of_a_file_than_one_reads() -> None:
    after = "".join(f"line {n}\n" for n in range(500)).encode()
    change = Change(action="written", path="shop/a.md", before=b"one\n", after=after)
    told = list(shown(change))
    assert len(told) == DIFF_LINES_MAX + 2
    assert told[-1].startswith("... and ")
    assert len(list(diff(change))) > 500


def test_without_a_vault_it_is_a_matter_of_usage(db: None) -> None:
    for arguments in ((), ("--dry-run",)):
        with pytest.raises(CommandError) as error:
            Ran(*arguments)
        assert error.value.returncode == 2
        assert "set ARGUS_VAULT" in str(error.value)


def test_a_folder_that_cannot_be_written_may_be_there_later(
    tmp_path: Path, alice: Principal
) -> None:
    (tmp_path / "file").write_text("")
    make.note(alice, "The jobs of the shop are held by Postgres.")
    place = Place(tmp_path / "file" / "Vault", "alice")
    with around_vault(place), pytest.raises(CommandError) as error:
        Ran()
    assert error.value.returncode == 75
    assert str(tmp_path / "file") in str(error.value)


def test_git_commits_what_changed(vault: Path, alice: Principal) -> None:
    make.note(alice, "The jobs of the shop are held by Postgres.")
    assert Ran("--git").code == 0
    log = ["git", "-C", str(vault), "log", "--format=%s"]
    first = subprocess.run(log, capture_output=True, text=True, check=True).stdout.splitlines()
    assert len(first) == 1
    Ran("--git")
    assert subprocess.run(log, capture_output=True, text=True).stdout.splitlines() == first
    make.note(alice, "The parcels of the shop leave from Leipzig.")
    Ran("--git")
    assert len(subprocess.run(log, capture_output=True, text=True).stdout.splitlines()) == 2


def test_it_runs_as_a_process_by_the_settings(
    clone_environment: dict[str, str], tmp_path: Path
) -> None:
    me = principal("me")
    make.note(me, "The jobs of the shop are held by Postgres.")
    vault = tmp_path / "Vault"
    told = {"ARGUS_VAULT": str(vault), "ARGUS_VAULT_LOWERCASE": "true", "ARGUS_PRINCIPAL": "me"}

    def run(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "manage.py", "export", *arguments]
        environment = {**clone_environment, **told}
        ran = subprocess.run(
            command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, **options
        )
        assert ran.returncode == 0
        return ran

    report = json.loads(run("--json").stdout)
    names = list(files(vault))
    assert report["written"] == len(names) > 0
    assert all(name == name.lower() for name in names)

    # On a terminal a bar goes along.
    make.note(me, "The parcels of the shop leave from Leipzig.")
    ours, theirs = os.openpty()
    assert "written" in run(stderr=theirs).stdout
    os.close(theirs)
    with contextlib.suppress(OSError):
        assert "file/s" in os.read(ours, 10_000).decode()
    os.close(ours)


def test_the_worker_exports(vault: Path, alice: Principal) -> None:
    make.note(alice, "The jobs of the shop are held by Postgres.")
    assert run_export()["written"] == len(files(vault))
    assert StageRun.objects.get(stage="export").trigger_source == "schedule"
