"""How: units that the real stage parked, seen and set free by browsers of several roles."""

from __future__ import annotations

import csv
import io
import json
import zlib
from collections.abc import Callable

import pytest
from django.test import Client
from django.utils.html import escape

from memory.models import Act, Claim, DistillFailure, Note, Principal
from memory.stages.distill import distill
from tests.factories import at, three
from tests.openai_server import OpenAIServer
from tests.review.test_parked import REPLY, SAID, many, set_aside
from tests.web import asked, htmx, staff

pytestmark = pytest.mark.django_db

People = tuple[Principal, Principal, Principal]

LIST = "/ui/parked/"


@pytest.fixture
def people(configure: Callable[..., None]) -> People:
    return three()


@pytest.fixture
def operator(people: People) -> Client:
    return staff("operator", who=people[0])


def text(browser: Client, url: str, status: int = 200) -> str:
    response = browser.get(url)
    assert response.status_code == status, response.content[:400]
    return response.content.decode()


def test_it_shows_a_unit_its_error_and_the_raw_reply(
    server: OpenAIServer, people: People, operator: Client
) -> None:
    unit = set_aside(server, people[0])
    claim = Claim.objects.get(unit=unit)
    listed = text(operator, LIST)
    for shown in (SAID[0], unit, escape(claim.parked_reason), REPLY, "distill", "shop"):
        assert shown in listed
    opened = text(operator, f"{LIST}{claim.pk}/")
    assert opened.count(REPLY) == 5 and "Failure 5" in opened and "Failure 1" in opened


def test_it_follows_a_unit_from_a_retry_to_its_notes(
    server: OpenAIServer, people: People, operator: Client
) -> None:
    claim = Claim.objects.get(unit=set_aside(server, people[0]))
    response = operator.post(f"{LIST}{claim.pk}/release", {"reason": "mended"}, follow=True)
    assert "will try" in response.content.decode() and "Nothing is parked." in text(operator, LIST)
    assert distill().episodes_distilled == 1 and Note.objects.as_pipeline().exists()
    act = Act.objects.get(kind="unit")
    assert (act.verb, act.reason, act.door) == ("release", "mended", "page")


def test_it_answers_htmx_with_the_row_and_a_word(people: People, operator: Client) -> None:
    (claim,) = many(people[0], "embed", "bad vector", 1)
    browser = htmx(operator)
    response = browser.post(f"{LIST}{claim.pk}/dismiss")
    shown = response.content.decode()
    assert response.status_code == 200 and "<html" not in shown and "Bring back" in shown
    assert "stays parked" in json.loads(response["HX-Trigger"])["said"]["text"]
    assert browser.post(f"{LIST}{claim.pk}/dismiss").status_code == 409
    assert "Bring back" in text(operator, f"{LIST}?shelf=dismissed")
    assert "Dismiss" in browser.post(f"{LIST}{claim.pk}/dismiss", {"back": "1"}).content.decode()
    freed = browser.post(f"{LIST}{claim.pk}/release").content.decode()
    assert "released" in freed and "Retry" not in freed
    again = browser.post(f"{LIST}{claim.pk}/release")
    assert again.status_code == 409 and "released by alice at" in again.content.decode()
    text(operator, f"{LIST}{claim.pk}/", 409)


def test_it_retries_all_of_a_kind_after_it_said_how_many(people: People, operator: Client) -> None:
    wanted = many(people[0], "embed", "bad vector", 3)
    many(people[0], "embed", "no answer", 2)
    kinds = text(operator, LIST).split("By kind of failure")[1].split("</table>")[0]
    assert kinds.index("bad vector") < kinds.index("no answer")
    assert f'name="like" value="{wanted[0].pk}"' in kinds
    form = {"like": str(wanted[0].pk)}
    asked = operator.post(f"{LIST}release-all", form).content.decode()
    assert "3 units of embed" in asked and "Retry 3 units" in asked and "no answer" not in asked
    assert Claim.objects.filter(parked_at=None).count() == 0
    whole = operator.post(f"{LIST}release-all", {**form, "stage": "1"}).content.decode()
    assert "5 units of embed" in whole
    done = operator.post(f"{LIST}release-all", {**form, "sure": "1"}, follow=True)
    assert "3 units wait again, 0 of the kind" in done.content.decode()
    assert Claim.objects.filter(parked_at=None).count() == 3
    for like in ("", "x", "²", str(wanted[0].pk + 999)):
        assert operator.post(f"{LIST}release-all", {"like": like}).status_code == 404


