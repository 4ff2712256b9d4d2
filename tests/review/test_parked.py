"""How: a unit that fails until it is parked, by the real stage; three people look at it."""

from __future__ import annotations

import json
from collections.abc import Callable
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from memory.access import principal
from memory.claims import CONTENT_FAILURES_MAX
from memory.errors import NotFound
from memory.models import Claim, DistillFailure, Note, Principal
from memory.stages.distill import distill
from review import parked
from tests.factories import at, episode, note, three
from tests.openai_server import CHAT, OpenAIServer, says

pytestmark = pytest.mark.django_db

SAID = ["Which port?", "The staging server listens on port 8443 since Monday."]
REPLY = "I had rather talk about something else entirely."


@pytest.fixture
def people(configure: Callable[..., None]) -> tuple[Principal, Principal, Principal]:
    return three()


def set_aside(server: OpenAIServer, owner: Principal, **fields: Any) -> str:
    """The name of an episode that was parked."""
    one = episode(owner, SAID, **fields)
    server.script(CHAT, *[says(REPLY)] * CONTENT_FAILURES_MAX)
    for _ in range(CONTENT_FAILURES_MAX):
        distill()
    return one.unit_key


def seen(by: Principal) -> list[str]:
    return [one.unit for one in parked.waiting(by)]


def test_it_shows_why_a_unit_was_parked_and_what_the_model_said(
    server: OpenAIServer, people: tuple[Principal, Principal, Principal]
) -> None:
    unit = set_aside(server, people[0])
    one = parked.waiting(people[0])[0]
    assert (one.stage, one.unit, one.failures) == ("distill", unit, 5)
    assert one.reason and one.reply == REPLY


def test_it_shows_each_person_what_that_person_may_see(
    server: OpenAIServer, people: tuple[Principal, Principal, Principal]
) -> None:
    alice, bob, charlie = people
    mine = set_aside(server, alice)
    ours = set_aside(server, alice, session="s2", start=at(days=1), visibility="team")
    assert seen(alice) == [mine, ours] and seen(bob) == [ours] and seen(charlie) == []
    for person, unit in ((bob, mine), (charlie, ours)):
        with pytest.raises(NotFound):
            parked.release(unit, by=person, now=at(days=2))
    assert Claim.objects.exclude(parked_at=None).count() == 2


def test_it_lets_the_stage_try_a_released_unit_as_if_for_the_first_time(
    server: OpenAIServer, people: tuple[Principal, Principal, Principal]
) -> None:
    alice, _, _ = people
    unit = set_aside(server, alice)
    freed = parked.release(unit, by=alice, now=at(days=2), reason="the model was wrong")
    assert [one.stage for one in freed] == ["distill"] and seen(alice) == []
    row = Claim.objects.get()
    assert (row.content_failures, row.attempts, row.parked_reason) == (0, 0, "")
    said = DistillFailure.objects.get(kind="released")
    assert (said.owner, said.unit, said.created_at) == (alice, unit, at(days=2))
    assert said.error == "released by alice: the model was wrong"
    assert distill().episodes_distilled == 1
    assert Note.objects.as_pipeline().exists() and not Claim.objects.exists()


def test_it_frees_a_note_in_every_stage_that_parked_it(
    people: tuple[Principal, Principal, Principal],
) -> None:
    alice, _, _ = people
    one = note(alice, "The build needs the linker flag.")
    for stage in ("embed", "dedup"):
        Claim.objects.create(stage=stage, unit=f"note:{one.pk}", parked_at=at(1))
    assert len(parked.release(f"note:{one.pk}", by=alice, now=at(2))) == 2
    assert DistillFailure.objects.filter(kind="released").count() == 2


@pytest.mark.parametrize(
    "unit", ["episode:none", "note:x", "item:x", "session:x", "what", "a:b", ""]
)
def test_it_knows_no_unit_that_is_not_parked(
    people: tuple[Principal, Principal, Principal], unit: str
) -> None:
    with pytest.raises(NotFound):
        parked.release(unit, by=people[0], now=at(1))


def test_it_does_it_in_a_terminal(server: OpenAIServer, people: object) -> None:
    unit = set_aside(server, principal())

    def say(*arguments: str) -> str:
        out = StringIO()
        call_command("parked", *arguments, stdout=out)
        return out.getvalue()

    assert unit in say("list") and REPLY in say("list")
    assert json.loads(say("--json", "list"))["parked"][0]["unit"] == unit
    assert "again" in say("release", unit)
    assert say("list").strip() == "nothing is parked"
    with pytest.raises(CommandError):
        say("release", unit)
