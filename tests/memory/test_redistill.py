"""How: an episode that was distilled, the scripted model asked about it again."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.utils import timezone

from memory import redistill
from memory.errors import Conflict, NotFound, RefusedError
from memory.models import (
    Act,
    Episode,
    GateRejection,
    LlmCall,
    ModelReply,
    Note,
    Principal,
    Proposal,
    RejectionDecision,
    SearchText,
    StageRun,
)
from memory.rejected import forbid
from memory.retire import retire
from memory.runs import cancel
from memory.stages.distill import distill
from memory.tasks import run_redistill
from tests.factories import OTHER, QUOTE, SAID, at, clock, episode, fresh, three
from tests.openai_server import CHAT, OpenAIServer, Step, fails, note, notes, says

pytestmark = pytest.mark.django_db

Configure = Callable[..., None]
FIRST = notes(note(QUOTE), note(OTHER))


@pytest.fixture(autouse=True)
def remote(configure: Configure) -> None:
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


def ask(one: Episode, by: Principal, server: OpenAIServer, *steps: Step) -> Proposal | None:
    """Asked again and answered so; the proposal."""
    run = redistill.start(one.pk, by=by, now=timezone.now())
    server.script(CHAT, *steps)
    run_redistill(run.pk, one.unit_key, by.pk)
    return redistill.open_proposal(one.unit_key)


def contents() -> dict[str, str]:
    """Every note's content and why it is retired."""
    rows = Note.objects.as_pipeline().values_list("content", "retired_reason")
    return dict(rows)


def changes(proposal: Proposal | None) -> redistill.Changes:
    assert proposal is not None
    return redistill.changes(proposal, now=at(days=2))


def test_it_asks_anew_and_changes_nothing_before_a_person_says_so(
    server: OpenAIServer, alice: Principal, one: Episode
) -> None:
    invented = note("We moved the job queue to Kafka.")
    reply = notes(note(QUOTE), note(OTHER, content="Staging is on port 8443."), invented)
    proposal = ask(one, alice, server, says(reply))
    assert contents() == {QUOTE: "", OTHER: ""}
    found = changes(proposal)
    assert [p.note.content for p in found.come] == ["Staging is on port 8443."]
    assert [n.content for n in found.go] == [OTHER] and found.come[0].replaces == found.go[0]
    assert [n.content for n in found.stay] == [QUOTE] and not found.nothing
    assert proposal and [row["reason"] for row in proposal.refused] == ["grounding"]
    assert not GateRejection.objects.as_pipeline().exists()
    run = StageRun.objects.get(stage="redistill")
    assert (run.status, run.report["proposal"], proposal.run) == ("done", proposal.pk, run)
    assert LlmCall.objects.filter(stage="redistill", run=run, outcome="ok").count() == 1
    assert ModelReply.objects.filter(port="distill").count() == 2, "the first one stays"


def test_it_does_what_was_shown(server: OpenAIServer, alice: Principal, one: Episode) -> None:
    reply = notes(note(QUOTE), note(OTHER, content="Staging is on port 8443."), note("Kafka it is"))
    proposal = ask(one, alice, server, says(reply))
    assert proposal
    redistill.apply(proposal.pk, seen=changes(proposal).seen, by=alice, now=at(days=2))
    assert contents() == {QUOTE: "", OTHER: "redistilled", "Staging is on port 8443.": ""}
    new = Note.objects.as_pipeline().get(content="Staging is on port 8443.")
    edge = new.evidence.get()
    assert edge.raw_item.body[edge.start : edge.end] == edge.quote == OTHER
    assert new.run == proposal.run and new.project_id == one.project_id
    assert SearchText.objects.as_pipeline().filter(note=new).exists()
    assert GateRejection.objects.as_pipeline().get().reason == "grounding"
    act = Act.objects.get(verb="redistill")
    assert (act.reference, act.principal) == (one.unit_key, alice)
    assert act.detail == {"proposal": proposal.pk, "come": 1, "go": 1, "back": 0, "stay": 1}
    assert redistill.open_proposal(one.unit_key) is None


def test_it_learns_nothing_that_a_person_forbade_since(
    server: OpenAIServer, alice: Principal, one: Episode
) -> None:
    new = "Staging is on port 8443."
    proposal = ask(one, alice, server, says(notes(note(QUOTE), note(OTHER, content=new))))
    assert proposal
    shown = changes(proposal).seen
    forbid(new, owner=alice, by=alice, now=at(days=1))
    with pytest.raises(Conflict, match="changed since"):
        redistill.apply(proposal.pk, seen=shown, by=alice, now=at(days=2))
    assert not changes(proposal).come
    redistill.apply(proposal.pk, seen=changes(proposal).seen, by=alice, now=at(days=2))
    assert new not in contents()
    assert GateRejection.objects.as_pipeline().get().reason == "rejected"


def test_it_brings_back_what_an_earlier_asking_retired(
    server: OpenAIServer, alice: Principal, one: Episode
) -> None:
    for reply in (notes(note(QUOTE)), FIRST):
        proposal = ask(one, alice, server, says(reply))
        assert proposal
        redistill.apply(proposal.pk, seen=changes(proposal).seen, by=alice, now=at(days=2))
    assert contents() == {QUOTE: "", OTHER: ""}


