"""Any command may be the first one; a database that is not ours to mend is refused, in words."""

from __future__ import annotations

import subprocess
import sys

import pytest
from django.db import connection

from argus.owner import as_owner
from argus.ready import is_migrated, make_ready
from tests import cluster

KEYS = ["manage.py", "keys"]


def forget_migrations() -> None:
    with as_owner(), connection.cursor() as cursor:
        cursor.execute("DELETE FROM django_migrations WHERE app = 'memory'")


def keys(environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *KEYS],
        env=environment,
        cwd=cluster.ROOT,
        capture_output=True,
        text=True,
    )


def test_it_lets_a_command_of_ours_pass_on_a_migrated_database(clone_db: str) -> None:
    assert is_migrated()
    make_ready(KEYS)


@pytest.mark.parametrize("room", ["memory", "recall", "review", "exporter"])
def test_it_misses_the_newest_of_any_room(clone_db: str, room: str) -> None:
    with as_owner(), connection.cursor() as cursor:
        cursor.execute(
            "DELETE FROM django_migrations WHERE id ="
            " (SELECT max(id) FROM django_migrations WHERE app = %s)",
            [room],
        )
    assert not is_migrated()


def test_it_asks_nothing_of_commands_that_see_to_it_themselves(clone_db: str) -> None:
    forget_migrations()
    assert not is_migrated()
    for arguments in (["manage.py"], ["manage.py", "doctor"], ["manage.py", "keys", "--help"]):
        make_ready(arguments)
    assert not is_migrated()


def test_it_answers_with_one_sentence_and_exit_1(
    clone_db: str, clone_environment: dict[str, str]
) -> None:
    forget_migrations()
    done = subprocess.run(
        [sys.executable, *KEYS],
        env=clone_environment,
        cwd=cluster.ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert done.stderr.strip() == "The database is not migrated: run manage.py migrate."


def test_it_refuses_the_owner_as_the_applications_role(
    clone_db: str, clone_environment: dict[str, str]
) -> None:
    environment = {
        **clone_environment,
        "ARGUS_DATABASE_URL": clone_environment["ARGUS_OWNER_DATABASE_URL"],
    }
    done = keys(environment)
    assert done.returncode == 1
    assert "owns the database" in done.stderr and "Traceback" not in done.stderr
