"""Dark and light, and a phone: by the system's wish, by the buttons, with script and without."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import Visit
from tests.browser.ground import DESK, PHONE
from tests.browser.test_holds import shown, status

#: Above which share of white a background is a light one.
LIGHT = 0.5


def brightness(page: Page) -> float:
    """Of the page's background, 0 black to 1 white, as the screen would show it."""
    told = page.evaluate(
        """() => {
            const dot = document.createElement("canvas").getContext("2d");
            dot.fillStyle = getComputedStyle(document.querySelector(".shell")).backgroundColor;
            dot.fillRect(0, 0, 1, 1);
            return [...dot.getImageData(0, 0, 1, 1).data].slice(0, 3);
        }"""
    )
    return float(sum(told) / 3 / 255)


def is_dark(page: Page) -> bool:
    return brightness(page) < LIGHT


def reachable(one: Locator) -> bool:
    """Whether a finger in the middle of it would press it: it is on the screen and uncovered."""
    return bool(
        one.evaluate(
            """(asked) => {
                const at = asked.getBoundingClientRect();
                const top = document.elementFromPoint(at.x + at.width / 2, at.y + at.height / 2);
                return top !== null && asked.contains(top);
            }"""
        )
    )


@pytest.mark.parametrize("wish", ["light", "dark"])
def test_it_is_as_the_system_wishes_until_somebody_says_otherwise(wish: str, visit: Visit) -> None:
    watched = visit("ada", dark=wish == "dark")
    page = watched.open("/ui/")
    assert is_dark(page) is (wish == "dark")
    expect(page.get_by_role("button", name="System")).to_have_attribute("aria-pressed", "true")

    other = {"light": "Dark", "dark": "Light"}[wish]
    page.get_by_role("button", name=other, exact=True).click()
    expect(page.locator("html")).to_have_class(re.compile(other.lower()))
    assert is_dark(page) is (other == "Dark")
    page.reload()
    assert is_dark(page) is (other == "Dark"), "it is kept"
    page = watched.open("/ui/review/")
    assert is_dark(page) is (other == "Dark"), "on every page"
    expect(page.get_by_role("button", name=other, exact=True)).to_have_attribute(
        "aria-pressed", "true"
    )
    page.get_by_role("button", name="System").click()
    page.reload()
    assert is_dark(page) is (wish == "dark")


@pytest.mark.parametrize("script", [True, False], ids=["script", "plain"])
def test_it_opens_and_closes_the_pages_on_a_phone(script: bool, visit: Visit) -> None:
    page = visit("ada", size=PHONE, script=script).open("/ui/review/")
    menu = page.locator("#menu")
    expect(menu).to_be_hidden()
    page.get_by_role("link", name="Menu").click()
    expect(menu).to_be_visible()
    assert reachable(menu.get_by_role("link", name="Board"))
    menu.get_by_role("link", name="Close").click()
    expect(menu).to_be_hidden()
    page.get_by_role("link", name="Menu").click()
    menu.get_by_role("link", name="Notes").click()
    page.wait_for_url("**/ui/notes/")
    expect(menu).to_be_hidden()


def test_it_has_the_pages_at_the_side_on_a_desk(visit: Visit) -> None:
    page = visit("ada", size=DESK).open("/ui/notes/")
    expect(page.locator("#menu")).to_be_visible()
    expect(page.get_by_role("link", name="Menu")).to_be_hidden()
    expect(page.locator("#menu [aria-current=page]")).to_contain_text("Notes")
    page.keyboard.press("Tab")
    skip = page.get_by_role("link", name="To the content")
    expect(skip).to_be_focused()
    expect(skip).to_be_in_viewport()
    page.keyboard.press("Enter")
    expect(page.locator("#content")).to_be_focused()


def test_it_decides_a_hold_on_a_phone(visit: Visit) -> None:
    page = visit("ada", size=PHONE).open("/ui/review/")
    row = shown(page)
    old, new = (page.locator(f".hold-side.{name}").bounding_box() for name in ("old", "new"))
    assert old and new and new["y"] >= old["y"] + old["height"], "the new one is below the old one"
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE[0]
    for name in ("Approve", "Reject"):
        button = page.locator(".hold-decide").get_by_role("button", name=name)
        box = button.bounding_box()
        assert reachable(button) and box and box["height"] >= 40, f"a finger reaches {name}"
    page.evaluate("window.scrollTo(0, document.body.scrollHeight)")
    reject = page.locator(".hold-decide").get_by_role("button", name="Reject")
    assert reachable(reject), "wherever one reads"
    reject.click()
    expect(page.locator("#said")).to_have_text(f"Verdict {row} is now rejected.")
    assert status(row) == "rejected"
    page.get_by_role("button", name="Undo").click()
    expect(page.locator("#said")).to_have_text(f"Verdict {row} is now pending.")
    assert reachable(page.locator("#hold-title")), "the card begins on the screen"
