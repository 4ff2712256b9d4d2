"""How: staff browsers at the list of episodes, at one of them, and at distilling it again."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from memory.models import (
    Attribution,
    Claim,
    DistillFailure,
    Episode,
    GateRejection,
    Injection,
    LlmCall,
    Note,
    Principal,
    RawItem,
    SegmentCheck,
    StageRun,
)
from memory.searchtexts import index_items
from memory.stages.distill import distill
from memory.stages.segment import segment
from memory.tasks import run_redistill
from memory.web.listing import PAGE_ROWS
from tests.factories import (
    OTHER,
    QUOTE,
    SAID,
    at,
    clock,
    end_session,
    episode,
    three,
    turns,
    verdict,
)
from tests.openai_server import CHAT, OpenAIServer, note, notes, says
from tests.web import asked, htmx, staff

pytestmark = pytest.mark.django_db

LIST = reverse("admin:episodes")
FIRST = notes(note(QUOTE), note(OTHER))


@pytest.fixture(autouse=True)
def remote(configure: Callable[..., None]) -> None:
    """The distiller is the scripted server."""


@pytest.fixture
def alice() -> Principal:
    return three()[0]


@pytest.fixture
def one(server: OpenAIServer, alice: Principal) -> Episode:
    """An episode with two notes."""
    closed = episode(alice, SAID)
    server.script(CHAT, says(FIRST))
    distill(clock=clock(closed.ended_at + timedelta(hours=1)))
    found: Episode = Episode.objects.as_pipeline().get(pk=closed.pk)
    return found


def page(pk: int, **query: Any) -> str:
    return reverse("admin:episode", args=[pk]) + "".join(f"?{k}={v}" for k, v in query.items())


def text(browser: Client, address: str, status: int = 200) -> str:
    response = browser.get(address)
    assert response.status_code == status, response.content[:500]
    return response.content.decode()


def listed(browser: Client, query: str = "") -> set[int]:
    """Ids of the episodes that the list shows."""
    body = browser.get(f"{LIST}?format=json&{query}").getvalue()
    return {row["id"] for row in json.loads(body)}


class TestList:
    def test_it_says_what_to_do_when_there_is_none(self, alice: Principal) -> None:
        assert "There is no episode yet." in text(staff("reader", who=alice), LIST)

    def test_it_lists_what_came_of_each(self, alice: Principal, one: Episode) -> None:
        later = episode(alice, SAID, session="s2", start=at(days=1))
        shown = text(staff("reader", who=alice), LIST)
        assert shown.index(f"episode {later.pk}") < shown.index(f"episode {one.pk}")
        assert "2 notes" in shown and "waits for distilling" in shown

    def test_it_is_for_who_may_look_and_shows_no_strangers(
        self, alice: Principal, one: Episode
    ) -> None:
        assert staff(who=alice).get(LIST).status_code == 404
        charlie = staff("reader", "reviewer", who=three()[2])
        assert listed(charlie) == set()
        for address in (page(one.pk), page(one.pk, part="again")):
            assert charlie.get(address).status_code == 404
        assert htmx(charlie).get(page(one.pk, part="again")).status_code == 404

    def test_it_filters(self, alice: Principal, one: Episode) -> None:
        other = episode(
            alice, ["Fix the lamp in the hall.", "The lamp is fixed."], session="lamp", cwd="",
            start=at(days=3),
        )  # fmt: skip
        Claim.objects.create(stage="distill", unit=other.unit_key, parked_at=at(days=4))
        barren = episode(alice, ["Good morning to you.", "Hello there."], session="s3")
        Episode.objects.as_pipeline().filter(pk=barren.pk).update(distilled_at=at(days=1))
        browser = staff("reader", who=alice)
        assert listed(browser) == {one.pk, other.pk, barren.pk}
        wanted = {
            "q=lamp": {other.pk},
            "session=s1": {one.pk},
            "source=claude-code&session=s3": {barren.pk},
            "source=codex": set(),
            f"project={one.project_id}": {one.pk, barren.pk},
            "project=none": {other.pk},
            "project=77777": set(),
            "state=parked": {other.pk},
            "state=pending": set(),
            "state=barren": {barren.pk},
            "state=distilled": {one.pk, barren.pk},
            "state=late": set(),
            "since=2026-03-04": {other.pk},
            "until=2026-03-04": {one.pk, barren.pk},
            f"boundary_reason={one.boundary_reason}": {one.pk, other.pk, barren.pk},
            "boundary_reason=topic": set(),
        }
        assert {query: listed(browser, query) for query in wanted} == wanted

    def test_it_finds_an_episode_by_what_was_said(self, alice: Principal, one: Episode) -> None:
        episode(alice, ["Fix the lamp in the hall.", "It is fixed."], session="lamp")
        index_items()
        browser = staff("reader", who=alice)
        assert listed(browser, "said=Redis queues") == {one.pk}
        assert listed(browser, "said=Redis lamp") == listed(browser, "said=the") == set()
        assert listed(staff("reader", who=three()[2]), "said=Redis") == set()

    def test_it_asks_as_much_for_thirty_as_for_one(self, alice: Principal) -> None:
        browser = staff("reader", who=alice)
        episode(alice, SAID[:2], session="first")
        browser.get(LIST)
        with CaptureQueriesContext(connection) as few:
            browser.get(LIST)
        for number in range(30):
            turns(alice, [f"Session {number} begins.", "Yes."], session=f"n{number}")
        segment(clock=clock(at(days=1)))
        with CaptureQueriesContext(connection) as many:
            assert text(browser, LIST).count("<tr>") == PAGE_ROWS + 1
        assert len(many) == len(few)

    def test_it_exports_what_is_filtered(self, alice: Principal, one: Episode) -> None:
        browser = staff("reader", who=alice)
        lines = browser.get(f"{LIST}?format=csv&session=s1").getvalue().decode().splitlines()
        assert lines[0].startswith("id,unit,owner,project") and len(lines) == 2
        assert lines[1].endswith(",False,2,0")


class TestTimeline:
    def test_it_shows_turns_notes_verdicts_and_the_rest(
        self, alice: Principal, one: Episode
    ) -> None:
        new, old = Note.objects.as_pipeline().order_by("-valid_from")
        held = verdict(new, old)
        refused = GateRejection.objects.create(
            owner=alice, reason="title", candidate={"title": "Too long a title"}, episode=one
        )
        DistillFailure.objects.create(unit=one.unit_key, kind="content", error="prose came back")
        put = Injection.objects.create(
            owner=alice, mode="prompt", outcome="injected", session="s1", note_ids=[old.pk]
        )
        shown = text(staff("reader", who=alice), page(one.pk))
        for said in SAID:
            assert said.replace("'", "&#x27;") in shown
        for name, key in (
            ("note", new.pk), ("note", old.pk), ("review-hold", held.pk), ("injection", put.pk),
            ("rejection", refused.pk), ("item", one.first_item_id),
        ):  # fmt: skip
            assert f'href="{reverse(f"admin:{name}", args=[key])}"' in shown
        assert "pending" in shown and "prose came back" in shown and "Too long a title" in shown
        assert LlmCall.objects.filter(unit=one.unit_key).exists() and "?part=calls" in shown
        assert "scripted-2026-01" not in shown, "the calls are fetched when they are asked for"
        calls = text(staff("reader", who=alice), f"{page(one.pk)}?part=calls")
        assert "scripted-2026-01, prompt " in calls
        assert "Ask the distiller again" not in shown, "a reader decides nothing"

    def test_it_tells_which_looks_for_a_border_fired(self, alice: Principal) -> None:
        turns(alice, SAID)
        turns(alice, SAID, start=at(hours=3))
        segment(clock=clock(at(hours=9)))
        first, second = Episode.objects.as_pipeline().order_by("started_at")
        browser = staff("reader", who=alice)
        shown = text(browser, page(second.pk))
        gap = SegmentCheck.objects.get(raw_item=second.first_item, check_kind="gap")
        assert gap.fired and "gap: 177 minutes, limit 30: <strong>a border</strong>" in shown
        assert shown.count(": no border") >= 3
        assert f'href="{page(first.pk)}"' in shown, "the other episodes of the session are links"
        before = text(browser, page(first.pk))
        assert "<strong>a border</strong>" in before, "the border behind it stands at its end"

    def test_it_says_that_no_turn_may_be_seen_though_a_border_came_behind_it(
        self, alice: Principal
    ) -> None:
        turns(alice, SAID)
        turns(alice, SAID, start=at(hours=3))
        segment(clock=clock(at(hours=9)))
        first = Episode.objects.as_pipeline().order_by("started_at")[0]
        shown = text(staff("reader", who=alice), f"{page(first.pk)}?from=99")
        assert "No turn of it may be seen." in shown and 'class="look fired"' in shown

    def test_it_stays_where_one_is_when_a_part_is_opened_without_script(
        self, alice: Principal, one: Episode
    ) -> None:
        shown = text(staff("reader", who=alice), f"{page(one.pk)}?from=2")
        assert 'href="?from=2&amp;part=calls#calls"' in shown

    def test_it_puts_no_part_together_twice(self, alice: Principal, one: Episode) -> None:
        browser = staff("reader", who=alice)
        bare = asked(browser, page(one.pk))
        assert len(asked(browser, page(one.pk, part="again"))) == len(bare)

    def test_it_tells_how_it_came_to_its_project(self, alice: Principal, one: Episode) -> None:
        Attribution.objects.create(
            episode=one, method="centroid", confidence=0.61, score=0.412, threshold=0.35,
            runner_up="garden", runner_up_score=0.3, cwd_mismatch=True,
        )  # fmt: skip
        browser = staff("reader", who=alice)
        assert "folder disagrees" not in text(browser, page(one.pk)), "fetched when it is opened"
        for asks in (browser, htmx(browser)):
            shown = text(asks, f"{page(one.pk)}?part=attributions")
            assert "0.412 against 0.35; next garden 0.3" in shown and "folder disagrees" in shown
            assert ("Turns</h2>" in shown) == (asks is browser)
        stranger = htmx(staff("reader", who=three()[2]))
        for part in ("attributions", "calls"):
            assert stranger.get(f"{page(one.pk)}?part={part}").status_code == 404

    def test_it_cuts_long_turns_and_escapes_all(self, alice: Principal) -> None:
        long = "<script>alert(1)</script>\u202e" + "so much was said " * 400
        one = episode(alice, [long, "Yes."])
        shown = text(staff("reader", who=alice), page(one.pk))
        assert "<script>alert" not in shown and "&lt;script&gt;alert(1)" in shown
        assert "\u202e" not in shown and "U+202E" in shown
        assert shown.count("so much was said") < 130 and "characters</a>" in shown

    def test_it_asks_as_much_for_a_long_one_as_for_a_short_one(self, alice: Principal) -> None:
        browser = staff("reader", who=alice)
        short = episode(alice, SAID[:2], session="short")
        long = episode(alice, [f"Turn {n} says this." for n in range(20)], session="long")
        browser.get(page(short.pk))
        with CaptureQueriesContext(connection) as few:
            browser.get(page(short.pk))
        with CaptureQueriesContext(connection) as many:
            browser.get(page(long.pk))
        assert len(many) == len(few)

    def test_it_links_what_is_parked(self, alice: Principal) -> None:
        one = episode(alice, SAID)
        held = Claim.objects.create(stage="distill", unit=one.unit_key, parked_at=at(days=1))
        shown = text(staff("reader", who=alice), page(one.pk))
        assert reverse("admin:parked-unit", args=[held.pk]) in shown


class TestAgain:
    def post(self, browser: Client, verb: str, one: Episode, **data: Any) -> Any:
        return browser.post(reverse(f"admin:episode-{verb}", args=[one.pk]), data)

    def carry_out(self, one: Episode, alice: Principal) -> None:
        run = StageRun.objects.get(stage="redistill", status="waiting")
        run_redistill(run.pk, one.unit_key, alice.pk)

    def test_it_shows_what_would_change_and_does_it_when_told(
        self, server: OpenAIServer, alice: Principal, one: Episode
    ) -> None:
        browser = staff("reviewer", who=alice)
        piece = self.post(htmx(browser), "redistill", one)
        assert piece.status_code == 200 and b'hx-trigger="every 1s"' in piece.content
        server.script(CHAT, says(notes(note(QUOTE), note(OTHER, content="Staging is on 8443."))))
        self.carry_out(one, alice)
        shown = htmx(browser).get(page(one.pk, part="again")).content.decode()
        assert "every 1s" not in shown and "1 new, 1 would go, 0 back, 1 stay" in shown
        assert "<ins>" in shown and "<del>" in shown
        assert Note.objects.as_pipeline().filter(deleted_at=None).count() == 2
        fields = {
            name: shown.split(f'name="{name}" value="')[1].split('"')[0]
            for name in ("proposal", "seen")
        }
        done = self.post(browser, "apply", one, **fields)
        assert done.status_code == 302 and done.url == f"{page(one.pk)}#again"
        assert "Applied: 1 new, 1 retired, 0 back." in text(browser, page(one.pk))
        assert self.post(browser, "apply", one, **fields).status_code == 409
        stale = self.post(htmx(browser), "drop", one, **fields)
        assert stale.status_code == 409 and b"applied by alice" in stale.content

    def test_it_says_that_nothing_would_change(
        self, server: OpenAIServer, alice: Principal, one: Episode
    ) -> None:
        browser = staff("reviewer", who=alice)
        assert self.post(browser, "redistill", one).status_code == 302
        assert "waits for a worker" in text(browser, page(one.pk))
        server.script(CHAT, says(FIRST))
        self.carry_out(one, alice)
        shown = text(browser, page(one.pk))
        assert "Nothing would change." in shown and "Apply these changes" not in shown
        proposal = shown.split('name="proposal" value="')[1].split('"')[0]
        assert self.post(browser, "drop", one, proposal=proposal).status_code == 302
        assert "Ask the distiller again" in text(browser, page(one.pk))

    def test_it_tells_what_was_refused_to_its_owner_alone(
        self, server: OpenAIServer, alice: Principal
    ) -> None:
        shared = episode(alice, SAID, visibility="team")
        server.script(CHAT, says(FIRST))
        distill(clock=clock(shared.ended_at + timedelta(hours=1)))
        browser, bob = staff("reviewer", who=alice), staff("reader", who=three()[1])
        assert self.post(browser, "redistill", shared).status_code == 302
        invented = note("Alice thinks of leaving the shop in May.")
        server.script(CHAT, says(notes(note(QUOTE), note(OTHER), invented)))
        self.carry_out(shared, alice)
        assert "Refused by the gate (1)" in text(browser, page(shared.pk))
        for told in (text(bob, page(shared.pk)), text(htmx(bob), page(shared.pk, part="again"))):
            assert "Nothing would change." in told
            assert "Refused by the gate" not in told and "leaving the shop" not in told

    @pytest.mark.parametrize("odd", ["²", "٣", "\0", "-1", "1.0", "9" * 40, ""])
    def test_it_takes_what_is_no_number_for_none(
        self, odd: str, alice: Principal, one: Episode
    ) -> None:
        browser = staff("reviewer", who=alice)
        where = reverse("admin:episode", args=[one.pk])
        assert browser.get(where, {"from": odd}).status_code == 200
        for verb in ("apply", "drop"):
            assert self.post(browser, verb, one, proposal=odd).status_code == 404

    def test_it_says_that_no_worker_takes_it(self, alice: Principal, one: Episode) -> None:
        browser = staff("reviewer", who=alice)
        minute = timezone.now() - timedelta(minutes=1)
        StageRun.objects.create(
            stage="redistill", status="waiting", started_at=minute,
            progress={"unit": one.unit_key, "episode": one.pk},
        )  # fmt: skip
        assert "No worker takes it" in text(browser, page(one.pk))

    def test_it_is_for_reviewers_of_their_own(self, alice: Principal, one: Episode) -> None:
        for browser in (staff("reader", who=alice), staff("reviewer", who=three()[2])):
            for verb in ("redistill", "apply", "drop"):
                assert self.post(browser, verb, one, proposal="1").status_code == 404
        assert staff("reviewer", who=alice).get(
            reverse("admin:episode-redistill", args=[one.pk])
        ).status_code == 405  # fmt: skip

    def test_it_follows_a_row_from_capture_to_the_page(self, alice: Principal) -> None:
        made = turns(alice, ["Where does staging run?", OTHER], session="posted")
        end_session(alice, "posted", now=at(minutes=5))
        segment(clock=clock(at(minutes=6)))
        placed = RawItem.objects.as_pipeline().get(pk=made[0].pk).placed
        browser = staff("reader", who=alice)
        assert f"episode {placed.episode_id}" in text(browser, LIST)
        assert OTHER in text(browser, page(placed.episode_id))
