"""How: a backlog that never ends, workers that never tire, and a server that counts; books read."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from io import StringIO
from typing import Any

import pytest
import time_machine
from django.core.management import CommandError, call_command
from django.db import connection, connections
from django.test import Client
from django.utils import timezone

from memory.access import create_key, principal
from memory.errors import BudgetExhausted, RefusedError
from memory.llm.budget import reserve, standing
from memory.llm.remote.embed import shared
from memory.llm.remote.tokens import estimate
from memory.models import Act, LlmCall, Note, Principal, TokenDay
from memory.pipeline import process
from memory.spending import lift, spent
from memory.stages.embed import embed
from tests.factories import episode, note, three
from tests.hashing_embedder import vector_of
from tests.openai_server import EMBEDDINGS, OpenAIServer, Request, Step, gives
from tests.web import staff

BUDGET = 1_000
WORKERS = 4
NOTES = 48
NOTES_A_CALL = 2
NOON = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)

Configure = Callable[..., None]


def run(*arguments: str) -> str:
    out = StringIO()
    call_command("budget", *arguments, stdout=out)
    return out.getvalue()


def charges(request: Request) -> Step:
    """An answer that costs what its texts are by our own count, and a tenth more."""
    texts = request.body["input"]
    tokens = round(1.1 * sum(map(estimate, texts)))
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    answer = json.loads(gives([vector_of(text) for text in texts]).body)
    return Step(json.dumps({**answer, "usage": usage}), hang_seconds=0.01)


def run_away(runs: int = 6) -> None:
    """Workers on connections of their own that start the stage again and again."""

    def work() -> None:
        try:
            for _ in range(runs):
                embed(limit=NOTES_A_CALL)
        finally:
            connections.close_all()

    workers = [threading.Thread(target=work) for _ in range(WORKERS)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)


def embedded() -> int:
    return int(Note.objects.as_pipeline().exclude(embedding=None).count())


@pytest.fixture
def refused(settings: Any, local: Configure) -> Principal:
    """Alice, whose episode waits for a model that has no tokens left."""
    alice, _, _ = three()
    local(model_url="http://127.0.0.1:9/v1", model="m", tokens_per_day=BUDGET)
    episode(alice, ["Which port?", "The staging server listens on port 8443 since Monday."])
    return alice


def test_a_runaway_loop_stops_at_the_budget_and_goes_on_when_it_may(
    clone_db: str, server: OpenAIServer, local: Configure
) -> None:
    alice, _, _ = three()
    local(tokens_per_day=BUDGET)
    shared.cache_clear()
    for number in range(NOTES):
        # Long enough that all of them cost many times the budget.
        words = " ".join(f"part {number} of {n}" for n in range(14))
        note(alice, f"Fact number {number} of the build: {words}.", embedded=False)
    server.script(EMBEDDINGS, *[charges] * 10_000)
    with time_machine.travel(NOON):
        run_away()
        calls = LlmCall.objects.filter(outcome="ok")
        dearest = max(calls.values_list("tokens_in", flat=True))
        spent_first = TokenDay.objects.get().tokens
        assert BUDGET / 2 < spent_first <= BUDGET + dearest
        assert sum(calls.values_list("tokens_in", flat=True)) == spent_first
        assert 0 < embedded() < NOTES, "the backlog had no end"
        asked = len(server.requests)
        run_away(2)
        assert len(server.requests) == asked, "stopped before the call, not after it"
        budget = standing(timezone.now())
        assert budget.stopped and budget.stops("embed") and not budget.stops("distill")
        assert budget.resumes_at == datetime(2026, 12, 1, tzinfo=UTC)

        lift(BUDGET, by=alice, reason="an import", now=timezone.now())
        assert not standing(timezone.now()).stopped
        run_away()
        assert spent_first < TokenDay.objects.get().tokens <= 2 * BUDGET + dearest
        assert standing(timezone.now()).stopped
    with time_machine.travel(NOON + timedelta(hours=12)):
        before = embedded()
        assert not standing(timezone.now()).stopped
        embed(limit=NOTES_A_CALL)
        assert embedded() == before + NOTES_A_CALL
    assert TokenDay.objects.count() == 2
    connection.close()


@pytest.mark.django_db
def test_a_lift_is_for_its_day_adds_up_and_leaves_an_act(settings: Any) -> None:
    alice = three()[0]
    settings.ARGUS = settings.ARGUS.model_copy(update={"tokens_per_day": 100})
    with pytest.raises(BudgetExhausted, match="ARGUS_TOKENS_PER_DAY of 150 or more"):
        reserve(150, NOON, background=True)
    lift(30, by=alice, reason="an import", now=NOON)
    assert lift(20, by=alice, reason="more of it", now=NOON).allowed == 150
    reserve(150, NOON, background=True)
    with pytest.raises(BudgetExhausted):
        reserve(1, NOON, background=True)
    with pytest.raises(BudgetExhausted):
        reserve(101, NOON + timedelta(days=1), background=True)
    acts = Act.objects.filter(verb="lift", kind="budget", reference="2026-11-30")
    assert [act.detail["tokens"] for act in acts.order_by("pk")] == [30, 20]


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("tokens", "reason", "per_day"), [(0, "x", 9), (10**10, "x", 9), (5, "  ", 9), (5, "x", 0)]
)
def test_it_lifts_nothing_that_makes_no_sense(
    settings: Any, tokens: int, reason: str, per_day: int
) -> None:
    settings.ARGUS = settings.ARGUS.model_copy(update={"tokens_per_day": per_day})
    with pytest.raises(RefusedError):
        lift(tokens, by=principal("alice"), reason=reason, now=NOON)
    assert not TokenDay.objects.exists() and not Act.objects.exists()


@pytest.mark.django_db
def test_the_stop_is_told_by_whatever_runs_a_stage(refused: Principal, client: Client) -> None:
    key, _ = create_key(owner="alice", scopes=["operate"])
    # A chat call reserves more than this budget has: it is refused before it is made.
    told = process()
    assert told.stages["distill"]["transient_failures"] == 1 and not told.ok
    reply = client.post("/process", headers={"Authorization": f"Bearer {key}"}).json()
    assert reply["stopped"] == "budget"
    midnight = timezone.now().astimezone(UTC).date() + timedelta(days=1)
    assert reply["resumes_at"] == f"{midnight}T00:00:00+00:00"
    assert "manage.py budget --lift" in reply["detail"]
    out = StringIO()
    with pytest.raises(SystemExit) as left:
        call_command("distill", "--json", stdout=out)
    assert left.value.code == 75 and json.loads(out.getvalue())["stopped"] == "budget"
    board = staff("operator", who=refused).get("/ui/?board=1").content.decode()
    assert "has no room for what waits (" in board and "budget --lift" in board
    lift(50_000, by=refused, reason="go on", now=timezone.now())
    # Nobody listens there; what is away now is another thing than the budget.
    again = process()
    assert again.stages["distill"]["transient_failures"] == 1 and again.stop == {}


@pytest.mark.django_db
def test_the_command_shows_the_day_and_lifts_it(refused: Principal) -> None:
    process()
    shown = run()
    assert "5 of 1,000 tokens, 995 left" in shown and "STOPPED" in shown
    assert "refused distill/distill since" in shown and "(budget 1)" in shown
    with pytest.raises(CommandError, match="say why"):
        run("--lift", "500")
    tried = run("--lift", "500", "--reason", "x", "--dry-run")
    assert "would allow 1,500 tokens today" in tried and "995 left" in tried
    lifted = run("--lift", "500", "--reason", "the import of the old sessions")
    assert "of 1,500 tokens (500 of them lifted for today)" in lifted and "STOPPED" not in lifted
    act = Act.objects.get(verb="lift")
    assert act.reason == "the import of the old sessions" and act.door == "command"
    told = json.loads(run("--json"))
    assert (told["allowed"], told["extra"], told["stopped"]) == (1_500, 500, False)
    assert told["calls"][-1]["outcomes"] == {"budget": 1}


@pytest.mark.django_db
def test_it_tells_what_was_spent_by_stage_port_and_model() -> None:
    def call(ago: timedelta, outcome: str = "ok", real: str = "m-real", tokens: int = 10) -> None:
        LlmCall.objects.create(
            stage="distill", port="distill", model_asked="m", model_real=real, tokens_in=tokens,
            tokens_out=2, milliseconds=40, outcome=outcome, created_at=NOON - ago,
        )  # fmt: skip

    call(timedelta(hours=1))
    call(timedelta(hours=2))
    call(timedelta(hours=3), outcome="content", real="m-other")
    call(timedelta(days=3), tokens=5_000)
    with time_machine.travel(NOON):
        row = spent(NOON - timedelta(days=1))[0]
        assert (row.stage, row.port, row.model_asked) == ("distill", "distill", "m")
        assert (row.model_real, row.calls, row.tokens) == ("m-other, m-real", 3, 36)
        assert row.outcomes == {"ok": 2, "content": 1}
        assert "calls since 2026-11-23 12:00Z:" in run("--since", "7d")
        assert "5,030" in run("--since", "7d") and "5,030" not in run("--since", "2026-11-30")
        with pytest.raises(CommandError):
            run("--since", "yesterday")
        with pytest.raises(CommandError, match="at most 366 days"):
            run("--since", "9999d")


@pytest.mark.django_db
def test_a_refusal_that_was_followed_by_a_call_is_no_stop() -> None:
    for number, outcome in enumerate(("budget", "ok")):
        LlmCall.objects.create(
            stage="embed", port="embed", model_asked="m", outcome=outcome,
            created_at=NOON + timedelta(minutes=number),
        )  # fmt: skip
        assert standing(NOON + timedelta(minutes=number, seconds=1)).stopped == (number == 0)


@pytest.mark.django_db
def test_what_others_ask_meanwhile_hides_no_refusal() -> None:
    call = {"port": "embed", "model_asked": "m"}
    refused = {"stage": "embed", "outcome": "budget", "created_at": NOON}
    LlmCall.objects.create(**call, **refused)
    later = NOON + timedelta(minutes=1)
    LlmCall.objects.bulk_create(
        LlmCall(stage="recall", outcome="ok", created_at=later, **call) for _ in range(2_500)
    )
    assert [one.stage for one in standing(NOON + timedelta(hours=1)).refused] == ["embed"]
    LlmCall.objects.create(**call, stage="embed", outcome="ok", created_at=NOON)
    assert not standing(NOON + timedelta(hours=1)).refused, "in the same moment, and after it"


@pytest.mark.django_db
def test_a_refusal_names_what_the_day_allows(settings: Any) -> None:
    settings.ARGUS = settings.ARGUS.model_copy(update={"tokens_per_day": 100})
    lift(50, by=principal("alice"), reason="an import", now=NOON)
    with pytest.raises(BudgetExhausted, match="The budget of 150 tokens .* no room for 151 more"):
        reserve(151, NOON, background=True)
    with pytest.raises(BudgetExhausted) as told:
        reserve(150, NOON, background=True)
        reserve(1, NOON, background=True)
    assert "one call of this size" not in str(told.value)
