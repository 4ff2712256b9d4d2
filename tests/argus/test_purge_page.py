"""The page of purges: who is told of it, what it shows, and what its button does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from django.contrib.auth.models import Permission
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from exporter import export as exporting
from exporter.place import Place, around_vault
from memory import purge as record
from memory import roles
from memory.access import create_key, principal
from memory.letgo import let_go
from memory.llm.remote.embed import shared
from memory.models import Act, Injection, Note, PurgeLedger, PurgeProof, RawItem
from memory.selection import Selection
from tests import factories, web
from tests.llm.conftest import configure, server
from tests.memory.books import DECIDED, REPEATED, count

__all__ = ["configure", "server"]

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _quick(configure: Callable[..., None]) -> None:
    shared.cache_clear()
    configure(model_url=None, model=None, principal="alice")


def admin() -> Client:
    return web.staff(who=principal("alice"), superuser=True)


def test_it_is_there_for_those_who_may_alone() -> None:
    address, link = "/ui/purge/", 'href="/ui/purge/"'
    operator = web.staff(*roles.ROLES, who=principal("alice"))
    assert operator.get(address).status_code == 404
    assert link not in operator.get("/ui/keys/").content.decode()
    mine = factories.distilled(principal("alice"), DECIDED)[0]
    assert "Purge what" not in operator.get(f"/ui/notes/{mine.pk}/").content.decode()
    assert operator.post(f"{address}do", {"raw": "1", "word": "purge"}).status_code == 404
    web.user("web alice").user_permissions.add(Permission.objects.get(codename="purge"))
    user = web.user("web alice", "reader", who=principal("alice"))
    user.user_permissions.add(Permission.objects.get(codename="purge"))
    assert operator.get(address).status_code == 200
    assert link in operator.get("/ui/keys/").content.decode()
    assert f"{address}?note={mine.pk}" in operator.get(f"/ui/notes/{mine.pk}/").content.decode()


def test_it_shows_what_would_go_and_does_it_when_the_word_is_said() -> None:
    alice, browser = principal("alice"), admin()
    note = factories.distilled(alice, DECIDED)[0]
    before = count("memory_rawitem")
    page = browser.get(f"/ui/purge/?note={note.pk}").content.decode()
    assert note.title in page and "would go, for ever" in page
    assert count("memory_rawitem") == before and not PurgeLedger.objects.exists()
    seen = page.split('name="seen" value="')[1].split('"')[0]
    form = {"note": str(note.pk), "seen": seen, "reason": "a customer asked", "word": "Purge"}

    for wrong, status in (({"word": "yes"}, 422), ({"reason": " "}, 422), ({"seen": "9:9:9"}, 409)):
        assert browser.post("/ui/purge/do", form | wrong).status_code == status
    assert not PurgeLedger.objects.exists()

    answer = browser.post("/ui/purge/do", form)
    ledger = PurgeLedger.objects.get()
    assert answer["Location"] == f"/ui/purge/?done={ledger.pk}"
    assert not Note.objects.as_pipeline().filter(pk=note.pk).exists()
    assert PurgeProof.objects.filter(ledger=ledger).latest("pk").proved
    assert Act.objects.get(verb="purge").door == "page"
    page = browser.get(answer["Location"]).content.decode()
    assert "a customer asked" in page and ">clean<" in page
    assert web.htmx(browser).post(f"/ui/purge/{ledger.pk}/finish").status_code == 200
    assert browser.get(f"/ui/purge/?note={note.pk}").status_code == 404


def test_it_says_that_nothing_can_be_forbidden_of_which_no_note_came() -> None:
    alice, browser = principal("alice"), admin()
    (item,) = factories.turns(alice, ["Go on, please, as we said yesterday."])
    page = browser.get(f"/ui/purge/?raw={item.pk}").content.decode()
    assert 'name="forbid"' not in page and "rejection forbid --words -" in page
    seen = page.split('name="seen" value="')[1].split('"')[0]
    form = {"raw": str(item.pk), "seen": seen, "reason": "asked", "word": "purge", "forbid": "on"}
    answer = web.htmx(browser).post("/ui/purge/do", form)
    assert "Nothing was forbidden" in answer.content.decode() + str(answer.headers)


def test_it_says_what_it_does_not_reach_and_why_files_wait(tmp_path: Path) -> None:
    """As the command does: keys that stay, and whose vault has the files."""
    alice, bob, browser = principal("alice"), principal("bob"), admin()
    note = factories.distilled(alice, DECIDED)[0]
    with around_vault(Place(tmp_path / "Hers", "alice")):
        exporting.export()
    _, key = create_key(owner="alice", scopes=["capture"])
    with around_vault(Place(tmp_path / "His", bob.name)):
        page = browser.get(f"/ui/purge/?note={note.pk}").content.decode()
        seen = page.split('name="seen" value="')[1].split('"')[0]
        form = {"note": str(note.pk), "seen": seen, "reason": "asked", "word": "purge"}
        answer = web.htmx(browser).post("/ui/purge/do", form).content.decode()
    assert f"what their hooks post: {key.prefix}" in answer
    assert "ARGUS_PRINCIPAL=alice ARGUS_VAULT=FOLDER manage.py purge --finish" in answer


def test_a_purge_whose_page_never_answered_is_in_the_list_and_is_finished_there() -> None:
    """How: the server dies between the purge and its proof."""
    alice, browser = principal("alice"), admin()
    factories.distilled(alice, DECIDED)
    plan = record.plan(Selection(session="s1"), by=alice, counted=False)
    done = record.purge(plan, by=alice, reason="asked", now=timezone.now())
    page = browser.get(f"/ui/purge/?done={done.ledger}").content.decode()
    assert ">files wait<" in page and ">Finish it<" in page and "purge --finish" in page
    answer = web.htmx(browser).post(f"/ui/purge/{done.ledger}/finish")
    assert answer.status_code == 200
    newest = PurgeProof.objects.filter(ledger=done.ledger).latest("pk")
    assert not newest.files_pending and newest.scanned["rows"]


def test_it_takes_what_is_ones_own_unless_all_owners_are_looked_at() -> None:
    bob, browser = principal("bob"), admin()
    item = factories.turns(bob, REPEATED)[0]
    assert browser.get(f"/ui/purge/?raw={item.pk}").status_code == 404
    browser.post("/ui/owners", {"all": "on"})
    page = browser.get(f"/ui/purge/?raw={item.pk}").content.decode()
    assert "bob" in page
    browser.post("/ui/owners", {"all": "off"})
    assert browser.post("/ui/purge/do", {"raw": str(item.pk), "word": "purge"}).status_code == 404
    assert RawItem.objects.as_pipeline().filter(pk=item.pk).exists()


@pytest.mark.parametrize(
    "query",
    ["raw=x", "note=x", "raw=1&session=s", "session=nowhere", "project=x", "done=9", "raw="],
)
def test_it_answers_nonsense_with_a_sentence(query: str) -> None:
    assert admin().get(f"/ui/purge/?{query}").status_code in (200, 404, 422)


def test_a_look_at_the_page_locks_nothing() -> None:
    """Whoever loads it again while somebody purges is answered at once."""
    note = factories.distilled(principal("alice"), DECIDED)[0]
    browser = admin()
    with CaptureQueriesContext(connection) as asked:
        assert browser.get(f"/ui/purge/?note={note.pk}").status_code == 200
    said = " ".join(one["sql"] for one in asked.captured_queries)
    assert "argus_purge_reach(" in said and "argus_purge(" not in said
    assert "DECLARE" not in said, "no table is read whole"


def test_it_lists_purges_alone_and_takes_no_other_set_for_what_was_seen() -> None:
    alice, browser = principal("alice"), admin()
    said = [f"{REPEATED[0]} {number}" for number in range(3)]
    first, middle, last = [row.pk for row in factories.turns(alice, said, session="s8")]
    assert "Nothing was ever purged by you" in browser.get("/ui/purge/").content.decode()
    Injection.objects.create(owner=alice, mode="notes", outcome="hit", created_at=factories.at())
    let_go(
        "injection", factories.at(days=2).date(), by=alice, reason="a year old", now=timezone.now()
    )
    page = browser.get("/ui/purge/").content.decode()
    assert "a year old" not in page and PurgeLedger.objects.count() == 1
    assert browser.get(f"/ui/purge/?done={PurgeLedger.objects.get().pk}").status_code == 404
    browser.post("/ui/owners", {"all": "on"})
    assert "Nothing was ever purged.<" in browser.get("/ui/purge/").content.decode()
    browser.post("/ui/owners", {"all": "off"})

    one = browser.get(f"/ui/purge/?raw={first}+{last}").content.decode()
    form = {
        "raw": f"{middle} {last}", "reason": "x", "word": "purge",
        "seen": one.split('name="seen" value="')[1].split('"')[0],
    }  # fmt: skip
    assert browser.post("/ui/purge/do", form).status_code == 409
