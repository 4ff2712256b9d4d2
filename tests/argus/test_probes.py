"""What a supervisor asks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.test import Client

from argus.hosts import WATCHED
from argus.owner import as_owner
from argus.probes import unapplied
from memory.access import create_key


def test_it_is_healthy_without_asking_the_database(client: Client) -> None:
    answer = client.get("/healthz")
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


@pytest.mark.django_db
def test_it_is_ready_when_all_is_migrated(client: Client) -> None:
    assert client.get("/readyz").status_code == 200


def test_it_is_not_ready_when_a_migration_waits(
    client: Client, clone_db: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert unapplied() == []

    def read(*args: object) -> None:
        raise AssertionError("asked every few seconds, it reads the disk each time")

    monkeypatch.setattr(MigrationLoader, "load_disk", read)
    with as_owner(), connection.cursor() as cursor:
        cursor.execute("DELETE FROM django_migrations WHERE app = 'sessions'")
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert answer.headers["Retry-After"]
    assert answer.json()["failing"] == {"migrations": "1 migrations are not applied."}
    assert unapplied() == ["sessions.0001_initial"]


def test_it_is_not_ready_when_the_database_is_away_and_says_no_more(tmp_path: Path) -> None:
    program = (
        "import django; django.setup(); from django.test import Client;"
        "answer = Client(headers={'host': 'localhost'}).get('/readyz');"
        "print(answer.status_code, answer.json()['failing'])"
    )
    environment = {
        **os.environ,
        "ARGUS_DATABASE_URL": f"postgresql://argus_app:hunter2@/argus?host={tmp_path}",
        "DJANGO_SETTINGS_MODULE": "argus.settings",
    }
    answer = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True
    )
    assert answer.stdout.strip() == "503 {'database': 'The database does not answer.'}"


@pytest.mark.django_db
def test_it_answers_only_to_its_own_name(client: Client) -> None:
    for path in ("/", "/ui/login/", "/hook/", "/capture", "/api/schema", "/healthz/", "/metrics/x"):
        for host in ("evil.example", "10.42.0.17:8765"):
            assert client.get(path, headers={"host": host}).status_code == 400, path


@pytest.mark.django_db
@pytest.mark.parametrize("host", ["10.42.0.17:8765", "[fd00::17]:8765", "web:8765"])
def test_it_answers_whoever_watches_by_the_address_of_the_process(
    client: Client, host: str
) -> None:
    key = create_key(owner="alice", scopes=["operate"])[0]
    headers = {"host": host, "Authorization": f"Bearer {key}"}
    for path in WATCHED:
        assert client.get(path, headers=headers).status_code == 200, path
    assert client.get("/metrics", headers={"host": host}).status_code == 401


@pytest.mark.django_db
def test_no_foreign_name_reads_what_this_machine_may_read_without_a_key(
    client: Client, settings: Any
) -> None:
    settings.ARGUS = settings.ARGUS.model_copy(update={"metrics_loopback": True})
    for host, status in (("127.0.0.1:8765", 200), ("evil.example", 401)):
        answer = client.get("/metrics", REMOTE_ADDR="127.0.0.1", headers={"host": host})
        assert answer.status_code == status, host


@pytest.mark.parametrize("path", ["/nope", "/recall/notes/1", "/capture/"])
def test_it_answers_a_problem_for_a_path_that_nobody_serves(client: Client, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 404
    assert answer["Content-Type"] == "application/problem+json"
    assert answer.json()["code"] == "not_found" and path not in str(answer.json())
