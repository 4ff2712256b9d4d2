"""Breaking what the database guards, as its superuser, and looking whether `verify` sees it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import connection, transaction
from django.test import override_settings

from argus import postgres
from memory.findings import Found
from memory.llm.remote.embed import shared
from memory.verifying.check import Look
from memory.verifying.offered import checks
from tests.factories import EMBED_MODEL
from tests.openai_server import running

#: Findings of one look that a test wants.
MOST = 50


@contextmanager
def by_words() -> Iterator[None]:
    """The distiller and judge of a default installation, with vectors made of words, for as long as
    a whole file of tests takes."""
    shared.cache_clear()
    with running() as server:
        changed = settings.ARGUS.model_copy(
            update={"embedder": "url", "embed_url": server.url, "embed_model": EMBED_MODEL}
        )
        with override_settings(ARGUS=changed):
            yield


@contextmanager
def superuser() -> Iterator[None]:
    """Django's connection as the server's superuser, whom no trigger and no grant holds back."""
    before = connection.settings_dict
    connection.close()
    connection.settings_dict = {**before, "USER": postgres.SUPERUSER}
    try:
        yield
    finally:
        connection.close()
        connection.settings_dict = before


@contextmanager
def taken_back() -> Iterator[None]:
    """What is broken in here is whole again at its end. No trigger fires, so that none mends."""
    with transaction.atomic():
        do("SET LOCAL session_replication_role = replica")
        yield
        transaction.set_rollback(True)


def do(sql: str, *values: Any) -> int:
    """One statement; rows that it changed."""
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        return int(cursor.rowcount)


def one(sql: str, *values: Any) -> Any:
    """The first column of the first row."""
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        row = cursor.fetchone()
    return row[0] if row else None


def look(name: str, now: datetime, most: int = MOST) -> list[Found]:
    """What a check finds."""
    return list(checks()[name].look(Look(now, most)))


def after(name: str, now: datetime, *breaks: str) -> list[tuple[str, str]]:
    """What a check finds once these statements broke something: (kind, id). Each must break
    something, and all is taken back."""
    with taken_back():
        for statement in breaks:
            assert do(statement) != 0, statement
        return [(found.kind, found.reference) for found in look(name, now)]
