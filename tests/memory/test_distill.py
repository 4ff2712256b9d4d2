"""How: episodes by capture and segment, the scripted model server, rows read back."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from datetime import datetime, timedelta
from itertools import count
from typing import Any

import pytest
from django.utils import timezone

from memory.models import (
    Claim,
    Cooldown,
    DistilledItem,
    DistillFailure,
    Episode,
    Evidence,
    GateRejection,
    LlmCall,
    Note,
    Principal,
    StageRun,
)
from memory.stages.distill import DistillReport, distill
from tests.factories import OTHER, QUOTE, SAID, at, clock, document, episode, three
from tests.openai_server import (
    CHAT,
    RESET,
    OpenAIServer,
    Step,
    fails,
    hangs,
    note,
    notes,
    says,
)

pytestmark = pytest.mark.django_db

Configure = Callable[..., None]
GOOD = notes(note(QUOTE), note(OTHER))


@pytest.fixture(autouse=True)
def remote(configure: Configure) -> None:
    """The distiller is the scripted server."""


@pytest.fixture
def alice() -> Principal:
    return three()[0]


def run(**fields: Any) -> DistillReport:
    return distill(**fields)


def all_notes() -> list[Note]:
    return list(Note.objects.as_pipeline().order_by("content"))


def untouched(one: Episode) -> bool:
    """Whether the episode waits as if nobody had tried: no failure, no attempt, no note."""
    one.refresh_from_db(from_queryset=Episode.objects.as_pipeline())
    counted = Claim.objects.exclude(attempts=0, content_failures=0).exists()
    held = Claim.objects.exclude(lease_until=None).exists()
    return one.distilled_at is None and not (
        counted or held or DistillFailure.objects.exists() or all_notes()
    )


def rested() -> None:
    """The cool-down is over."""
    Cooldown.objects.all().delete()


@pytest.mark.parametrize(
    "reply",
    [GOOD, f"```json\n{GOOD}\n```", f"<think>{{}}</think>\n{GOOD}", f"Here: {GOOD} Anything else?"],
)
def test_it_makes_notes_with_evidence_from_whatever_wraps_the_answer(
    server: OpenAIServer, alice: Principal, reply: str
) -> None:
    one = episode(alice, SAID)
    server.script(CHAT, says(reply))
    report = run()
    assert (report.episodes_distilled, report.notes_created, report.pending) == (1, 2, 0)
    made = all_notes()
    assert [n.content for n in made] == [OTHER, QUOTE]
    assert {n.said_by for n in made} == {"assistant"}
    assert {(n.model_asked, n.model_real) for n in made} == {("scripted", "scripted-2026-01")}
    assert [n.valid_from for n in made] == [at(3), at(1)]
    assert {n.project_id for n in made} == {one.project_id} and one.project_id
    for edge in Evidence.objects.select_related("raw_item"):
        assert edge.raw_item is not None
        assert edge.raw_item.body[edge.start : edge.end] == edge.quote
    one.refresh_from_db(from_queryset=Episode.objects.as_pipeline())
    assert one.distilled_at is not None
    assert not Claim.objects.exists() and not GateRejection.objects.as_pipeline().exists()
    run_row = StageRun.objects.get(stage="distill")
    assert run_row.status == "done" and run_row.report["notes_created"] == 2
    assert LlmCall.objects.get(port="distill").run_id == run_row.pk


def test_it_counts_refused_candidates_by_reason_and_keeps_them(
    server: OpenAIServer, alice: Principal
) -> None:
    one = episode(alice, SAID)
    invented = note("We moved the job queue to Kafka.")
    server.script(CHAT, says(notes(note(QUOTE), invented, note(OTHER, title="t" * 81))))
    report = run()
    assert report.rejected == {"grounding": 1, "title": 1} and report.notes_created == 1
    row = GateRejection.objects.as_pipeline().get(reason="grounding")
    assert row.candidate["source_ref"] == "We moved the job queue to Kafka."
    assert (row.episode_id, row.owner, row.model_real) == (one.pk, alice, "scripted-2026-01")
    assert row.run_id == StageRun.objects.get(stage="distill").pk


@pytest.mark.parametrize("reply", ["", "No notes.", '{"notes": []}', "null"])
def test_it_takes_no_notes_for_an_answer_and_does_not_ask_again(
    server: OpenAIServer, alice: Principal, reply: str
) -> None:
    episode(alice, SAID)
    server.script(CHAT, says(reply))
    assert run().episodes_distilled == 1
    assert run().pending == 0 and not DistillFailure.objects.exists() and not Claim.objects.exists()
    assert len(server.requests) == len([r for r in server.requests if r.path != CHAT]) + 1


UNUSABLE = [
    says('{"notes": [{"title": "cut', finish_reason="length"),
    says("I had rather talk about something else entirely."),
    says(None, refusal="I cannot do that."),
    fails(400, '{"error": {"message": "prompt too long"}}'),
]


@pytest.mark.parametrize("step", UNUSABLE)
def test_it_counts_an_unusable_answer_to_parking_with_the_reply_kept(
    server: OpenAIServer, alice: Principal, step: Step
) -> None:
    one = episode(alice, SAID)
    for attempt in range(1, 5):
        server.script(CHAT, step)
        report = run()
        assert (report.content_failures, report.parked, report.pending) == (1, 0, 1)
        assert Claim.objects.get().content_failures == attempt
    server.script(CHAT, step)
    report = run()
    assert (report.content_failures, report.parked, report.pending) == (1, 1, 0)
    rows = list(DistillFailure.objects.order_by("attempt"))
    assert [row.attempt for row in rows] == [1, 2, 3, 4, 5]
    assert [row.parked for row in rows] == [False] * 4 + [True]
    assert all(zlib.decompress(bytes(row.reply)) for row in rows)
    claim = Claim.objects.get()
    assert claim.parked_at and claim.parked_reason and claim.unit == one.unit_key
    asked = len(server.requests)
    assert run().parked == 0 and len(server.requests) == asked, "what is parked is left alone"


AWAY: list[tuple[Step, str]] = [
    (fails(401), "http_401"),
    (fails(403), "http_403"),
    (fails(429, retry_after="120"), "http_429"),
    (fails(500), "http_5xx"),
    (fails(502, "<html><body>Bad Gateway</body></html>"), "http_5xx"),
    (RESET, "connection"),
]


@pytest.mark.parametrize(("step", "outcome"), AWAY, ids=[f"{o}-{s.status}" for s, o in AWAY])
def test_it_burns_nothing_and_ends_the_batch_when_the_model_is_away(
    server: OpenAIServer, alice: Principal, step: Step, outcome: str
) -> None:
    first = episode(alice, SAID)
    second = episode(alice, ["Another day.", "Another fact about the build cache."], session="s2")
    server.script(CHAT, step)
    report = run()
    assert (report.transient_failures, report.pending) == (1, 2)
    assert (report.content_failures, report.parked) == (0, 0)
    assert untouched(first) and untouched(second)
    chats = LlmCall.objects.filter(port="distill")
    assert list(chats.values_list("outcome", flat=True)) == [outcome]
    rest = Cooldown.objects.get(provider__startswith="chat:")
    if outcome == "http_429":
        assert timedelta(seconds=100) < rest.until - timezone.now() <= timedelta(seconds=120)
    asked = len(server.requests)
    assert run().transient_failures == 1 and len(server.requests) == asked
    assert untouched(first) and untouched(second)
    rested()
    assert run().episodes_distilled == 2


def test_it_burns_nothing_when_the_model_hangs(
    server: OpenAIServer, alice: Principal, configure: Configure
) -> None:
    configure(model_timeout_seconds=1.0)
    one = episode(alice, SAID)
    server.script(CHAT, hangs(5))
    assert run().transient_failures == 1
    assert untouched(one)
    assert LlmCall.objects.get(port="distill").outcome == "timeout"


def test_it_outlives_any_number_of_outages(server: OpenAIServer, alice: Principal) -> None:
    one = episode(alice, SAID)
    for _ in range(8):
        server.script(CHAT, fails(503))
        run()
        rested()
    assert untouched(one)
    server.script(CHAT, says(GOOD))
    assert run().notes_created == 2


def test_it_does_the_others_when_one_unit_fails(server: OpenAIServer, alice: Principal) -> None:
    for number in range(6):
        episode(
            alice,
            ["What now?", f"The build number {number} needs the linker flag."],
            session=f"s{number}",
            start=at(hours=number),
        )
    server.script(CHAT, says("Not for me, this one, thank you very much."))
    report = run()
    assert (report.episodes_distilled, report.content_failures, report.pending) == (5, 1, 1)
    server.script(CHAT, says("Not for me, this one, thank you very much."))
    assert run().content_failures == 1


def test_it_takes_units_in_the_order_in_which_things_happened(
    server: OpenAIServer, alice: Principal
) -> None:
    for number in (5, 2, 0, 4, 1, 3):
        episode(
            alice,
            ["Which one?", f"Milestone {number} of the release train is done."],
            session=f"s{number}",
            start=at(hours=number),
        )
    document(alice, "# Handbook\n\nMilestone 6 is written down in the handbook.", when=at(hours=9))
    for _ in range(3):
        run(limit=1)
    assert run(limit=3).pending == 1
    asked = [r.user for r in server.requests if r.path == CHAT]
    assert [int(text.split("Milestone ")[1][0]) for text in asked] == [0, 1, 2, 3, 4, 5]
    run()
    assert "Handbook" in server.requests[-1].user


def test_it_distills_documents_by_themselves(server: OpenAIServer, alice: Principal) -> None:
    item = document(alice, f"# Operations\n\n{OTHER}\n", locator={"path": "ops.md"})
    report = run()
    assert (report.items_distilled, report.episodes_distilled) == (1, 0)
    made = all_notes()[0]
    assert (made.raw_item_id, made.episode_id, made.said_by) == (item.pk, None, "document")
    assert made.locator == {"path": "ops.md"}
    assert DistilledItem.objects.get().raw_item == item
    assert run().items_distilled == 0


def again(one: Episode) -> None:
    """Make the unit pending, as a rebuild or a purge does, and forget what was answered."""
    Episode.objects.as_pipeline().filter(pk=one.pk).update(distilled_at=None)


def test_it_keeps_what_was_there_when_a_new_distill_is_empty(
    server: OpenAIServer, alice: Principal, configure: Configure
) -> None:
    one = episode(alice, SAID)
    server.script(CHAT, says(GOOD))
    run()
    again(one)
    configure(model="scripted-2")
    server.script(CHAT, says('{"notes": []}'))
    assert run().notes_created == 0
    assert [n.deleted_at for n in all_notes()] == [None, None]


def test_it_replaces_the_notes_of_a_unit_and_knows_the_same_note_again(
    server: OpenAIServer, alice: Principal, configure: Configure
) -> None:
    one = episode(alice, SAID)
    server.script(CHAT, says(notes(note(QUOTE), note(OTHER))))
    run()
    ids = {n.content: n.pk for n in all_notes()}
    again(one)
    configure(model="scripted-2")
    server.script(
        CHAT, says(notes(note(QUOTE), note("Found it.", source_ref="Why did the jobs get lost?")))
    )
    assert run().notes_created == 1
    now = {n.content: n for n in all_notes()}
    assert now[QUOTE].pk == ids[QUOTE] and now[QUOTE].deleted_at is None
    assert (now[OTHER].retired_reason, now["Found it."].deleted_at) == ("redistilled", None)
    again(one)
    configure(model="scripted-3")
    server.script(CHAT, says(notes(note(OTHER))))
    run()
    now = {n.content: n for n in all_notes()}
    assert now[OTHER].deleted_at is None and now[QUOTE].retired_reason == "redistilled"
    assert Evidence.objects.filter(note=now[OTHER]).count() == 1


def test_it_never_brings_back_what_dedup_retired(
    server: OpenAIServer, alice: Principal, configure: Configure
) -> None:
    one = episode(alice, SAID)
    server.script(CHAT, says(GOOD))
    run()
    Note.objects.as_pipeline().filter(content=OTHER).update(
        deleted_at=timezone.now(), retired_reason="superseded"
    )
    again(one)
    configure(model="scripted-2")
    server.script(CHAT, says(GOOD))
    assert run().notes_created == 0
    assert Note.objects.as_pipeline().get(content=OTHER).retired_reason == "superseded"


def test_it_writes_one_note_where_the_model_says_it_twice(
    server: OpenAIServer, alice: Principal
) -> None:
    episode(alice, SAID)
    server.script(CHAT, says(notes(note(QUOTE), note(QUOTE, title="In other words"))))
    assert run().notes_created == 1 and len(all_notes()) == 1


def test_it_stops_when_the_budget_is_spent_and_goes_on_when_there_is_room(
    server: OpenAIServer, alice: Principal, configure: Configure
) -> None:
    configure(tokens_per_day=100)
    one = episode(alice, SAID)
    report = run()
    assert (report.transient_failures, report.pending) == (1, 1)
    assert LlmCall.objects.get(port="distill").outcome == "budget"
    assert untouched(one) and not any(r.path == CHAT for r in server.requests)
    configure(tokens_per_day=1_000_000)
    assert run().episodes_distilled == 1


def test_it_leaves_restricted_units_to_the_local_distiller(
    server: OpenAIServer, alice: Principal
) -> None:
    episode(
        alice,
        [
            "What did we decide?",
            "We decided to move the job queue from Redis to Postgres, because Redis lost jobs.",
        ],
        confidentiality="restricted",
    )
    run()
    assert not any(r.path == CHAT for r in server.requests)
    assert LlmCall.objects.get(port="distill").model_real.startswith("extractive")
    assert {n.confidentiality for n in all_notes()} == {"restricted"}


def test_it_stores_an_answer_that_holds_what_no_text_may_hold(
    server: OpenAIServer, alice: Principal
) -> None:
    """Escapes in JSON can make NUL and lone surrogates, which Postgres cannot store."""
    episode(alice, SAID)
    odd = notes(note(QUOTE, content="A\\u0000B \\ud83d moved.", title="T\\u0000")).replace(
        "\\\\u", "\\u"
    )
    server.script(CHAT, says(odd))
    report = run()
    assert report.episodes_distilled == 1 and report.notes_created == 1
    assert "\x00" not in all_notes()[0].content


def test_it_keeps_an_unusable_answer_that_holds_what_no_text_may_hold(
    server: OpenAIServer, alice: Principal
) -> None:
    episode(alice, SAID)
    server.script(CHAT, says("\ud83d is not \x00 an answer to anything at all."))
    assert run().content_failures == 1
    assert DistillFailure.objects.get().reply


def test_it_closes_the_run_as_failed_and_frees_its_claims_on_a_fault_of_ours(
    server: OpenAIServer, alice: Principal
) -> None:
    episode(alice, SAID)

    now = at(days=90)
    ticks = count(1)

    def broken() -> datetime:
        # The clock stops once, after the unit was begun.
        if next(ticks) == 5:
            raise StopIteration
        return now

    with pytest.raises(StopIteration):
        distill(clock=broken)
    row = StageRun.objects.filter(stage="distill").latest("pk")
    assert row.status == "failed" and row.error.startswith("StopIteration")
    assert row.finished_at and not Claim.objects.exclude(lease_until=None).exists()
    assert distill(clock=clock(now)).episodes_distilled == 1
