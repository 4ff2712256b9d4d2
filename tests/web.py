"""Browsers for tests of pages: staff of a role, logged in, standing for a principal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from memory import roles
from memory.access import principal
from memory.models import Principal

#: The password of everybody here.
PASSWORD = "correct horse battery"

#: A page that is nothing but the frame that all have.
FRAME = "/ui/install-line"


def user(name: str, *given: str, superuser: bool = False, who: Principal | None = None) -> User:
    """A staff user with these roles, linked to `who` or to the principal of its own name."""
    made, fresh = User.objects.get_or_create(username=name)
    if fresh:
        made.set_password(PASSWORD)
    made.is_superuser = superuser
    made.is_staff = True
    made.save()
    roles.give(made, given)
    made.is_staff = True
    made.save(update_fields=["is_staff"])
    who = who or principal(name)
    Principal.objects.filter(user=made).update(user=None)
    Principal.objects.filter(pk=who.pk).update(user=made)
    return User.objects.get(pk=made.pk)


def staff(*given: str, who: Principal | None = None, superuser: bool = False) -> Client:
    """A browser of a user with these roles ("reader", "reviewer", "operator")."""
    name = f"web {who.name}" if who else f"web {'-'.join(given) or 'nobody'}"
    browser = Client()
    browser.force_login(
        user(name, *given, superuser=superuser, who=who),
        backend="django.contrib.auth.backends.ModelBackend",
    )
    return browser


def htmx(browser: Client) -> Client:
    """The same browser, asking as htmx does."""
    other = Client(headers={"HX-Request": "true"})
    other.cookies = browser.cookies
    return other


@dataclass(frozen=True)
class Asked:
    """What one page asked of the database, and what it then said."""

    statements: list[str]
    body: str

    def __len__(self) -> int:
        return len(self.statements)


def asked(browser: Client, address: str, sent: Mapping[str, Any] | None = None) -> Asked:
    """The statements of one page, or of what is sent there.

    Not of the first page of a process, which asks for more: the frame is asked for before. Not the
    page itself: what it keeps between two views would be left out.
    """
    assert browser.get(FRAME).status_code == 200
    with CaptureQueriesContext(connection) as queries:
        reply = browser.get(address) if sent is None else browser.post(address, sent)
    body = reply.content.decode()
    assert reply.status_code == 200, body
    return Asked([one["sql"] for one in queries], body)
