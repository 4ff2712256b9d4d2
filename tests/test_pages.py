"""What holds for every page and every action there is, whoever wrote it.

How: in few tests that go over all of them with one browser for each role; what fails is collected
and told together. Whatever is done is taken back at once, so that every act meets the same rows.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from urllib.parse import quote_plus

import pytest
from django.contrib import admin
from django.db import transaction
from django.test import Client
from django.urls import URLPattern, resolve
from django.urls.converters import IntConverter, UUIDConverter

from argus.site import ArgusSite
from memory import roles
from memory.models import Act, Principal
from review.models import Draw
from tests import web
from tests.factories import at, three
from tests.oneofeach import Doing, doings, snapshot

pytestmark = pytest.mark.django_db

#: Every page and action, and what it needs; by hand, so that one that asks for less is seen.
# Why some that only ask to look: what they do is one's own alone, or a verb of them asks for more,
# which `doings` has.
NEEDS = {
    "index": "look",
    "stages": "look",
    "first": "look",
    "install-line": "look",
    "waiting": "look",
    "owners": "look",
    "purge": "purge",
    "purge-do": "purge",
    "purge-finish": "purge",
    "episodes": "look",
    "episode": "look",
    "episode-redistill": "decide",
    "episode-apply": "decide",
    "episode-drop": "decide",
    "item": "look",
    "run": "look",
    "run-start": "operate",
    "run-cancel": "operate",
    "projects": "look",
    "project": "look",
    "project-change": "look",
    "keys": "look",
    "key-make": "operate",
    "key-revoke": "operate",
    "audit": "look",
    "findings": "look",
    "review": "look",
    "review-bulk": "decide",
    "review-hold": "look",
    "review-edit": "decide",
    "review-decide": "decide",
    "rejections": "look",
    "rejection": "look",
    "rejection-decide": "decide",
    "rejection-lift": "decide",
    "parked": "look",
    "parked-release-all": "operate",
    "parked-unit": "look",
    "parked-release": "operate",
    "parked-dismiss": "operate",
    "tasks": "look",
    "task": "look",
    "task-decide": "decide",
    "feed": "look",
    "feed-next": "look",
    "feed-draws": "look",
    "feed-rate": "look",
    "feed-act": "look",
    "notes": "look",
    "note": "look",
    "note-edit": "decide",
    "note-retire": "decide",
    "note-restore": "decide",
    "note-pin": "look",
    "note-unpin": "look",
    "note-feedback": "look",
    "injections": "look",
    "floors": "look",
    "floors-save": "decide",
    "injection": "look",
    "injection-feedback": "look",
    "ask": "look",
}

#: An id that nothing has.
NOBODY = 987_654_321

#: What no field is meant for: as a form or an address carries it.
# Why a lone surrogate in its bytes: a browser sends none, whoever writes to us by hand may.
ODD = {
    "nul": quote_plus("\\ud800\\u0000 \0"),
    "superscript": quote_plus("²"),
    "beyond": str(10**30),
    "surrogate": "%ED%A0%80",
    "huge": "9x" * 50_000,
}

#: What pages read of an address, beside the filters of their lists.
READ = (
    "q", "from", "start", "end", "after", "before", "seen", "reply", "of", "all", "part", "view",
    "status", "shelf", "state", "project", "note", "since", "until", "format", "as_of", "score",
    "note_relevance", "scope", "board", "cwd", "kind", "similarity", "model", "reason",
)  # fmt: skip


@dataclass(frozen=True)
class Place:
    """A page or an action: its address with ids that nothing has, and what it says it needs."""

    name: str
    address: str
    permission: str


def _place(route: URLPattern) -> Place:
    address = str(route.pattern)
    for name, converter in route.pattern.converters.items():
        value = "nothing"
        if isinstance(converter, UUIDConverter):
            value = str(uuid.UUID(int=0))
        elif isinstance(converter, IntConverter):
            value = str(NOBODY)
        address = address.replace(f"<{_kind(converter)}:{name}>", value)
    view = route.callback
    return Place(str(route.name), f"/ui/{address}", str(vars(view)["permission"]))


def _kind(converter: object) -> str:
    kinds = {UUIDConverter: "uuid", IntConverter: "int"}
    return kinds.get(type(converter), "str")


# Any of Django's addresses resolves it: the site is made when it is first asked.
admin.site.get_urls()
SITE = vars(admin.site)["_wrapped"]
assert isinstance(SITE, ArgusSite)
PLACES = tuple(_place(route) for route in SITE.pages())


@pytest.fixture
def alice() -> Principal:
    return three()[0]


@contextmanager
def taken_back() -> Iterator[None]:
    """Whatever is done in here is undone at its end, also by a database that was offended."""
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


def browser_of(*given: str, who: Principal | None = None, superuser: bool = False) -> Client:
    """A browser of these roles that answers a fault of ours as a server would."""
    browser = web.staff(*given, who=who, superuser=superuser)
    browser.raise_request_exception = False
    return browser


def sent(browser: Client, doing: Doing, **changed: str) -> int:
    """The status of an act with these fields (quoted already) in place of its own; taken back."""
    form = {name: quote_plus(value) for name, value in doing.form.items()} | changed
    body = "&".join(f"{name}={value}" for name, value in form.items())
    with taken_back():
        kind = "application/x-www-form-urlencoded"
        return browser.post(doing.address, body, content_type=kind).status_code


def test_it_needs_what_the_table_says() -> None:
    assert {place.name: place.permission for place in PLACES} == NEEDS


def test_its_address_is_ours_and_not_one_of_djangos_own() -> None:
    assert [one for one in PLACES if resolve(one.address).url_name != one.name] == []


def test_it_asks_a_stranger_for_a_login() -> None:
    browser = Client()
    answers = {place: browser.get(place.address) for place in PLACES}
    assert [
        place.name
        for place, answer in answers.items()
        if answer.status_code != 302 or not answer["Location"].startswith("/ui/login/?next=")
    ] == []


def test_it_is_not_there_for_staff_that_may_not() -> None:
    wrong = []
    for role in (*roles.ROLES, None):
        browser = browser_of(*([role] if role else []))
        for place in PLACES:
            if role is None or NEEDS[place.name] not in roles.ROLES[role]:
                got = {method(place.address).status_code for method in (browser.get, browser.post)}
                wrong += [(role, place.name, got)] if got - {404, 405} else []
    assert wrong == []


def test_it_takes_no_post_from_another_origin() -> None:
    browser = Client(enforce_csrf_checks=True)
    browser.cookies = web.staff(*roles.ROLES).cookies
    evil = {"Origin": "https://evil.example"}
    assert [
        place.name
        for place in PLACES
        if browser.post(place.address, headers=evil).status_code not in (403, 405)
    ] == []


def test_every_action_has_an_act_on_a_real_row(alice: Principal) -> None:
    browser = browser_of(*roles.ROLES)
    actions = {one.name for one in PLACES if browser.get(one.address).status_code == 405}
    # What no role may has tests of its own.
    beyond = {"owners", "purge-do", "purge-finish"}
    assert actions == {doing.name.partition(" ")[0] for doing in doings(alice)} | beyond


def test_it_is_done_by_who_may_and_changes_nothing_for_who_may_not(alice: Principal) -> None:
    everything = doings(alice)
    before = snapshot()
    wrong: list[object] = []
    for role in (*roles.ROLES, None):
        browser = browser_of(*([role] if role else []), who=alice)
        for doing in everything:
            if role and doing.needs in roles.ROLES[role]:
                with taken_back():
                    got = browser.post(doing.address, dict(doing.form)).status_code
                    idle = told() == 0
                wrong += [(role, doing.name, got)] if got >= 400 or idle else []
            elif (got := browser.post(doing.address, dict(doing.form)).status_code) != 404:
                wrong += [(role, doing.name, got)]
        wrong += [role] if snapshot() != before else []
    assert wrong == []


def told() -> int:
    """What was done on pages: an act is written of everything but of a draw, which is a row."""
    return (
        Act.objects.filter(door="page").count() + Draw.objects.filter(created_at__gt=at()).count()
    )


def test_it_does_nothing_to_a_row_of_somebody_else(alice: Principal) -> None:
    everything = doings(alice)
    before = snapshot()
    browser = browser_of("reviewer", "operator", who=Principal.objects.get(name="charlie"))
    owned = [one for one in everything if one.name not in FOR_ALL]
    assert [one.name for one in owned if sent(browser, one) != 404] == []
    assert snapshot() == before


#: Acts that are about nobody's row: the registry, the stages, one's own new key, the floors.
FOR_ALL = frozenset(
    f"project-change {verb}"
    for verb in ("alias-add", "alias-remove", "path-add", "path-remove", "merge", "unmerge")
) | {"run-start dedup", "run-cancel", "key-make", "floors-save", "feed-next", "review-bulk"}


def test_it_answers_an_odd_value_in_any_field_with_a_sentence(alice: Principal) -> None:
    browser = browser_of("reviewer", "operator", who=alice)
    wrong = []
    for doing in doings(alice):
        fields = dict.fromkeys((*doing.form, "reason"))
        for field, (odd, value) in product(fields, ODD.items()):
            got = sent(browser, doing, **{field: value})
            wrong += [(doing.name, field, odd, got)] if got >= 500 else []
    assert wrong == []


def test_it_answers_an_odd_address_with_a_sentence(alice: Principal) -> None:
    browser = browser_of("reviewer", "operator", who=alice)
    real = _real(doings(alice))
    wrong = []
    for address, odd in product(real, ("nul", "superscript", "beyond")):
        query = "&".join(f"{name}={ODD[odd]}" for name in READ)
        with taken_back():
            got = browser.get(f"{address}?{query}").status_code
        wrong += [(address, odd, got)] if got >= 500 else []
    assert wrong == []


def _real(everything: list[Doing]) -> list[str]:
    """The addresses of all pages, with the ids of the rows that there are."""
    ids: dict[str, object] = {}
    for doing in everything:
        found = resolve(doing.address)
        ids.setdefault(str(found.url_name).partition("-")[0], found.kwargs.get("pk"))
    # Where the name of the page is another than that of its actions.
    ids |= {"item": 1} | {"review": ids["review"], "floors": None}
    pages = []
    for place in PLACES:
        pk = ids.get(place.name.partition("-")[0])
        kind = str(uuid.UUID(int=0)) if str(uuid.UUID(int=0)) in place.address else str(NOBODY)
        pages.append(place.address.replace(kind, str(pk)) if pk else place.address)
    return [one for one in pages if "nothing" not in one]


def test_it_answers_nonsense_about_nothing_with_a_sentence() -> None:
    # Ids that nothing has, parameters of no sense: never a fault of ours.
    browser = browser_of(*roles.ROLES)
    odd = {"q": "\0'\"<b>", "after": "x", "before": "W10", "since": "2026-99-99", "pk": "x",
           "status": "odd", "project": "-1", "note": "none", "as_of": "never",
           "floor": "high"}  # fmt: skip
    htmx = web.htmx(browser)
    htmx.raise_request_exception = False
    methods = (browser.get, browser.post, htmx.get, htmx.post)
    assert [
        (place.name, answer.status_code)
        for place, method in product(PLACES, methods)
        if (answer := method(place.address, odd)).status_code >= 500
    ] == []


def test_it_has_a_page_for_each_address_at_the_side() -> None:
    browser = web.staff("reader")
    page = browser.get("/ui/").content.decode()
    for address in ("review", "rejections", "parked", "tasks", "feed", "notes", "episodes",
                    "injections", "projects", "ask", "keys", "audit", "findings"):  # fmt: skip
        assert f'href="/ui/{address}/"' in page
        assert browser.get(f"/ui/{address}/").status_code == 200
