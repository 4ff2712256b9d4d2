"""The board as a page: what is in the rows is what it says, to whom it may be said."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.core.cache import cache
from django.utils import timezone

from argus import board as boards
from argus.hookdoors import client_file
from memory import lately
from memory.envelope import SessionEnd
from memory.health import runs, waiting
from memory.intake import Incoming
from memory.llm.calls import record_local
from memory.llm.ports import Origin, Usage
from memory.models import Claim, Cooldown, Injection, Principal, StageRun, TokenDay
from memory.pipeline import process
from memory.posted import captured
from memory.stages.capture import capture
from recall.health import health as recall_health
from review.health import health as review_health
from tests import factories as make
from tests.web import asked, htmx, staff

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def forget() -> Iterator[None]:
    """What a process keeps of past days is not another test's."""
    cache.clear()
    yield
    cache.clear()


def a_run(stage: str, status: str = "done", **fields: Any) -> StageRun:
    now = timezone.now()
    told = {"started_at": now, "heartbeat_at": now, "finished_at": now, "status": status}
    return StageRun.objects.create(stage=stage, **{**told, **fields})


def ago(**span: float) -> Any:
    return timezone.now() - timedelta(**span)


def post(owner: Principal, session: str = "s1", *, said: str = "A thing.", **client: str) -> None:
    """One turn of a minute ago, as a hook on a machine posts it now."""
    now = timezone.now()
    told = Incoming(
        body=said,
        session=session,
        role="user",
        source="claude-code",
        original_timestamp=now.replace(second=0, microsecond=0) - timedelta(minutes=1),
    )
    capture([told], owner=owner, now=now, client={"name": "argus-hook", **client})


# What is counted.


def test_a_day_on_which_an_export_only_took_files_away_is_no_empty_day() -> None:
    now = timezone.now()
    StageRun.objects.create(
        stage="export", status="done", started_at=now, report={"removed": 2, "retired": 1}
    )
    assert runs(["export"], now)["export"].day_work == 3


def test_runs_are_counted_by_stage_with_the_last_one_and_the_last_fault() -> None:
    now = timezone.now()
    a_run("distill", report={"notes_created": 3}, started_at=ago(days=2))
    a_run("distill", "failed", error="ValueError: odd", started_at=ago(hours=5))
    a_run(
        "distill", report={"notes_created": 2, "rejected": {"poison": 1}}, started_at=ago(hours=1)
    )
    a_run("embed", "failed", started_at=ago(days=3))
    found = runs(["segment", "distill", "embed"], now)
    assert found["segment"].last is None and found["segment"].days == (0,) * lately.DAYS
    distill = found["distill"]
    assert distill.last is not None and distill.last.report["notes_created"] == 2
    assert (distill.day_runs, distill.day_failures, distill.day_work) == (2, 1, 2)
    assert distill.error == "ValueError: odd"
    assert sum(distill.days) == 5 and distill.days[-3] == 3
    assert (found["embed"].day_runs, found["embed"].day_failures) == (0, 0)


def test_what_waits_is_what_the_pipeline_then_does() -> None:
    alice, _, _ = make.three()
    now = timezone.now()
    make.turns(alice, make.SAID, start=now - timedelta(minutes=9), now=now)
    make.document(alice, "The deploy key lives in the vault since March. It is rotated weekly.")
    assert waiting(now)["segment"].units == 0, "an open session is no backlog"
    later = now + timedelta(hours=1)
    before = waiting(later)
    assert (before["segment"].units, before["distill"].units) == (1, 1)
    assert before["segment"].since is not None
    process(clock=make.clock(later))
    after = waiting(later)
    assert {stage: one.units for stage, one in after.items() if stage != "track"} == {
        "segment": 0,
        "distill": 0,
        "embed": 0,
        "dedup": 0,
    }


def test_a_parked_unit_waits_no_more_but_is_told_until_it_is_dismissed() -> None:
    alice, _, _ = make.three()
    closed = make.episode(alice, make.SAID)
    later = closed.ended_at + timedelta(hours=1)
    assert waiting(later)["distill"].units == 1
    row = Claim.objects.create(stage="distill", unit=closed.unit_key, parked_at=later)
    assert waiting(later)["distill"].units == 0
    seen = boards.board(alice, timezone.now(), errors=True)
    assert {cell.name: cell.parked for cell in seen.cells}["distill"] == 1 and seen.parked == 1
    Claim.objects.filter(pk=row.pk).update(dismissed_at=later)
    assert boards.board(alice, timezone.now(), errors=True).parked == 0


