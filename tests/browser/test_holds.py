"""The queue of holds as people use it: by keyboard alone, many at once, two people at once."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from memory.access import principal
from memory.models import Decision, DedupVerdict
from tests.browser.conftest import Visit
from tests.factories import at, note, verdict

#: Holds of this module, beside those of the demo.
HOLDS = 6


@pytest.fixture(scope="module", autouse=True)
def held(site: str) -> Iterator[list[DedupVerdict]]:
    """Holds of one who shares a group with all reviewers, older than the demo's."""
    rita = principal("rita")
    rows = []
    for number in range(HOLDS):
        said = "The staging server of cluster {} listens on port {}."
        fields: dict[str, Any] = {
            "visibility": "team",
            "when": at(days=-40 + number),
            "embedded": False,
        }
        old = note(rita, said.format(number, 8443), confidence=0.755, **fields)
        rows.append(verdict(note(rita, said.format(number, 9443), **fields), old, similarity=0.93))
    yield rows


def shown(page: Page) -> int:
    """The verdict on the card."""
    told = page.locator(".hold-facts dd").first.inner_text()
    found = re.search(r"\d+", told)
    assert found, told
    return int(found[0])


def status(pk: int) -> str:
    found: str = DedupVerdict.objects.as_pipeline().values_list("status", flat=True).get(pk=pk)
    return found


def test_it_is_worked_through_by_keyboard_alone(visit: Visit) -> None:
    watched = visit("ada")
    page = watched.open("/ui/review/")
    said = page.locator("#said")
    first = shown(page)
    page.keyboard.press("?")
    expect(page.locator("#keys")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#keys")).to_be_hidden()

    page.keyboard.press("s")
    expect(page.locator(f"a[href='/ui/review/{first}/']")).to_have_count(0)
    second = shown(page)
    page.keyboard.press("k")
    expect(page.locator(f"a[href='/ui/review/{first}/']").first).to_be_visible()
    assert shown(page) == first

    page.keyboard.press("a")
    expect(said).to_have_text(f"Verdict {first} is now approved.")
    assert shown(page) == second and status(first) == "approved"
    expect(page.locator("#hold-title")).to_be_focused()
    page.keyboard.press("r")
    expect(said).to_have_text(f"Verdict {second} is now rejected.")
    page.keyboard.press("u")
    expect(said).to_have_text(f"Verdict {second} is now pending.")
    assert shown(page) == second
    page.keyboard.press("u")
    expect(said).to_have_text(f"Verdict {first} is now undone.")
    assert shown(page) == first and status(first) == "undone"

    page.keyboard.press("e")
    title = page.get_by_label("Title")
    expect(title).to_be_focused()
    page.keyboard.press("a")
    assert status(first) == "undone", "a letter in a field is a letter"
    title.fill("Port of staging")
    page.get_by_role("textbox", name="Content").fill(
        "Staging of cluster 0 listens on port 9443 behind the proxy."
    )
    page.keyboard.press("Control+Enter")
    expect(said).to_have_text(f"Verdict {first} is approved as edited.")
    page.keyboard.press("u")
    expect(said).to_have_text(f"Verdict {first} is now undone.")


def test_it_leads_from_the_list_to_a_hold_and_on_to_the_raw_turn(visit: Visit) -> None:
    page = visit("ada").open("/ui/review/?view=list&status=pending&project=&q=harbor")
    for key, place in (("j", "**view=list**"), ("o", "**/ui/review/*/"), ("o", "**/ui/items/**")):
        page.keyboard.press(key)
        page.wait_for_url(place)


def test_it_does_many_at_once_after_showing_them_and_takes_them_back(visit: Visit) -> None:
    page = visit("ada").open("/ui/review/")
    page.keyboard.press("/")
    page.wait_for_url("**view=list**")
    page.keyboard.press("/")
    search = page.get_by_label("Search")
    expect(search).to_be_focused()
    search.fill("of cluster")
    page.keyboard.press("Enter")
    page.wait_for_url("**q=of+cluster**")
    for key in "jxjx":
        page.keyboard.press(key)
    expect(page.locator("[data-count]")).to_have_text("2 selected")
    chosen = page.locator("[data-select]:checked")
    ids = [int(str(box.get_attribute("value")).split(":")[0]) for box in chosen.all()]
    page.keyboard.press("a")
    expect(page.get_by_role("heading", name="Approve 2 verdicts?")).to_be_visible()
    assert {status(pk) for pk in ids} == {"pending"}
    page.get_by_role("button", name="Approve 2").click()
    expect(page.get_by_role("heading", name="2 done: approve")).to_be_visible()
    assert {status(pk) for pk in ids} == {"approved"}
    page.get_by_role("button", name="Undo 2").click()
    page.get_by_role("button", name="Undo 2").click()
    expect(page.get_by_role("heading", name="2 done: undo")).to_be_visible()
    assert {status(pk) for pk in ids} == {"undone"}


def test_it_tells_the_slower_of_two_browsers_who_was_faster(visit: Visit) -> None:
    ada, rita = visit("ada"), visit("rita")
    mine, theirs = ada.open("/ui/review/"), rita.open("/ui/review/")
    row = shown(mine)
    assert shown(theirs) == row
    theirs.keyboard.press("r")
    expect(theirs.locator("#said")).to_have_text(f"Verdict {row} is now rejected.")
    mine.keyboard.press("a")
    told = mine.locator("#said")
    expect(told).to_contain_text("rejected by rita at 20")
    assert status(row) == "rejected" and Decision.objects.filter(verdict=row).count() == 1
    # The browser logs the refusal itself; nothing else went wrong.
    ada.troubles[:] = [one for one in ada.troubles if "409" not in one]


def test_it_works_without_script(visit: Visit) -> None:
    page = visit("ada", script=False).open("/ui/review/")
    row = shown(page)
    page.get_by_role("button", name="Reject").click()
    assert status(row) == "rejected" and shown(page) != row
    page.get_by_role("button", name="Undo").click()
    assert status(row) == "pending" and shown(page) == row
