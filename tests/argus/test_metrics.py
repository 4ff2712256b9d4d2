"""How: rows by the real verbs and plain ones, one look at /metrics, its text parsed again."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from datetime import timedelta
from typing import Any

import pytest
from django.core.cache import cache
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from django_q.models import OrmQ
from prometheus_client.parser import text_string_to_metric_families

from argus import metrics
from argus.answers import Facts
from memory import lately, measures
from memory.access import create_key, principal
from memory.acts import record_act
from memory.envelope import COUNT_MAX
from memory.health import Runs, Waiting
from memory.measures import OTHERS, WORDS_MAX, told_apart
from memory.models import CaptureReceipt, Claim, GateRejection, Injection, LlmCall, StageRun
from recall import health
from recall.models import Impact
from tests.argus.measures import look, values
from tests.factories import note, three, turns, verdict
from tests.memory.books import fill

pytestmark = pytest.mark.django_db

#: Questions that one look asks of the database when nothing is kept yet.
# Why bounded: each is a round trip of a scrape; a new number joins a question that is asked.
ASKS_MAX = 28


@pytest.fixture(autouse=True)
def _nothing_kept() -> Iterator[None]:
    cache.clear()
    yield
    cache.clear()


@pytest.fixture
def key() -> dict[str, str]:
    return {"Authorization": f"Bearer {create_key(owner='alice', scopes=['operate'])[0]}"}


def test_it_wants_a_key_that_may_operate(client: Client, key: dict[str, str]) -> None:
    assert client.get("/metrics").status_code == 401
    other, _ = create_key(owner="alice", scopes=["capture", "recall", "resolve"])
    refused = client.get("/metrics", headers={"Authorization": f"Bearer {other}"})
    assert (refused.status_code, refused.json()["code"]) == (403, "permission_denied")
    # As Prometheus asks.
    accept = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.2"
    answer = client.get("/metrics", headers={**key, "Accept": accept})
    assert answer.status_code == 200
    assert answer["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert client.post("/metrics", headers=key).status_code == 405


def test_this_machine_needs_none_where_the_setting_says_so(client: Client, settings: Any) -> None:
    settings.ARGUS = settings.ARGUS.model_copy(update={"metrics_loopback": True})
    assert client.get("/metrics", REMOTE_ADDR="127.0.0.1").status_code == 200
    assert client.get("/metrics", REMOTE_ADDR="::1").status_code == 200
    assert client.get("/metrics", REMOTE_ADDR="10.0.0.7").status_code == 401
    behind = client.get(
        "/metrics", REMOTE_ADDR="127.0.0.1", headers={"X-Forwarded-For": "10.0.0.7"}
    )
    assert behind.status_code == 401
    wrong, _ = create_key(owner="alice", scopes=["recall"])
    shown = client.get(
        "/metrics", REMOTE_ADDR="127.0.0.1", headers={"Authorization": f"Bearer {wrong}"}
    )
    assert shown.status_code == 403, "who shows a key is judged by it"


def test_it_tells_everything_of_an_empty_house() -> None:
    families = {one.name: one for one in look()}
    told = values()
    assert families["argus_waiting_units"].documentation and told["argus_parked_units"]
    assert told["argus_capture_posts_24h"] == {(): 0}
    assert told["argus_holds_oldest_seconds"] == {(): 0}
    assert told["argus_worker_heartbeat_age_seconds"] == {}, "no worker was ever seen"
    assert told["argus_findings"] == {} and told["argus_budget_allowed_tokens"] == {(): 2_000_000}


def test_it_counts_what_the_rows_say() -> None:
    fill()
    alice, now = three()[0], timezone.now()
    CaptureReceipt.objects.create(
        owner=alice, seen=9, stored=4, duplicates=5, refused={"empty": 2}, milliseconds=30,
        client_range={"seen": 30, "filtered": 21, "posted": 9, "reasons": {"tool_output": 21}},
        misses=[{"reason": "gone"}, {"reason": "<script>"}], client={"machine": "m", "client": "c"},
    )  # fmt: skip
    GateRejection.objects.create(owner=alice, reason="grounding", candidate={}, created_at=now)
    Claim.objects.create(stage="distill", unit="x", parked_at=now)
    LlmCall.objects.create(
        stage="distill", port="distill", model_asked="m", tokens_in=70, tokens_out=7,
        milliseconds=1_500, outcome="http_5xx",
    )  # fmt: skip
    by_worker = {"stage": "distill", "trigger_source": "schedule"}
    ran = StageRun.objects.create(**by_worker, started_at=now - timedelta(seconds=40))
    StageRun.objects.filter(pk=ran.pk).update(status="done", finished_at=now)
    old, new = (note(alice, f"The port is {n}.", embedded=False) for n in (1, 2))
    verdict(new, old, created_at=now - timedelta(hours=3))
    shown = Injection.objects.create(
        owner=alice, mode="prompt", outcome="injected", timings={"total": 25.0}, degraded=["vector"]
    )
    Impact.objects.create(injection=shown, method="overlap", score=0.5, used=True)
    OrmQ.objects.create(key="argus", payload="x", lock=now - timedelta(seconds=90))
    told = values()
    assert told["argus_capture_items_24h"]["stored",] >= 4
    assert told["argus_capture_lines_24h"] == {("seen",): 30, ("filtered",): 21, ("posted",): 9}
    assert told["argus_capture_filtered_24h"] == {("tool_output",): 21}
    assert told["argus_capture_refused_24h"] == {("empty",): 2}
    assert told["argus_capture_missed_24h"] == {("gone",): 1, (OTHERS,): 1}
    assert told["argus_hooks_24h"] == {(): 1}
    assert told["argus_gate_rejections_24h"]["grounding",] == 1
    assert told["argus_parked_units"]["distill",] == 1
    failed = ("m", "http_5xx", "distill", "distill")  # model, outcome, port, stage
    assert told["argus_model_calls_24h"][failed] == 1
    assert told["argus_model_tokens_24h"]["in", *failed] == 70
    assert told["argus_model_busy_24h_seconds"][failed] == 1.5
    assert told["argus_stage_run_24h_seconds"]["0.5", "distill"] == pytest.approx(40, abs=1)
    assert told["argus_holds_pending"][()] >= 1
    assert told["argus_holds_oldest_seconds"][()] >= 3 * 3600 - 60
    assert told["argus_recalls_24h"]["prompt", "injected"] == 1
    assert told["argus_recall_24h_seconds"]["prompt", "0.95"] == 0.025
    assert told["argus_recalls_degraded_24h"] == {("vector",): 1}
    assert told["argus_injections_used_14d"][()] >= 1
    assert told["argus_unembedded_notes"][()] >= 2
    assert told["argus_queue_tasks"]["waiting",] == 1
    assert 90 <= told["argus_queue_oldest_seconds"][()] < 200
    assert 0 <= told["argus_worker_heartbeat_age_seconds"][()] < 60


def test_a_worker_is_alive_by_what_it_did_and_due_since_there_was_something_to_do() -> None:
    def age() -> float:
        return values()["argus_worker_heartbeat_age_seconds"][()]

    day, alice = 24 * 3600, principal("alice")
    assert values()["argus_worker_heartbeat_age_seconds"] == {}, "nothing is there to be done"
    for days, body in ((3, "The port is 8443."), (2, "The port is 8444.")):
        at = timezone.now() - timedelta(days=days)
        turns(alice, [body], session=f"s{days}", start=at, now=at)
    assert age() == pytest.approx(3 * day, abs=60), "none ever was, and somebody should be told"
    for trigger in ("command", "api"):
        StageRun.objects.create(stage="segment", status="done", trigger_source=trigger)
    assert age() == pytest.approx(3 * day, abs=60), "a person's command is no worker"
    at = timezone.now() - timedelta(days=1)
    record_act(alice, "restore", "database", now=at)
    assert age() == pytest.approx(day, abs=60), "what came back is none of this house's delays"
    ran = StageRun.objects.create(stage="segment", status="done", trigger_source="schedule")
    StageRun.objects.filter(pk=ran.pk).update(heartbeat_at=at + timedelta(hours=1))
    assert age() == pytest.approx(23 * 3600, abs=60)


@pytest.mark.parametrize(("every", "seconds"), [(1, 900), (5, 900), (60, 10_800)])
def test_how_long_a_worker_may_be_silent_is_by_the_setting(
    settings: Any, every: int, seconds: int
) -> None:
    settings.ARGUS = settings.ARGUS.model_copy(update={"process_every_minutes": every})
    assert values()["argus_worker_away_after_seconds"] == {(): seconds}
    facts = Facts("embed", timezone.now(), Runs(), Waiting(), every=timedelta(minutes=every))
    assert facts.away_after.total_seconds() == seconds, "as the board has it"


def test_it_asks_as_often_for_many_rows_as_for_one_and_not_often() -> None:
    alice = principal("alice")
    metrics.text(timezone.now())
    cache.clear()
    with CaptureQueriesContext(connection) as few:
        metrics.text(timezone.now())
    cache.clear()
    for number in range(30):
        Injection.objects.create(owner=alice, mode=f"m{number}", outcome="no_hits")
        GateRejection.objects.create(owner=alice, reason=f"r{number}", candidate={})
        LlmCall.objects.create(stage=f"s{number}", port="p", model_asked="m", outcome="ok")
    with CaptureQueriesContext(connection) as many:
        metrics.text(timezone.now())
    assert len(few) == len(many) <= ASKS_MAX, [one["sql"][:80] for one in many]


def test_no_post_of_a_client_costs_the_page(client: Client, key: dict[str, str]) -> None:
    huge, alice = 10**30, three()[0]
    capture, _ = create_key(owner="alice", scopes=["capture"])
    counts = {"seen": 1, "filtered": huge, "posted": -5, "session": "s"}
    post = {"items": [], "range": {**counts, "reasons": {"ok": 10**25, "low": -1, "tool": 3}}}
    answer = client.post(
        "/capture", post, content_type="application/json",
        headers={"Authorization": f"Bearer {capture}"},
    )  # fmt: skip
    assert answer.status_code == 200, "an odd count never costs the items that came with it"
    kept = CaptureReceipt.objects.as_pipeline().latest("pk").client_range
    assert (kept["filtered"], kept["posted"]) == (COUNT_MAX, 0)
    assert kept["reasons"] == {"ok": COUNT_MAX, "low": 0, "tool": 3}
    old = {"seen": "many", "filtered": huge, "posted": 1.5, "reasons": {"ok": huge, "x": [2]}}
    CaptureReceipt.objects.create(
        owner=alice, seen=0, stored=0, duplicates=0, client_range=old, refused={"empty": 10**20}
    )
    assert client.get("/metrics", headers=key).status_code == 200
    assert values()["argus_capture_lines_24h"]["filtered",] == COUNT_MAX


def test_a_busy_day_is_summed_whole_and_what_is_not_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    alice, many = principal("alice"), 10_010
    call = {"stage": "embed", "port": "p", "model_asked": "m", "outcome": "ok"}
    LlmCall.objects.bulk_create(LlmCall(**call, tokens_in=2) for _ in range(many))
    asked = Injection(owner=alice, mode="prompt", outcome="no_hits")
    Injection.objects.bulk_create([asked, *(copy(asked) for _ in range(4))])
    told = values()
    assert told["argus_model_tokens_24h"]["in", "m", "ok", "p", "embed"] == 2 * many
    assert not any(told["argus_day_cut"].values())
    for module in (measures, health):
        monkeypatch.setattr(module, "ROWS_LOOKED_AT", 5)
    told = values()
    cut = {name for (name,), is_so in told["argus_day_cut"].items() if is_so}
    assert cut == {"model_calls", "recalls"}
    assert told["argus_recalls_24h"]["prompt", "no_hits"] == 5


def test_sums_that_take_long_are_kept_longer_and_signs_of_life_are_not() -> None:
    assert [lately.kept_seconds(took) for took in (0.01, 0.3, 1, 2, 60)] == [30, 30, 100, 200, 600]
    alice, now = principal("alice"), timezone.now()
    post: dict[str, Any] = {"owner": alice, "seen": 1, "stored": 1, "duplicates": 0}
    CaptureReceipt.objects.create(**post)
    before = measures.measured(now, ["distill"])
    CaptureReceipt.objects.create(**post, client={"machine": "m"})
    # As half a minute later, while the sums are kept for longer.
    name = connection.settings_dict["NAME"]
    assert cache.get(f"lately:{name}:measured:sums") is not None
    cache.delete(f"lately:{name}:measured:distill")
    after = measures.measured(now, ["distill"])
    assert (before.posts.posts, after.posts.posts) == (1, 1)
    assert before.posts.hook_at is None and after.posts.hook_at is not None


def test_two_looks_at_once_cost_one(client: Client, key: dict[str, str]) -> None:
    client.get("/metrics", headers=key)
    with CaptureQueriesContext(connection) as again:
        client.get("/metrics", headers=key)
    assert len(again) <= 2, "the key alone is asked for"


def test_a_flood_of_words_makes_no_flood_of_series() -> None:
    words = {f"reason_{number}": number + 1 for number in range(500)} | {"Line\nbreak": 9_999}
    told = told_apart(words)
    assert len(told) <= WORDS_MAX + 1 and sum(told.values()) == sum(words.values())
    assert set(told) >= {"reason_499", OTHERS} and all(word.isprintable() for word in told)


def test_no_word_of_the_record_stands_in_it() -> None:
    note(principal("alice"), "The canary sings at port 8443.", embedded=False)
    Injection.objects.create(
        owner=principal("alice"), mode="prompt", outcome="no_hits", query="canary?", cwd="/canary"
    )
    assert b"canary" not in metrics.text(timezone.now())


def test_every_family_follows_the_conventions() -> None:
    for family in text_string_to_metric_families(metrics.text(timezone.now()).decode()):
        assert family.name.startswith("argus") and family.documentation.endswith((".", "?"))
        assert not family.name.endswith(("_total", "_milliseconds", "_ms", "_minutes"))
