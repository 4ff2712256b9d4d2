"""The pictures of the README: `python -m tests.browser.gallery [FOLDER]`, from the demo's rows.

Each page in light and in dark, and the queue on a phone. Files are small and the same size, so that
a table of them is one glance.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from playwright.sync_api import Browser

from tests.bench.ground import ROOT, database, server

#: Where the README looks for them.
FOLDER = ROOT / "tests" / "gallery"

#: Pixels of a picture, and how much of it JPEG keeps.
DESK, PHONE, QUALITY = (1200, 760), (390, 760), 55

#: Pages that are taken on a phone, too.
ON_A_PHONE = ("board", "review")

#: Pages of one thing: from which list, and the link to follow there.
OPENED = {
    "hold": ("/ui/review/", ""),
    "episode": ("/ui/episodes/", "main a[href^='/ui/episodes/']"),
    "note": ("/ui/notes/", "main a[href^='/ui/notes/']"),
    "injection": (
        "/ui/injections/?mode=prompt&outcome=injected",
        "main tbody a[href^='/ui/injections/']",
    ),
    "task": ("/ui/tasks/", "main a[href^='/ui/tasks/']"),
}


def main(folder: Path) -> None:
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
    folder.mkdir(parents=True, exist_ok=True)
    with database() as address:
        from django.db import connection

        from tests.browser import ground

        ground.tell_story()
        connection.close()
        with server(address) as site, ground.chromium() as browser:
            for dark in (False, True):
                _pictures(browser, site, folder, dark=dark)
    print(f"{len(list(folder.glob('*.jpg')))} pictures in {folder}")


def _pictures(browser: Browser, site: str, folder: Path, *, dark: bool) -> None:
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
            if kind and name not in ON_A_PHONE:
                continue
            query = "?q=Which+PostgreSQL+version+does+staging+use%3F" if name == "ask" else ""
            page.goto(site + address + query, wait_until="networkidle")
            _take(page, folder / f"{kind}{name}-{scheme}.jpg")
        for name, (address, link) in () if kind else OPENED.items():
            page.goto(site + address, wait_until="networkidle")
            found = page.locator(link).first if link else None
            if found is not None:
                page.goto(site + str(found.get_attribute("href")), wait_until="networkidle")
            _take(page, folder / f"{kind}{name}-{scheme}.jpg")
        context.close()


def _take(page: object, path: Path) -> None:
    page.screenshot(path=path, type="jpeg", quality=QUALITY)  # type: ignore[attr-defined]


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
