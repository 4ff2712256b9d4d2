"""/ui/ask/: what an agent would get, with every score, and nothing of it written down."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.conf import LazySettings
from django.test import Client

from memory.models import Emission, Injection
from recall.notes import recall_notes
from tests.recall.making import NOW, People, note, notes, people, said
from tests.recall.test_notes import away
from tests.web import htmx, staff

PORT = "The staging database listens on port 5433."
ASKED = "Which port does the staging database use?"
ASK = "/ui/ask/"


@pytest.fixture
def crew(db: None) -> People:
    return people()


@pytest.fixture
def browser(crew: People) -> Client:
    return staff("reader", who=crew.alice)


def ask(browser: Client, status: int = 200, **given: str) -> str:
    answer = browser.get(ASK, given)
    assert answer.status_code == status
    return answer.content.decode()


def test_it_says_what_to_do_before_anything_is_asked(browser: Client) -> None:
    shown = ask(browser)
    assert "Type a question." in shown and "<html" in shown
    # Live, and a form without script.
    assert 'hx-trigger="input delay:300ms, submit"' in shown and 'method="get"' in shown


def test_it_shows_the_block_of_an_agent_and_writes_nothing(browser: Client, crew: People) -> None:
    note(crew.alice, PORT)
    notes(crew.alice, [f"The review of sprint {n} moved to Tuesday." for n in range(4)])
    piece = ask(htmx(browser), q=ASKED)
    assert "<html" not in piece and "An agent would get 1 note" in piece
    assert PORT in piece and "injected" in piece and "-1.8" in piece
    assert not Injection.objects.as_pipeline().exists()
    assert not Emission.objects.exists()
    got = recall_notes(ASKED, principal=crew.alice, now=NOW)
    assert got.text
    for line in got.text.splitlines():
        assert line.replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;") in piece


def test_it_shows_what_was_dropped_below_which_floor(browser: Client, crew: People) -> None:
    note(crew.alice, "The bakery stores its orders in a database on the shop server.")
    shown = ask(browser, q="Which port does the staging server of the harbor listen on today?")
    assert "An agent would get nothing" in shown and "below the floor" in shown
    assert "dropped" in shown and "bakery" in shown


def test_it_tells_of_gates_and_of_an_empty_memory(browser: Client) -> None:
    assert "too_short" in ask(browser, q="go on")
    assert "Nothing like it is in memory." in ask(browser, q=ASKED)


def test_it_asks_as_the_viewer_and_nobody_else(crew: People) -> None:
    note(crew.alice, PORT)
    assert PORT in ask(staff("reader", who=crew.alice), q=ASKED)
    assert PORT not in ask(staff("reader", who=crew.charlie), q=ASKED)


def test_it_asks_from_a_project_and_of_a_project_alone(browser: Client, crew: People) -> None:
    note(crew.alice, PORT, project="harbor")
    note(crew.alice, "The orders come in by mail.", project="bakery")
    assert "boost" in ask(browser, q=ASKED, project="harbor")
    assert PORT not in ask(browser, q=ASKED, project="bakery", only="1")
    assert PORT in ask(browser, q=ASKED, project="bakery")
    assert PORT in ask(browser, q=ASKED, cwd="/src/harbor")


def test_it_asks_about_the_past(browser: Client, crew: People) -> None:
    note(crew.alice, PORT, valid_from=NOW - timedelta(days=3), created_at=NOW - timedelta(days=3))
    assert PORT in ask(browser, q=ASKED, as_of=f"{NOW:%Y-%m-%dT%H:%M}")
    before = NOW - timedelta(days=30)
    assert PORT not in ask(browser, q=ASKED, as_of=f"{before:%Y-%m-%dT%H:%M}")
    for odd in ("yesterday", "2026-13-45T99:99"):
        assert "no moment" in ask(browser, 422, q=ASKED, as_of=odd)


def test_it_escapes_what_is_asked_and_what_is_found(browser: Client, crew: People) -> None:
    said(crew.alice, f"{PORT} <script>alert(2)</script>\u202e")
    note(crew.alice, f"{PORT} <img src=x onerror=alert(1)>")
    shown = ask(browser, q=f"{ASKED} </textarea><script>alert(1)</script>")
    assert "<script>alert" not in shown and "<img src=x" not in shown
    assert "\u202e" not in shown


def test_it_survives_characters_that_no_database_holds(browser: Client) -> None:
    ask(browser, q=f"{ASKED}\x00", project="a\x00b", cwd="/x\x00y")
    ask(browser, q=f"{ASKED}" * 2_000)


def test_it_says_when_the_embedder_is_away(clone_db: str, settings: LazySettings) -> None:
    alice = people().alice
    note(alice, PORT)
    notes(alice, [f"Whoever wants to use printer {n} asks at the desk." for n in range(9)])
    browser = staff("reader", who=alice)
    away(settings)
    shown = ask(browser, q=ASKED)
    assert "degraded" in shown and "Without semantic" in shown and PORT in shown
