"""What every test has: a database of its own, migrated by the owner, used as the application.

Ordinary tests run in a transaction that is rolled back. Tests that need commits, threads or
processes take `clone_db`. Nothing is ever flushed: an append-only table is not truncated.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from django.conf import settings
from pytest_django import DjangoDbBlocker

from argus import postgres
from tests import cluster

#: Files that take minutes: they come first, so that no worker is left alone with one in the end;
#: those with a browser between the others.
# Calibrate: `make test PYTEST=--durations=60`, added up by file.
LONG = (
    "recall/test_silence.py", "browser/test_hostile.py", "argus/test_eval.py",
    "argus/test_scratch.py", "browser/test_pages.py", "argus/test_standby.py",
    "recall/test_owners.py", "argus/test_killed.py",
    "memory/test_embed_workers.py", "argus/test_up.py", "browser/test_review.py",
    "hook/test_memory.py", "memory/test_workers.py", "argus/test_demo.py",
    "exporter/test_export_killed.py", "browser/test_holds.py", "memory/test_tracks.py",
)  # fmt: skip


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The long files first, in their order; else as they were."""

    def place(item: pytest.Item) -> int:
        path = item.path.as_posix()
        return next((n for n, name in enumerate(LONG) if path.endswith(f"/{name}")), len(LONG))

    items.sort(key=place)


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        cluster.begin()


def pytest_unconfigure(config: pytest.Config) -> None:
    """The last run to end stops the server; starting it again takes a moment."""
    if not hasattr(config, "workerinput") and cluster.alone():
        postgres.stop(cluster.home(), idle_only=True)


@pytest.fixture(scope="session")
def template_db(django_db_blocker: DjangoDbBlocker) -> str:
    """The name of the migrated database that others are cloned from, throwaway ones, too. Nobody
    connects to it."""
    with django_db_blocker.unblock():
        cluster.join()
        name = settings.SCRATCH_TEMPLATE = cluster.template()
        return name


@pytest.fixture(scope="session")
def django_db_setup(template_db: str, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    with django_db_blocker.unblock(), cluster.copied(template_db):
        yield


@pytest.fixture
def clone_db(template_db: str, django_db_blocker: DjangoDbBlocker) -> Iterator[str]:
    """A database of its own for this test: real commits, threads and processes.

    Yields its address for the application's role, and Django's default connection is to it, in
    every thread; for a process take `clone_environment`.
    """
    with django_db_blocker.unblock(), cluster.copied(template_db) as name:
        yield cluster.address(name)


@pytest.fixture
def clone_environment(clone_db: str) -> dict[str, str]:
    """The environment of a process that works on this test's clone."""
    return {
        **os.environ,
        "ARGUS_DATABASE_URL": clone_db,
        "ARGUS_OWNER_DATABASE_URL": cluster.owner_address(clone_db),
        "DJANGO_SETTINGS_MODULE": "argus.settings",
    }
