"""What of a page comes when somebody opens it: by htmx, and by a link where no script runs."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from memory.models import Episode, Injection, LlmCall, Note
from tests.browser.conftest import Visit

#: What is folded on the page of an episode, and what stands in it when it is opened.
FOLDED = {"How it came to its project": "How it came to its project", "Model calls": "Model calls"}


def episode() -> str:
    called = LlmCall.objects.values("unit")
    rows = Episode.objects.as_pipeline().filter(unit_key__in=called)
    return f"/ui/episodes/{rows.order_by('pk')[0].pk}/"


def told() -> str:
    """The page of a note that an agent was told."""
    sent = Injection.objects.as_pipeline().exclude(note_ids=[]).order_by("-pk")
    ids = [pk for row in sent for pk in row.note_ids]
    return f"/ui/notes/{Note.objects.as_pipeline().filter(pk__in=ids).order_by('pk')[0].pk}/"


def table(page: Page, name: str) -> None:
    expect(page.get_by_role("region", name=name)).to_be_visible()


def test_it_fetches_what_is_folded_away_when_it_is_opened(visit: Visit) -> None:
    page = visit("ada").open(episode())
    for summary, region in FOLDED.items():
        expect(page.get_by_role("region", name=region)).to_have_count(0)
        page.get_by_text(summary, exact=True).click()
        table(page, region)
        page.get_by_text(summary, exact=True).click()
        page.get_by_text(summary, exact=True).click()
        table(page, region)
    page.goto(page.url.split("/ui/")[0] + told())
    expect(page.get_by_role("heading", name="Put before an agent")).to_have_count(0)
    page.locator("#trace").scroll_into_view_if_needed()
    expect(page.get_by_role("heading", name="Put before an agent")).to_be_visible()


def test_it_says_that_the_server_is_away_and_fetches_when_it_is_opened_again(visit: Visit) -> None:
    watched = visit("ada")
    page = watched.open(episode())
    page.route("**/*part=calls*", lambda route: route.abort())
    folded = page.get_by_text("Model calls", exact=True)
    folded.click()
    expect(page.locator("#said")).to_contain_text("The server cannot be reached.")
    expect(page.locator("#calls .later")).to_have_class(re.compile("away"))
    page.unroute("**/*part=calls*")
    folded.click()
    expect(page.get_by_role("region", name="Model calls")).to_have_count(0)
    folded.click()
    table(page, "Model calls")
    expect(page.locator("#said")).to_be_empty()
    assert all("part=calls" in one or "htmx" in one for one in watched.troubles)
    watched.troubles.clear()


def test_it_leads_there_by_a_link_without_script(visit: Visit) -> None:
    page = visit("ada", script=False).open(episode())
    for summary, region in FOLDED.items():
        page.get_by_text(summary, exact=True).click()
        page.locator("details[open] p > a[href*='part=']").click()
        table(page, region)
    page.goto(page.url.split("/ui/")[0] + told())
    page.get_by_role("link", name="Follow it to injections").click()
    expect(page.get_by_role("heading", name="Put before an agent")).to_be_visible()


def test_it_offers_projects_to_merge_with_when_that_is_opened(visit: Visit) -> None:
    page = visit("ada").open("/ui/projects/")
    page.locator("main tbody a[href^='/ui/projects/']").first.click()
    expect(page.locator("#others option")).to_have_count(0)
    page.get_by_text("Merge into another project").click()
    expect(page.locator("#others option")).not_to_have_count(0)
