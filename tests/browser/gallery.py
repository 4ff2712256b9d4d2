"""The pictures of the README: `python -m tests.browser.gallery [FOLDER]`, from the demo's rows.

Each page in light and in dark, and the queue on a phone. Files are small and the same size, so that
a table of them is one glance.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path

from playwright.sync_api import Browser

from tests.bench.ground import ROOT, database, server

#: Where the README looks for them.
FOLDER = ROOT / "tests" / "gallery"

#: Pixels of a picture, and how much of it JPEG keeps.
DESK, PHONE, QUALITY = (1200, 760), (390, 760), 55

#: Pages that are taken on a phone, too.
ON_A_PHONE = ("board", "review")

#: Pages of one thing: from which list, and the links to follow from there.
OPENED = {
    "hold": ("/ui/review/",),
    "episode": ("/ui/episodes/", "main a[href^='/ui/episodes/']"),
    "note": ("/ui/notes/", "main a[href^='/ui/notes/']"),
    "purge": ("/ui/notes/", "main a[href^='/ui/notes/']", "main a[href^='/ui/purge/?note=']"),
    "injection": (
        "/ui/injections/?mode=prompt&outcome=injected",
        "main tbody a[href^='/ui/injections/']",
    ),
    "task": ("/ui/tasks/", "main a[href^='/ui/tasks/']"),
}

#: Pages that have something to show once something went wrong.
LATER = {"findings", "purge"}


def main(folder: Path) -> None:
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
    folder.mkdir(parents=True, exist_ok=True)
    with database() as address:
        from django.db import connection

        from tests.browser import ground

        ground.tell_story()
        connection.close()
        names = {*ground.PAGES, *OPENED}
        with server(address) as site, ground.chromium() as browser:
            for dark in (False, True):
                _pictures(browser, site, folder, names - LATER, dark=dark)
            _bad_day()
            connection.close()
            for dark in (False, True):
                _pictures(browser, site, folder, LATER, dark=dark)
    print(f"{len(list(folder.glob('*.jpg')))} pictures in {folder}")


def _bad_day() -> None:
    """Two quotes that the record does not say any more, found; and somebody who may purge."""
    from django.contrib.auth.models import Permission, User
    from django.core.management import call_command

    from tests.memory import breaking

    User.objects.get(username="ada").user_permissions.add(Permission.objects.get(codename="purge"))
    with breaking.superuser():
        breaking.do("SET session_replication_role = replica")
        breaking.do(
            "UPDATE memory_evidence SET quote = quote || '!'"
            " WHERE id IN (SELECT id FROM memory_evidence ORDER BY id LIMIT 2)"
        )
    for command in ("verify", "reconcile"):
        with suppress(SystemExit):  # Why: it exits 1, for it found something.
            call_command(command)


def _pictures(browser: Browser, site: str, folder: Path, names: set[str], *, dark: bool) -> None:
    from tests.browser import ground

    scheme = "dark" if dark else "light"
    for kind, size in (("", DESK), ("phone-", PHONE)):
        context = browser.new_context(
            viewport={"width": size[0], "height": size[1]},
            color_scheme="dark" if dark else "light",
            reduced_motion="reduce",
        )
        ground.log_in(context, site, "ada")
        page = context.new_page()
        for name, address in ground.PAGES.items():
            if name not in names or kind and name not in ON_A_PHONE:
                continue
            query = "?q=Which+PostgreSQL+version+does+staging+use%3F" if name == "ask" else ""
            page.goto(site + address + query, wait_until="networkidle")
            _take(page, folder / f"{kind}{name}-{scheme}.jpg")
        for name, (address, *links) in OPENED.items():
            if name not in names or kind:
                continue
            page.goto(site + address, wait_until="networkidle")
            for link in links:
                to = page.locator(link).first.get_attribute("href")
                page.goto(site + str(to), wait_until="networkidle")
            _take(page, folder / f"{kind}{name}-{scheme}.jpg")
        context.close()


def _take(page: object, path: Path) -> None:
    page.screenshot(path=path, type="jpeg", quality=QUALITY)  # type: ignore[attr-defined]


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
