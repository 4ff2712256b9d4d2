"""The slider of floors and the live question, with a mouse, a keyboard and htmx."""

from __future__ import annotations

import re

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from argus.demo.story import ASKED, HARBOR, OWNER
from memory.access import principal
from memory.llm.choice import embedder
from recall.calibration import in_force
from recall.models import Calibration
from recall.notes import preview_notes
from tests.browser.conftest import Visit
from tests.browser.ground import PHONE

FLOORS = "/ui/injections/floors/"
SLIDER = "[data-for=f-note_relevance]"


def test_it_shows_what_a_slider_would_do_before_it_is_saved_and_goes_back(visit: Visit) -> None:
    page = visit("ada").open(FLOORS)
    slider = page.locator(SLIDER)
    expect(slider).to_be_visible()
    expect(page.get_by_role("button", name="Save these floors")).to_have_count(0)
    slider.focus()
    page.keyboard.press("End")
    # The number follows, the server answers, and nothing is in force yet.
    expect(page.get_by_label("Notes: relevance (log-odds)")).not_to_have_value("-1.8")
    expect(page.locator("#whatif")).to_contain_text("would fall silent")
    expect(page.locator("#whatif svg .mark.tried").first).to_be_attached()
    expect(page.locator("#adoptions")).to_contain_text("Nobody adopted any")
    page.get_by_label("Why (kept with the floors)").fill("too loud")
    page.get_by_role("button", name="Save these floors").click()
    expect(page.locator("#adoptions")).to_contain_text("too loud")
    expect(page.locator("#adoptions")).to_contain_text("in force")
    page.get_by_role("button", name="Use Argus's own floors again").click()
    expect(page.get_by_label("Notes: relevance (log-odds)")).to_have_value("-1.8")


def test_a_table_that_is_open_stays_open_while_a_slider_moves(visit: Visit) -> None:
    page = visit("ada", size=PHONE).open(FLOORS)
    plot = page.locator("#whatif figure", has=page.locator("details.values")).first
    plot.get_by_text("As a table").click()
    expect(plot.get_by_role("columnheader", name="other")).to_be_in_viewport()
    row = plot.locator("tbody tr").first.bounding_box()
    assert row and row["height"] < 30, "rows are as low as those of the board"
    page.locator(SLIDER).focus()
    page.keyboard.press("End")
    expect(page.locator("#whatif")).to_contain_text("would fall silent")
    expect(page.locator("#whatif details.values[open]")).to_have_count(1)
    expect(plot.locator("tbody tr").first).to_be_visible()


def test_it_tries_floors_without_script(visit: Visit) -> None:
    page = visit("ada", script=False).open(FLOORS)
    assert not page.locator(SLIDER).is_visible()
    page.get_by_label("Notes: relevance (log-odds)").fill("15")
    page.get_by_role("button", name="Try").click()
    expect(page.locator("#whatif")).to_contain_text("would fall silent")
    expect(page.get_by_role("button", name="Save these floors")).to_be_visible()


def test_it_answers_while_one_types(visit: Visit) -> None:
    page = visit("ada", size=PHONE).open("/ui/ask/")
    field = page.get_by_label("What would you ask an agent?")
    field.press_sequentially("Which port does the staging database use?", delay=5)
    expect(page.locator("#block")).to_contain_text("5433")
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE[0]
    field.fill("ok")
    expect(page.locator("#answer")).to_contain_text("too_short")


def test_it_takes_a_word_in_place_and_back(visit: Visit) -> None:
    page = visit("ada").open("/ui/injections/?outcome=injected&mode=prompt")
    page.locator("td.asked a").last.click()
    hit = page.locator("tr.sent").first
    hit.get_by_role("button", name="Useful:").click()
    expect(hit.locator(".tag.ok", has_text="useful")).to_be_visible()
    expect(page.locator("#said")).to_contain_text("Noted: useful.")
    hit.get_by_role("button", name="Take back").click()
    expect(hit.get_by_role("button", name="Take back")).to_have_count(0)


def test_it_puts_earlier_floors_into_force_again_and_recall_obeys(visit: Visit) -> None:
    watched = visit("ada")
    page = watched.open(FLOORS)
    before = in_force(embedder().name)
    number = page.get_by_label("Notes: relevance (log-odds)")
    shown = float(number.input_value())
    page.locator(SLIDER).focus()
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    expect(number).not_to_have_value(str(shown))
    moved = float(number.input_value())
    assert moved > shown
    expect(page.get_by_role("button", name="Save these floors")).to_be_visible()
    assert in_force(embedder().name) == before, "to move a slider saves nothing"
    first = save(page, "a little quieter")
    assert in_force(embedder().name).floors["note"].relevance == pytest.approx(moved)

    assert sends_something()
    number.fill("19")
    expect(page.locator("#whatif")).to_contain_text("would fall silent")
    second = save(page, "silence")
    assert not sends_something(), "what is in force is what recall obeys"

    rows = page.locator("#adoptions tr[data-row]")
    expect(rows.nth(0)).to_contain_text(f"floors {second} in force")
    expect(rows.nth(1)).to_contain_text("a little quieter")
    again = re.compile(f"Use these again ?: floors {first}$")
    rows.nth(1).get_by_role("button", name=again).click()
    expect(page.locator("#said")).to_contain_text("are in force: the next recall obeys them.")
    assert in_force(embedder().name).floors["note"].relevance == pytest.approx(moved)
    expect(rows.nth(0)).to_contain_text(f"again {first}")
    assert sends_something()
    assert Calibration.objects.filter(kind="floors").latest("pk").pk > second


def save(page: Page, reason: str) -> int:
    """By the keyboard; the adoption that is in force then."""
    page.get_by_label("Why (kept with the floors)").fill(reason)
    page.keyboard.press("Enter")
    expect(page.locator("#said")).to_contain_text("are in force: the next recall obeys them.")
    expect(page.locator("#adoptions tr[data-row]").first).to_contain_text(reason)
    made = in_force(embedder().name).calibration
    assert made
    return made


def sends_something() -> bool:
    """Whether an agent that asks what the demo answers is told something."""
    told = preview_notes(ASKED[0], principal=principal(OWNER), now=timezone.now(), cwd=HARBOR)
    return bool(told.notes)
