"""What people do, in a browser that runs no script: forms, and where they lead."""

from __future__ import annotations

import re
from contextlib import closing

import pytest
from django.utils import timezone
from playwright.sync_api import Browser, Page, expect

from argus.demo.story import OWNER
from memory.access import authenticate, principal
from memory.models import AccessKey, Claim, Note
from review.models import Draw, Rating
from tests import web
from tests.browser import ground
from tests.browser.conftest import Visit
from tests.browser.test_holds import shown, status


@pytest.fixture
def page(visit: Visit) -> Page:
    """A browser of Ada's without script, on the board."""
    return visit("ada", script=False).open("/ui/")


def go(page: Page, address: str) -> Page:
    """To another page of the same site."""
    page.goto(page.url.split("/ui/")[0] + address)
    return page


def said(page: Page, words: str) -> None:
    """The page that a form led to says this."""
    expect(page.locator("#said")).to_contain_text(words)


def test_it_logs_in_and_out(browser: Browser, site: str) -> None:
    with closing(browser.new_context(java_script_enabled=False)) as context:
        page = context.new_page()
        page.goto(f"{site}/ui/notes/?q=port")
        page.get_by_label("Username").fill("otto")
        page.get_by_label("Password").fill("a guess")
        page.get_by_label("Password").press("Enter")
        expect(page.get_by_text("Please enter the correct username and password")).to_be_visible()
        page.get_by_label("Username").fill("otto")
        page.get_by_label("Password").fill(web.PASSWORD)
        page.get_by_role("button", name="Log in").click()
        expect(page).to_have_url(f"{site}/ui/notes/?q=port")
        assert page.locator("#menu").is_visible()
        page.get_by_role("button", name="Log out").click()
        page.goto(f"{site}/ui/notes/")
        expect(page.get_by_label("Username")).to_be_visible()


def test_it_filters_a_list_and_goes_on_to_the_next_rows(page: Page) -> None:
    go(page, "/ui/episodes/")
    everything = page.locator("main tbody tr").count()
    page.locator("select[name=project]").select_option("tidepool")
    page.get_by_role("button", name="Filter").click()
    page.wait_for_url("**project=**")
    some = page.locator("main tbody tr")
    assert 0 < some.count() < everything
    expect(some.filter(has_text="harbor")).to_have_count(0)
    page.get_by_text("More filters").click()
    # A long form folds what is asked for seldom, until it is asked for.
    if not page.get_by_label("Since").is_visible():
        page.get_by_text("More filters").click()
    page.get_by_label("Since").fill("2030-01-01")
    page.get_by_role("button", name="Filter").click()
    expect(page.get_by_label("Since")).to_have_value("2030-01-01")
    expect(page.get_by_text("Nothing is like that.")).to_be_visible()
    page.get_by_role("link", name="Without filters").click()
    expect(page.locator("main tbody tr")).to_have_count(everything)


def test_it_decides_a_hold_and_takes_it_back(page: Page) -> None:
    row = shown(go(page, "/ui/review/"))
    page.get_by_label("Reason (optional)").first.fill("checked it")
    page.get_by_role("button", name="Approve a", exact=True).click()
    said(page, f"Verdict {row} is now approved.")
    assert status(row) == "approved" and shown(page) != row
    go(page, f"/ui/review/{row}/").get_by_text("Decided before").click()
    expect(page.get_by_text("checked it")).to_be_visible()
    page.get_by_role("button", name="Undo u", exact=True).click()
    said(page, f"Verdict {row} is now undone.")
    assert status(row) == "undone"

    go(page, f"/ui/review/{row}/").get_by_text("Edit, then approve e").click()
    page.get_by_label("Content").fill("The staging database of harbor runs PostgreSQL 16.2.")
    page.get_by_role("button", name="Approve as edited").click()
    said(page, f"Verdict {row} is approved as edited.")
    go(page, f"/ui/review/{row}/").get_by_role("button", name="Undo u", exact=True).click()
    said(page, f"Verdict {row} is now undone.")


def test_it_decides_many_after_showing_them(page: Page) -> None:
    go(page, "/ui/review/?view=list&status=pending")
    row = int(str(page.locator("[data-select]").first.get_attribute("value")).split(":")[0])
    page.get_by_label(f"Select verdict {row}").check()
    page.get_by_role("button", name="Reject r").click()
    page.get_by_role("button", name="Reject 1").click()
    expect(page.get_by_role("heading", name="1 done: reject")).to_be_visible()
    assert status(row) == "rejected"
    page.get_by_role("button", name="Undo 1").click()
    page.get_by_role("button", name="Undo 1").click()
    assert status(row) == "pending"


def test_it_tells_of_one_who_was_faster_on_a_page(visit: Visit) -> None:
    slow, quick = visit("ada", script=False), visit("ada", script=False)
    row = shown(slow.open("/ui/review/"))
    assert shown(quick.open("/ui/review/")) == row
    quick.page.get_by_role("button", name="Reject").click()
    slow.page.get_by_role("button", name="Approve a", exact=True).click()
    expect(slow.page.get_by_role("heading", name="Somebody was faster", level=1)).to_be_visible()
    expect(slow.page.locator("main")).to_contain_text(f"rejected by {OWNER} at 20")
    assert status(row) == "rejected"
    slow.troubles[:] = [one for one in slow.troubles if "409" not in one]
    quick.page.get_by_role("button", name="Undo").click()
    assert status(row) == "pending"


