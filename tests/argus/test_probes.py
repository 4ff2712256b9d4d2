"""What a supervisor asks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.db import connection
from django.test import Client

from argus.owner import as_owner


def test_it_is_healthy_without_asking_the_database(client: Client) -> None:
    answer = client.get("/healthz")
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


@pytest.mark.django_db
def test_it_is_ready_when_all_is_migrated(client: Client) -> None:
    assert client.get("/readyz").status_code == 200


def test_it_is_not_ready_when_a_migration_waits(client: Client, clone_db: str) -> None:
    with as_owner(), connection.cursor() as cursor:
        cursor.execute("DELETE FROM django_migrations WHERE app = 'sessions'")
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert answer.headers["Retry-After"]
    assert answer.json()["failing"] == {"migrations": "1 migrations are not applied."}


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


def test_it_answers_only_to_its_own_name(client: Client) -> None:
    assert client.get("/healthz", headers={"host": "evil.example"}).status_code == 400


@pytest.mark.parametrize("path", ["/nope", "/recall/notes/1", "/capture/"])
def test_it_answers_a_problem_for_a_path_that_nobody_serves(client: Client, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 404
    assert answer["Content-Type"] == "application/problem+json"
    assert answer.json()["code"] == "not_found" and path not in str(answer.json())
