"""The feed by keys: drawn once, rated, pinned; and what is on the table stays there."""

from __future__ import annotations

from uuid import UUID

from playwright.sync_api import Page, expect

from argus.demo.story import OWNER
from memory.access import principal
from memory.models import Pin
from review.models import Draw, Rating
from tests.browser.conftest import Visit

FEED = "/ui/feed/"


def on_table(page: Page) -> UUID:
    """The note on the card, by the address of its page."""
    found = page.locator("#card").get_by_role("link", name="The note").get_attribute("href")
    assert found
    return UUID(found.rstrip("/").split("/")[-1])


def drawn() -> int:
    return Draw.objects.filter(principal=principal(OWNER)).count()


def test_it_draws_rates_and_pins_by_keys(visit: Visit) -> None:
    watched = visit("ada")
    page = watched.open(FEED)
    said, title = page.locator("#said"), page.locator("#card-title")
    expect(title).to_have_text("Nothing is on the table.")
    page.keyboard.press("n")
    expect(page.get_by_role("group", name="How well did you know it?")).to_be_visible()
    expect(title).to_be_focused()
    assert drawn() == 1

    first = on_table(page)
    page = watched.open(FEED)
    assert on_table(page) == first and drawn() == 1, "to look again draws nothing"

    evidence = page.locator("[data-evidence]")
    page.keyboard.press("Space")
    expect(evidence.locator("blockquote").first).to_be_visible()
    page.keyboard.press("Space")
    expect(evidence.locator("blockquote").first).to_be_hidden()

    page.keyboard.press("p")
    expect(page.locator("#card .tag", has_text="pinned")).to_be_visible()
    assert Pin.objects.filter(note=first).count() == 1
    assert on_table(page) == first and drawn() == 1
    page.keyboard.press("p")
    expect(page.locator("#card .tag", has_text="pinned")).to_have_count(0)
    assert not Pin.objects.filter(note=first).exists()

    for rating, word in (("3", "Good"), ("1", "Again"), ("2", "Hard"), ("4", "Easy")):
        before = on_table(page)
        page.keyboard.press(rating)
        expect(said).to_contain_text(f"{word}: again in ")
        expect(title).to_be_focused()
        given = Rating.objects.filter(note=before, principal=principal(OWNER)).latest("pk")
        assert given.rating == int(rating)
    assert drawn() == 5

    # A note that was rated may be drawn again: what counts is that none was rated now.
    rated = Rating.objects.count()
    with page.expect_event("requestfinished", lambda request: request.method == "POST"):
        page.keyboard.press("n")
    assert (drawn(), Rating.objects.count()) == (6, rated)


def test_it_does_not_rate_what_another_window_rated(visit: Visit) -> None:
    one, other = visit("ada"), visit("ada")
    first = one.open(FEED)
    if first.locator("#card form.ratings").count() == 0:
        first.keyboard.press("n")
    expect(first.locator("#card form.ratings")).to_be_visible()
    note, second = on_table(first), other.open(FEED)
    assert on_table(second) == note
    before = Rating.objects.count()
    first.keyboard.press("3")
    expect(first.locator("#said")).to_contain_text("Good: again in ")
    second.keyboard.press("4")
    expect(second.get_by_role("alert")).to_be_visible()
    assert Rating.objects.count() == before + 1
    # The browser tells of the refusal itself.
    other.troubles[:] = [trouble for trouble in other.troubles if "409" not in trouble]