def test_it_leaves_what_a_person_retired_and_what_a_person_accepted(
    server: OpenAIServer, alice: Principal, one: Episode
) -> None:
    old, kept = (Note.objects.as_pipeline().get(content=text) for text in (QUOTE, OTHER))
    retire([old.pk], reason="wrong", now=at(days=1))
    refused = GateRejection.objects.create(owner=alice, reason="title", candidate={}, episode=one)
    RejectionDecision.objects.create(rejection=refused, principal=alice, action="accept", note=kept)
    proposal = ask(one, alice, server, says(notes(note(QUOTE), note(SAID[0]))))
    found = changes(proposal)
    assert list(found.asleep) == [old] and list(found.own) == [kept] and not found.go
    assert proposal
    redistill.apply(proposal.pk, seen=found.seen, by=alice, now=at(days=2))
    assert (fresh(old).retired_reason, fresh(kept).retired_reason) == ("wrong", "")


@pytest.mark.parametrize("reply", ['{"notes": []}', FIRST])
def test_it_changes_nothing_when_nothing_or_the_same_comes_back(
    server: OpenAIServer, alice: Principal, one: Episode, reply: str
) -> None:
    proposal = ask(one, alice, server, says(reply))
    found = changes(proposal)
    assert found.nothing and len(found.stay) == 2 and proposal
    redistill.apply(proposal.pk, seen=found.seen, by=alice, now=at(days=2))
    assert contents() == {QUOTE: "", OTHER: ""}


def test_it_proposes_no_change_by_the_local_distiller(
    configure: Configure, alice: Principal
) -> None:
    configure(model_url=None, model=None)
    closed = episode(alice, SAID)
    distill(clock=clock(at(days=1)))
    run = redistill.start(closed.pk, by=alice, now=timezone.now())
    run_redistill(run.pk, closed.unit_key, alice.pk)
    assert changes(redistill.open_proposal(closed.unit_key)).nothing and contents()


def test_it_does_not_apply_what_was_not_shown(
    server: OpenAIServer, alice: Principal, one: Episode
) -> None:
    proposal = ask(one, alice, server, says(notes(note(QUOTE))))
    assert proposal
    seen = changes(proposal).seen
    gone = Note.objects.as_pipeline().get(content=OTHER)
    retire([gone.pk], reason="wrong", now=at(days=1))
    with pytest.raises(Conflict, match="changed since"):
        redistill.apply(proposal.pk, seen=seen, by=alice, now=at(days=2))
    assert contents() == {QUOTE: "", OTHER: "wrong"}
    proposal.refresh_from_db(from_queryset=Proposal.objects.as_pipeline())
    assert proposal.status == "open" and not Act.objects.filter(verb="redistill").exists()


def test_it_is_decided_once(server: OpenAIServer, alice: Principal, one: Episode) -> None:
    proposal = ask(one, alice, server, says(notes(note(QUOTE))))
    assert proposal
    seen = changes(proposal).seen
    with pytest.raises(Conflict, match="alice at .* asked already"):
        redistill.start(one.pk, by=alice, now=timezone.now())
    redistill.drop(proposal.pk, by=alice, now=at(days=1))
    with pytest.raises(Conflict, match="dropped by alice at 2026-03-03 09:00:00Z"):
        redistill.apply(proposal.pk, seen=seen, by=alice, now=at(days=2))
    assert contents() == {QUOTE: "", OTHER: ""}
    assert Act.objects.filter(verb="drop", reference=one.unit_key).count() == 1


def test_it_is_not_for_strangers_and_not_for_what_waits_anyway(
    server: OpenAIServer, alice: Principal, one: Episode
) -> None:
    charlie = three()[2]
    with pytest.raises(NotFound):
        redistill.start(one.pk, by=charlie, now=timezone.now())
    proposal = ask(one, alice, server, says(notes(note(QUOTE))))
    assert proposal
    for decide in (redistill.drop, lambda pk, **k: redistill.apply(pk, seen="", **k)):
        with pytest.raises(NotFound):
            decide(proposal.pk, by=charlie, now=at(days=1))
    later = episode(alice, SAID, session="s2", start=at(days=3))
    with pytest.raises(RefusedError, match="for the first time"):
        redistill.start(later.pk, by=alice, now=timezone.now())


@pytest.mark.parametrize("step", [says("no json at all"), fails(503), fails(400)])
def test_it_says_that_the_asking_failed(
    server: OpenAIServer, alice: Principal, one: Episode, step: Step
) -> None:
    assert ask(one, alice, server, step, step, step, step, step) is None
    run = StageRun.objects.get(stage="redistill")
    assert run.status == "failed" and run.error
    assert contents() == {QUOTE: "", OTHER: ""}
    assert redistill.start(one.pk, by=alice, now=timezone.now()) != run, "and may be asked again"


def test_it_asks_nothing_when_it_was_cancelled(
    server: OpenAIServer, alice: Principal, one: Episode
) -> None:
    asked = len(server.requests)
    run = redistill.start(one.pk, by=alice, now=timezone.now())
    cancel(run.pk, by=alice, now=timezone.now())
    assert run_redistill(run.pk, one.unit_key, alice.pk) is None
    assert len(server.requests) == asked and not Proposal.objects.as_pipeline().exists()
