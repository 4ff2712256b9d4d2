"""How: notes by factories, the rule judge or the scripted one, verdict rows read back."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from memory.llm.thresholds import threshold
from memory.llm.vectors import cosine, unit
from memory.models import (
    Claim,
    Cooldown,
    DedupVerdict,
    DistillFailure,
    Evidence,
    Injection,
    Note,
    Principal,
    RawItem,
    StageRun,
)
from memory.stages.dedup import DedupReport, dedup
from memory.stages.embed import embed
from review import holds
from tests.factories import at, clock, fresh, note, project, three, turns
from tests.openai_server import CHAT, OpenAIServer, Step, fails, says

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("local")]

Configure = Callable[..., None]
PORT = "The staging server listens on port {}."


@pytest.fixture
def alice() -> Principal:
    return three()[0]


def run(now: datetime | None = None, **fields: Any) -> DedupReport:
    return dedup(clock=clock(now or at(days=30)), **fields)


def verdict(one: Note) -> DedupVerdict:
    found: DedupVerdict = DedupVerdict.objects.as_pipeline().get(note=one)
    return found


def decides(kind: str, target: object = 1) -> Step:
    return says(json.dumps({"verdict": kind, "target": target, "reasoning": "It says so."}))


def live(now: datetime | None = None) -> set[str]:
    rows = Note.objects.as_pipeline().live(now or at(days=30))
    return set(rows.values_list("content", flat=True))


def test_it_keeps_one_of_two_equal_statements_without_asking_a_judge(
    alice: Principal, server: OpenAIServer, configure: Configure
) -> None:
    configure()
    old = note(alice, PORT.format(8443))
    new = note(alice, "the staging  server LISTENS on port 8443", when=at(days=1))
    report = run()
    assert (report.duplicate, report.distinct, report.pending) == (1, 1, 0)
    row = verdict(new)
    assert (row.verdict, row.status, row.target) == ("duplicate", "applied", old)
    assert (row.similarity, row.model_asked, row.model_real) == (1.0, "exact", "exact")
    assert fresh(new).retired_reason == "duplicate" and fresh(old).deleted_at is None
    assert not any(r.path == CHAT for r in server.requests)
    assert row.run_id == StageRun.objects.get(stage="dedup").pk
    assert not Claim.objects.exists()


def test_it_earns_confidence_with_each_independent_session_until_a_change_is_held(
    alice: Principal,
) -> None:
    old = note(alice, PORT.format(8443))
    for day, wanted in ((1, 0.65), (2, 0.755)):
        note(alice, PORT.format(8443), when=at(days=day))
        run()
        assert fresh(old).confidence == pytest.approx(wanted)
    assert Evidence.objects.filter(note=old).count() == 3, "the kept note has the evidence of all"
    new = note(alice, PORT.format(9443), when=at(days=3))
    report = run()
    assert (report.supersede, report.held) == (1, 1)
    row = verdict(new)
    assert (row.verdict, row.status, row.target) == ("supersede", "pending", old)
    assert fresh(old).deleted_at is None and fresh(new).deleted_at is None


def test_it_applies_a_change_of_what_few_bear_out(alice: Principal) -> None:
    old = note(alice, PORT.format(8443))
    new = note(alice, PORT.format(9443), when=at(days=1))
    report = run(at(days=2))
    assert (report.supersede, report.held) == (1, 0)
    gone = fresh(old)
    assert (gone.deleted_at, gone.retired_reason) == (at(days=2), "superseded")
    assert gone.valid_to == new.valid_from and gone.invalidated_at == at(days=2)
    assert live() == {PORT.format(9443)}


def test_it_lets_what_was_said_later_win_though_it_was_read_first(alice: Principal) -> None:
    current = note(alice, PORT.format(9443), when=at(days=5))
    late = note(alice, PORT.format(8443), when=at(days=1), created_at=at(days=6))
    run()
    assert live() == {PORT.format(9443)}
    gone = fresh(late)
    assert (gone.retired_reason, gone.valid_to) == ("superseded", at(days=5))
    assert fresh(current).deleted_at is None


def test_it_lets_a_model_judges_late_news_lose_against_later_news(
    alice: Principal, server: OpenAIServer, configure: Configure
) -> None:
    configure()
    current = note(alice, PORT.format(9443), when=at(days=5))
    late = note(alice, PORT.format(8443), when=at(days=1), created_at=at(days=6))
    server.script(CHAT, decides("supersede"))
    run()
    assert fresh(current).deleted_at is None
    gone = fresh(late)
    assert (gone.retired_reason, gone.valid_to) == ("superseded", at(days=5))


def test_it_knows_which_of_two_notes_of_one_moment_was_said_later(alice: Principal) -> None:
    """All notes of a unit are made at once; their ids say nothing about their order."""
    for number in range(8):
        name = f"service-{number}"
        note(alice, f"The {name} listens on port 9000.", when=at(5), created_at=at(60))
        note(alice, f"The {name} listens on port 8000.", when=at(1), created_at=at(60))
    assert run().supersede == 8
    assert live() == {f"The service-{number} listens on port 9000." for number in range(8)}


def test_it_follows_a_chain_of_changes_to_the_last_one(alice: Principal) -> None:
    for day, port in enumerate((8001, 8002, 8003, 8004, 8005)):
        note(alice, PORT.format(port), when=at(days=day))
    report = run()
    assert report.supersede == 4
    assert live() == {PORT.format(8005)}
    ends = list(
        Note.objects.as_pipeline().order_by("valid_from").values_list("valid_to", flat=True)
    )
    assert ends == [at(days=1), at(days=2), at(days=3), at(days=4), None]


def test_it_follows_the_chain_also_a_few_at_a_time(alice: Principal) -> None:
    for day in range(20):
        note(alice, PORT.format(8000 + day), when=at(days=day / 10))
    for _ in range(10):
        run(limit=2)
    assert live() == {PORT.format(8019)}


def test_it_waits_with_a_note_whose_target_another_worker_is_to_judge(alice: Principal) -> None:
    """Else the target is retired unjudged, and what it replaces itself stays alive."""
    first, second, third = (
        note(alice, PORT.format(8001 + day), when=at(days=day)) for day in range(3)
    )
    run(limit=1)
    assert verdict(first).verdict == "distinct"
    held, _ = Claim.objects.update_or_create(
        stage="dedup",
        unit=f"note:{second.pk}",
        defaults={"worker": "elsewhere", "lease_until": at(days=31)},
    )
    report = run()
    assert (
        report.pending == 2 and not DedupVerdict.objects.as_pipeline().filter(note=third).exists()
    )
    held.delete()
    run()
    assert live() == {PORT.format(8003)}
    assert not Claim.objects.exclude(attempts=0).exists()


def test_it_waits_with_a_note_whose_older_neighbour_has_no_vector_yet(alice: Principal) -> None:
    first = note(alice, PORT.format(8001))
    second = note(alice, PORT.format(8002), when=at(days=1), embedded=False)
    note(alice, PORT.format(8003), when=at(days=2))
    assert run().pending == 1
    assert verdict(first).verdict == "distinct" and len(live()) == 3
    embed(clock=clock(at(days=3)))
    assert fresh(second).embedding is not None
    assert run().supersede == 2 and live() == {PORT.format(8003)}


def test_it_holds_a_note_that_came_late_against_those_judged_before_it(alice: Principal) -> None:
    """Its vector, or its commit, came after a younger note was judged."""
    young = note(alice, PORT.format(9443), when=at(days=2))
    run()
    late = note(alice, PORT.format(8443), when=at(days=1), created_at=at(5))
    assert run().supersede == 1
    assert fresh(late).valid_to == young.valid_from and fresh(young).deleted_at is None


def test_it_counts_no_step_for_a_note_that_the_session_had_been_shown(alice: Principal) -> None:
    old = note(alice, PORT.format(8443))
    Injection.objects.create(
        owner=alice, mode="notes", session="echo", outcome="injected", note_ids=[old.pk],
        created_at=at(days=1),
    )  # fmt: skip
    echo = note(alice, PORT.format(8443), when=at(5, days=1), session="echo")
    run()
    row = verdict(echo)
    assert (row.verdict, row.corroborates) == ("duplicate", False)
    assert row.confidence_before == row.confidence_after == 0.5 == fresh(old).confidence


def test_it_counts_one_step_a_session(alice: Principal) -> None:
    old = note(alice, PORT.format(8443), session="first")
    for day in (1, 2):
        note(alice, PORT.format(8443), when=at(days=day), session="second")
    note(alice, PORT.format(8443), when=at(days=3), session="first")
    run()
    assert fresh(old).confidence == pytest.approx(0.65)
    rows = (
        DedupVerdict.objects.as_pipeline().filter(verdict="duplicate").order_by("note__valid_from")
    )
    assert [row.corroborates for row in rows] == [True, False, False]


def test_it_takes_a_near_copy_of_a_raw_item_for_no_evidence(alice: Principal) -> None:
    text = (
        "The staging server listens on port 8443 and the load balancer in front of it forwards "
        "everything that arrives on port 443, as the team agreed on Monday after the incident."
    )
    first = turns(alice, [text], session="one")[0]
    second = turns(alice, [text.upper()], session="two", start=at(days=1))[0]
    assert second.near_duplicate_of_id == first.pk
    old = note(alice, text, evidence=first)
    note(alice, text.upper(), evidence=second, when=at(days=1))
    run()
    assert fresh(old).confidence == 0.5


def test_it_lets_a_refinement_inherit_confidence_and_evidence(
    alice: Principal, server: OpenAIServer, configure: Configure
) -> None:
    configure()
    old = note(alice, "The staging server listens on a port above 8000.", confidence=0.65)
    new = note(alice, "The staging server listens on port 8443.", when=at(days=1))
    server.script(CHAT, decides("refine"))
    report = run()
    assert report.refine == 1
    assert fresh(old).retired_reason == "refined" and fresh(old).valid_to is None
    assert fresh(new).confidence == pytest.approx(0.755)
    assert set(Evidence.objects.filter(note=new).values_list("origin", flat=True)) == {
        "distill",
        "refined",
    }


@pytest.mark.parametrize(
    "reply",
    [
        {"verdict": "merge", "target": 1, "reasoning": "?"},
        {"verdict": "supersede", "target": 7, "reasoning": "?"},
        {"verdict": "duplicate", "target": None, "reasoning": "?"},
        {"verdict": "duplicate", "target": "somebody's note", "reasoning": "?"},
    ],
)
def test_it_takes_an_unknown_verdict_or_target_for_distinct_and_says_so(
    alice: Principal, server: OpenAIServer, configure: Configure, reply: dict[str, object]
) -> None:
    configure()
    note(alice, PORT.format(8443))
    new = note(alice, PORT.format(9443), when=at(days=1))
    server.script(CHAT, says(json.dumps(reply)))
    assert run().distinct == 2
    row = verdict(new)
    assert row.target is None and row.verdict == "distinct"
    assert "nknown" in row.reasoning or "not a candidate" in row.reasoning
    assert len(live()) == 2


def test_it_shows_a_model_judge_three_at_most_and_notes_whom(
    alice: Principal, server: OpenAIServer, configure: Configure
) -> None:
    configure()
    for number in range(6):
        note(alice, PORT.format(f"844{number}"), when=at(number))
    new = note(alice, PORT.format(9443), when=at(days=1))
    run()
    assert len(verdict(new).candidates) == 3
    assert all(one["similarity"] for one in verdict(new).candidates)
    assert verdict(new).model_real == "scripted-2026-01"


def test_it_asks_nobody_about_a_note_without_neighbours(
    alice: Principal, server: OpenAIServer, configure: Configure
) -> None:
    configure()
    note(alice, "Onions go into the pot first.")
    new = note(alice, "Der Zug nach Graz hat Verspätung.", when=at(1))
    assert run().distinct == 2
    assert verdict(new).model_real == "none" and verdict(new).candidates == []
    assert not any(r.path == CHAT for r in server.requests)


def test_it_finds_a_neighbour_by_rare_words_where_vectors_are_far(alice: Principal) -> None:
    old = note(alice, "Kubelwagen release: the checkout service runs version 2.3.")
    new = note(alice, "By now kubelwagen is rolled back everywhere.", when=at(days=1))
    run()
    shown = {one["note"]: one for one in verdict(new).candidates}
    assert shown[str(old.pk)]["lexical"]


@pytest.mark.parametrize("port", [8443, 9443])
def test_it_leaves_it_to_a_person_what_a_project_says_of_a_fact_of_all(
    alice: Principal, port: int
) -> None:
    everywhere = note(alice, PORT.format(8443), project=project("global"))
    new = note(alice, PORT.format(port), project=project("shop"), when=at(days=1))
    report = run()
    assert report.held == 1 and report.distinct == 1
    row = verdict(new)
    assert (row.status, row.target) == ("pending", everywhere)
    assert row.verdict == ("duplicate" if port == 8443 else "supersede")
    assert fresh(new).deleted_at is None and fresh(everywhere).deleted_at is None
    holds.approve(row.pk, by=alice, now=at(days=31))
    gone, kept = (new, everywhere) if port == 8443 else (everywhere, new)
    assert fresh(gone).deleted_at == at(days=31) and fresh(kept).deleted_at is None


def test_it_prefers_a_twin_of_the_same_project(alice: Principal) -> None:
    note(alice, PORT.format(8443), project=project("global"))
    note(alice, PORT.format(8443), project=project("shop"), when=at(days=1))
    third = note(alice, PORT.format(8443), project=project("shop"), when=at(days=2))
    run()
    row = verdict(third)
    assert row.status == "applied" and row.target is not None
    assert row.target.project == project("shop")


def test_it_says_nothing_of_projects_by_a_fact_of_all(alice: Principal) -> None:
    note(alice, PORT.format(8443), project=project("shop"))
    note(alice, PORT.format(9443), project=project("global"), when=at(days=1))
    assert run().distinct == 2 and len(live()) == 2


def test_it_goes_by_the_floor_of_the_embedder_that_made_the_vectors(alice: Principal) -> None:
    """Not of the one in force now: their cosines are not on one scale."""
    for model in ("nomic-embed-text", "minilm-l6-v2-int8-pad768"):
        fields: dict[str, Any] = {"embedding_model": model, "project": project(model)}
        here, there = (unit([1.0, aside, *[0.0] * 766]) for aside in (0.0, 1.0))
        old = note(alice, "Onions go first.", embedding=here, **fields)
        new = note(alice, "Der Zug nach Graz.", embedding=there, when=at(1), **fields)
        assert threshold(model, "dedup_floor") != pytest.approx(cosine(here, there), abs=0.05)
        run()
        close = cosine(here, there) >= threshold(model, "dedup_floor")
        assert [one["note"] for one in verdict(new).candidates] == [str(old.pk)] * close
    assert close, "the same cosine is near for one of them and far for the other"


def test_it_compares_nothing_across_owners_projects_or_levels(alice: Principal) -> None:
    _, bob, _ = three()
    text = PORT.format(8443)
    note(bob, text, visibility="common")
    note(alice, text, project=project("blog"), when=at(1))
    note(alice, text, level="L1", when=at(2))
    new = note(alice, text, project=project("shop"), when=at(days=1))
    assert run().duplicate == 0
    assert verdict(new).candidates == []
    assert Note.objects.as_pipeline().filter(deleted_at=None).count() == 4


def test_it_compares_nothing_across_embedders(alice: Principal) -> None:
    note(alice, "alpha beta gamma delta epsilon", embedding_model="another")
    new = note(alice, "alpha beta gamma delta zeta", when=at(1))
    run()
    assert all(one["similarity"] is None for one in verdict(new).candidates)


def test_it_does_not_judge_what_has_no_vector_yet(alice: Principal) -> None:
    note(alice, PORT.format(8443), embedded=False)
    report = run()
    assert (report.distinct, report.pending) == (
        0,
        0,
    ) and not DedupVerdict.objects.as_pipeline().exists()


def test_it_works_through_more_notes_than_it_looks_at_in_order(
    alice: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memory.stages.dedup.NOTES_LOOKED_AT", 24)
    for number in range(40):
        note(alice, f"Fact number {number} is told.", when=at(number))
    with CaptureQueriesContext(connection) as seen:
        report = run()
    assert sum((report.duplicate, report.refine, report.supersede, report.distinct)) == 40
    judged = DedupVerdict.objects.as_pipeline().order_by("pk").values_list("note__valid_from")
    assert list(judged) == sorted(judged)
    pages = [
        query for query in seen if re.search(r'ORDER BY .*"created_at".* LIMIT 24', query["sql"])
    ]
    assert 2 <= len(pages) <= 5


def test_it_judges_each_note_once(alice: Principal) -> None:
    note(alice, PORT.format(8443))
    assert run().distinct == 1
    assert run() == DedupReport()
    assert DedupVerdict.objects.as_pipeline().count() == 1


@pytest.mark.parametrize("step", [fails(401), fails(429, retry_after="9"), fails(500)])
def test_it_puts_off_what_it_cannot_ask_and_decides_nothing(
    alice: Principal, server: OpenAIServer, configure: Configure, step: Step
) -> None:
    configure()
    note(alice, PORT.format(8443))
    new = note(alice, PORT.format(9443), when=at(days=1))
    server.script(CHAT, step)
    report = run()
    assert (report.transient_failures, report.pending) == (1, 1)
    assert not DedupVerdict.objects.as_pipeline().filter(note=new).exists() and len(live()) == 2
    assert not Claim.objects.exclude(attempts=0, content_failures=0, lease_until=None).exists()
    Cooldown.objects.all().delete()
    assert run().distinct == 1


def test_it_parks_a_note_that_the_judge_cannot_answer_five_times(
    alice: Principal, server: OpenAIServer, configure: Configure
) -> None:
    configure()
    note(alice, PORT.format(8443))
    new = note(alice, PORT.format(9443), when=at(days=1))
    server.script(CHAT, *[says("I would not know.")] * 5)
    reports = [run() for _ in range(5)]
    assert [r.parked for r in reports] == [0, 0, 0, 0, 1] and reports[-1].pending == 0
    assert DistillFailure.objects.filter(stage="dedup", unit=f"note:{new.pk}").count() == 5
    assert run() == DedupReport()


def test_it_leaves_restricted_notes_to_the_rules(
    alice: Principal, server: OpenAIServer, configure: Configure
) -> None:
    configure()
    note(alice, PORT.format(8443), confidentiality="restricted")
    new = note(alice, PORT.format(9443), when=at(days=1))
    run()
    assert not any(r.path == CHAT for r in server.requests)
    assert verdict(new).model_real.startswith("rules")


def test_it_leaves_every_quote_true_of_its_raw_item(alice: Principal) -> None:
    for day in range(3):
        note(alice, PORT.format(8443), when=at(days=day))
    run()
    for edge in Evidence.objects.select_related("raw_item"):
        assert isinstance(edge.raw_item, RawItem)
        assert edge.raw_item.body[edge.start : edge.end] == edge.quote
