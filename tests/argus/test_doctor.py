"""Each fault that the doctor promises to find is made, and found."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.db import connection

from argus.doctor import examine, exit_code
from argus.doctoring.row import Row
from argus.owner import as_owner
from memory.access import principal
from memory.models import Injection
from recall.models import Impact
from tests.factories import note, three


def _row(name: str) -> Row:
    return next(row for row in examine() if row.name == name)


def test_it_finds_nothing_wrong_with_a_fresh_database(clone_db: str) -> None:
    rows = examine()
    assert [row for row in rows if row.state == "fail"] == []
    names = {row.name for row in rows}
    assert names >= {"settings", "database", "version", "extension", "roles", "triggers"}
    assert names >= {"migrations", "embedder", "model"}
    assert exit_code(rows) == 0


def test_it_finds_a_trigger_that_somebody_dropped(clone_db: str) -> None:
    with as_owner(), connection.cursor() as cursor:
        cursor.execute("DROP TRIGGER argus_frozen ON memory_rawitem")
    row = _row("triggers")
    assert row.state == "fail"
    assert "memory_rawitem" in row.what


def test_it_finds_a_trigger_that_somebody_switched_off(clone_db: str) -> None:
    with as_owner(), connection.cursor() as cursor:
        cursor.execute("ALTER TABLE memory_rawitem DISABLE TRIGGER argus_no_truncate")
    assert _row("triggers").state == "fail"


def test_it_finds_a_migration_that_waits(clone_db: str) -> None:
    with as_owner(), connection.cursor() as cursor:
        cursor.execute("DELETE FROM django_migrations WHERE app = 'sessions'")
    row = _row("migrations")
    assert (row.state, row.fix) == ("fail", "Run manage.py migrate.")


def test_it_notices_a_setting_that_is_none(clone_db: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARGUS_RECAL_FLOOR", "0.1")
    row = _row("settings")
    assert (row.state, row.fix) == ("warn", "Did you mean ARGUS_RECALL_FLOOR?")


def test_it_answers_75_only_when_all_that_failed_is_away() -> None:
    well, away, wrong = Row("a", "ok", ""), Row("b", "fail", "", away=True), Row("c", "fail", "")
    assert exit_code([well]) == 0
    assert exit_code([well, away]) == 75
    assert exit_code([well, away, wrong]) == 1


def test_it_prints_one_json_object_when_the_database_is_away(tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "ARGUS_DATABASE_URL": f"postgresql://argus_app@/argus?host={tmp_path}",
        "DJANGO_SETTINGS_MODULE": "argus.settings",
    }
    answer = subprocess.run(
        [sys.executable, "manage.py", "doctor", "--json"],
        env=environment,
        capture_output=True,
        text=True,
    )
    report = json.loads(answer.stdout)
    assert (answer.returncode, report["exit"]) == (75, 75)
    assert [row["name"] for row in report["rows"] if row["state"] == "fail"] == ["database"]


def test_it_says_how_many_vectors_are_of_another_model(clone_db: str) -> None:
    alice, _, _ = three()
    note(alice, "The staging server listens on port 8443.", embedding_model="before")
    note(alice, "This one has no vector yet.", embedded=False)
    rows = [row for row in examine() if row.name == "embedder"]
    assert [row.state for row in rows] == ["ok", "warn"]
    assert rows[1].what.startswith("1 live note") and "reembed" in rows[1].fix


def test_it_tells_how_much_of_what_was_injected_was_used(clone_db: str) -> None:
    assert _row("impact").what.startswith("no injection was looked at")
    for number, used in enumerate((True, False, True, True)):
        shown = Injection.objects.create(
            owner=principal("alice"), mode="prompt", outcome="injected", query=f"{number}"
        )
        Impact.objects.create(injection=shown, method="overlap", score=0.5, used=used)
    row = _row("impact")
    assert row.state == "ok" and row.what.startswith("75% of 4 injections looked at in 7 days")
