"""A browser, the people who use it, and what a page must never do in it.

Knows where things are on this machine and in the demo; asserts nothing about any page.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import User
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Dialog,
    Page,
    Request,
    sync_playwright,
)

from argus.demo.story import OWNER, play
from memory.access import principal
from memory.models import Group
from tests import web

#: What Debian's browser is called, and others' are. The first is the same without a window around
#: its pages, which takes as long to draw as they do.
CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium-headless-shell", "chromium", "chromium-browser"))), ""
)

#: Why so many: without them a browser asks its maker for news, and waits where nobody answers.
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    # Why: what is drawn is drawn by the processor anyway. Without a thread for compositing it would
    # take a third less still, but then nobody gets a frame at times who waits for one.
    "--in-process-gpu",
    "--disable-partial-raster",
)

DESK, PHONE = (1280, 900), (390, 844)

#: Addresses of the pages that need nothing named, by what they are called.
PAGES = {
    "board": "/ui/",
    "review": "/ui/review/",
    "rejections": "/ui/rejections/",
    "parked": "/ui/parked/",
    "episodes": "/ui/episodes/",
    "notes": "/ui/notes/",
    "injections": "/ui/injections/",
    "floors": "/ui/injections/floors/",
    "feed": "/ui/feed/",
    "draws": "/ui/feed/draws/",
    "projects": "/ui/projects/",
    "tasks": "/ui/tasks/",
    "ask": "/ui/ask/",
    "keys": "/ui/keys/",
    "audit": "/ui/audit/",
    "findings": "/ui/findings/",
}

#: Roles by the name of who has them. All stand for people of one team: the demo's own principal
#: shows its rows to it.
PEOPLE = {
    "rita": ("reviewer",),
    "otto": ("operator",),
    "lena": ("reader",),
    "ada": ("reviewer", "operator"),
}


@dataclass
class Watched:
    """A page of somebody's, and what went wrong in it."""

    page: Page
    site: str
    troubles: list[str] = field(default_factory=list)

    def open(self, address: str) -> Page:
        self.page.goto(self.site + address, wait_until="load")
        return self.page


@contextmanager
def chromium() -> Iterator[Browser]:
    """Debian's browser, headless."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        try:
            yield browser
        finally:
            browser.close()


def tell_story() -> None:
    """The demo's rows, and people who look at them as its owner does."""
    with tempfile.TemporaryDirectory() as vault:
        play(Path(vault))
    owner = principal(OWNER)
    web.user("ada", *PEOPLE["ada"], who=owner)
    for name, roles in PEOPLE.items():
        if name != "ada":
            web.user(name, *roles)
    # The server under test knows the product's hashers alone.
    User.objects.update(password=make_password(web.PASSWORD, hasher="pbkdf2_sha256"))
    team, _ = Group.objects.get_or_create(name="harbor")
    team.members.add(owner, *(principal(name) for name in PEOPLE if name != "ada"))


def log_in(context: BrowserContext, site: str, name: str) -> None:
    """By the form, as people do."""
    page = context.new_page()
    page.goto(f"{site}/ui/login/")
    page.get_by_label("Username").fill(name)
    page.get_by_label("Password").fill(web.PASSWORD)
    page.get_by_label("Password").press("Enter")
    page.wait_for_url(f"{site}/ui/")
    page.close()


def watch(context: BrowserContext, site: str) -> Watched:
    """A new page; errors on its console, its own faults and calls to other hosts are noted."""
    watched = Watched(context.new_page(), site)

    def heard(message: ConsoleMessage) -> None:
        if message.type == "error":
            watched.troubles.append(f"console: {message.text} ({message.location.get('url')})")

    def asked(request: Request) -> None:
        if urlsplit(request.url).netloc not in ("", urlsplit(site).netloc):
            watched.troubles.append(f"asked another host: {request.url}")

    def asked_aloud(dialog: Dialog) -> None:
        watched.troubles.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    watched.page.on("console", heard)
    watched.page.on("request", asked)
    watched.page.on("pageerror", lambda error: watched.troubles.append(f"fault: {error}"))
    watched.page.on("dialog", asked_aloud)
    return watched
