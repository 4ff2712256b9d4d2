"""Holds decided as people decide them: all by keys, many by mouse, two at once; and by those who
may only look.

Beside `test_holds`, which knows each key of the page.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.urls import reverse
from playwright.sync_api import BrowserContext, Page, Route, expect

from argus.demo.story import OWNER
from memory.access import principal
from memory.models import Decision, DedupVerdict
from tests.browser.conftest import Visit
from tests.browser.ground import Watched
from tests.browser.test_holds import shown, status
from tests.factories import at, note, verdict

#: Keys that one decision may cost.
KEYS_PER_DECISION = 3

_words = itertools.count(1)


def hold(word: str, many: int) -> list[int]:
    """So many holds of the demo's owner, shown to its team; their ids. `word` stands in each."""
    owner, rows = principal(OWNER), []
    for _ in range(many):
        number = next(_words)
        said = f"The {word} server of rack {number} listens on port {{}}."
        fields: dict[str, Any] = {
            "visibility": "team",
            "when": at(days=-40, minutes=number),
            "embedded": False,
        }
        old = note(owner, said.format(8443), confidence=0.755, **fields)
        rows.append(verdict(note(owner, said.format(9443), **fields), old, similarity=0.93).pk)
    return rows


def pending() -> set[int]:
    rows = DedupVerdict.objects.as_pipeline().filter(status="pending")
    return set(rows.values_list("pk", flat=True))


@contextmanager
def refused(*watched: Watched, code: int) -> Iterator[None]:
    """The browser and htmx write of an answer that refuses; nothing else may stand there."""
    yield
    for one in watched:
        assert all(str(code) in trouble for trouble in one.troubles), one.troubles
        one.troubles.clear()


def test_it_comes_to_the_end_of_all_holds_by_keys_alone(visit: Visit) -> None:
    ids = hold("lighthouse", 4)
    before = pending()
    assert set(ids) < before, "those of the demo wait as well"
    page = visit("ada").open("/ui/review/")
    said = page.locator("#said")
    keys = 0

    def press(key: str) -> None:
        nonlocal keys
        keys += 1
        page.keyboard.press(key)

    first = shown(page)
    assert first == ids[0]
    press("s")
    expect(page.locator(".hold-facts dd").first).not_to_contain_text(str(first))
    wanted = {}
    for verb, becomes in itertools.islice(
        itertools.cycle([("a", "approved"), ("r", "rejected")]), len(before)
    ):
        row = shown(page)
        wanted[row] = becomes
        press(verb)
        expect(said).to_have_text(f"Verdict {row} is now {becomes}.")
        expect(page.locator("#hold-title")).to_be_focused()
    assert list(wanted)[-1] == first, "what was skipped comes up when all others are decided"
    expect(page.get_by_role("heading", name="Nothing is held.")).to_be_focused()
    assert keys / len(before) < KEYS_PER_DECISION
    assert {row: status(row) for row in before} == wanted
    press("u")
    expect(said).to_have_text(f"Verdict {first} is now pending.")
    assert pending() == {first} and shown(page) == first


def test_a_key_pressed_while_the_next_hold_is_on_its_way_decides_neither(visit: Visit) -> None:
    hold("ferry", 2)
    page = visit("ada").open("/ui/review/")
    first, before = shown(page), pending()
    asked: list[Route] = []
    page.route("**/ui/review/?after=*", lambda route: asked.append(route))
    with page.expect_request("**/ui/review/?after=*"):
        page.keyboard.press("s")
    for key in "aur":
        page.keyboard.press(key)
    asked[0].continue_()
    expect(page.locator(".hold-facts dd").first).not_to_contain_text(str(first))
    expect(page.locator("#hold-title")).to_be_focused()
    assert len(asked) == 1 and pending() == before
    page.keyboard.press("r")
    expect(page.locator("#said")).to_contain_text("is now rejected.")
    assert first in pending(), "what was skipped is not what was decided"


def test_a_key_pressed_the_moment_a_hold_is_there_loads_no_new_page(visit: Visit) -> None:
    hold("pier", 3)
    page = visit("ada").open("/ui/review/")
    first = shown(page)
    page.evaluate(
        """window.stayed = true;
        addEventListener("htmx:afterSwap", ({ detail }) => {
            const r = new KeyboardEvent("keydown", { key: "r", bubbles: true });
            if (detail.target.id === "hold") setTimeout(() => document.body.dispatchEvent(r));
        }, { once: true });"""
    )
    page.keyboard.press("s")
    expect(page.locator("#said")).to_contain_text("is now rejected.")
    expect(page.locator("#hold-title")).to_be_focused()
    assert page.evaluate("window.stayed") and first in pending()


def test_it_decides_those_ticked_and_tells_of_one_that_somebody_decided_meanwhile(
    visit: Visit,
) -> None:
    ids = hold("harbour", 3)
    page = visit("ada").open("/ui/review/?view=list&status=pending&q=harbour")
    for row in ids:
        page.get_by_label(f"Select verdict {row}").check()
    expect(page.locator("[data-count]")).to_have_text("3 selected")
    page.get_by_role("button", name="Approve those selected").click()
    expect(page.get_by_role("heading", name="Approve 3 verdicts?")).to_be_visible()
    expect(page.locator("tbody tr")).to_have_count(3)

    theirs = visit("rita").open(f"/ui/review/{ids[1]}/")
    theirs.get_by_role("button", name="Reject").click()
    expect(theirs.locator("#said")).to_have_text(f"Verdict {ids[1]} is now rejected.")

    page.get_by_label("Reason").fill("moved in spring")
    page.get_by_role("button", name="Approve 3").click()
    expect(page.get_by_role("heading", name="2 done, 1 not: approve")).to_be_visible()
    told = page.get_by_role("listitem").filter(has_text="not done")
    expect(told).to_have_count(1)
    expect(told).to_contain_text(f"supersede {ids[1]}")
    expect(told).to_contain_text("rejected by rita at 20")
    assert [status(row) for row in ids] == ["approved", "rejected", "approved"]
    mine = Decision.objects.filter(verdict__in=ids, principal__name=OWNER)
    assert set(mine.values_list("reason", flat=True)) == {"moved in spring"}


