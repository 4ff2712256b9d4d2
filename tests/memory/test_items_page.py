"""How: staff browsers at single raw items and at runs."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from memory import passes
from memory.models import GateRejection, Principal, RawItem, StageRun
from memory.retire import retire
from memory.shown.items import WINDOW_CHARACTERS
from tests.factories import SAID, at, document, episode, note, three, turns
from tests.web import htmx, staff

pytestmark = pytest.mark.django_db


@pytest.fixture
def alice() -> Principal:
    return three()[0]


def page(item: RawItem, query: str = "") -> str:
    return reverse("admin:item", args=[item.pk]) + query


def text(browser: Client, address: str, status: int = 200) -> str:
    response = browser.get(address)
    assert response.status_code == status, response.content[:500]
    return response.content.decode()


class TestItem:
    def test_it_marks_what_is_cited_and_says_by_whom(self, alice: Principal) -> None:
        fact = "The staging server listens on port 8443."
        item = document(alice, f"# Servers\n\n{fact} And no more <b>than</b> that.")
        made, gone = (note(alice, fact, evidence=item) for _ in range(2))
        retire([gone.pk], reason="wrong", now=at(days=1))
        shown = text(staff("reader", who=alice), page(item))
        assert f'<mark class="evidence">{fact}</mark>' in shown
        assert "&lt;b&gt;than&lt;/b&gt;" in shown
        assert reverse("admin:note", args=[made.pk]) in shown and "retired: wrong" in shown

    def test_it_stands_among_its_neighbours(self, alice: Principal) -> None:
        one = episode(alice, SAID)
        first, second, third, _ = (turn.raw_item for turn in one.turns.select_related("raw_item"))
        shown = text(staff("reader", who=alice), page(second))
        assert page(first) in shown and page(third) in shown
        assert f"{reverse('admin:episode', args=[one.pk])}#turn-{second.pk}" in shown
        assert "turn 2" in shown

    def test_it_opens_at_the_words_asked_for_and_goes_on_from_there(self, alice: Principal) -> None:
        filler = "nothing of note here. " * 2_000
        body = f"{filler}The lamp is in the hall. {filler}"
        item = document(alice, body)
        start = body.index("The lamp")
        browser = staff("reader", who=alice)
        shown = text(browser, page(item, f"?start={start}&end={start + 24}"))
        assert '<mark class="evidence">The lamp is in the hall.</mark>' in shown
        assert "Earlier" in shown and "More" in shown and len(shown) < 3 * WINDOW_CHARACTERS
        end = text(browser, page(item, f"?from={len(body) - 100}"))
        assert "?from=" in end and "More" not in end
        for odd in ("?start=-5&end=9", "?from=x", "?from=999999999", "?start=9&end=3"):
            text(browser, page(item, odd))

    def test_it_shows_where_it_comes_from(self, alice: Principal) -> None:
        item = document(alice, "Some text to keep.", metadata={"author": "Dora <dora@x>"})
        refused = GateRejection.objects.create(
            owner=alice, reason="shape", candidate={"title": "A refused thing"}, raw_item=item
        )
        shown = text(staff("reader", who=alice), page(item))
        assert "Dora &lt;dora@x&gt;" in shown and item.sha256 in shown
        assert reverse("admin:rejection", args=[refused.pk]) in shown

    def test_it_is_not_there_for_strangers(self, alice: Principal) -> None:
        item = document(alice, "Some text to keep.")
        text(staff("reader", who=three()[2]), page(item), 404)
        text(staff(who=alice), page(item), 404)

    def test_it_hides_notes_of_others_that_cite_it(self, alice: Principal) -> None:
        bob = three()[1]
        fact = "The staging server listens on port 8443."
        item = document(alice, fact, visibility="team")
        note(alice, fact, evidence=item, title="For Alice alone")
        assert "For Alice alone" in text(staff("reader", who=alice), page(item))
        shown = text(staff("reader", who=bob), page(item))
        assert "For Alice alone" not in shown and '<mark class="evidence">' not in shown

    def test_it_asks_as_much_for_thirty_citations_as_for_one(self, alice: Principal) -> None:
        facts = [f"Fact number {number} is kept here." for number in range(30)]
        item = document(alice, "\n\n".join(facts))
        browser = staff("reader", who=alice)
        note(alice, facts[0], evidence=item)
        browser.get(page(item))
        with CaptureQueriesContext(connection) as few:
            browser.get(page(item))
        for fact in facts[1:]:
            note(alice, fact, evidence=item)
        with CaptureQueriesContext(connection) as many:
            assert text(browser, page(item)).count('<mark class="evidence">') == 30
        assert len(many) == len(few)


class TestRun:
    def test_it_is_begun_shown_and_cancelled_by_operators(self, alice: Principal) -> None:
        browser = staff("operator", who=alice)
        begun = browser.post(reverse("admin:run-start", args=["process"]))
        run = StageRun.objects.get()
        address = reverse("admin:run", args=[run.pk])
        assert begun.status_code == 302 and begun.headers["Location"] == address
        assert "Waits for a worker." in text(browser, address)
        piece = htmx(browser).get(address).content.decode()
        assert 'hx-trigger="every 1s"' in piece and "<html" not in piece
        ended = htmx(browser).post(reverse("admin:run-cancel", args=[run.pk]))
        assert b"every 1s" not in ended.content and b"cancelled" in ended.content
        again = browser.post(reverse("admin:run-cancel", args=[run.pk]))
        assert again.status_code == 409

    def test_it_says_that_no_worker_is_there(self, alice: Principal) -> None:
        run = passes.start("embed", by=alice, now=timezone.now() - timedelta(minutes=2))
        shown = text(staff("reader", who=alice), reverse("admin:run", args=[run.pk]))
        assert "No worker takes it" in shown and "manage.py qcluster" in shown
        assert "Cancel run" not in shown, "a reader stops nothing"

    def test_it_shows_how_far_each_stage_came(self, alice: Principal) -> None:
        run = passes.start("process", by=alice, now=timezone.now())
        inner = StageRun.objects.create(
            stage="segment", progress={"units": 3, "episodes_closed": 2}, worker="here:1"
        )
        stages = {"segment": {"run": inner.pk, "pending": 8}}
        progress = {**run.progress, "stages": stages}
        StageRun.objects.filter(pk=run.pk).update(status="running", progress=progress)
        shown = text(staff("reader", who=alice), reverse("admin:run", args=[run.pk]))
        assert "3 of 8" in shown and "episodes closed 2" in shown and "to come" in shown

    def test_it_shows_the_report_and_the_error_of_any_run(self, alice: Principal) -> None:
        run = StageRun.objects.create(
            stage="distill", status="failed", error="InfraError: <b>away</b>", started_at=at(),
            report={
                "notes_created": 4, "rejected": {"title": 1}, "commit": "",
                "fingerprint": "f00", "place": "f00", "troubles": [],
                "left_alone": ["one.md", "<i>two.md"], "parked": 0,
            },
            finished_at=at(1),
        )  # fmt: skip
        address = reverse("admin:run", args=[run.pk])
        shown = text(staff("operator", who=alice), address)
        assert "notes created" in shown and "title 1" in shown and "&lt;b&gt;away" in shown
        assert "<dt>parked</dt><dd>0</dd>" in shown and "one.md; &lt;i&gt;two.md" in shown
        assert not any(one in shown for one in ("commit", "troubles", "f00", "[]"))
        main = shown.split("<main")[1]
        assert f'href="{address}"' not in main, "its own name leads nowhere"
        polled = htmx(staff("operator", who=alice)).get(address).content.decode()
        assert f'href="{address}"' in polled, "elsewhere it leads here"
        # What an error says may quote somebody; what kind it is says nothing of anybody.
        told = text(staff("reader", who=alice), address)
        assert "InfraError" in told and "away" not in told
        text(staff("reader", who=alice), reverse("admin:run", args=[run.pk + 999]), 404)

    @pytest.mark.parametrize("role", ["reader", "reviewer"])
    def test_it_is_begun_by_nobody_else(self, alice: Principal, role: str) -> None:
        browser = staff(role, who=alice)
        assert browser.post(reverse("admin:run-start", args=["process"])).status_code == 404
        run = passes.start("process", by=alice, now=timezone.now())
        assert browser.post(reverse("admin:run-cancel", args=[run.pk])).status_code == 404
        operator = staff("operator", who=alice)
        assert operator.post(reverse("admin:run-start", args=["nothing"])).status_code == 404
        assert operator.get(reverse("admin:run-start", args=["process"])).status_code == 405


def test_it_leads_to_what_it_nearly_repeats(alice: Principal) -> None:
    said = "Deploy the shop at noon, and tell the people in the warehouse before you begin with it."
    first = turns(alice, [said])[0]
    second = turns(alice, [said.upper()], session="s2")[0]
    assert second.near_duplicate_of_id == first.pk
    shown = text(staff("reader", who=alice), page(second))
    assert "Nearly the same" in shown and page(first) in shown
