"""How: a PostgreSQL that nobody prepared, and `argus/deploy/roles.sh` by its superuser."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from argus import postgres, scratch
from argus.binaries import locate
from argus.doctoring import database
from argus.owner import EXTENSIONS, OwnerProblem
from tests import cluster

ROLES = cluster.ROOT / "argus" / "deploy" / "roles.sh"

#: What a person has who made the database by hand, and nothing in template1.
BARE = (
    f"CREATE ROLE {postgres.OWNER} LOGIN CREATEDB",
    f"CREATE ROLE {postgres.APP} LOGIN",
    f"CREATE DATABASE {postgres.DATABASE} OWNER {postgres.OWNER}",
)


@pytest.fixture
def bare(tmp_path: Path) -> Iterator[Path]:
    """The home of a server of its own, with no role, database or extension of ours."""
    home = tmp_path / "home"
    cluster.into_memory(home)
    try:
        postgres.start(home, options=cluster.TUNING)
        clear(home)
        yield home
    finally:
        cluster.discard(home)


def clear(home: Path) -> None:
    with superuser(home, "template1") as at:
        for extension in EXTENSIONS:
            at.execute(f"DROP EXTENSION {extension}".encode())
    forget(home)


def forget(home: Path) -> None:
    with superuser(home) as at:
        at.execute(f"DROP DATABASE IF EXISTS {postgres.DATABASE}".encode())
        for role in (postgres.OWNER, postgres.APP):
            at.execute(f"DROP ROLE {role}".encode())


def superuser(home: Path, name: str = "postgres") -> psycopg.Connection:
    return psycopg.connect(postgres.url(home, postgres.SUPERUSER, name), autocommit=True)


def owner_at(home: Path) -> dict[str, Any]:
    """The owner's address as Django has it."""
    told = conninfo_to_dict(postgres.url(home, postgres.OWNER))
    at = {"NAME": "dbname", "USER": "user", "HOST": "host"}
    return {**{key: told[name] for key, name in at.items()}, "PASSWORD": "", "PORT": "",
            "OPTIONS": {}}  # fmt: skip


def run_roles(home: Path) -> None:
    words = {"OWNER_PASSWORD": "it's a word", "APP_PASSWORD": "another"}
    user = {"POSTGRES_USER": postgres.SUPERUSER}
    subprocess.run([str(ROLES)], env={**environment(home), **user, **words}, check=True)


def as_the_readme_says(home: Path) -> None:
    text = (cluster.ROOT / "README.md").read_text().partition("With a database of your own")[2]
    block = "\n".join(re.findall(r"(?m)^    (.*)$", text.partition("ARGUS_DATABASE_URL=")[0]))
    words = ["psql", "-v", "ON_ERROR_STOP=1", "--username", postgres.SUPERUSER, "postgres"]
    subprocess.run(words, env=environment(home), input=block, text=True, check=True)


def environment(home: Path) -> dict[str, str]:
    """Of the wheel's psql at the server of this home."""
    told = conninfo_to_dict(postgres.url(home, postgres.SUPERUSER))
    path = f"{locate().folder}{os.pathsep}{os.environ['PATH']}"
    return {"PATH": path, "PGHOST": str(told["host"])}


def throwaway(home: Path) -> list[str]:
    """The extensions of a database that the owner makes."""
    at = owner_at(home)
    with scratch.connected({**at, "NAME": postgres.DATABASE}) as keeper:
        scratch._create(keeper, "argus_scratch_1")
        try:
            with scratch.connected({**at, "NAME": "argus_scratch_1"}) as inside:
                # What is not needed may be unknown to the server.
                scratch.extend(inside, {**EXTENSIONS, "argus_needs_none_such": False})
                rows = inside.execute("SELECT extname FROM pg_extension ORDER BY 1").fetchall()
                return [name for (name,) in rows]
        finally:
            scratch.drop(keeper, "argus_scratch_1")


@pytest.mark.django_db
def test_the_owner_can_make_throwaway_databases_and_where_not_is_told_what_helps(
    bare: Path, settings: Any
) -> None:
    with superuser(bare) as at:
        for statement in BARE:
            at.execute(statement.encode())
    settings.OWNER_DATABASE = owner_at(bare)
    fix = "CREATE EXTENSION vector in template1"
    with pytest.raises(OwnerProblem, match=f"have a superuser run {fix}"):
        throwaway(bare)
    [row] = database.throwaway()
    assert (row.state, row.fix) == ("warn", f"Have a superuser run {fix}.")

    forget(bare)
    for prepare in (as_the_readme_says, run_roles):
        prepare(bare)
        assert throwaway(bare) == ["pg_trgm", "plpgsql", "vector"]
        [row] = database.throwaway()
        assert row.state == "ok" and "argus_owner may make databases" in row.what
        sees(bare)
        clear(bare)


def sees(home: Path) -> None:
    """Both roles are ordinary ones, and the application has the extension."""
    with psycopg.connect(postgres.url(home, postgres.APP)) as at:
        assert at.execute("SELECT '[1]'::vector(1)::text").fetchone() == ("[1]",)
        found = at.execute(
            "SELECT rolname, rolsuper, rolcreatedb, rolcreaterole FROM pg_roles"
            " WHERE rolname LIKE 'argus%%' ORDER BY 1"
        ).fetchall()
    assert found == [("argus_app", False, False, False), ("argus_owner", False, True, False)]


def test_the_doctor_says_all_that_the_owner_lacks() -> None:
    assert database.judge_throwaway("o", may_make=True, at_hand=EXTENSIONS).state == "ok"
    assert database.judge_throwaway("o", may_make=True, at_hand=["vector"]).state == "ok"
    row = database.judge_throwaway("o", may_make=False, at_hand=["pg_trgm"])
    assert row.state == "warn" and "rebuild, eval and restore" in row.what
    assert row.fix == (
        "Have a superuser run ALTER ROLE o CREATEDB, and CREATE EXTENSION vector in template1."
    )


@pytest.mark.django_db
def test_the_doctor_takes_no_closed_door_for_a_fault(settings: Any, tmp_path: Path) -> None:
    settings.OWNER_DATABASE = {**settings.OWNER_DATABASE, "HOST": str(tmp_path)}
    [row] = database.throwaway()
    assert row.state == "ok" and "not looked at" in row.what
