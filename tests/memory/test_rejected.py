"""How: rejected facts in the real tables; the pure gate on statements that are nearly the same."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pytest_django import DjangoAssertNumQueries

from memory import gate, rejected
from memory.errors import Conflict, RefusedError
from memory.llm.ports import Candidate, Passage
from memory.models import GateRejection, Note, Principal, RejectedFact
from memory.stages.distill import distill
from tests.factories import OTHER, QUOTE, SAID, at, episode, three
from tests.openai_server import CHAT, OpenAIServer, note, notes, says

FACT = "The staging server listens on port 8443."
LONG = (
    "The payments team keeps its staging server in the cellar of the old office, where the night"
    " watch restarts it whenever the fan stops, and nobody outside the team knows the password of"
    " the console, which hangs on a paper beside the door until somebody finds the time to move the"
    " whole machine into the rack that was bought for it and stands in the hall since spring; until"
    " then a release waits for whoever comes in first in the morning and looks at the lamp."
)


def wanted(content: str, facts: tuple[gate.Unwanted, ...]) -> bool:
    return gate.said_again(content, facts) is None


def fact(content: str) -> tuple[gate.Unwanted, ...]:
    made = gate.Unwanted(
        gate.content_key(content), frozenset(gate.windows(content)), "alice", at(0)
    )
    return (made,)


@pytest.mark.parametrize(
    "again",
    [FACT, FACT.upper(), "  the staging server\nlistens on   port 8443 ", f"- {FACT}"],
)
def test_it_knows_a_short_fact_word_for_word(again: str) -> None:
    assert not wanted(again, fact(FACT))


@pytest.mark.parametrize(
    "other",
    [
        "The staging server listens on port 9443.",
        "The staging server does not listen on port 8443.",
        "The production server listens on port 8443.",
        "Port 8443 is where the staging server listens.",
    ],
)
def test_it_takes_a_short_text_with_another_word_for_another_fact(other: str) -> None:
    assert wanted(other, fact(FACT))


def test_it_knows_a_long_fact_inside_other_words() -> None:
    assert len(gate.windows(LONG)) >= gate.WINDOWS_MIN
    assert not wanted(f"Please note: {LONG} That is all.", fact(LONG))
    assert not wanted(LONG.replace(", ", " - ").lower(), fact(LONG))


def test_it_takes_a_long_text_with_other_figures_for_another_fact() -> None:
    said = LONG.replace("for it and stands in the hall", "in 2024 and stands there")
    assert not wanted(f"Indeed. {said}", fact(said))
    assert wanted(said.replace("2024", "2025"), fact(said))
    assert wanted(LONG, fact(said))


def test_it_takes_half_of_a_long_fact_for_another_one() -> None:
    assert wanted(LONG[: len(LONG) // 2], fact(LONG))


def test_it_says_who_refused_a_candidate_and_when() -> None:
    said = [Passage(1, "user", QUOTE, at(0))]
    judged = gate.judge(Candidate("Queue", QUOTE, QUOTE), said, unwanted=fact(QUOTE))
    assert isinstance(judged, gate.Rejection) and judged.reason == "rejected"
    assert judged.detail == "alice refused to learn this at 2026-03-02 09:00Z"
    assert isinstance(gate.judge(Candidate("Queue", QUOTE, QUOTE), said), gate.Grounded)


@pytest.mark.django_db
def test_it_finds_in_one_query_what_may_be_said_again(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    alice, bob, _ = three()
    for content in (FACT, LONG, QUOTE):
        rejected.forbid(content, owner=alice, by=alice, now=at(1))
    with django_assert_num_queries(1):
        found = rejected.among(alice.pk, [FACT, f"Note: {LONG}", OTHER])
    assert [one.key for one in found] == [gate.content_key(FACT), gate.content_key(LONG)]
    assert {one.by for one in found} == {"alice"}
    assert rejected.among(bob.pk, [FACT]) == () and rejected.among(alice.pk, []) == ()


@pytest.mark.django_db
def test_it_forbids_a_fact_once_and_nothing_without_a_word() -> None:
    alice, bob, _ = three()
    rejected.forbid(FACT, owner=alice, by=alice, now=at(1))
    with pytest.raises(Conflict, match="alice refused to learn this"):
        rejected.forbid(FACT.upper(), owner=alice, by=alice, now=at(2))
    rejected.forbid(FACT, owner=bob, by=bob, now=at(2))
    for nothing in ("", " ... "):
        with pytest.raises(RefusedError):
            rejected.forbid(nothing, owner=alice, by=alice, now=at(1))


@pytest.mark.django_db
def test_it_may_be_learned_again_when_that_is_lifted() -> None:
    alice, _, _ = three()
    row = GateRejection.objects.create(owner=alice, reason="shape", candidate={})
    rejected.forbid(FACT, owner=alice, by=alice, now=at(1), rejection=row)
    assert rejected.lift(row, now=at(2)) == 1 and rejected.lift(row, now=at(3)) == 0
    assert rejected.said(FACT, owner=alice) is None
    assert RejectedFact.objects.as_pipeline().get().lifted_at == at(2)
    rejected.forbid(FACT, owner=alice, by=alice, now=at(4), rejection=row)
    assert rejected.said(FACT, owner=alice) is not None


@pytest.mark.django_db
def test_it_keeps_a_rejected_fact_out_of_its_owners_notes_and_of_nobody_elses(
    server: OpenAIServer, configure: Callable[..., None]
) -> None:
    alice, bob, _ = three()
    rejected.forbid(QUOTE.upper(), owner=alice, by=alice, now=at(0))

    def contents(owner: Principal) -> set[str]:
        episode(owner, SAID, session=f"of {owner.name}")
        server.script(CHAT, says(notes(note(QUOTE), note(OTHER))))
        distill()
        return set(Note.objects.visible_to(owner).values_list("content", flat=True))

    assert contents(alice) == {OTHER}
    row = GateRejection.objects.visible_to(alice).get()
    assert (row.reason, row.candidate["content"]) == ("rejected", QUOTE)
    assert contents(bob) == {QUOTE, OTHER}
