"""Is it working? One row for each thing that Argus stands on.

Asks, changes nothing; `argus.doctoring` has the questions. Never hangs: each of them is given
seconds. Knows nothing about how the rows are printed.
"""

from __future__ import annotations

from collections.abc import Sequence

from django.db import Error, OperationalError, connection

from argus.binaries import ClusterError
from argus.doctoring import database, ground, models, people, work
from argus.doctoring.row import Part, Row, careful, impatient

EXIT_OK, EXIT_FAILED, EXIT_AWAY = 0, 1, 75

#: Parts that only a database of ours can answer, in the order in which one stands on another.
WITH_TABLES: tuple[tuple[str, Part], ...] = (
    ("triggers", database.triggers),
    ("grants", database.grants),
    ("embedder", models.embedder),
    ("model", models.chat),
    ("reranker", models.reranker),
    ("budget", models.budget),
    ("worker", work.worker),
    ("schedules", work.of_schedules),
    ("queue", work.queue),
    ("keys", people.keys),
    ("hook", people.hooks),
    ("parked", work.aside),
    ("verify", work.found),
    ("copies", work.copies),
    ("backup", work.backups),
    ("impact", people.impact),
)


def examine() -> list[Row]:
    """All rows, in the order in which one thing stands on another."""
    rows = careful("settings", ground.of_settings)
    with_tables = False
    try:
        with impatient():
            connection.ensure_connection()
        rows += [
            *careful("database", database.server),
            *careful("throwaway", database.throwaway),
            *careful("clock", database.clock),
            *careful("standby", database.standby),
            *careful("migrations", database.migrations),
        ]
        # What is not there yet cannot be broken: the tables come first.
        with_tables = not any(row.name == "migrations" and row.state == "fail" for row in rows)
    except (OperationalError, ClusterError) as error:
        fix = "Start the server, or mend ARGUS_DATABASE_URL."
        rows.append(Row("database", "fail", str(error).strip(), fix, away=True))
    except Error as error:
        rows.append(Row("database", "fail", str(error).strip(), "Run manage.py migrate."))
    parts = WITH_TABLES if with_tables else (("model", models.configured),)
    for name, part in (*parts, ("disk", ground.disks), ("vault", ground.vault)):
        rows += careful(name, part)
    return rows


def exit_code(rows: Sequence[Row], *, strict: bool = False) -> int:
    """0: nothing failed. 75: what failed is away. 1: something is wrong, or, `strict`, somebody
    should look at something. Pure."""
    amiss = [row for row in rows if row.state == "fail" or (strict and row.state == "warn")]
    if not amiss:
        return EXIT_OK
    return EXIT_AWAY if all(row.away for row in amiss) else EXIT_FAILED
