"""How: every verb that takes a reason, given one with a secret, private words and a NUL."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from memory import keeping, projects
from memory.access import create_key, revoke_one
from memory.acts import REASON_CHARACTERS_MAX, record_act, tidy_reason
from memory.edits import edit_note
from memory.errors import RefusedError
from memory.models import (
    Act,
    Claim,
    Decision,
    Feedback,
    GateRejection,
    Principal,
    RejectionDecision,
    TaskItem,
)
from memory.stages.track import track
from recall.feedback import give_feedback
from review import holds, parked, rejections, tasks
from tests.factories import at, clock, note, project, three, turns, verdict

pytestmark = pytest.mark.django_db

SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
DIRTY = f"it is\0 wrong\r\n<private>ask Bob</private>token {SECRET}\ud800  "

SAID = "The build needs the linker flag."

Verb = Callable[[Principal, str], Any]


@pytest.fixture
def alice() -> Principal:
    return three()[0]


def _retire(by: Principal, reason: str) -> None:
    keeping.retire_note(note(by, SAID).pk, by=by, now=at(days=1), reason=reason)


def _edit(by: Principal, reason: str) -> None:
    one = note(by, SAID)
    words = "The build needs the linker flag -z since March."
    edit_note(one.pk, title="Linker flag", content=words, by=by, now=at(days=1), reason=reason)


def _alias(by: Principal, reason: str) -> None:
    projects.add_alias(project().pk, "store", by=by, now=at(), reason=reason)


def _revoke(by: Principal, reason: str) -> None:
    _, key = create_key(owner=by.name, scopes=["recall"], name="k", by=by)
    revoke_one(key.pk, by=by, now=at(), reason=reason)


def _task(by: Principal, reason: str) -> None:
    turns(by, ["Please fix the flaky upload test in uploader.py.", "On it."])
    track(clock=clock(at(hours=5)))
    item = TaskItem.objects.as_pipeline().get()
    tasks.confirm(item.pk, by=by, now=at(days=1), reason=reason)


def _hold(by: Principal, reason: str) -> None:
    row = verdict(note(by, "It is port 1."), note(by, "It is port 2."), status="pending")
    holds.reject(row.pk, by=by, now=at(days=1), reason=reason)


def _dismiss(by: Principal, reason: str) -> None:
    unit = f"note:{note(by, SAID).pk}"
    Claim.objects.create(stage="dedup", unit=unit, parked_at=at())
    parked.dismiss(unit, by=by, now=at(1), reason=reason)


def _confirm(by: Principal, reason: str) -> None:
    candidate = {"title": "Kafka", "content": "The queue moves to Kafka."}
    row = GateRejection.objects.create(owner=by, reason="grounding", candidate=candidate)
    rejections.confirm(row.pk, by=by, now=at(days=1), reason=reason)


def _say(by: Principal, reason: str) -> None:
    give_feedback(note(by, SAID).pk, "wrong", principal=by, now=at(days=1), reason=reason)


VERBS: dict[str, Verb] = {
    "retire": _retire,
    "edit": _edit,
    "alias": _alias,
    "revoke": _revoke,
    "task": _task,
    "hold": _hold,
    "dismiss": _dismiss,
    "rejection": _confirm,
    "feedback": _say,
}


def kept() -> list[str]:
    """Every reason that is kept anywhere, the empty ones left out."""
    models = (Act, Decision, RejectionDecision, Feedback)
    found = [one for model in models for one in model.objects.values_list("reason", flat=True)]
    return [one for one in found if one]


@pytest.mark.parametrize("verb", VERBS)
def test_it_keeps_no_secret_and_nothing_private_in_a_reason(verb: str, alice: Principal) -> None:
    VERBS[verb](alice, DIRTY)
    reasons = kept()
    assert reasons
    for said in reasons:
        assert said.startswith("it is wrong\n") and said == said.strip()
        assert not [one for one in (SECRET, "Bob", "\0", "\r", "\ud800") if one in said]


@pytest.mark.parametrize("verb", VERBS)
def test_it_refuses_a_reason_that_is_a_statement(verb: str, alice: Principal) -> None:
    with pytest.raises(RefusedError, match="1000 characters"):
        VERBS[verb](alice, "why " * 251)
    assert not kept()


def test_it_tidies_a_reason_once_and_for_all() -> None:
    once = tidy_reason(DIRTY)
    assert tidy_reason(once) == once
    assert tidy_reason(" " * 5_000) == ""
    assert len(tidy_reason("x" * REASON_CHARACTERS_MAX)) == REASON_CHARACTERS_MAX


def test_it_tidies_what_a_verb_hands_it_as_it_came(alice: Principal) -> None:
    record_act(alice, "look", "note", now=at(), reason=DIRTY)
    assert SECRET not in Act.objects.get().reason
