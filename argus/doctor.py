"""Is it working? One row for each thing that Argus stands on.

Asks, changes nothing. Knows nothing about how the rows are printed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from django.conf import settings
from django.db import Error, OperationalError, connection
from django.utils import timezone

from argus import environment, owner, probes
from argus.binaries import ClusterError
from memory import guards
from memory.errors import ArgusError, InfraError
from memory.llm import choice
from memory.llm.ports import VECTOR_SIZE, Origin
from memory.models import Note
from recall.impact import DAYS_BACK_MAX, used_rate

EXIT_OK, EXIT_FAILED, EXIT_AWAY = 0, 1, 75


@dataclass(frozen=True)
class Row:
    """One finding. `fix` says what to do when it is not ok; `away`: trying later may help."""

    name: str
    state: Literal["ok", "warn", "fail"]
    what: str
    fix: str = ""
    away: bool = False


def examine() -> list[Row]:
    """All rows, in the order in which one thing stands on another."""
    rows = list(_settings())
    try:
        connection.ensure_connection()
        rows += [*_database(), *_migrations()]
        # What is not there yet cannot be broken: the tables come first.
        if not any(row.name == "migrations" and row.state == "fail" for row in rows):
            rows += [*_triggers(), *_embedder(), *_impact()]
    except (OperationalError, ClusterError) as error:
        fix = "Start the server, or mend ARGUS_DATABASE_URL."
        rows.append(Row("database", "fail", str(error).strip(), fix, away=True))
    except Error as error:
        rows.append(Row("database", "fail", str(error).strip(), "Run manage.py migrate."))
    return [*rows, *_models()]


def exit_code(rows: list[Row]) -> int:
    """0: nothing failed. 75: what failed is away. 1: something is wrong. Pure."""
    failed = [row for row in rows if row.state == "fail"]
    if not failed:
        return EXIT_OK
    return EXIT_AWAY if all(row.away for row in failed) else EXIT_FAILED


def _settings() -> Iterator[Row]:
    strange = environment.unknown()
    for name, nearest in strange:
        fix = f"Did you mean {nearest}?" if nearest else "Remove it, or see the README's table."
        yield Row("settings", "warn", f"{name} is no setting of Argus.", fix)
    if not strange:
        yield Row("settings", "ok", f"home {settings.ARGUS.home}, serves {settings.ARGUS.url}")


def _database() -> Iterator[Row]:
    facts = owner.look()
    where = "embedded" if settings.ARGUS.embedded else "ARGUS_DATABASE_URL"
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('server_version'), current_database()")
        version, name = cursor.fetchone()
    yield Row("database", "ok", f"{name} ({where})")
    found = owner.problems(facts)
    yield _judge("version", f"PostgreSQL {version}", found, "The server is")
    vector = facts.extensions.get("vector", "")
    yield _judge("extension", f"vector {vector}", found, "The extension vector")
    if "pg_trgm" not in facts.extensions:
        fix = "CREATE EXTENSION pg_trgm, as a superuser; names misspelt are found less without."
        yield Row("extension", "warn", "pg_trgm is missing.", fix)
    role = settings.ARGUS_APP_ROLE
    yield _judge("roles", f"{role} is neither owner nor superuser", found, "The role")
    if settings.ARGUS.embedded:
        yield Row(
            "roles",
            "ok",
            "Append-only binds Argus's own connections; any process of this user of the machine "
            "can still connect to the embedded server as superuser.",
        )


def _judge(name: str, well: str, found: list[str], begin: str) -> Row:
    for sentence in found:
        if sentence.startswith(begin):
            what, _, fix = sentence.partition(": ")
            return Row(name, "fail", f"{what}.", fix)
    return Row(name, "ok", well)


def _migrations() -> Iterator[Row]:
    waiting = probes.unapplied()
    if waiting:
        what = f"{len(waiting)} are not applied, the first is {waiting[0]}."
        yield Row("migrations", "fail", what, "Run manage.py migrate.")
    else:
        yield Row("migrations", "ok", "all applied")


def _triggers() -> Iterator[Row]:
    missing = guards.missing_triggers(connection)
    if missing:
        what = f"{len(missing)} are missing or switched off: {', '.join(missing[:3])}."
        fix = "Somebody could rewrite the record: find out who changed the schema, then restore it."
        yield Row("triggers", "fail", what, fix)
    else:
        yield Row("triggers", "ok", f"{len(guards.FROZEN)} tables refuse to be rewritten")


def _embedder() -> Iterator[Row]:
    # Why only with a database: each call of a model leaves its row.
    try:
        embedder = choice.embedder()
        vector = embedder.embed_query("Is it working?", origin=Origin(stage="doctor"))
    except InfraError as error:
        fix = "Start it, or unset ARGUS_EMBEDDER. Until then recall goes by words alone."
        yield Row("embedder", "fail", str(error), fix, away=True)
    except (ArgusError, Error, ImportError, OSError) as error:
        yield Row("embedder", "fail", str(error), "See the README's table of settings.")
    else:
        state: Literal["ok", "fail"] = "ok" if len(vector) == VECTOR_SIZE else "fail"
        yield Row("embedder", state, f"{embedder.name}, {len(vector)} numbers")
        others = _outdated(embedder.name)
        if others:
            what = f"{others} live notes have vectors of another model; recall finds them by words."
            yield Row("embedder", "warn", what, "Run manage.py reembed.")


def _outdated(model: str) -> int:
    """Live notes whose vector cannot be compared with those of this model."""
    live = Note.objects.as_pipeline().live(timezone.now())
    return live.exclude(embedding=None).exclude(embedding_model=model).count()


def _impact() -> Iterator[Row]:
    """How much of what was injected showed in answers; told, never judged."""
    rate = used_rate(timezone.now() - timedelta(days=DAYS_BACK_MAX))
    if rate.rate is None:
        what = f"no injection was looked at in {DAYS_BACK_MAX} days"
    else:
        what = (
            f"{rate.rate:.0%} of {rate.checked} injections looked at in {DAYS_BACK_MAX} days showed"
            " in what was answered"
        )
    yield Row("impact", "ok", what)


def _models() -> Iterator[Row]:
    if settings.ARGUS.model_url:
        what = f"{settings.ARGUS.model} at {settings.ARGUS.model_url}"
    else:
        what = "none is set: the extractive distiller and the rule judge work alone"
    yield Row("model", "ok", what)
