"""What the board says: answers are pure, and the facts behind them are what is in the rows."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from argus.answers import (
    BEHIND_HOURS,
    POSTED_MIN,
    RECALL_MILLISECONDS_MAX,
    SILENT_DAYS,
    Answer,
    Facts,
    answer,
    capture_answer,
    export_answer,
    found_answer,
    recall_answer,
    together,
)
from exporter.health import Exported
from memory.health import UNITS_COUNTED_MAX, Run, Runs, Waiting
from memory.posted import Captured
from memory.templatetags.argus import coded, place
from memory.wording import counts
from recall.health import Recalled

NOW = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)


def before(**span: float) -> datetime:
    return NOW - timedelta(**span)


def a_run(status: str = "done", **fields: Any) -> Run:
    told: dict[str, Any] = {
        "id": 1,
        "status": status,
        "started_at": before(minutes=3),
        "heartbeat_at": before(minutes=3),
        "finished_at": before(minutes=2),
        "report": {},
        "error": "",
        "trigger": "schedule",
    }
    return Run(**{**told, **fields})


def facts(last: Run | None = None, **fields: Any) -> Facts:
    runs = Runs(last=last, **fields.pop("runs", {}))
    told: dict[str, Any] = {
        "stage": "distill",
        "now": NOW,
        "runs": runs,
        "waiting": Waiting(),
        "worker_at": last.started_at if last else None,
    }
    return Facts(**{**told, **fields})


def test_a_stage_that_ran_and_has_nothing_left_works() -> None:
    said = answer(facts(a_run()))
    assert said == Answer("ok", "Ran 3 min ago; nothing waits.")
    said = answer(facts(a_run(), waiting=Waiting(14, before(minutes=1))))
    assert said == Answer("ok", "Ran 3 min ago; 14 units wait for the next run.")
    said = answer(facts(a_run("running", heartbeat_at=before(seconds=5))))
    assert said == Answer("ok", "Runs since 3 min.")


def test_a_stage_that_never_ran_is_idle_until_something_waits_for_it() -> None:
    assert answer(facts()).state == "idle"
    said = answer(facts(waiting=Waiting(1, before(hours=2))))
    assert said.state == "bad"
    assert said.sentence == "The worker is away: 1 unit waits since 2 h."
    assert "make up" in said.fix


def test_failures_are_counted_and_the_last_one_is_quoted() -> None:
    error = "ValueError: it is none\nand a second line"
    said = answer(facts(a_run("failed", error=error), runs={"day_failures": 4}))
    assert said.state == "bad"
    assert said.sentence == "Distill failed 4 times in 24 h, last 3 min ago: ValueError: it is none"
    well = a_run()
    again = {"day_failures": 1, "failed_at": before(hours=5), "error": error}
    said = answer(facts(well, runs=again))
    assert said.state == "warn"
    assert said.sentence == "Works again; failed once in 24 h, last 5 h ago: ValueError: it is none"


def test_a_run_without_a_sign_of_life_is_broken() -> None:
    silent = a_run("running", started_at=before(hours=1), heartbeat_at=before(minutes=40))
    said = answer(facts(silent))
    assert said.state == "bad" and "no sign of life" in said.sentence


def test_units_that_wait_while_no_worker_comes_are_bad_and_while_one_does_are_not() -> None:
    waiting = Waiting(14, before(hours=2))
    gone = a_run(started_at=before(hours=3), heartbeat_at=before(hours=3))
    assert answer(facts(gone, waiting=waiting)).sentence == (
        "The worker is away: 14 units wait since 2 h."
    )
    assert answer(facts(a_run(), waiting=waiting)).state == "ok"
    # Another stage of the same pass shows that the worker is there.
    assert answer(facts(gone, waiting=waiting, worker_at=before(minutes=1))).state == "ok"
    # A schedule of an hour is not away after half of one.
    half = a_run(started_at=before(minutes=40))
    assert answer(facts(half, waiting=waiting, every=timedelta(hours=1))).state == "ok"


def test_a_stage_that_nobody_counts_for_is_not_well_when_it_does_not_come() -> None:
    hourly: dict[str, Any] = {"stage": "export", "every": timedelta(hours=1), "counted": False}
    assert answer(facts(a_run(), **hourly)) == Answer("ok", "Ran 3 min ago.")
    old = a_run(started_at=before(days=20), heartbeat_at=before(days=20))
    # Another stage's worker comes by every minute: this one has a schedule of its own.
    said = answer(facts(old, worker_at=before(minutes=1), **hourly))
    assert said.state == "warn"
    assert said.sentence == "Export ran 20 d ago; it should every 1 h."
    assert "schedules" in said.fix
    assert "make up" in answer(facts(old, **hourly)).fix, "no worker at all"
    # One that was missed twice may be late; one that only runs when it is told to never is.
    twice = a_run(started_at=before(hours=2, minutes=50))
    assert answer(facts(twice, worker_at=before(minutes=1), **hourly)).state == "ok"
    said = answer(facts(old, **hourly | {"every": timedelta(0)}))
    assert said == Answer("ok", "Ran 20 d ago; it runs when it is told to.")


def test_nothing_waits_and_no_worker_is_idle_not_broken() -> None:
    said = answer(facts(a_run(started_at=before(days=2), heartbeat_at=before(days=2))))
    assert said.state == "idle" and said.fix


def test_a_model_that_is_away_is_named_with_when_it_is_tried_again() -> None:
    put_off = a_run(report={"transient_failures": 1})
    resting = (("http://models:8000/v1", NOW + timedelta(minutes=2), "timeout"),)
    said = answer(facts(put_off, waiting=Waiting(3, before(hours=1)), resting=resting))
    assert said.state == "warn"
    assert said.sentence == (
        "A model that distill needs is away since 3 min, tried again in 2 min"
        " (http://models:8000/v1: timeout)."
    )
    spent = answer(facts(put_off, tokens_spent=True))
    assert "tokens of today are spent" in spent.sentence
    assert answer(facts(a_run(), tokens_spent=True)).state == "ok", "nothing asked for any"


def test_a_stage_that_runs_and_does_not_get_through_falls_behind() -> None:
    waiting = Waiting(UNITS_COUNTED_MAX + 1, before(hours=BEHIND_HOURS + 1))
    said = answer(facts(a_run(), waiting=waiting))
    assert said.state == "warn"
    assert said.sentence == "Distill falls behind: 1,000+ units wait, the oldest since 13 h."


def test_parked_units_ask_for_a_look() -> None:
    assert answer(facts(a_run(), parked=1)).sentence == (
        "1 unit is parked after failing again and again."
    )
    assert answer(facts(a_run(), parked=2)).state == "warn"


def test_what_is_broken_is_told_before_what_waits() -> None:
    everything = facts(
        a_run("failed", error="X: y"),
        runs={"day_failures": 2},
        waiting=Waiting(5, before(days=1)),
        parked=3,
        worker_at=before(days=1),
    )
    assert answer(everything).sentence.startswith("Distill failed twice in 24 h")


def test_capture_that_fell_silent_while_hooks_ask_is_broken() -> None:
    posted = Captured(last_at=before(days=SILENT_DAYS + 1))
    asks = Recalled(last_at=before(hours=20))
    said = capture_answer(posted, asks, NOW)
    assert said.state == "bad"
    assert said.sentence == (
        "Nothing was captured for 4 d, although hooks asked for recall 20 h ago."
    )
    quiet = Recalled(last_at=before(days=SILENT_DAYS + 2))
    assert capture_answer(posted, quiet, NOW).state == "idle", "nobody works: that is no fault"


def test_capture_tells_of_misses_refusals_and_duplicates() -> None:
    lately: dict[str, Any] = {"last_at": before(hours=1), "posts": 3}
    missed = Captured(**lately, misses={"server away": 2, "too large": 1})
    assert capture_answer(missed, Recalled(), NOW).sentence == (
        "Hooks could not capture 3 things in 24 h: server away 2, too large 1."
    )
    refused = Captured(**lately, seen=POSTED_MIN, stored=1, refused={"invalid": POSTED_MIN - 1})
    assert capture_answer(refused, Recalled(), NOW).state == "warn"
    known = Captured(**lately, seen=POSTED_MIN, duplicates=POSTED_MIN)
    assert "known already" in capture_answer(known, Recalled(), NOW).sentence
    few = Captured(**lately, seen=POSTED_MIN - 1, duplicates=POSTED_MIN - 1)
    assert capture_answer(few, Recalled(), NOW).state == "ok", "a share of little says nothing"


def test_capture_of_nothing_says_what_to_do() -> None:
    said = capture_answer(Captured(), Recalled(), NOW)
    assert (said.state, said.fix) == ("idle", "Install the hooks: see Keys.")
    heard = capture_answer(Captured(), Recalled(last_at=before(minutes=5)), NOW)
    assert heard.state == "warn" and "5 min ago" in heard.sentence


def test_recall_tells_what_clients_gave_up_and_what_was_slow() -> None:
    assert recall_answer(Recalled(), NOW).state == "idle"
    gave_up = Recalled({"injected": 9, "skipped": 3}, skipped={"server away": 3})
    assert recall_answer(gave_up, NOW).sentence == (
        "Clients gave up 3 of 12 recalls in 24 h: server away 3."
    )
    slow = Recalled({"injected": 9}, milliseconds_p50=RECALL_MILLISECONDS_MAX + 1.0)
    assert recall_answer(slow, NOW).state == "warn"
    half = Recalled({"injected": 1, "gated": 7, "below_floor": 1}, milliseconds_p50=12.0)
    assert recall_answer(half, NOW) == Answer(
        "ok", "9 recalls in 24 h; 50% of those that searched found something."
    )
    words = Recalled({"injected": 9}, degraded={"vector": 2})
    assert "without a track" in recall_answer(words, NOW).sentence


@pytest.mark.parametrize(
    ("states", "state", "sentence"),
    [
        (["ok", "ok", "idle"], "ok", "Yes: every stage works."),
        (["ok", "warn", "idle"], "warn", "Yes, but look at b."),
        (["bad", "warn", "bad"], "bad", "No: look at a and c."),
        (["ok", "bad", "ok"], "bad", "No: look at b."),
        (["idle", "idle", "idle"], "idle", "Nothing happened yet."),
    ],
)
def test_the_whole_is_as_well_as_its_worst_part(
    states: list[Any], state: str, sentence: str
) -> None:
    parts = [(name, Answer(one, "")) for name, one in zip("abc", states, strict=True)]
    # The words come from the parameters, as plain texts.
    assert together(parts) == Answer(state, sentence)  # type: ignore[arg-type]


def test_the_vault_tells_of_files_left_alone_and_of_clusters_without_a_page() -> None:
    ran = Answer("ok", "Ran 2 min ago; nothing waits.")
    assert export_answer(ran, Exported(vault=True)) == ran
    large = export_answer(ran, Exported(vault=True, refused=1))
    assert (large.state, large.fix) == ("ok", "")
    assert (
        large.sentence == f"{ran.sentence} 1 cluster of notes is too large for a page of its own."
    )
    both = export_answer(ran, Exported(vault=True, conflicts=2, refused=3))
    assert both.state == "warn" and "--dry-run" in both.fix
    assert both.sentence.startswith("2 files of the vault were left alone: somebody changed")
    assert "3 clusters of notes are too large" in both.sentence
    failed = Answer("bad", "Export failed.")
    assert export_answer(failed, Exported(vault=True, conflicts=2, refused=3)) == failed


def test_what_a_run_counted_is_told_in_words_of_people() -> None:
    report = {
        "episodes": 2, "open": 0, "content_failures": 1,
        "reasons": {"session_end": 1_200, "gap": 1, "size": 0}, "events": {"claim_done": 0},
    }  # fmt: skip
    assert dict(counts(report)) == {
        "episodes": "2",
        "unusable answers": "1",
        "ended by": "(the end of the session 1,200, a pause 1)",
    }


def test_what_stands_between_backticks_is_code_and_nothing_else_is_markup() -> None:
    assert coded("Start one: `make <up>`, or `b`.") == (
        "Start one: <code>make &lt;up&gt;</code>, or <code>b</code>."
    )
    assert coded("<b>one ` alone") == "&lt;b&gt;one ` alone"


def test_a_place_is_told_from_where_to_where() -> None:
    assert place({"end": 9, "line": 3, "start": 4}) == "line 3, start 4, end 9"
    assert place({"message": 3}) == "message 3" and place(["x"]) == "['x']"


def test_what_verify_found_is_broken_and_what_reconcile_found_is_to_be_looked_at() -> None:
    def said(stage: str, status: str = "done", **report: Any) -> Answer:
        told = facts(a_run(status, report=report), stage=stage)
        return found_answer(answer(told), told)

    assert said("verify", findings=0).state == said("distill").state == "ok"
    bad = said("verify", findings=3)
    assert (bad.state, bad.fix) == ("bad", "See Findings; what is not there is another's.")
    assert bad.sentence == "3 things in the record are not as they should be, by a look 3 min ago."
    assert said("verify", findings=1).sentence.startswith("1 thing in the record is not as it")
    assert said("reconcile", findings=1) == Answer(
        "warn",
        "1 thing differs when the record is replayed, 3 min ago.",
        "See Findings: nothing changes before you say so.",
    )
    small = facts(a_run("done", report={"findings": 0}), stage="reconcile")
    earlier = replace(small, found=1)
    assert found_answer(answer(small), small).state == "ok"
    assert found_answer(answer(earlier), earlier).state == "warn", "of another sample"
    assert "failed" in said("verify", "failed", findings=3).sentence
