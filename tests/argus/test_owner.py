"""The two roles: one may change tables, the other may not, and a wrong set-up is one sentence."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from psycopg import sql

from argus import owner, postgres
from argus.owner import Facts, OwnerProblem, as_owner, problems
from tests import cluster

GOOD = Facts(18, {"vector": "0.8.6", "pg_trgm": "1.6"}, True, False, False)


def _user() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_user")
        return str(cursor.fetchone()[0])


def test_it_is_the_owner_inside_and_the_application_after(clone_db: str) -> None:
    assert _user() == postgres.APP
    with as_owner():
        assert _user() == postgres.OWNER
    assert _user() == postgres.APP
    with pytest.raises(KeyError), as_owner():
        raise KeyError
    assert _user() == postgres.APP


def test_it_does_not_change_the_role_inside_a_transaction(clone_db: str) -> None:
    with transaction.atomic(), pytest.raises(OwnerProblem, match="transaction"), as_owner():
        pass


def test_it_says_what_to_set_when_the_owner_is_not_known(clone_db: str, settings) -> None:
    settings.OWNER_DATABASE = None
    with pytest.raises(CommandError, match="ARGUS_OWNER_DATABASE_URL"):
        call_command("migrate", verbosity=0)


def test_it_finds_the_embedded_roles_good(clone_db: str) -> None:
    assert problems(owner.look()) == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"server_major": 14}, "PostgreSQL 14: Argus needs 15 or newer"),
        ({"extensions": {}}, "extension vector is missing"),
        ({"extensions": {"vector": "0.7.4"}}, "vector is 0.7.4: Argus needs 0.8 or newer"),
        ({"role_found": False}, "is missing: run CREATE ROLE"),
        ({"role_superuser": True}, "is a superuser"),
        ({"role_is_owner": True}, "owns the database"),
    ],
)
def test_it_says_in_one_sentence_what_is_wrong(change: dict[str, Any], said: str) -> None:
    found = problems(replace(GOOD, **change))
    assert len(found) == 1
    assert said in found[0]


def test_it_takes_a_newer_vector_for_good() -> None:
    for version in ("0.8.0", "0.10", "1.0.2"):
        assert problems(replace(GOOD, extensions={"vector": version})) == []


def _manage(app_url: str, owner_url: str, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "ARGUS_DATABASE_URL": app_url,
        "ARGUS_OWNER_DATABASE_URL": owner_url,
        "DJANGO_SETTINGS_MODULE": "argus.settings",
    }
    command = [sys.executable, "manage.py", *(words or ("migrate", "-v0"))]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_it_migrates_a_database_given_by_address(clone_db: str) -> None:
    answer = _manage(clone_db, cluster.owner_address(clone_db))
    assert (answer.returncode, answer.stderr) == (0, "")


def test_it_refuses_a_superuser_as_the_application(clone_db: str) -> None:
    superuser = clone_db.replace(f"{postgres.APP}@", f"{postgres.SUPERUSER}@")
    answer = _manage(superuser, cluster.owner_address(clone_db))
    assert answer.returncode == 1
    assert "is a superuser" in answer.stderr
    assert "Traceback" not in answer.stderr


def test_it_refuses_the_owner_as_the_application(clone_db: str) -> None:
    address = cluster.owner_address(clone_db)
    answer = _manage(address, address)
    assert answer.returncode == 1
    assert "owns the database" in answer.stderr


def test_it_says_when_the_extension_is_missing_and_may_not_be_made(tmp_path: Path) -> None:
    postgres.start(cluster.home())
    name = f"test_{os.getpid()}_bare"
    cluster.drop(name)
    maintenance = postgres.url(cluster.home(), postgres.SUPERUSER, "postgres")
    with psycopg.connect(maintenance, autocommit=True) as connection:
        # Why a superuser's database: its owner here may not make an extension in it.
        query = sql.SQL("CREATE DATABASE {} TEMPLATE template0")
        connection.execute(query.format(sql.Identifier(name)))
    try:
        address = cluster.address(name)
        answer = _manage(address, cluster.owner_address(address))
        assert answer.returncode == 1
        assert "The extension vector is missing" in answer.stderr
        assert "Traceback" not in answer.stderr
    finally:
        cluster.drop(name)


def test_it_answers_75_when_the_database_is_away(tmp_path: Path) -> None:
    address = f"postgresql://argus_app@/argus?host={tmp_path}"
    answer = _manage(address, address.replace("argus_app", "argus_owner"))
    assert answer.returncode == 75
    assert answer.stderr.startswith("The database is away.")
    assert "Traceback" not in answer.stderr


def test_who_asks_for_json_is_told_by_an_object_that_the_database_is_away(tmp_path: Path) -> None:
    address = f"postgresql://argus_app@/argus?host={tmp_path}"
    answer = _manage(address, address, "budget", "--json")
    assert answer.returncode == 75
    told = json.loads(answer.stdout)
    assert told["exit"] == 75 and told["error"].startswith("The database is away.")
    assert answer.stderr.startswith("The database is away.") and "Traceback" not in answer.stderr
