"""What stands at the side of every page. Knows nothing about what the pages show."""

from __future__ import annotations

from functools import cache
from typing import Any

from django.http import HttpRequest
from django.template.loader import render_to_string
from django.urls import reverse

from memory.web.viewer import Viewer

#: Group -> (title, name of the address, icon of the theme's font).
PAGES: dict[str, tuple[tuple[str, str, str], ...]] = {
    "": (("Board", "index", "dashboard"), ("Ask", "ask", "search")),
    "Decide": (
        ("Review", "review", "rule"),
        ("Rejections", "rejections", "block"),
        ("Parked", "parked", "inventory_2"),
        ("Tasks", "tasks", "task_alt"),
        ("Feed", "feed", "style"),
    ),
    "Look": (
        ("Notes", "notes", "sticky_note_2"),
        ("Episodes", "episodes", "forum"),
        ("Injections", "injections", "input"),
        ("Projects", "projects", "folder"),
    ),
    "Run": (
        ("Keys", "keys", "key"),
        ("Audit", "audit", "history"),
        ("Findings", "findings", "fact_check"),
        ("Purge", "purge", "delete_forever"),
    ),
}

#: Pages that nobody is told of who may not do what they are for -> what that is.
ASKS = {"purge": "purge"}


#: What a page shows, where it is no noun of PAGES -> under which it stands.
BELONGS = {"floor": "injection", "item": "episode", "install": "key", "run": "index"}

#: Pages beside which stands how much waits there.
WAITS = ("review", "rejections")


def pages_for(request: HttpRequest) -> str:
    """PAGES for whoever asks, with the one that is shown marked; nothing for who may not look."""
    viewer: Viewer | None = getattr(request, "viewer", None)
    if viewer is None or not viewer.may("look"):
        return ""
    here = (request.resolver_match.url_name or "") if request.resolver_match else ""
    noun = here.partition("-")[0].rstrip("s")
    hidden = frozenset(name for name, what in ASKS.items() if not viewer.may(what))
    return _written(BELONGS.get(noun, noun), hidden)


@cache
def _written(noun: str, hidden: frozenset[str]) -> str:
    """PAGES with those of this noun marked and without these, which no request changes."""
    groups = [
        {
            "title": group,
            "pages": [
                {
                    "title": title,
                    "icon": icon,
                    "link": address,
                    "here": noun == name.rstrip("s"),
                    "name": name,
                    "waits": name in WAITS,
                }
                for title, name, icon, address in pages
                if name not in hidden
            ],
        }
        for group, pages in _addresses().items()
    ]
    return render_to_string("ui/_pages.html", {"navigation": groups})


@cache
def _addresses() -> dict[str, list[tuple[str, str, str, str]]]:
    """PAGES with their addresses, which no request changes."""
    return {
        group: [(title, name, icon, reverse(f"admin:{name}")) for title, name, icon in pages]
        for group, pages in PAGES.items()
    }


@cache
def ways() -> dict[str, str]:
    """The other addresses at the side of every page, by name."""
    names = ("index", "waiting", "owners", "password_change", "logout")
    return {name: reverse(f"admin:{name}") for name in names}


def sidebar(request: HttpRequest) -> list[dict[str, Any]]:
    """The same in the theme's form, for the pages that are the theme's own."""
    if not request.user.has_perm("memory.look"):
        return []
    return [
        {
            "title": group,
            "separator": bool(group),
            "items": [
                {"title": title, "icon": icon, "link": address}
                for title, name, icon, address in pages
                if name not in ASKS or request.user.has_perm(f"memory.{ASKS[name]}")
            ],
        }
        for group, pages in _addresses().items()
    ]