def test_capture_tells_rows_duplicates_refusals_and_hooks_of_the_owner_alone() -> None:
    alice, bob, _ = make.three()
    version = client_file()[1][: boards.VERSION_CHARACTERS]
    post(alice, "s1", said="One thing.", machine="tower", client="claude", version=version)
    post(
        alice, "s2", said="Another thing.", machine="tower", client="codex", version="0123456789ab"
    )
    post(
        alice, "s2", said="Another thing.", machine="tower", client="codex", version="0123456789ab"
    )
    post(bob, "s3", said="Bob's thing.", machine="bobs-laptop", client="pi")
    now = timezone.now()
    capture(
        [], owner=alice, now=now, misses=[{"session": "s9", "reason": "too large", "at": "now"}]
    )
    told = captured(alice, now)
    assert (told.posts, told.seen, told.misses) == (4, 3, {"too large": 1})
    assert told.stored + told.duplicates == 3 and told.duplicates == 1
    assert told.duplicate_rate == pytest.approx(1 / 3)
    assert told.rows_per_session == 1.0
    assert {(hook.machine, hook.client) for hook in told.hooks} == {
        ("tower", "claude"),
        ("tower", "codex"),
    }
    assert {hook.client: boards.outdated(hook) for hook in told.hooks} == {
        "claude": False,
        "codex": True,
    }
    assert captured(None, now).posts == 5
    assert captured(bob, now).posts == 1


def test_a_hook_that_was_silent_for_days_is_still_told_of() -> None:
    alice, _, _ = make.three()
    then = ago(days=20)
    capture([], owner=alice, now=then, client={"machine": "tower", "client": "pi"})
    told = captured(alice, timezone.now())
    assert told.posts == 0 and told.hooks[0].seen_at == then and told.last_at == then
    cache.clear()
    assert captured(alice, timezone.now() + timedelta(days=40)).hooks == ()


def test_recall_tells_outcomes_and_what_was_given_up() -> None:
    alice, bob, _ = make.three()
    for outcome, took in (("injected", 10.0), ("below_floor", 30.0), ("gated", 1.0)):
        Injection.objects.create(
            owner=alice, mode="prompt", outcome=outcome, timings={"total": took}
        )
    Injection.objects.create(
        owner=alice, mode="prompt", outcome="skipped", options={"id": "1", "reason": "away"}
    )
    Injection.objects.create(owner=bob, mode="prompt", outcome="injected", degraded=["vector"])
    told = recall_health(timezone.now(), alice)
    assert told.outcomes == {"below_floor": 1, "gated": 1, "injected": 1, "skipped": 1}
    assert (told.skipped, told.degraded) == ({"away": 1}, {})
    assert (told.milliseconds_p50, told.given_rate) == (10.0, 0.5)
    assert told.days[-1] + told.days[-2] == 4
    assert recall_health(timezone.now(), None).degraded == {"vector": 1}


def test_holds_are_counted_for_whoever_may_decide_them() -> None:
    alice, bob, charlie = make.three()
    old = make.note(alice, "The port is 8080.", visibility="team")
    new = make.note(alice, "The port is 8443.", visibility="team")
    make.verdict(new, old)
    counts = {who: review_health(who).holds for who in (alice, bob, charlie)}
    assert counts == {alice: 1, bob: 1, charlie: 0}
    assert review_health(alice).oldest_hold_at == new.created_at


def test_sums_are_kept_for_a_while_and_the_last_run_is_not() -> None:
    now = timezone.now()
    a_run("distill", report={"notes_created": 3}, started_at=now - timedelta(days=2))
    assert sum(runs(["distill"], now)["distill"].days) == 3
    a_run("distill", report={"notes_created": 4}, started_at=now - timedelta(days=2))
    fault = a_run("distill", "failed", error="ValueError: odd")
    told = runs(["distill"], now)["distill"]
    assert sum(told.days) == 3 and told.day_failures == 0
    assert told.last is not None and told.last.id == fault.pk
    cache.clear()
    told = runs(["distill"], now)["distill"]
    assert sum(told.days) == 7 and told.day_failures == 1


def test_a_backlog_older_than_what_is_looked_at_is_what_the_last_run_left() -> None:
    alice, _, _ = make.three()
    a_run("dedup", report={"pending": 900})
    cells = {cell.name: cell for cell in boards.board(alice, timezone.now(), errors=True).cells}
    assert cells["dedup"].waiting is not None and cells["dedup"].waiting.units == 900
    a_run("dedup", report={"pending": 0})
    cells = {cell.name: cell for cell in boards.board(alice, timezone.now(), errors=True).cells}
    assert cells["dedup"].waiting is not None and cells["dedup"].waiting.units == 0


def test_a_stage_whose_schedule_is_gone_is_not_well_because_another_one_runs() -> None:
    alice, _, _ = make.three()
    a_run("segment", started_at=ago(minutes=1), heartbeat_at=ago(minutes=1))
    a_run("impact", started_at=ago(days=20), heartbeat_at=ago(days=20))
    a_run("track", started_at=ago(days=20), heartbeat_at=ago(days=20))
    cells = {cell.name: cell for cell in boards.board(alice, timezone.now(), errors=True).cells}
    assert cells["impact"].answer.state == "warn"
    assert cells["impact"].answer.sentence == "Impact ran 20 d ago; it should every 1 h."
    assert cells["track"].answer.state == "ok", "what waits for it is counted, and nothing does"
    assert "nothing waits" in cells["track"].answer.sentence


