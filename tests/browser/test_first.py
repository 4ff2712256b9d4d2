"""The first day of somebody who has nothing: from the welcome to the first session, live."""

from __future__ import annotations

import json
import urllib.request

from playwright.sync_api import expect

from memory.models import RawItem
from tests.browser.conftest import Visit

#: Milliseconds until a step that is done must be ticked: the page asks every three seconds.
TICK_MS = 15_000


def post(site: str, key: str, body: dict[str, object]) -> dict[str, object]:
    """What POST /capture answers to a hook."""
    asked = urllib.request.Request(
        f"{site}/capture",
        data=json.dumps(body).encode(),
        headers={"Authorization": f"Bearer {key}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(asked, timeout=30) as answer:
        told: dict[str, object] = json.load(answer)
    return told


def test_it_leads_from_nothing_to_the_first_session(visit: Visit, site: str) -> None:
    page = visit("otto").open("/ui/")
    expect(page.locator("h1")).to_have_text("Welcome to Argus")
    steps = page.locator(".step")
    expect(steps).to_have_count(4)
    expect(page.locator(".step.done")).to_have_count(0)
    expect(page.locator("[aria-current=step]")).to_contain_text("Make a key")

    keys = visit("otto").open("/ui/")
    keys.get_by_role("link", name="Make a key").click()
    for scope, ticked in (("capture", True), ("recall", True), ("operate", False)):
        expect(keys.locator(f"input[name=scope][value={scope}]")).to_be_checked(checked=ticked)
    keys.get_by_label("What it is for").fill("laptop")
    keys.get_by_role("button", name="Make the key").click()
    key = keys.locator("#new-key").inner_text().strip()
    expect(keys.locator("#install-line")).to_contain_text("argus-hook")
    # The window that stayed open ticks by itself, and says what comes next.
    expect(steps.nth(0)).to_contain_text("done", timeout=TICK_MS)
    expect(page.locator("[aria-current=step]")).to_contain_text("Install the hooks")
    assert key not in page.content()

    told = post(site, key, {
        "items": [
            {"source": "claude-code", "session": "first", "role": role, "body": body}
            for role, body in (
                ("user", "Where do the berth photos go?"),
                ("assistant", "The berth photos must be stored in the bucket harbor-photos."),
            )
        ],
        "client": {"name": "argus-hook", "machine": "laptop-7", "client": "claude-code"},
    })  # fmt: skip
    assert told["stored"] == 2
    expect(steps.nth(1)).to_contain_text("Heard from laptop-7", timeout=TICK_MS)
    expect(steps.nth(2)).to_contain_text("The first session is here")
    expect(page.locator("[aria-current=step]")).to_contain_text("Make the first note")
    # Nobody loaded it again, or it would be the board.
    expect(page.locator("h1")).to_have_text("Welcome to Argus")

    page.get_by_role("button", name="Process now").click()
    expect(page.locator("#run-now")).to_contain_text("all stages")
    steps.nth(2).get_by_role("link").click()
    page.wait_for_url("**/ui/items/**")
    expect(page.locator("main")).to_contain_text("harbor-photos")
    assert RawItem.objects.as_pipeline().filter(session="first").count() == 2


def test_it_copies_a_line_and_marks_it_where_a_browser_lends_no_clipboard(visit: Visit) -> None:
    lent, other = visit("otto"), visit("otto")
    lent.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = lent.open("/ui/install-line")
    line = page.locator("#install-line").inner_text().strip()
    page.get_by_role("button", name="Copy the line").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == line

    # As over plain HTTP from another machine.
    other.page.add_init_script("Object.defineProperty(navigator, 'clipboard', {value: undefined})")
    page = other.open("/ui/install-line")
    page.get_by_role("button", name="Copy the line").click()
    expect(page.get_by_role("button", name="Selected: now copy it")).to_be_visible()
    assert page.evaluate("getSelection().toString()").strip() == line
