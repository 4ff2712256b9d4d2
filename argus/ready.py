"""Before a command works: is the database one that Argus may use, and is it migrated?

The embedded database is migrated here, so that any command may be the first one; another one is
refused with a sentence. Knows nothing about what commands do.
"""

from __future__ import annotations

from pathlib import Path

from django.conf import settings
from django.core.management import call_command, get_commands
from django.db import connection

from argus import owner

#: Commands of ours that see to the database themselves, or must work without one.
BY_THEMSELVES = frozenset({"migrate", "up", "down", "doctor", "demo", "restore"})

#: With these nothing is asked of a database.
WITHOUT_ONE = frozenset({"-h", "--help", "--check"})

ROOMS = frozenset({"argus", "memory", "review", "recall", "exporter"})


def make_ready(arguments: list[str]) -> None:
    """Check or mend the database for the command in these arguments; OwnerProblem says why not."""
    name = arguments[1] if len(arguments) > 1 else ""
    ours = get_commands().get(name) in ROOMS and name not in BY_THEMSELVES
    if not ours or WITHOUT_ONE & set(arguments):
        return
    if not settings.ARGUS.embedded and (found := owner.problems(owner.look())):
        raise owner.OwnerProblem(" ".join(found))
    if is_migrated():
        return
    if not settings.ARGUS.embedded:
        raise owner.OwnerProblem("The database is not migrated: run manage.py migrate.")
    call_command("migrate", verbosity=0)


def is_migrated() -> bool:
    """Whether the newest migration of each room is applied; one cheap question, not the whole
    plan."""
    newest = {}
    for room in ROOMS:
        files = (Path(settings.BASE_DIR) / room / "migrations").glob("[0-9]*.py")
        if names := [path.stem for path in files]:
            newest[room] = max(names)
    with connection.cursor() as cursor:
        cursor.execute("SELECT to_regclass('django_migrations') IS NOT NULL")
        if not cursor.fetchone()[0]:
            return False
        cursor.execute(
            "SELECT count(DISTINCT app) FROM django_migrations"
            " WHERE (app, name) IN (SELECT unnest(%s::text[]), unnest(%s::text[]))",
            [list(newest), list(newest.values())],
        )
        return bool(cursor.fetchone()[0] == len(newest))
