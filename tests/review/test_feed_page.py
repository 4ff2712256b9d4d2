"""The feed's page: a card, its ratings, and the ledger of what came up."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from memory.models import Act, Note, Pin, Principal
from review.models import Card, Draw, Rating
from tests.factories import fresh, note, three
from tests.web import asked, htmx, staff

FEED = "/ui/feed/"


@pytest.fixture
def alice(db: None) -> Principal:
    return three()[0]


@pytest.fixture
def web(alice: Principal) -> Client:
    return staff("reader", who=alice)


def exported(web: Client, where: str, asked: dict[str, str]) -> bytes:
    answer: Any = web.get(where, asked)
    return b"".join(answer.streaming_content)


def text(response: Any) -> str:
    body: str = response.content.decode()
    return body


def last() -> Draw:
    found = Draw.objects.last()
    assert found is not None
    return found


def test_it_leads_from_nothing_to_the_first_card(alice: Principal, web: Client) -> None:
    assert "There is nothing to draw yet." in text(web.get(FEED))
    note(alice, "The queue is kept in Postgres.")
    page = text(web.get(FEED))
    assert "Draw a note" in page and not Draw.objects.exists()
    page = text(web.post(reverse("admin:feed-next"), follow=True))
    assert "The queue is kept in Postgres." in page
    assert "1 in 1" in page and "It came up by chance" in page
    assert Draw.objects.count() == 1
    for _ in range(2):
        assert "The queue is kept in Postgres." in text(web.get(FEED))
    assert Draw.objects.count() == 1, "looking draws nothing"


def test_it_takes_a_rating_and_shows_the_next_card(alice: Principal, web: Client) -> None:
    for n in range(3):
        note(alice, f"What we know, number {n}.")
    browser = htmx(web)
    browser.post(reverse("admin:feed-next"))
    first = last()
    where = reverse("admin:feed-rate", args=[first.note_id])
    answer = browser.post(where, {"rating": "3", "draw": first.pk})
    assert answer.status_code == 200 and "<html" not in text(answer)
    assert json.loads(answer["HX-Trigger"])["said"]["text"] == "Good: again in 10 min."
    assert Rating.objects.get().rating == 3 and Card.objects.get().note_id == first.note_id
    assert Draw.objects.count() == 2
    again = browser.post(where, {"rating": "4", "draw": first.pk})
    assert again.status_code == 409 and Rating.objects.count() == 1
    bare = browser.post(reverse("admin:feed-rate", args=[last().note_id]), {"draw": last().pk})
    assert bare.status_code == 422
    assert Act.objects.get(verb="rate").door == "page"


def test_it_pins_and_unpins_and_draws_what_is_pinned(alice: Principal, web: Client) -> None:
    one = note(alice, "The queue is kept in Postgres.")
    assert web.post(reverse("admin:feed-next"), {"of": "pinned"}).status_code == 404
    web.post(reverse("admin:feed-next"))
    assert "Unpin" in text(web.post(reverse("admin:feed-act", args=[one.pk, "pin"]), follow=True))
    assert Pin.objects.get().principal == alice
    page = text(web.post(reverse("admin:feed-next"), {"of": "pinned"}, follow=True))
    assert "because it is pinned" in page and last().drawn_by == "pinned"
    web.post(reverse("admin:feed-act", args=[one.pk, "unpin"]))
    assert not Pin.objects.exists()


def test_only_who_may_decide_retires_from_here(alice: Principal, web: Client) -> None:
    one, two = note(alice, "It rains."), note(alice, "It snows.")
    web.post(reverse("admin:feed-next"))
    here = last().note_id
    where = reverse("admin:feed-act", args=[here, "retire"])
    assert "Retire" not in text(web.get(FEED))
    assert web.post(where).status_code == 404 and fresh(one).deleted_at is None
    reviewer = staff("reviewer", who=alice)
    assert "Retire" in text(reviewer.get(FEED))
    page = text(reviewer.post(where, follow=True))
    other = two if here == one.pk else one
    assert other.content in page and last().note_id == other.pk
    assert Note.objects.as_pipeline().get(pk=here).deleted_at is not None
    assert reviewer.post(reverse("admin:feed-act", args=[here, "burn"])).status_code == 404


def test_it_shows_nobody_elses_feed(alice: Principal, web: Client) -> None:
    one = note(alice, "Alice alone knows.")
    web.post(reverse("admin:feed-next"))
    charlie = staff("reviewer", who=three()[2])
    assert "Alice alone knows." not in text(charlie.get(FEED))
    given = {"rating": "3", "draw": last().pk}
    assert charlie.post(reverse("admin:feed-rate", args=[one.pk]), given).status_code == 404
    for verb in ("pin", "unpin", "forget", "retire"):
        where = reverse("admin:feed-act", args=[one.pk, verb])
        assert charlie.post(where).status_code == 404, verb
    assert "Nothing came up yet." in text(charlie.get(reverse("admin:feed-draws")))
    nobody = staff(who=three()[1])
    for where in (FEED, reverse("admin:feed-draws")):
        assert nobody.get(where).status_code == 404
    assert nobody.post(reverse("admin:feed-next")).status_code == 404
    assert web.get(reverse("admin:feed-next")).status_code == 405


def test_it_tells_nobody_how_well_somebody_knew_a_shared_note(
    alice: Principal, web: Client
) -> None:
    one = note(alice, "Deploys run on Monday.", visibility="team")
    web.post(reverse("admin:feed-next"))
    web.post(reverse("admin:feed-rate", args=[one.pk]), {"rating": "1", "draw": last().pk})
    web.post(reverse("admin:feed-act", args=[one.pk, "forget"]))
    where = reverse("admin:note", args=[one.pk])
    bob = staff("reader", who=three()[1])
    assert "Deploys run on Monday." in text(bob.get(where))
    for verb in ("rate", "forget"):
        act = Act.objects.get(verb=verb)
        assert (act.kind, act.reference) == ("feed", str(one.pk))
        assert f": {verb} by alice" not in text(bob.get(where)), verb
        assert f": {verb} by alice" in text(web.get(where)), verb


def test_it_lists_and_exports_every_draw(alice: Principal, web: Client) -> None:
    one = note(alice, "=The queue is kept in Postgres.")
    for _ in range(3):
        web.post(reverse("admin:feed-next"))
    web.post(reverse("admin:feed-act", args=[one.pk, "pin"]))
    web.post(reverse("admin:feed-next"), {"of": "pinned"})
    ledger = reverse("admin:feed-draws")
    page = text(web.get(ledger))
    assert page.count("by chance") >= 3 and "4 in all" in page and one.title in page
    assert "1 in all" in text(web.get(ledger, {"drawn_by": "pinned"}))
    assert "4 in all" in text(web.get(ledger, {"note": str(one.pk)}))
    for odd in ({"note": "x"}, {"drawn_by": "x"}):
        assert "Nothing is like that." in text(web.get(ledger, odd))
    rows = json.loads(exported(web, ledger, {"format": "json"}))
    assert [row["drawn_by"] for row in rows] == ["pinned", "draw", "draw", "draw"]
    assert {row["note"] for row in rows} == {str(one.pk)}
    sheet = exported(web, ledger, {"format": "csv"}).decode()
    assert len(list(csv.reader(io.StringIO(sheet)))) == 5


def test_the_ledger_asks_as_often_for_thirty_draws_as_for_one(
    alice: Principal, web: Client
) -> None:
    notes = [note(alice, f"What we know, number {n}.") for n in range(5)]

    ledger = reverse("admin:feed-draws")
    Draw.objects.create(principal=alice, note=notes[0], drawn_by="draw", probability=0.2, pool=5)
    one = asked(web, ledger)
    Draw.objects.bulk_create(
        Draw(principal=alice, note=notes[n % 5], drawn_by="draw", probability=0.2, pool=5)
        for n in range(29)
    )
    assert len(asked(web, ledger)) == len(one)


def test_a_note_that_went_is_no_link_any_more(alice: Principal, web: Client) -> None:
    one = note(alice, "Bob lets the pair see.", visibility="private")
    other = three()[1]
    Draw.objects.create(principal=other, note=one, drawn_by="draw", probability=1.0, pool=1)
    page = text(staff("reader", who=other).get(reverse("admin:feed-draws")))
    assert "a note that you do not see any more" in page and str(one.pk) not in page
