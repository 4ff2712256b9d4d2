"""Every text a payload, every page in a real browser: nothing runs or breaks out, all is text.

The rows are the demo's and one or more in every other table, with a payload in each string field of
each (`tests.hostile` finds the fields). Whoever looks is their owner and a superuser.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import closing
from http.client import HTTPConnection
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import pytest
from django.contrib import admin
from django.db import connection, models
from django.utils import timezone
from playwright.sync_api import Page, Response, expect
from pytest_django import DjangoDbBlocker

from memory.models import (
    Episode,
    Note,
    Principal,
    Project,
    RawItem,
    StageRun,
)
from memory.web.listing import FORMULA_STARTS
from tests import cluster, hostile
from tests.bench.ground import server
from tests.browser import hostile_ground
from tests.browser.conftest import Visit
from tests.browser.elsewhere import elsewhere
from tests.browser.ground import PAGES, Watched
from tests.browser.hostile_ground import EVE
from tests.browser.looking import OPENED, WATCH, Looked, actions, opened

#: Names of fields whose payloads some page must have shown: who adds a page adds what it shows.
SEEN = frozenset({
    "answer", "boundary_reason", "client", "content", "context", "cwd",
    "detail", "error", "flags", "gate", "keywords", "locator",
    "machine", "metadata", "method", "mode", "model_real", "name", "origin", "outcome",
    "parked_reason", "prefix", "project_method", "prompt_version", "provider", "query", "question",
    "quote", "reason", "reasoning", "record_id", "reference", "reply", "report", "retired_reason",
    "role", "runner_up", "said_by", "session", "source", "stage", "status", "tags", "title",
    "trigger_source", "turns", "unit", "verb", "version", "worker",
})  # fmt: skip

#: Parameters that some page reads.
PARAMETERS = (
    "q", "said", "after", "before", "since", "until", "project", "session", "source", "state",
    "status", "stage", "reason", "model", "shelf", "view", "note", "reply", "from", "start", "end",
    "part", "all", "of", "as_of", "only", "cwd", "scope", "seen", "board", "next", "known_at",
    "note_relevance", "method", "mismatch", "origin", "kind", "verb", "who", "drawn_by", "format",
)  # fmt: skip


@pytest.fixture(scope="module")
def filled() -> dict[str, int]:
    return {}


@pytest.fixture(scope="module")
def site(demo: str, filled: dict[str, int], django_db_blocker: DjangoDbBlocker) -> Iterator[str]:
    """The web server on the demo full of payloads."""
    with django_db_blocker.unblock(), cluster.copied(demo) as name:
        filled |= hostile_ground.poison()
        with server(cluster.address(name)) as url:
            yield url
        connection.close()


@pytest.fixture
def eve(visit: Visit) -> Watched:
    watched = visit(EVE)
    watched.page.add_init_script(WATCH)
    return watched


def test_it_would_be_told_of_what_is_more_than_text(eve: Watched) -> None:
    for payload, told in (
        (hostile.BREAK, "<img onerror>"),
        (f"<b x-init=\"hit('{hostile.MARK}')\">b</b>", "<b x-init="),
        (f"<a href=\"javascript:hit('{hostile.MARK}')\">b</a>", "href=javascript:"),
        (hostile.TAGS[5], "iframe"),
        (f"\u202e{hostile.MARK}", "hides or turns"),
        ("<pre>" + "w" * 900 + "</pre>", "wide"),
    ):
        looked = Looked(eve)
        eve.open("/ui/audit/")
        eve.page.evaluate("(html) => { content.innerHTML = html; }", payload)
        looked.look("here")
        assert [one for one in looked.wrong if told in one], payload


def test_it_shows_every_payload_as_text_and_runs_none(eve: Watched, filled: dict[str, int]) -> None:
    assert len(hostile.PAYLOADS) >= 50
    assert [name for name, rows in filled.items() if not rows] == []
    looked = Looked(eve)
    posted = actions(eve.site, eve.page)
    mine = opened(posted)
    for everybody in (False, True):
        looked.open("/ui/?board=1")
        if everybody:
            eve.page.get_by_role("button", name="See all owners").click()
            eve.page.wait_for_load_state()
        # Alone, the lists and a page of each are enough: the templates are the same.
        lists = [one for one in mine if not re.search(r"(\d|-[\da-f]{12})/(\?|$)", one)]
        alone = lists + mine[:: OPENED + 1]
        for address in mine if everybody else alone:
            looked.open(address)
    looked.done()
    assert SEEN - looked.seen == set()
    eve.page.get_by_role("button", name="Only mine").click()


def test_it_is_text_in_the_pieces_that_htmx_puts_in(eve: Watched) -> None:
    looked = Looked(eve)
    looked.open("/ui/?board=1")
    note = Note.objects.as_pipeline().order_by("pk")[0].pk
    episode = Episode.objects.as_pipeline().exclude(distilled_at=None).order_by("pk")[0].pk
    project = Project.objects.order_by("pk")[0].pk
    runs = list(StageRun.objects.order_by("-pk").values_list("pk", flat=True)[:3])
    for address in (
        "/ui/stages", "/ui/install-line", "/ui/first", "/ui/review/",
        *(f"/ui/notes/{note}/?part={part}" for part in ("neighbours", "trace")),
        *(f"/ui/episodes/{episode}/?part={part}" for part in ("again", "attributions", "calls")),
        *(f"/ui/projects/{project}/?part={part}" for part in ("acts", "offered")),
        *(f"/ui/runs/{pk}/" for pk in runs), "/ui/injections/floors/", "/ui/ask/?q=Which+database",
    ):  # fmt: skip
        looked.open("/ui/?board=1")
        looked.swap(address)
    looked.done()


def test_it_is_text_on_the_pages_of_the_theme(eve: Watched) -> None:
    looked = Looked(eve)
    for model in admin.site._registry:
        if not issubclass(model, models.Model) or model._meta.app_label == "django_q":
            continue
        there = f"/ui/{model._meta.app_label}/{model._meta.model_name}/"
        pk = hostile.rows_of(model).order_by("pk").values_list("pk", flat=True)[0]
        for address in (there, f"{there}{pk}/change/", f"{there}{pk}/history/",
                        f"{there}{pk}/delete/", f"{there}?q={quote(hostile.BREAK)}"):  # fmt: skip
            looked.open(address, themed=True)
    for address in ("/ui/password_change/", f"/ui/nothing/{quote(hostile.BREAK, safe='')}/"):
        looked.open(address, themed=True)
    looked.done()


def test_it_is_text_where_an_address_says_it(eve: Watched) -> None:
    looked = Looked(eve)
    payloads = (hostile.BREAK, hostile.LINKS[0], hostile.HIDDEN[0])
    lists = [address for name, address in PAGES.items() if name != "board"]
    for address in lists:
        eve.open(address)
        named = eve.page.eval_on_selector_all(
            "main form[method=get] [name]", "(all) => all.map((one) => one.name)"
        )
        for payload in payloads:
            names = sorted({*PARAMETERS, *named})
            # Why in parts: a server reads no longer address.
            for part in (names[::2], names[1::2]):
                query = urlencode(dict.fromkeys(part, payload))
                looked.open(f"{address}?{query}", fails=True)
    # A word for a word: a page that stops at the first it does not know does not hide the others.
    shapes = set()
    for name in PARAMETERS:
        for address in ("/ui/ask/?q=which+port", "/ui/injections/floors/?"):
            alone = f"{address}&{urlencode({name: hostile.BREAK})}"
            text = eve.page.request.get(eve.site + alone).text()
            # Two answers that differ in the name, in tokens and in numbers are looked at once.
            shape = re.sub(r"\w{32,}|\d+", "", text.replace(name, ""))
            if hostile.MARK in shape and shape not in shapes:
                shapes.add(shape)
                looked.open(alone, fails=True)
    looked.done()
    assert len(shapes) >= 5


def test_it_is_text_in_what_is_said_after_an_action(visit: Visit) -> None:
    for script in (True, False):
        eve = visit(EVE, script=script)
        eve.page.add_init_script(WATCH)
        looked = Looked(eve)
        note = Note.objects.as_pipeline().filter(deleted_at=None).order_by("-pk")[0].pk
        project = Project.objects.filter(merged_into=None).order_by("pk")[0].pk
        for address, button, fields in (
            ("/ui/parked/", "Dismiss", {}),
            ("/ui/parked/?shelf=dismissed", "Bring back", {}),
            ("/ui/parked/", "Retry", {}),
            (f"/ui/projects/{project}/", "Add the name", {"name": hostile.BREAK}),
            (f"/ui/projects/{project}/", "Add the folder", {"folder": hostile.BREAK}),
            (f"/ui/projects/{project}/", "Add the folder", {"folder": f"/{hostile.BREAK}"}),
            (f"/ui/projects/{project}/", "Merge", {"into": hostile.BREAK, "reason": "x"}),
            (f"/ui/notes/{note}/", "Useful", {"reason": hostile.BREAK}),
            (f"/ui/notes/{note}/", "Save as a new note",
             {"title": hostile.TAGS[1], "content": hostile.BREAKS[5], "reason": hostile.BREAK}),
            ("/ui/keys/", "Make the key", {"name": hostile.BREAK}),
        ):  # fmt: skip
            looked.open(address)
            _press(eve.page, button, fields, script=script)
            looked.look(f"{button} {fields}", fails=True)
        looked.done()
        assert looked.pressed >= 9


def _press(page: Page, name: str, fields: Mapping[str, str], *, script: bool) -> None:
    """Fill the form of a button and send it; then what it said is there. Where no script runs, no
    form is sent but by leaving the page."""
    page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
    button = page.locator("main button", has_text=re.compile(f"^{name}")).first
    form = button.locator("xpath=ancestor::form[1]")
    for field, value in fields.items():
        form.locator(f"[name={field}]").first.fill(value)
    stays = (
        "one => Boolean(one.closest('form').getAttribute('hx-post') || one.getAttribute('hx-post'))"
    )
    if script and button.evaluate(stays):
        with page.expect_event("requestfinished", lambda request: request.method == "POST"):
            button.click()
        expect(page.locator(".htmx-request, .htmx-swapping, .htmx-settling")).to_have_count(0)
    else:
        with page.expect_navigation():
            button.click()


def test_it_exports_no_formula_and_says_what_it_is(eve: Watched) -> None:
    _see_all(eve)
    exports = 0
    for address in PAGES.values():
        page = eve.open(address)
        for link in page.locator("main a[download]").all():
            answer = page.request.get(eve.site + address + str(link.get_attribute("href")))
            body, headers = answer.body().decode(), answer.headers
            assert answer.status == 200 and headers["x-content-type-options"] == "nosniff"
            assert headers["content-disposition"].startswith("attachment; filename=")
            assert "no-store" in headers["cache-control"]
            exports += 1
            if link.inner_text() == "JSON":
                assert headers["content-type"].startswith("application/json")
                assert isinstance(json.loads(body), list)
                continue
            assert headers["content-type"].startswith("text/csv")
            rows = list(csv.reader(io.StringIO(body, newline="")))
            assert len(rows) > 1 and len({len(row) for row in rows}) == 1
            for cell in (cell for row in rows for cell in row):
                number = re.fullmatch(r"-?[\d.]+(e-?\d+)?", cell)
                assert number or not cell.startswith((*FORMULA_STARTS, "\n")), f"{address}: {cell}"
    assert exports >= 20


def test_its_pages_are_kept_nowhere_and_framed_by_nobody(eve: Watched) -> None:
    for address in (*PAGES.values(), *opened(actions(eve.site, eve.page))[-30:]):
        answer = eve.page.request.get(eve.site + address)
        headers = answer.headers
        assert headers["x-frame-options"] == "DENY", address
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "same-origin"
        assert headers["cross-origin-opener-policy"] == "same-origin"
        policy = headers["content-security-policy"]
        assert "frame-ancestors 'none'" in policy and "object-src 'none'" in policy
        scripts = re.search("script-src ([^;]*)", policy)
        assert scripts and "unsafe-inline" not in scripts[1] and "form-action 'self'" in policy
        if answer.status == 200:
            assert {"no-store", "private"} <= set(headers["cache-control"].split(", ")), address


def test_no_get_changes_a_row(eve: Watched) -> None:
    _see_all(eve)
    page = eve.page
    posted = actions(eve.site, page)
    addresses = [*opened(posted), *posted, *(f"{one}?format=csv" for one in PAGES.values())]
    before = _digests()
    for address in addresses:
        assert page.request.get(eve.site + address).status < 500
    for address in [*PAGES.values(), *posted]:
        as_htmx = {"HX-Request": "true"}
        assert page.request.get(eve.site + address, headers=as_htmx).status < 500
        assert page.request.head(eve.site + address).status < 500
    assert _digests() == before


def test_another_origin_changes_nothing_and_reads_nothing(eve: Watched) -> None:
    page = eve.page.context.new_page()
    posted = actions(eve.site, eve.page)
    before = _digests()
    asked: list[Response] = []

    def heard(answer: Response) -> None:
        asked.append(answer)

    with elsewhere(eve.site, posted) as port:
        for host in ("127.0.0.1", "localhost"):
            page.on("response", heard)
            page.goto(f"http://{host}:{port}/")
            page.wait_for_function("window.done", timeout=60_000)
            told = page.evaluate("window.told")
            assert told["read"] == [], "an answer of ours was read by another origin"
            assert not told["socket"]
            assert [one.url for one in page.frames[1:] if one.url.startswith(eve.site)] == []
            page.remove_listener("response", heard)
            # A form of theirs, sent as by hand: a page of refusal.
            for form in ("/ui/keys/make", "/ui/login/", "/ui/logout/"):
                page.goto(f"http://{host}:{port}/form?{form}")
                page.wait_for_url(f"{eve.site}{form}*")
                assert page.locator("body", has_text="403").count() or "403" in page.title()
    sent = [one for one in asked if one.request.method == "POST" and one.url.startswith(eve.site)]
    assert len(sent) >= 2 * len(posted)
    assert [f"{one.status} {one.url}" for one in sent if one.status not in (401, 403, 415)] == []
    # Of what is fetched the browser tells no cookies; of pictures and frames it does.
    ours = [one.request.all_headers() for one in asked if one.url.startswith(eve.site)]
    cookies = [one.get("cookie", "") for one in ours]
    assert any("sessionid" in one for one in cookies), "no cookie went along: nothing was tried"
    assert _digests() == before
    page.close()
    assert eve.open("/ui/keys/").locator("h1").inner_text() == "Keys", "still logged in"


def test_it_knows_its_own_name_alone(eve: Watched) -> None:
    page = eve.page
    for address in ("/ui/", "/ui/notes/", "/ui/keys/?format=json", "/api/schema"):
        for host in ("evil.example", "127.0.0.1.evil.example", "[::ffff:7f00:1]"):
            assert _status(eve.site, address, host) == 400
    status = page.request.post(eve.site + "/capture", data="{}").status
    assert status == 401, "the API knows keys alone, no cookie of a page"


def test_it_bears_what_is_too_much(eve: Watched) -> None:
    owner = Principal.objects.get(user__username=EVE)
    deep: Any = {"end": hostile.BREAK}
    for _ in range(600):
        deep = {"k": deep}
    long = "".join(hostile.PAYLOADS)
    item = RawItem.objects.as_pipeline().create(
        owner=owner, source="s", session="vast", body=(long * (1 + 2**20 // len(long)))[: 2**20],
        occurred_at=timezone.now(), sha256="0" * 64, dedup_key="vast", metadata=deep,
        locator={f"{hostile.BREAK}{number}": "w" * 900 for number in range(200)}, role="w" * 64,
    )  # fmt: skip
    looked = Looked(eve)
    for start in (0, 500_000, 2**20 - 5, 999_999_999):
        looked.open(f"/ui/items/{item.pk}/?from={start}")
    looked.open("/ui/episodes/?session=vast")
    looked.done()


def _see_all(eve: Watched) -> None:
    page = eve.open("/ui/?board=1")
    if page.get_by_role("button", name="See all owners").count():
        page.get_by_role("button", name="See all owners").click()
        page.wait_for_load_state()


def _digests() -> dict[str, tuple[int, int]]:
    """Rows and what is in them, of every table but of who is logged in and of who looked."""
    found = {}
    with connection.cursor() as cursor:
        for table in sorted(connection.introspection.table_names(cursor)):
            if table == "django_session":
                continue
            looked = " WHERE verb <> 'see_all'" if table == "memory_act" else ""
            name = connection.ops.quote_name(table)
            cursor.execute(
                f"SELECT count(*), coalesce(sum(hashtext(t::text)), 0) FROM {name} t{looked}"
            )
            found[table] = cursor.fetchone()
    return found


def _status(site: str, address: str, host: str) -> int:
    """What is answered to whoever calls us by this name."""
    at = urlsplit(site)
    with closing(HTTPConnection(str(at.hostname), at.port, timeout=10)) as asked:
        asked.putrequest("GET", address, skip_host=True)
        asked.putheader("Host", f"{host}:{at.port}")
        asked.endheaders()
        with asked.getresponse() as answer:
            return answer.status
