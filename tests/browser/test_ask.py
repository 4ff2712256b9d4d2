"""A question typed: its answer as it would reach an agent, live, and on no ledger."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from memory.models import Injection
from tests.browser.conftest import Visit

ASK = "/ui/ask/"


def test_it_answers_as_one_types_and_writes_nothing_down(visit: Visit) -> None:
    rows = Injection.objects.as_pipeline().count()
    watched = visit("ada")
    page = watched.open(ASK)
    expect(page.get_by_role("heading", name="Type a question.")).to_be_visible()
    field = page.get_by_label("What would you ask an agent?")
    page.keyboard.press("/")
    expect(field).to_be_focused()
    assert field.input_value() == "", "the key that leads there is not typed"

    page.keyboard.type("Which PostgreSQL version does the staging", delay=15)
    page.keyboard.type(" database use, and on which port?", delay=15)
    block = page.locator("#block")
    expect(block).to_contain_text("db-staging")
    expect(block).to_contain_text("5433")
    expect(page.get_by_role("heading", name="An agent would get")).to_be_visible()
    hits = page.locator("tr[data-row]")
    expect(hits.first).to_contain_text("sent")
    told = hits.locator("td:nth-child(2)").all_inner_texts()
    ranks = [int(one) for one in told if one.strip()]
    assert ranks == sorted(ranks) and ranks, "those that went out stand first, in their order"
    page.get_by_text("Floors and milliseconds").click()
    expect(page.get_by_role("region", name="Floors by source")).to_be_visible()

    page.wait_for_url(re.compile("q=Which.PostgreSQL|q=Which%20PostgreSQL"))
    text = block.inner_text()
    page.reload()
    assert page.locator("#block").inner_text() == text, "the address is the question"

    page.get_by_label("What would you ask an agent?").fill("ok, go on")
    expect(page.locator("#answer")).to_contain_text("A gate refused it")
    expect(page.locator("#block")).to_have_count(0)
    page.get_by_label("What would you ask an agent?").fill("")
    expect(page.get_by_role("heading", name="Type a question.")).to_be_visible()
    assert Injection.objects.as_pipeline().count() == rows


def test_it_asks_anew_when_the_project_or_the_day_is_another(visit: Visit) -> None:
    page = visit("ada").open(ASK + "?q=Which+PostgreSQL+version+does+the+staging+database+use%3F")
    expect(page.locator("#block")).to_contain_text("16.2")
    page.get_by_label("As of (UTC)").fill("2020-01-01T00:00")
    expect(page.get_by_role("heading", name="An agent would get nothing")).to_be_visible()
    page.get_by_label("As of (UTC)").fill("")
    expect(page.locator("#block")).to_contain_text("16.2")
    page.get_by_label("Asked in project").select_option("tidepool")
    page.get_by_label("Only what is of it").check()
    expect(page.locator("#block")).not_to_be_attached()
    expect(page.get_by_role("heading", name="An agent would get nothing")).to_be_visible()
