"""The page of findings: of one's own things and of the house, with a way to each."""

from __future__ import annotations

import json
from html import unescape
from typing import Any

import pytest

from memory import findings
from memory.findings import Found
from memory.models import Finding, Principal, StageRun
from memory.shown.findings import PLACES, told
from tests import factories as make
from tests.web import asked, staff

pytestmark = pytest.mark.django_db

NOTE = "6f0b7f9e-6d0c-5b0f-9b0e-0a2d3c4e5f60"


def text(answer: Any) -> str:
    body = b"".join(answer.streaming_content) if answer.streaming else answer.content
    return unescape(body.decode())


def ran(stage: str = "verify", day: float = 0, **fields: Any) -> StageRun:
    told = {"status": "done", "started_at": make.at(days=day), "finished_at": make.at(1, days=day)}
    return StageRun.objects.create(stage=stage, **told | fields)


def find(
    run: StageRun, owner: Principal | None = None, check: str = "quotes", **more: Any
) -> Finding:
    one = Found(**{"kind": "note", "reference": NOTE, "owner_id": owner and owner.pk} | more)
    findings.write(run, check, [one], now=run.started_at)
    found: Finding = Finding.objects.as_pipeline().latest("pk")
    return found


def listed(browser: Any, query: str = "") -> set[int]:
    return {
        one["id"] for one in json.loads(text(browser.get(f"/ui/findings/?{query}&format=json")))
    }


def test_it_shows_ones_own_and_the_houses_and_everybodys_to_who_asks() -> None:
    alice, bob, _ = make.three()
    run = ran(report={"found": {"quotes": 2, "indexes": 1}})
    mine, his = find(run, alice), find(run, bob)
    house = find(run, None, "indexes", kind="index", reference="note_nearest")
    browser = staff("reader", who=alice)
    assert listed(browser) == {mine.pk, house.pk}
    shown = text(browser.get("/ui/findings/"))
    assert f'href="/ui/notes/{NOTE}/"' in shown and "note_nearest" in shown
    assert f'href="/ui/runs/{run.pk}/"' in shown and "3 found in all" in shown
    assert 'href="/ui/findings/"' in text(browser.get("/ui/"))
    root = staff(who=alice, superuser=True)
    assert his.pk not in listed(root)
    root.post("/ui/owners", {"all": "on"})
    assert listed(root) == {mine.pk, his.pk, house.pk}
    assert "bob" in text(root.get("/ui/findings/")) and "the house" in text(
        root.get("/ui/findings/")
    )
    assert "bob" not in text(browser.get("/ui/findings/?format=csv"))


def test_it_lists_what_the_last_runs_found_and_the_past_when_asked() -> None:
    alice, _, _ = make.three()
    old = find(ran(day=0), alice)
    new = find(ran(day=1), alice)
    replayed = find(ran("reconcile", day=1), alice, "notes", kind="episode", reference="7")
    # Neither a look at one thing nor one that failed says that all else is well.
    part = find(ran(day=2, progress={"checks": ["quotes"]}), alice)
    ran("reconcile", day=2, progress={"unit": "item:1"})
    ran(day=3, status="failed")
    browser = staff("reader", who=alice)
    assert listed(browser) == {new.pk, replayed.pk}
    assert listed(browser, "of=all") == {old.pk, new.pk, replayed.pk, part.pk}
    assert listed(browser, "stage=verify") == {new.pk}
    assert listed(browser, "check=notes") == listed(browser, "kind=episode") == {replayed.pk}
    assert listed(browser, f"q={NOTE}&of=all") == {old.pk, new.pk, part.pk}
    assert listed(browser, f"of=all&until={make.at():%Y-%m-%d}") == {old.pk}
    assert listed(browser, f"of=all&since={make.at(days=2):%Y-%m-%d}") == {part.pk}
    assert listed(browser, "kind=nonsense") == listed(browser, "run=x") == set()
    assert listed(browser, f"of=all&run={old.run_id}") == {old.pk}


def test_the_board_and_the_run_lead_to_what_was_found() -> None:
    run = ran(report={"findings": 2, "found": {"quotes": 2}, "looked": {"quotes": 9}})
    browser = staff("reader", who=make.three()[0])
    board = text(browser.get("/ui/?board=1"))
    assert 'href="/ui/findings/?stage=verify"' in board
    assert "See Findings; what is not there is another" in board and "looked (" not in board
    assert f'href="/ui/findings/?of=all&run={run.pk}"' in text(browser.get(f"/ui/runs/{run.pk}/"))


def test_a_way_leads_to_each_thing_and_odd_ids_break_nothing() -> None:
    run = ran()
    good = {"note": NOTE, "item": "7", "episode": "7", "verdict": "7", "injection": "7"}
    links = {kind: told(find(run, kind=kind, reference=ref)).link for kind, ref in good.items()}
    assert links["note"] == f"/ui/notes/{NOTE}/" and links["verdict"] == "/ui/review/7/"
    assert all(links.values())
    unit = find(run, kind="unit", reference="episode:0a")
    assert told(unit).link == "/ui/parked/?q=episode%3A0a"
    proposed = find(run, kind="episode", reference="7", detail={"proposal": 3})
    assert told(proposed).link == "/ui/episodes/7/#again"
    for odd in ("", "x", "-1", "7; drop", '"><script>', "9" * 40):
        for kind in [*PLACES, "odd"]:
            link = told(find(run, kind=kind, reference=odd)).link
            assert "<" not in link and '"' not in link
    staff("reader").get("/ui/findings/")


def test_it_pages_by_keys_and_asks_as_much_for_one_as_for_thirty() -> None:
    alice, _, _ = make.three()
    run = ran()
    find(run, alice)
    browser = staff("reader", who=alice)
    one = asked(browser, "/ui/findings/")
    findings.write(
        run, "quotes", [Found("note", NOTE, alice.pk) for _ in range(60)], now=run.started_at
    )
    assert len(asked(browser, "/ui/findings/")) == len(one)
    page = browser.get("/ui/findings/").context["listed"]
    assert page.total == "61" and len(page.rows) == 30
    assert len(browser.get(f"/ui/findings/{page.older}").context["listed"].rows) == 30


def test_when_nothing_is_wrong_it_says_so_and_no_role_finds_no_page() -> None:
    alice, _, _ = make.three()
    browser = staff("reader", who=alice)
    shown = text(browser.get("/ui/findings/"))
    assert "Nobody looked yet" in shown and "has not run yet" in shown
    assert "no such finding" in text(browser.get("/ui/findings/?kind=note"))
    assert staff(who=alice).get("/ui/findings/").status_code == 404


def test_hostile_words_are_shown_as_words() -> None:
    odd = '"><img src=x onerror=alert(1)>'
    find(ran(), None, odd, kind=odd, reference=odd, detail={odd: [odd], "n": {odd: odd}})
    shown = staff("reader").get("/ui/findings/").content.decode()
    assert "<img" not in shown and "&lt;img src=x" in shown


def test_nothing_of_ones_own_is_not_nothing_at_all() -> None:
    alice, bob, _ = make.three()
    browser = staff("reader", who=alice)
    run = ran(report={"found": {"quotes": 0}})
    assert "Nothing is wrong." in text(browser.get("/ui/findings/"))
    StageRun.objects.filter(pk=run.pk).update(report={"found": {"quotes": 1}})
    find(run, bob)
    shown = text(browser.get("/ui/findings/"))
    assert "Nothing of yours is wrong." in shown and "1 found in all" in shown
