"""Each page: it opens, light and dark, on a desk and a phone, and nothing goes wrong in it."""

from __future__ import annotations

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from memory.lately import DAYS
from memory.models import (
    Episode,
    GateRejection,
    Injection,
    Note,
    Project,
    RawItem,
    StageRun,
    TaskItem,
)
from tests import hostile
from tests.browser.conftest import Visit
from tests.browser.ground import DESK, PAGES, PHONE

#: Findings of these weights are faults.
GRAVE = {"serious", "critical"}

#: Pages of one thing, which is the first of these in the demo.
ONE = {
    "episode": ("/ui/episodes/", Episode),
    "note": ("/ui/notes/", Note),
    "injection": ("/ui/injections/", Injection),
    "rejection": ("/ui/rejections/", GateRejection),
    "run": ("/ui/runs/", StageRun),
    "project": ("/ui/projects/", Project),
    "task": ("/ui/tasks/", TaskItem),
    "item": ("/ui/items/", RawItem),
}


def address_of(name: str) -> str:
    if name in PAGES:
        return PAGES[name]
    address, model = ONE[name]
    return f"{address}{hostile.rows_of(model).order_by('pk')[0].pk}/"


@pytest.mark.parametrize("name", [*PAGES, *ONE])
def test_it_is_whole_on_a_desk_in_light_and_on_a_phone_in_dark(name: str, visit: Visit) -> None:
    # Colours are one matter and widths are another: two of the four together have all of both.
    for dark, size in ((False, DESK), (True, PHONE)):
        watched = visit("ada", dark=dark, size=size)
        page = watched.open(address_of(name))
        assert page.locator("h1").count() == 1
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= size[0], f"{name} is {wide} wide on {size[0]}"
        found = Axe().run(page)
        grave = [
            f"{one['id']}: {node['html'][:160]}"
            for one in found.response["violations"]
            if one["impact"] in GRAVE
            for node in one["nodes"]
        ]
        assert grave == [], f"{name} {'dark' if dark else 'light'} {size[0]}"


def test_a_line_of_the_board_opens_as_a_table_and_stays_open_when_the_board_is_fresh(
    visit: Visit,
) -> None:
    page = visit("ada", size=PHONE).open(PAGES["board"])
    cell = page.locator("#stage-distill")
    days = cell.get_by_role("row")
    expect(days.first).to_be_hidden()
    cell.get_by_text("As a table").click()
    expect(days).to_have_count(1 + DAYS)
    expect(days.last).to_be_visible()
    # The latest day is the demo's: its notes are there as a number.
    assert int(days.last.get_by_role("cell").inner_text()) > 0
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE[0]
    page.evaluate("document.querySelector('#stage-distill').id = 'old'")
    with page.expect_response("**/ui/stages"):
        page.evaluate("htmx.ajax('GET', '/ui/stages', {target: '#stages', swap: 'innerHTML'})")
    expect(page.locator("#old")).to_have_count(0)
    expect(days.last).to_be_visible()
    expect(page.locator("details.values[open]")).to_have_count(1)
    found = Axe().run(page, context="#stages")
    assert [one["id"] for one in found.response["violations"] if one["impact"] in GRAVE] == []