def test_it_takes_back_many_of_those_settled(visit: Visit) -> None:
    ids = hold("quay", 3)
    watched = visit("ada")
    page = watched.open("/ui/review/?view=list&status=pending&q=quay")
    page.get_by_label("All on this page").check()
    page.keyboard.press("r")
    page.get_by_role("button", name="Reject 3").click()
    expect(page.get_by_role("heading", name="3 done: reject")).to_be_visible()
    assert {status(row) for row in ids} == {"rejected"}

    page = watched.open("/ui/review/?view=list&status=settled&q=quay")
    page.get_by_label("All on this page").check()
    page.get_by_label(f"Select verdict {ids[2]}").uncheck()
    page.get_by_role("button", name="Undo those selected").click()
    page.get_by_role("button", name="Undo 2").click()
    expect(page.get_by_role("heading", name="2 done: undo")).to_be_visible()
    assert [status(row) for row in ids] == ["pending", "pending", "rejected"]


def test_it_does_nothing_when_nothing_is_ticked(visit: Visit) -> None:
    (row,) = hold("jetty", 1)
    page = visit("ada").open("/ui/review/?view=list&status=pending&q=jetty")
    page.keyboard.press("a")
    page.keyboard.press("r")
    expect(page.locator("tr[data-row]")).to_have_count(1)
    assert status(row) == "pending"


def test_it_lets_one_of_two_who_click_decide(visit: Visit) -> None:
    (row,) = hold("pier", 1)
    ada, rita = visit("ada"), visit("rita")
    mine, theirs = (one.open(f"/ui/review/{row}/") for one in (ada, rita))
    mine.get_by_role("button", name="Approve a", exact=True).click()
    expect(mine.locator("#said")).to_have_text(f"Verdict {row} is now approved.")
    with refused(rita, code=409):
        with theirs.expect_response(lambda got: got.request.method == "POST") as got:
            theirs.get_by_role("button", name="Reject").click()
        assert got.value.status == 409
        expect(theirs.get_by_role("alert")).to_contain_text(f"approved by {OWNER} at 20")
    assert status(row) == "approved"
    assert [one.action for one in Decision.objects.filter(verdict=row)] == ["approve"]
    theirs.get_by_role("link", name="Load the page again").click()
    expect(theirs.locator(".hold-facts")).to_contain_text(f"by {OWNER}")
    expect(theirs.get_by_role("button", name="Undo u", exact=True)).to_be_visible()


def test_it_shows_a_hold_to_one_who_looks_and_no_way_to_decide_it(visit: Visit) -> None:
    (row,) = hold("mole", 1)
    page = visit("lena").open(f"/ui/review/{row}/")
    assert shown(page) == row
    expect(page.get_by_role("button", name="Approve")).to_have_count(0)
    expect(page.get_by_role("button", name="Reject")).to_have_count(0)
    for key in "arue":
        page.keyboard.press(key)
    for address in (f"/ui/review/{row}/approve", f"/ui/review/{row}/edit", "/ui/review/bulk"):
        assert post(page, address, verb="approve", chosen=f"{row}:0", sure="1") == 404
    assert status(row) == "pending"


#: Who may not do what: where the button would stand, and where its form would go.
NOT_FOR = {
    "lena makes no key": ("lena", "/ui/keys/", "Make the key", "key-make"),
    "lena starts no run": ("lena", "/ui/?board=1", "Run now", "run-start"),
    "rita makes no key": ("rita", "/ui/keys/", "Make the key", "key-make"),
    "rita retries nothing": ("rita", "/ui/parked/", "Retry", "parked-release-all"),
    "otto sets no floors": (
        "otto",
        "/ui/injections/floors/?note_relevance=3",
        "Save these floors",
        "floors-save",
    ),
}


@pytest.mark.parametrize("case", NOT_FOR)
def test_it_shows_no_button_to_whoever_may_not_press_it(case: str, visit: Visit) -> None:
    name, address, button, action = NOT_FOR[case]
    form = reverse(f"admin:{action}", args=["process"] if action == "run-start" else [])
    page = visit(name).open(address)
    expect(page.locator("h1")).to_be_visible()
    expect(page.get_by_role("button", name=button)).to_have_count(0)
    assert post(page, form) == 404


def post(page: Page, address: str, **form: str) -> int:
    """What a form of this person's would be answered at an address whose button it does not see."""
    context: BrowserContext = page.context
    token = page.locator("input[name=csrfmiddlewaretoken]").first.get_attribute("value")
    site = page.url.split("/ui/")[0]
    return context.request.post(
        site + address,
        form={"csrfmiddlewaretoken": token or "", **form},
        headers={"Referer": page.url, "Origin": site},
    ).status
