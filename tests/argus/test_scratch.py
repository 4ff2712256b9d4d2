"""A throwaway database: migrated, used as the application, gone afterwards, however it ended."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection, transaction

from argus import postgres
from argus.owner import OwnerProblem
from argus.scratch import leftovers, scratch
from memory.access import principal
from memory.models import Principal
from tests import cluster


def databases() -> set[str]:
    """Those whose names begin with that of the database at hand: other runs have theirs."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT datname FROM pg_database WHERE starts_with(datname, %s)",
            [connection.settings_dict["NAME"].partition("_scratch_")[0]],
        )
        return {name for (name,) in cursor.fetchall()}


def where() -> tuple[str, str]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_database(), current_user")
        name, user = cursor.fetchone()
        return name, user


@pytest.mark.parametrize("copied", [False, True], ids=["migrated", "copied"])
def test_it_is_another_database_inside_and_the_real_one_after(
    clone_db: str, settings: Any, copied: bool
) -> None:
    if not copied:
        settings.SCRATCH_TEMPLATE = None
    principal("real")
    real = where()
    with scratch() as name:
        assert where() == (name, postgres.APP) and name.startswith(f"{real[0]}_scratch_")
        assert not Principal.objects.filter(name="real").exists()
        principal("thrown away")
    assert where() == real and name not in databases()
    assert list(Principal.objects.values_list("name", flat=True)) == ["real"]


@pytest.mark.parametrize("error", [KeyError, KeyboardInterrupt])
def test_it_is_dropped_whatever_happens_inside(clone_db: str, error: type[BaseException]) -> None:
    before = databases()
    with pytest.raises(error), scratch():
        assert len(databases()) == len(before) + 1
        raise error
    assert databases() == before


def test_it_is_dropped_when_an_error_leaves_a_transaction_open(clone_db: str) -> None:
    before = databases()
    with pytest.raises(ZeroDivisionError), scratch(), transaction.atomic():
        principal("half done")
        raise ZeroDivisionError
    assert databases() == before


HOLD = """
import sys
import django; django.setup()
from django.conf import settings
from argus.scratch import scratch
settings.SCRATCH_TEMPLATE = sys.argv[1]
with scratch() as name:
    print(name, flush=True)
    input()
"""


@pytest.fixture
def holding(
    clone_db: str, clone_environment: dict[str, str], template_db: str
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A process inside a throwaway database, and that database's name."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, template_db],
        env=clone_environment, cwd=cluster.ROOT, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout and process.stdin
    try:
        yield process, process.stdout.readline().strip()
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


def test_it_sweeps_what_a_killed_process_left_and_nothing_of_a_living_one(
    holding: tuple[subprocess.Popen[str], str],
) -> None:
    process, name = holding
    assert name in databases()
    assert leftovers() == []
    process.kill()
    process.wait()
    for _ in range(50):
        if leftovers() == [name]:
            break
    assert name not in databases()


def test_it_says_what_to_do_when_the_owner_is_not_known(clone_db: str, settings) -> None:
    settings.OWNER_DATABASE = None
    with pytest.raises(OwnerProblem, match="ARGUS_OWNER_DATABASE_URL"), scratch():
        pass


def test_it_says_what_to_do_when_the_owner_may_make_none(clone_db: str, settings) -> None:
    settings.OWNER_DATABASE = {**settings.OWNER_DATABASE, "USER": postgres.APP}
    before = databases()
    with pytest.raises(OwnerProblem, match="ALTER ROLE argus_app CREATEDB"), scratch():
        pass
    assert databases() == before


def test_it_is_not_made_inside_a_transaction(clone_db: str) -> None:
    with transaction.atomic(), pytest.raises(OwnerProblem, match="transaction"), scratch():
        pass