# What is shown.


def test_a_turn_that_was_posted_is_on_the_board_as_captured() -> None:
    alice, _, _ = make.three()
    post(alice, machine="tower", client="claude", version="source")
    shown = staff("reader", who=alice).get("/ui/").content.decode()
    assert "1 row stored in 24 h" in shown and "tower" in shown
    assert "Is it working?" in shown
    for stage in ("capture", "segment", "distill", "embed", "dedup", "recall", "impact"):
        assert f'id="stage-{stage}"' in shown


def test_each_line_of_the_board_has_its_days_as_a_table_behind_it() -> None:
    alice, _, _ = make.three()
    post(alice)
    post(alice, said="Another.")
    shown = staff("reader", who=alice).get("/ui/").content.decode()
    assert shown.count('<svg class="spark"') == shown.count('<details class="values"') >= 8
    table = shown.partition('id="days-capture"')[2].partition("</details>")[0]
    days = re.findall(r'<th scope="row">(.*?)</th><td class="number">(.*?)</td>', table)
    assert [day for day, _ in days] == lately.day_names(timezone.now())
    assert [count for _, count in days] == [*["0"] * (lately.DAYS - 1), "2"]


def test_a_reader_sees_no_button_and_an_operator_does() -> None:
    alice, _, _ = make.three()
    post(alice)
    assert "Run now" not in staff("reader", who=alice).get("/ui/").content.decode()
    assert "Run now" in staff("operator", who=alice).get("/ui/").content.decode()


def test_staff_without_a_role_finds_nothing() -> None:
    alice, _, _ = make.three()
    browser = staff(who=alice)
    for address in ("/ui/", "/ui/stages", "/ui/first", "/ui/install-line"):
        assert browser.get(address).status_code == 404, address


def test_the_words_of_an_error_are_for_operators() -> None:
    alice, _, _ = make.three()
    post(alice)
    a_run("distill", "failed", error="ValueError: bob said he is <b>ill</b>")
    reader = staff("reader", who=alice).get("/ui/").content.decode()
    assert "Distill failed once in 24 h" in reader and "ValueError" in reader
    assert "bob said" not in reader
    operator = staff("operator", who=alice).get("/ui/").content.decode()
    assert "bob said he is &lt;b&gt;ill" in operator


def test_strangers_rows_are_not_counted_unless_a_superuser_asks() -> None:
    alice, bob, _ = make.three()
    post(alice)
    post(bob, machine="bobs-laptop", client="pi")
    browser = staff(who=alice, superuser=True)
    assert "bobs-laptop" not in browser.get("/ui/").content.decode()
    browser.post("/ui/owners", {"all": "on"})
    shown = browser.get("/ui/").content.decode()
    assert "bobs-laptop" in shown and "those of all owners" in shown


def test_the_stages_are_a_piece_of_their_own_for_whoever_leaves_the_board_open() -> None:
    alice, _, _ = make.three()
    post(alice)
    answer = htmx(staff("reader", who=alice)).get("/ui/stages")
    shown = answer.content.decode()
    assert answer.status_code == 200 and 'id="stage-distill"' in shown and "<html" not in shown


def test_models_tell_calls_tokens_and_who_rests() -> None:
    alice, _, _ = make.three()
    post(alice)
    record_local("embed", Usage("mini", "mini"), Origin("embed"))
    TokenDay.objects.create(day=timezone.now().date(), tokens=1234)
    Cooldown.objects.create(provider="http://m/v1", until=timezone.now() + timedelta(hours=1))
    shown = staff("reader", who=alice).get("/ui/").content.decode()
    assert "1,234 of 2,000,000 tokens today" in shown and "http://m/v1" in shown
    assert "mini" in shown


def test_the_board_asks_as_much_for_one_row_as_for_thirty() -> None:
    alice, _, _ = make.three()
    browser = staff("operator", who=alice)
    post(alice, machine="m0", client="claude")
    browser.get("/ui/")
    one = len(asked(browser, "/ui/"))
    for number in range(30):
        post(alice, f"s{number}", said=f"Thing {number}.", machine=f"m{number}", client="pi")
        a_run("distill", report={"notes_created": number})
        Injection.objects.create(owner=alice, mode="prompt", outcome="injected")
    assert len(asked(browser, "/ui/")) == one
    assert one < 35


def test_a_session_that_ended_waits_at_once() -> None:
    alice, _, _ = make.three()
    make.turns(alice, make.SAID, start=ago(hours=2), now=ago(hours=2))
    capture([], owner=alice, now=ago(hours=2), session_end=SessionEnd("s1", "exit"))
    assert waiting(timezone.now())["segment"].units == 1
