"""One browser, one demo, and a server on a copy of it for each module of tests."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest
from django.db import connection
from playwright.sync_api import Browser, StorageState
from pytest_django import DjangoDbBlocker

from tests import cluster
from tests.bench.ground import server
from tests.browser import ground
from tests.browser.ground import DESK, Watched

Visit = Callable[..., Watched]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    if not ground.CHROMIUM:
        pytest.skip("no Chromium on this machine: apt install chromium-headless-shell")
    # Why: the browser's driver keeps a loop in this thread; the tests ask the database beside it,
    # one thing after the other.
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
    with ground.chromium() as browser:
        yield browser


@pytest.fixture(scope="session")
def demo(template_db: str, django_db_blocker: DjangoDbBlocker) -> str:
    """A database with the demo's rows; nobody stays connected to it."""
    with django_db_blocker.unblock():
        return cluster.made("demo", ground.tell_story)


@pytest.fixture(scope="module")
def site(demo: str, django_db_blocker: DjangoDbBlocker) -> Iterator[str]:
    """The web server as `up` runs it, on a copy of the demo; Django's connection is to it as well.
    Its address."""
    with (
        django_db_blocker.unblock(),
        cluster.copied(demo) as name,
        server(cluster.address(name)) as url,
    ):
        yield url
        connection.close()


@pytest.fixture(scope="session")
def logged_in() -> dict[tuple[str, str], StorageState]:
    """The cookies of whoever logged in already, by site and name."""
    return {}


@pytest.fixture
def visit(
    browser: Browser, site: str, logged_in: dict[tuple[str, str], StorageState]
) -> Iterator[Visit]:
    """Open a browser as somebody: `visit("rita", dark=True, size=PHONE)`. Afterwards nothing must
    have gone wrong in any of them but what a test took out of `troubles`."""
    contexts, opened = [], []

    def open_one(
        name: str, *, dark: bool = False, size: tuple[int, int] = DESK, script: bool = True
    ) -> Watched:
        if (site, name) not in logged_in:
            with closing(browser.new_context()) as first:
                ground.log_in(first, site, name)
                logged_in[site, name] = first.storage_state()
        context = browser.new_context(
            storage_state=logged_in[site, name],
            viewport={"width": size[0], "height": size[1]},
            color_scheme="dark" if dark else "light",
            reduced_motion="reduce",
            java_script_enabled=script,
        )
        context.set_default_timeout(15_000)
        contexts.append(context)
        watched = ground.watch(context, site)
        opened.append(watched)
        return watched

    yield open_one
    for context in contexts:
        context.close()
    assert [trouble for one in opened for trouble in one.troubles] == []
