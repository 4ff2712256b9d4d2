"""How: refusals of a scripted model's candidates, decided by browsers of several roles."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from memory import rejected
from memory.models import (
    Act,
    EpisodeTurn,
    GateRejection,
    Note,
    Principal,
    RejectedFact,
    RejectionDecision,
)
from review import rejections
from review.shown.rejected_facts import FACTS_MAX
from tests.factories import OTHER, QUOTE, at, project, three
from tests.memory.books import purge
from tests.openai_server import OpenAIServer, note
from tests.review.test_rejections import KEY, loose, refuse
from tests.web import asked, htmx, staff

pytestmark = pytest.mark.django_db

People = tuple[Principal, Principal, Principal]

LIST = "/ui/rejections/"


@pytest.fixture
def people(configure: Callable[..., None]) -> People:
    return three()


@pytest.fixture
def reviewer(people: People) -> Client:
    return staff("reviewer", who=people[0])


def text(browser: Client, url: str, status: int = 200) -> str:
    response = browser.get(url)
    assert response.status_code == status, response.content[:400]
    return response.content.decode()


def press(browser: Client, row: GateRejection, verb: str, status: int = 200, **form: str) -> str:
    response = browser.post(reverse("admin:rejection-decide", args=[row.pk, verb]), form)
    assert response.status_code == status, response.content[:400]
    return response.content.decode()


def made(owner: Principal, number: int = 1, **fields: object) -> GateRejection:
    candidate = {"title": f"Title {number}", "content": f"Content {number}.", "source_ref": "x"}
    row: GateRejection = GateRejection.objects.create(
        **{
            "owner": owner,
            "reason": "grounding",
            "candidate": candidate,
            "detail": "none",
            **fields,
        }
    )
    return row


def test_it_shows_what_was_refused_why_and_from_where(
    server: OpenAIServer, people: People, reviewer: Client
) -> None:
    (row,) = refuse(server, people[0], loose(title="Job queue"))
    listed = text(reviewer, LIST)
    for shown in ("Job queue", QUOTE, "grounding", row.detail, row.model_real):
        assert shown in listed
    assert f"/ui/episodes/{row.episode_id}/" in listed
    opened = text(reviewer, f"{LIST}{row.pk}/")
    assert f'<mark class="evidence">{QUOTE.rstrip(".")}</mark>' in opened
    assert "but for letter case and marks" in opened and OTHER in opened
    assert "?start=10&amp;end=55" in opened or "start=" in opened


def test_it_follows_a_refusal_from_a_decision_to_a_note_and_back(
    server: OpenAIServer, people: People, reviewer: Client
) -> None:
    (row,) = refuse(server, people[0], loose(title="Job queue"))
    response = reviewer.post(f"{LIST}{row.pk}/accept", {"reason": "it says so"}, follow=True)
    shown = response.content.decode()
    assert response.redirect_chain[-1][0] == f"{LIST}{row.pk}/" and "is accepted" in shown
    made_note = Note.objects.as_pipeline().get()
    assert f"/ui/notes/{made_note.pk}/" in shown and "it says so" in shown
    assert "Job queue" not in text(reviewer, LIST)
    assert "Job queue" in text(reviewer, f"{LIST}?shelf=accept")
    press(reviewer, row, "undo", 302)
    assert "Job queue" in text(reviewer, LIST)
    assert Note.objects.as_pipeline().get().retired_reason == "undone"


def test_it_answers_htmx_with_the_row_and_a_word(people: People, reviewer: Client) -> None:
    row = made(people[0])
    browser = htmx(reviewer)
    response = browser.post(f"{LIST}{row.pk}/confirm")
    shown = response.content.decode()
    assert response.status_code == 200 and "<html" not in shown and "data-row" in shown
    assert "confirmed" in shown and "Undo" in shown
    assert json.loads(response["HX-Trigger"])["said"]["text"] == f"Rejection {row.pk} is confirmed."
    again = browser.post(f"{LIST}{row.pk}/forbid")
    assert again.status_code == 409 and "confirmed by alice at" in again.content.decode()
    opened = browser.post(f"{LIST}{row.pk}/undo", {"at": "page"}).content.decode()
    assert "The text it was made from" in opened and "Accept anyway" in opened


def test_it_says_what_is_missing_to_accept(
    server: OpenAIServer, people: People, reviewer: Client
) -> None:
    invented, secret = refuse(
        server, people[0], note("Kafka took over."), note(QUOTE, content=KEY, title="A key")
    )
    assert "name the words of the record" in press(reviewer, invented, "accept", 422)
    item = EpisodeTurn.objects.get(episode=invented.episode, position=3).raw_item_id
    press(reviewer, invented, "accept", 302, item=str(item), quote="port 8443 since monday")
    assert Note.objects.as_pipeline().get().content == "Kafka took over."
    assert "held a secret" in text(reviewer, f"{LIST}{secret.pk}/")
    for verb in ("accept", "forbid"):
        assert f"{secret.pk}/{verb}" not in text(reviewer, f"{LIST}{secret.pk}/")
    long = made(people[0], 8, candidate={"title": "Long", "content": "word " * 500})
    assert "at most" in text(reviewer, f"{LIST}{long.pk}/")
    assert "held a secret" in press(reviewer, secret, "accept", 422, reason="x", item="²")


def test_it_makes_a_rejected_fact(people: People, reviewer: Client) -> None:
    row = made(people[0])
    press(reviewer, row, "forbid", 302, reason="wrong")
    assert RejectedFact.objects.as_pipeline().get().rejection_id == row.pk
    shelf = text(reviewer, f"{LIST}?shelf=forbid")
    assert "Title 1" in shelf and "forbidden" in shelf
    kept_out = made(people[0], 2, reason="rejected")
    assert "Title 2" not in text(reviewer, LIST)
    assert "Title 2" in text(reviewer, f"{LIST}?shelf=all")
    assert "Never learn this" not in text(reviewer, f"{LIST}?shelf=all&reason=rejected")
    assert kept_out.pk


def test_it_lists_what_is_forbidden_though_its_words_were_purged_and_lifts_it(
    server: OpenAIServer, people: People, reviewer: Client
) -> None:
    alice, bob, _ = people
    (row,) = refuse(server, alice, loose(title="Job queue"))
    content = str(row.candidate["content"])
    press(reviewer, row, "forbid", 302)
    forbidden, purged = f"{LIST}?shelf=forbid", "Its words are purged"
    assert purged not in text(reviewer, forbidden)
    fact = RejectedFact.objects.as_pipeline().get()
    lift = reverse("admin:rejection-lift", args=[fact.pk])
    told = reviewer.post(lift)
    assert told.status_code == 409 and f"undo rejection {row.pk}" in told.content.decode()

    items = EpisodeTurn.objects.filter(episode=row.episode_id).values_list("raw_item", flat=True)
    purge(list(items))
    assert not GateRejection.objects.as_pipeline().exists()
    assert rejected.said(content, owner=alice), "the gate still knows it"
    shelf = text(reviewer, forbidden)
    assert purged in shelf and f"Rejected fact {fact.pk}, by alice" in shelf
    assert lift in shelf and "Nothing here." not in shelf and content not in shelf
    assert f"Reason for lifting rejected fact {fact.pk} (optional)</span><input " in shelf
    # Nowhere else, for nobody else, and a reader has no button.
    assert purged not in text(reviewer, LIST)
    assert purged not in text(reviewer, f"{forbidden}&reason=shape")
    other = staff("reviewer", who=bob)
    assert purged not in text(other, forbidden)
    assert other.post(lift).status_code == 404
    reader = staff("reader", who=alice)
    assert purged in text(reader, forbidden) and lift not in text(reader, forbidden)
    assert reader.post(lift).status_code == 404

    reviewer = staff("reviewer", who=alice)
    done = htmx(reviewer).post(lift, {"reason": "it is so now"})
    assert done.status_code == 200 and "may be learned again" in done.content.decode()
    assert rejected.said(content, owner=alice) is None
    act = Act.objects.get(kind="rejected_fact")
    assert (act.verb, act.reference, act.reason, act.principal, act.door) == (
        "lift", str(fact.pk), "it is so now", alice, "page"
    )  # fmt: skip
    assert purged not in text(reviewer, forbidden)
    assert reviewer.post(lift).status_code == 409


def test_it_asks_as_often_for_thirty_facts_without_words_as_for_one(
    people: People, reviewer: Client
) -> None:
    rejected.forbid("Nothing of it is left.", owner=people[0], by=people[0], now=at(0))
    first = asked(reviewer, f"{LIST}?shelf=forbid")
    for number in range(1, 60):
        rejected.forbid(f"Nothing {number}.", owner=people[0], by=people[0], now=at(number))
    many = asked(reviewer, f"{LIST}?shelf=forbid")
    assert len(many) == len(first)
    assert many.body.count('/lift" hx-post') == FACTS_MAX
    assert f"There are more than these {FACTS_MAX}:" in many.body
    assert "There are more" not in first.body


def test_it_filters(people: People, reviewer: Client) -> None:
    alice = people[0]
    made(alice, 1, reason="shape", model_real="m1", created_at=timezone.now())
    made(alice, 2, model_real="m2", created_at=timezone.now(), detail="no such words")
    made(alice, 3, reason="title", created_at=at(0))

    def titles(query: str) -> set[str]:
        shown = text(reviewer, f"{LIST}?{query}")
        return {number for number in "123" if f"Title {number}" in shown}

    assert titles("") == {"1", "2", "3"}
    assert titles("reason=shape") == {"1"} and titles("model=m2") == {"2"}
    assert titles("q=content+3") == {"3"} and titles("q=NO+SUCH") == {"2"}
    assert titles("since=2026-04-01") == {"1", "2"} and titles("until=2026-03-02") == {"3"}
    assert titles("project=none") == set() and titles(f"project={project().pk}") == set()
    assert titles("shelf=confirm") == set() and titles("shelf=%00&q=%00") == {"1", "2", "3"}


def test_it_filters_by_project(server: OpenAIServer, people: People, reviewer: Client) -> None:
    (row,) = refuse(server, people[0], loose(title="Job queue"))
    shop = project()
    assert row.episode is not None and row.episode.project == shop
    shown = text(reviewer, f"{LIST}?project={shop.pk}")
    assert "Job queue" in shown and shop.name in shown
    assert "Job queue" not in text(reviewer, f"{LIST}?project=none")


def test_it_counts_the_reasons_of_the_last_days(people: People, reviewer: Client) -> None:
    for number in range(3):
        made(people[0], number, reason="title" if number else "shape", created_at=timezone.now())
    made(people[0], 9, reason="poison", created_at=at(0))
    shown = text(reviewer, LIST).split("Last 14 days")[1].split("</nav>")[0]
    assert 'title <span class="tag">2</span>' in shown and "poison" not in shown
    # The count is of every shelf, and so is the list behind it.
    assert 'href="?shelf=all&amp;reason=title"' in shown
    row = GateRejection.objects.as_pipeline().filter(reason="title").latest("pk")
    rejections.confirm(row.pk, by=people[0], now=at(1))
    listed = text(reviewer, f"{LIST}?shelf=all&reason=title")
    assert listed.count("<article") == 2


def test_it_exports_what_is_filtered(people: People, reviewer: Client) -> None:
    one, two = made(people[0], 1), made(people[0], 2, reason="shape")
    rejections.confirm(one.pk, by=people[0], now=at(1))
    response = reviewer.get(f"{LIST}?shelf=all&format=csv")
    rows = list(csv.DictReader(io.StringIO(b"".join(response).decode())))
    assert [row["rejection"] for row in rows] == [str(two.pk), str(one.pk)]
    assert rows[1]["decided"] == "confirm" and rows[0]["content"] == "Content 2."
    response = reviewer.get(f"{LIST}?shelf=all&reason=shape&format=json")
    assert [row["rejection"] for row in json.loads(b"".join(response))] == [two.pk]


def test_it_shows_a_stranger_nothing_and_a_reader_no_button(people: People) -> None:
    row = made(people[0])
    for other in people[1:]:
        browser = staff("reviewer", who=other)
        assert "Nothing waits for a decision." in text(browser, LIST)
        text(browser, f"{LIST}{row.pk}/", 404)
        press(browser, row, "confirm", 404)
    reader = staff("reader", who=people[0])
    for url in (LIST, f"{LIST}{row.pk}/"):
        assert "Title 1" in text(reader, url) and "/confirm" not in text(reader, url)
    press(reader, row, "confirm", 404)
    nobody = staff(who=people[0])
    text(nobody, LIST, 404)
    assert not RejectionDecision.objects.exists()


def test_it_knows_no_other_verb_and_no_other_id(people: People, reviewer: Client) -> None:
    row = made(people[0])
    press(reviewer, row, "burn", 404)
    text(reviewer, f"{LIST}{row.pk + 999}/", 404)
    assert reviewer.get(f"{LIST}{row.pk}/confirm").status_code == 405


def test_it_asks_the_database_as_often_for_thirty_as_for_one(
    people: People, reviewer: Client
) -> None:
    def decided(number: int) -> None:
        rejections.confirm(made(people[0], number).pk, by=people[0], now=at(1))

    decided(0)
    first = asked(reviewer, f"{LIST}?shelf=all")
    for number in range(1, 30):
        decided(number)
    assert len(asked(reviewer, f"{LIST}?shelf=all")) == len(first)


@pytest.mark.parametrize("hostile", ["<script>alert(1)</script>", "\u202eevil", "{{ 7|add:7 }}"])
def test_it_shows_hostile_words_as_words(people: People, reviewer: Client, hostile: str) -> None:
    candidate = {"title": hostile, "content": hostile, "source_ref": hostile, "keywords": [hostile]}
    row = made(people[0], candidate=candidate, detail=hostile)
    for url in (LIST, f"{LIST}{row.pk}/"):
        shown = text(reviewer, url)
        assert "<script>alert" not in shown and "\u202e" not in shown and shown != "14"
