"""How: injections of sessions that went on, each in its own way; with and without a model."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.core.management import call_command
from django.utils import timezone

from memory.claims import CONTENT_FAILURES_MAX
from memory.models import (
    Collection,
    DedupVerdict,
    Evidence,
    Injection,
    LlmCall,
    Note,
    Principal,
    StageRun,
)
from memory.searchtexts import index_items
from recall.impact import (
    DAYS_BACK_MAX,
    IMPACTS_A_RUN_MAX,
    REPLY_MINUTES,
    TEXTS_KNOWN_MIN,
    ImpactReport,
    impact,
    sampled,
    used_rate,
)
from recall.models import Impact
from recall.tasks import run_impact
from tests.openai_server import CHAT, OpenAIServer, fails, opens, running, says
from tests.recall.making import NOW, note, people, turn

pytestmark = pytest.mark.django_db

Configure = Callable[..., None]
FACT = "The staging server listens on port 8443 behind Caddy."
PROMPT = "How do I reach the staging server?"
USED = "Open port 8443; Caddy listens there."
UNUSED = "I do not know; let me look at the compose file."
LATER = NOW + timedelta(hours=2)


@pytest.fixture
def configure(settings: Any) -> Configure:
    """Look at every injection, without a model; with changes by keyword."""

    def change(**values: Any) -> None:
        base = {"impact_share": 1.0, "model_url": None, "model": None}
        settings.ARGUS = django_settings.ARGUS.model_copy(update=base | values)

    change()
    return change


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with running() as server:
        yield server


@pytest.fixture
def model(server: OpenAIServer, configure: Configure) -> OpenAIServer:
    configure(model_url=server.url, model="scripted")
    return server


@pytest.fixture
def alice() -> Principal:
    """Alice, of whom enough was captured to know her everyday words (but none of them yet)."""
    made = people().alice
    Collection.objects.create(owner=made, raw=True, texts=TEXTS_KNOWN_MIN, length=1_000)
    return made


def inject(owner: Principal, *notes: Note, at: datetime = NOW, **fields: Any) -> Injection:
    made = {
        "owner": owner, "mode": "prompt", "query": PROMPT, "session": "s1", "outcome": "injected",
        "note_ids": [one.pk for one in notes], "created_at": at,
    }  # fmt: skip
    return Injection.objects.create(**made | fields)


def say(owner: Principal, *bodies: str, at: datetime = NOW, **fields: Any) -> None:
    """A prompt and its answers, a minute apart, from just after `at`."""
    roles = ("user", *["assistant"] * (len(bodies) - 1))
    for minute, (role, body) in enumerate(zip(roles, bodies, strict=True)):
        when = at + timedelta(seconds=1, minutes=minute)
        turn(owner, body, role=role, occurred_at=when, **fields)


def look(now: datetime = LATER, limit: int | None = None) -> ImpactReport:
    return impact(clock=lambda: now, limit=limit)


def fact(owner: Principal, content: str = FACT, **fields: Any) -> Note:
    return note(owner, content, embedding=None, **fields)


@pytest.mark.parametrize(("reply", "used"), [(USED, True), (UNUSED, False)])
def test_it_sees_by_the_words_whether_a_note_was_used(
    configure: Configure, alice: Principal, reply: str, used: bool
) -> None:
    known = fact(alice)
    row = inject(alice, known)
    say(alice, PROMPT, reply)
    assert look() == ImpactReport(checked=1, used=int(used), overlap=1)
    found = Impact.objects.get()
    assert (found.injection, found.method, found.used) == (row, "overlap", used)
    assert found.run is not None and found.created_at == LATER
    assert found.detail["overlap"][str(known.pk)]["used"] is used
    assert "8443" not in json.dumps(found.detail)


def test_it_reads_all_of_the_answer_and_nothing_after_the_next_prompt(
    configure: Configure, alice: Principal
) -> None:
    known = fact(alice)
    inject(alice, known)
    say(alice, PROMPT, UNUSED, USED)
    inject(alice, known, session="s2")
    say(alice, PROMPT, UNUSED, session="s2")
    say(alice, "And then?", USED, session="s2", at=NOW + timedelta(minutes=5))
    assert look() == ImpactReport(checked=2, used=1, overlap=2)


def test_it_gives_no_note_credit_for_what_the_session_knew(
    configure: Configure, alice: Principal
) -> None:
    inject(alice, fact(alice))
    say(alice, "Where is staging?", FACT, at=NOW - timedelta(hours=1))
    say(alice, PROMPT, USED)
    assert look() == ImpactReport(untold=1, pending=1)
    assert not Impact.objects.exists()


def test_it_gives_no_note_credit_for_words_of_every_day(
    configure: Configure, alice: Principal
) -> None:
    inject(alice, fact(alice, "Deploys run before lunch on weekdays, unless Caddy burns."))
    for day in range(12):
        at = NOW - timedelta(days=day + 1)
        say(alice, "When do deploys run?", "Before lunch.", session=f"day {day}", at=at)
    say(alice, PROMPT, "Deploys will run before lunch.")
    index_items()
    look()
    assert not Impact.objects.get().used


def test_it_says_nothing_by_words_while_it_knows_too_few_of_them(configure: Configure) -> None:
    alice = people().alice
    inject(alice, fact(alice))
    say(alice, PROMPT, USED)
    assert look() == ImpactReport(untold=1, pending=1)


def test_it_reads_nobody_elses_session_of_the_same_name(
    configure: Configure, alice: Principal
) -> None:
    inject(alice, fact(alice))
    say(people_charlie(), PROMPT, USED)
    assert look() == ImpactReport(without_reply=1)


def people_charlie() -> Principal:
    return Principal.objects.get(name="charlie")


@pytest.mark.parametrize(
    "fields",
    [
        {"mode": "context"},
        {"outcome": "below_floor"},
        {"at": LATER - timedelta(minutes=REPLY_MINUTES - 1)},
        {"at": LATER - timedelta(days=DAYS_BACK_MAX, minutes=1)},
    ],
)
def test_it_leaves_alone_what_is_no_answered_prompt_of_late(
    configure: Configure, alice: Principal, fields: dict[str, Any]
) -> None:
    row = inject(alice, fact(alice), **fields)
    say(alice, PROMPT, USED, at=row.created_at)
    assert look() == ImpactReport()


def test_it_counts_what_has_no_answer_or_no_session(configure: Configure, alice: Principal) -> None:
    inject(alice, fact(alice))
    inject(alice, fact(alice), session="")
    turn(alice, PROMPT, role="assistant", session="", occurred_at=NOW + timedelta(minutes=1))
    assert look() == ImpactReport(without_reply=2)


def test_it_looks_at_a_share_and_always_at_the_same_one(
    configure: Configure, alice: Principal
) -> None:
    for share in (0.0, 0.1, 0.5, 1.0):
        picked = [pk for pk in range(5_000) if sampled(pk, share)]
        assert abs(len(picked) / 5_000 - share) < 0.02
        assert picked == [pk for pk in range(5_000) if sampled(pk, share)]
    configure(impact_share=0.0)
    inject(alice, fact(alice))
    say(alice, PROMPT, USED)
    assert look() == ImpactReport(unsampled=1)


def test_it_looks_once_and_at_no_more_than_it_may(configure: Configure, alice: Principal) -> None:
    known = fact(alice)
    for number in range(4):
        inject(alice, known, session=f"s{number}")
        say(alice, PROMPT, USED, session=f"s{number}")
    assert look(limit=3) == ImpactReport(checked=3, used=3, overlap=3, pending=1)
    assert look() == ImpactReport(checked=1, used=1, overlap=1)
    assert look() == ImpactReport()
    assert Impact.objects.count() == 4
    assert IMPACTS_A_RUN_MAX < 1_000


def test_it_compares_how_a_model_begins_with_and_without_the_note(
    model: OpenAIServer, alice: Principal
) -> None:
    known = fact(alice)
    inject(alice, known)
    say(alice, PROMPT, UNUSED)
    model.script(CHAT, opens({"8443": -0.01}), opens({"Maybe": -0.01}))
    assert look() == ImpactReport(checked=1, used=1, kl=1)
    row = Impact.objects.get()
    assert (row.method, row.used, row.model_asked) == ("kl", True, "scripted")
    assert row.model_real == "scripted-2026-01"
    assert row.detail["kl"]["alike"] == 0 and row.detail["prompt_version"]
    assert not row.detail["overlap"][str(known.pk)]["used"]
    given, without = (request.user for request in model.requests)
    assert FACT in given and given.endswith(PROMPT) and "<argus-memory" in given
    assert without == PROMPT
    calls = LlmCall.objects.values_list("stage", "port", "outcome", "run")
    assert set(calls) == {("impact", "open", "ok", row.run_id)}


def test_it_finds_a_note_unused_that_changes_no_word(model: OpenAIServer, alice: Principal) -> None:
    inject(alice, fact(alice))
    say(alice, PROMPT, USED)
    model.script(CHAT, *[opens({"Maybe": -0.01, "8443": -5.0})] * 2)
    look()
    row = Impact.objects.get()
    assert (row.method, row.used) == ("kl", False) and row.score == pytest.approx(0)


def test_it_goes_by_the_words_when_the_model_shows_no_probabilities(
    model: OpenAIServer, alice: Principal
) -> None:
    for session in ("s1", "s2", "s3"):
        inject(alice, fact(alice), session=session)
        say(alice, PROMPT, USED, session=session)
    model.script(CHAT, says("8443"))
    expected = ImpactReport(checked=3, used=3, overlap=3, without_log_probabilities=3)
    assert look() == expected
    assert len(model.requests) == 1


def test_it_goes_by_the_words_when_the_model_refuses_this_question(
    model: OpenAIServer, alice: Principal
) -> None:
    for session in ("s1", "s2"):
        inject(alice, fact(alice), session=session)
        say(alice, PROMPT, USED, session=session)
    model.script(CHAT, fails(400, "too long"))
    assert look() == ImpactReport(checked=2, used=2, overlap=1, kl=1)


def test_it_gives_up_on_a_question_that_nothing_tells_about(
    model: OpenAIServer, alice: Principal
) -> None:
    inject(alice, fact(alice))
    say(alice, FACT, USED, at=NOW - timedelta(hours=1))
    say(alice, PROMPT, USED)
    model.script(CHAT, *[fails(400, "too long")] * 9)
    for _ in range(CONTENT_FAILURES_MAX - 1):
        assert look() == ImpactReport(content_failures=1, pending=1)
    assert look() == ImpactReport(content_failures=1, parked=1, pending=1)
    assert look() == ImpactReport(pending=1)


def test_it_waits_when_the_model_is_away(model: OpenAIServer, alice: Principal) -> None:
    inject(alice, fact(alice))
    say(alice, PROMPT, USED)
    model.script(CHAT, fails(503, retry_after="0"))
    assert look() == ImpactReport(transient_failures=1, pending=1)
    assert not Impact.objects.exists()
    assert look() == ImpactReport(checked=1, used=1, kl=1)


def test_it_spends_no_more_than_the_day_has(
    server: OpenAIServer, configure: Configure, alice: Principal
) -> None:
    configure(model_url=server.url, model="scripted", tokens_per_day=10)
    inject(alice, fact(alice))
    say(alice, PROMPT, USED)
    assert look() == ImpactReport(transient_failures=1, pending=1)
    assert not server.requests and LlmCall.objects.get().outcome == "budget"


def test_it_shows_a_model_nothing_that_may_not_leave(model: OpenAIServer, alice: Principal) -> None:
    inject(alice, fact(alice), fact(alice, "The tabs stay.", confidentiality="secret"))
    say(alice, PROMPT, USED)
    assert look() == ImpactReport(checked=1, used=1, overlap=1)
    assert not model.requests


def test_it_shows_a_model_no_prompt_of_a_session_that_may_not_leave(
    model: OpenAIServer, alice: Principal
) -> None:
    inject(alice, fact(alice))
    say(alice, PROMPT, USED, confidentiality="restricted")
    assert look() == ImpactReport(checked=1, used=1, overlap=1)
    assert not model.requests


def test_it_looks_at_raw_turns_that_were_injected(configure: Configure, alice: Principal) -> None:
    said = turn(alice, FACT, session="old", occurred_at=NOW - timedelta(days=9))
    inject(alice, turn_ids=[said.pk])
    say(alice, PROMPT, USED)
    assert look() == ImpactReport(checked=1, used=1, overlap=1)
    assert list(Impact.objects.get().detail["overlap"]) == [f"turn:{said.pk}"]


def test_it_never_raises_the_confidence_of_a_note(model: OpenAIServer, alice: Principal) -> None:
    for session in ("s1", "s2", "s3"):
        inject(alice, fact(alice), session=session)
        say(alice, PROMPT, USED, session=session)

    def everything() -> tuple[list[dict[str, Any]], int, int]:
        rows = list(Note.objects.as_pipeline().order_by("pk").values())
        verdicts = DedupVerdict.objects.as_pipeline().count()
        return rows, verdicts, Evidence.objects.count()

    before = everything()
    assert look().used == 3
    assert everything() == before


def test_it_tells_the_share_that_was_used(configure: Configure, alice: Principal) -> None:
    for number, reply in enumerate((USED, UNUSED, UNUSED, USED, USED)):
        inject(alice, fact(alice), session=f"s{number}")
        say(alice, PROMPT, reply, session=f"s{number}")
    look()
    rate = used_rate(LATER - timedelta(days=1))
    assert (rate.checked, rate.used, rate.rate) == (5, 3, 0.6)
    assert rate.by_method == {"overlap": (5, 3)}
    assert used_rate(LATER - timedelta(days=1), principal=people_charlie()).rate is None
    assert used_rate(LATER + timedelta(seconds=1)).checked == 0


def test_it_runs_by_command_and_leaves_its_run(
    configure: Configure, alice: Principal, capsys: pytest.CaptureFixture[str]
) -> None:
    at = timezone.now() - timedelta(hours=3)
    inject(alice, fact(alice), at=at)
    say(alice, PROMPT, USED, at=at)
    call_command("impact", "--dry-run", "--json")
    assert json.loads(capsys.readouterr().out) == {"pending": {"impact": 1}}
    call_command("impact", "--json")
    report = json.loads(capsys.readouterr().out)
    assert report["used"] == 1
    assert report["used_rate"] == {
        "days": DAYS_BACK_MAX, "checked": 1, "used": 1, "rate": 1.0,
        "by_method": {"overlap": {"checked": 1, "used": 1}},
    }  # fmt: skip
    run = StageRun.objects.get(stage="impact")
    assert (run.status, run.report["checked"]) == ("done", 1)


def test_it_tells_the_rate_of_the_last_days_in_a_terminal(
    configure: Configure, alice: Principal, capsys: pytest.CaptureFixture[str]
) -> None:
    call_command("impact")
    assert f"used rate: days {DAYS_BACK_MAX}" in capsys.readouterr().out
    for days, reply in ((1, USED), (2, UNUSED), (3, USED), (DAYS_BACK_MAX + 1, UNUSED)):
        at = timezone.now() - timedelta(days=days)
        inject(alice, fact(alice), session=f"s{days}", at=at)
        say(alice, PROMPT, reply, session=f"s{days}", at=at)
        if days > DAYS_BACK_MAX:
            continue
        impact()
    call_command("impact")
    assert "checked 3, used 2, rate 0.6667" in capsys.readouterr().out


def test_it_runs_by_the_clock(configure: Configure, alice: Principal) -> None:
    at = timezone.now() - timedelta(hours=3)
    inject(alice, fact(alice), at=at)
    say(alice, PROMPT, USED, at=at)
    assert run_impact()["checked"] == 1
    assert StageRun.objects.get(stage="impact").trigger_source == "schedule"