def test_it_dismisses_a_parked_unit_and_sets_it_free(page: Page) -> None:
    (parked,) = Claim.objects.exclude(parked_at=None)
    go(page, "/ui/parked/").get_by_role("button", name="Dismiss").click()
    expect(page.locator("#said .ok")).to_be_visible()
    expect(page.get_by_text("Nothing is parked.")).to_be_visible()
    page.get_by_role("link", name="Dismissed").click()
    page.get_by_role("button", name="Bring back").click()
    go(page, "/ui/parked/").get_by_role("link", name="All its failures").click()
    expect(page.get_by_role("heading", name="What happened, latest first")).to_be_visible()
    page.get_by_label("Reason (optional)").fill("the model is another")
    page.get_by_role("button", name="Retry", exact=True).click()
    expect(page.locator("#said .ok")).to_be_visible()
    assert not Claim.objects.filter(pk=parked.pk).exclude(parked_at=None).exists()


def test_it_retires_a_note_and_restores_it(page: Page) -> None:
    go(page, "/ui/notes/?q=idempotency").locator("main tbody a[href^='/ui/notes/']").first.click()
    pk = page.url.rstrip("/").split("/")[-1]
    page.get_by_text("Retire: no agent is told it any more").click()
    retire = page.locator(f"form[action$='{pk}/retire']")
    retire.get_by_label("Reason").fill("no longer so")
    retire.get_by_role("button", name="Retire").click()
    said(page, "Retired: no agent is told this note any more.")
    assert Note.objects.as_pipeline().get(pk=pk).deleted_at is not None
    page.get_by_role("button", name="Restore").click()
    said(page, "Restored: it is recalled again.")
    assert Note.objects.as_pipeline().get(pk=pk).deleted_at is None

    page.get_by_role("button", name="Pin").click()
    said(page, "Pinned: first in your contexts.")
    page.get_by_role("button", name="Unpin").click()
    said(page, "Not pinned any more.")
    page.get_by_text("Edit: a new note takes its place").click()
    page.get_by_label("Title").fill("Where the idempotency keys are")
    page.get_by_role("button", name="Save as a new note").click()
    said(page, "This note now stands in place of the one you edited.")
    assert pk not in page.url
    expect(page.locator("h1")).to_have_text("Where the idempotency keys are")


def test_it_makes_a_key_and_revokes_it(page: Page) -> None:
    go(page, "/ui/keys/").get_by_label("What it is for").fill("plain laptop")
    page.get_by_role("button", name="Make the key").click()
    made = page.locator("#new-key").inner_text().strip()
    row = AccessKey.objects.get(name="plain laptop")
    assert row.prefix in made and authenticate(made, now=timezone.now()) == row
    page.get_by_role("link", name="The line that installs them").click()
    expect(page.locator("#install-line")).to_be_visible()

    listed = go(page, "/ui/keys/").locator("tr[data-row]", has_text="plain laptop")
    listed.get_by_text("Revoke", exact=True).click()
    listed.get_by_label("Why").fill("sold")
    listed.get_by_role("button", name=f"Revoke {row.prefix}").click()
    said(page, "Revoked.")
    expect(listed).to_contain_text("revoked")
    assert authenticate(made, now=timezone.now()) is None
    go(page, "/ui/audit/")
    expect(page.locator("main")).to_contain_text("sold")


def test_it_draws_and_rates(page: Page) -> None:
    go(page, "/ui/feed/").get_by_role("button", name="Draw a note").click()
    expect(page.get_by_role("link", name="The note")).to_be_visible()
    assert Draw.objects.filter(principal=principal(OWNER)).count() == 1
    page.get_by_role("button", name=re.compile("^Good")).click()
    said(page, "Good: again in ")
    assert Rating.objects.filter(principal=principal(OWNER)).count() == 1
    assert Draw.objects.filter(principal=principal(OWNER)).count() == 2


def test_it_asks(page: Page) -> None:
    go(page, "/ui/ask/").get_by_label("What would you ask an agent?").fill(
        "Which PostgreSQL version does the staging database use?"
    )
    page.get_by_role("button", name="Ask").click()
    expect(page.locator("#block")).to_contain_text("db-staging")


def test_it_puts_a_run_into_the_queue_and_cancels_it(page: Page) -> None:
    page.get_by_role("button", name="Run now").click()
    said(page, "Put into the queue.")
    expect(page).to_have_url(re.compile(r"/ui/runs/\d+/$"))
    page.get_by_role("button", name=re.compile("^Cancel run")).click()
    said(page, "Cancelled.")


def test_it_has_every_page(page: Page) -> None:
    for address in ground.PAGES.values():
        go(page, address)
        assert page.locator("h1").is_visible(), address