def test_it_shows_all_of_a_long_reply_when_asked(people: People, operator: Client) -> None:
    (claim,) = many(people[0], "embed", "bad vector", 1)
    rows = [
        DistillFailure.objects.create(
            stage="embed",
            unit=claim.unit,
            kind="content",
            error="prose",
            attempt=number,
            reply=zlib.compress(f"{'word ' * words}end of {number}".encode()),
        )
        for number, words in enumerate((1_000, 100_000))
    ]
    opened = text(operator, f"{LIST}{claim.pk}/")
    assert "end of 0" not in opened and opened.count("Show all of it") == 2
    whole = text(operator, f"{LIST}{claim.pk}/?reply={rows[0].pk}")
    assert "end of 0" in whole and whole.count("Show all of it") == 1
    long = text(operator, f"{LIST}{claim.pk}/?reply={rows[1].pk}")
    assert "end of 1" not in long and "It goes on" in long and len(long) < 300_000
    assert "word" in text(operator, f"{LIST}{claim.pk}/?reply=²")


def test_it_filters_and_exports(people: People, operator: Client) -> None:
    many(people[0], "embed", "bad vector", 2)
    many(people[0], "dedup", "no answer", 1)

    def shown(query: str) -> tuple[int, int]:
        listed = text(operator, f"{LIST}?{query}").split('class="rows"')[-1]
        return listed.count("Parked by embed"), listed.count("Parked by dedup")

    assert shown("") == (2, 1)
    assert shown("stage=dedup") == (0, 1) and shown("q=BAD") == (2, 0)
    assert shown("since=2026-03-03") == (0, 0) and shown("until=2026-03-02") == (2, 1)
    response = operator.get(f"{LIST}?stage=dedup&format=csv")
    rows = list(csv.DictReader(io.StringIO(b"".join(response).decode())))
    assert [(row["stage"], row["reason"]) for row in rows] == [("dedup", "no answer")]


def test_it_shows_a_stranger_nothing_and_a_reader_no_button(people: People) -> None:
    (claim,) = many(people[0], "embed", "bad vector", 1)
    urls = [f"{LIST}{claim.pk}/{verb}" for verb in ("release", "dismiss")]
    stranger = staff("operator", who=people[2])
    assert "Nothing is parked." in text(stranger, LIST)
    text(stranger, f"{LIST}{claim.pk}/", 404)
    reader = staff("reviewer", who=people[0])
    for page in (LIST, f"{LIST}{claim.pk}/"):
        assert "Parked by embed" in text(reader, page) and "/release" not in text(reader, page)
    for browser in (stranger, reader):
        assert [browser.post(url).status_code for url in urls] == [404, 404]
        everything = browser.post(f"{LIST}release-all", {"like": claim.pk, "sure": "1"})
        assert everything.status_code == 404
    text(staff(who=people[0]), LIST, 404)
    claim.refresh_from_db()
    assert claim.parked_at == at(0) and claim.dismissed_at is None


def test_it_asks_the_database_as_often_for_thirty_as_for_one(
    people: People, operator: Client
) -> None:
    many(people[0], "embed", "bad vector", 1)
    first = asked(operator, LIST)
    many(people[0], "embed", "bad vector", 29)
    assert len(asked(operator, LIST)) == len(first)


def test_it_shows_hostile_words_as_words(people: People, operator: Client) -> None:
    hostile = "<script>alert(1)</script>\u202e"
    (claim,) = many(people[0], "embed", hostile, 1)
    DistillFailure.objects.create(
        stage="embed",
        unit=claim.unit,
        kind="content",
        error=hostile,
        reply=zlib.compress(hostile.encode()),
    )
    for url in (LIST, f"{LIST}{claim.pk}/"):
        shown = text(operator, url)
        assert "<script>alert" not in shown and "\u202e" not in shown and "alert(1)" in shown
