"""How: a unit that fails until it is parked, by the real stage; three people look at it."""

from __future__ import annotations

import json
import uuid
import zlib
from collections.abc import Callable
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from memory import units
from memory.access import principal
from memory.claims import CONTENT_FAILURES_MAX
from memory.errors import Conflict, NotFound
from memory.models import Act, Claim, DistillFailure, Note, Principal, Session
from memory.stages.distill import distill
from review import parked
from review.shown import parked as shown
from tests.factories import at, document, episode, note, three
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
    (one,) = shown.described(parked.waiting(people[0]))
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


def many(owner: Principal, stage: str, reason: str, count: int) -> list[Claim]:
    """So many notes of the owner, parked in a stage for a reason."""
    one = note(owner, f"Parked by {stage} for {reason}.", embedded=False)
    alike = [copy(one, number) for number in range(count)]
    return Claim.objects.bulk_create(
        Claim(
            stage=stage,
            unit=f"note:{row.pk}",
            parked_at=at(minutes=number),
            parked_reason=reason,
            content_failures=5,
        )
        for number, row in enumerate(alike)
    )


def copy(one: Note, number: int) -> Note:
    row: Note = Note.objects.as_pipeline().get(pk=one.pk)
    row.pk = uuid.uuid4()
    row.unit_key = f"copy:{row.pk}"
    row.title = f"{one.title} {number}"
    row.save(force_insert=True)
    return row


def test_it_tells_the_second_of_two_who_set_a_unit_free(
    people: tuple[Principal, Principal, Principal],
) -> None:
    alice, bob, charlie = people
    claim = many(alice, "embed", "bad vector", 1)[0]
    parked.release(claim.pk, by=alice, now=at(days=1), reason="mended")
    for verb in (parked.release, parked.dismiss, parked.bring_back):
        with pytest.raises(Conflict, match="released by alice at 2026-03-03 09:00:00Z"):
            verb(claim.pk, by=alice, now=at(days=2))
    for person in (bob, charlie):
        with pytest.raises(NotFound):
            parked.release(claim.pk, by=person, now=at(days=2))
    act = Act.objects.get()
    assert (act.verb, act.kind, act.reference, act.reason) == (
        "release", "unit", claim.unit, "mended",
    )  # fmt: skip


def test_it_frees_one_claim_by_its_id_and_a_unit_by_its_name(
    people: tuple[Principal, Principal, Principal],
) -> None:
    alice, *_ = people
    (embed,) = many(alice, "embed", "bad vector", 1)
    Claim.objects.create(stage="dedup", unit=embed.unit, parked_at=at(1))
    assert [one.stage for one in parked.release(embed.pk, by=alice, now=at(2))] == ["embed"]
    assert [one.stage for one in parked.waiting(alice)] == ["dedup"]


def test_it_dismisses_and_brings_back(people: tuple[Principal, Principal, Principal]) -> None:
    alice, *_ = people
    (claim,) = many(alice, "embed", "bad vector", 1)
    parked.dismiss(claim.pk, by=alice, now=at(days=1), reason="an image")
    assert parked.waiting(alice) == []
    assert [one.id for one in parked.waiting(alice, dismissed=True)] == [claim.pk]
    claim.refresh_from_db()
    assert claim.parked_at is not None and claim.dismissed_at == at(days=1)
    with pytest.raises(Conflict, match="dismissed by alice at 2026-03-03"):
        parked.dismiss(claim.unit, by=alice, now=at(days=2))
    parked.bring_back(claim.unit, by=alice, now=at(days=2))
    with pytest.raises(Conflict, match="not dismissed"):
        parked.bring_back(claim.pk, by=alice, now=at(days=2))
    assert list(Act.objects.order_by("pk").values_list("verb", flat=True)) == [
        "dismiss", "bring back",
    ]  # fmt: skip
    parked.dismiss(claim.pk, by=alice, now=at(days=3))
    parked.release(claim.pk, by=alice, now=at(days=3))
    assert Claim.objects.filter(pk=claim.pk, parked_at=None, dismissed_at=None).exists()


def test_it_frees_all_of_a_kind_in_batches_up_to_a_bound(
    people: tuple[Principal, Principal, Principal], monkeypatch: pytest.MonkeyPatch
) -> None:
    alice, bob, _ = people
    wanted = many(alice, "embed", "bad vector", 7)
    other = many(alice, "embed", "no answer", 2)
    many(alice, "dedup", "bad vector", 1)
    many(bob, "embed", "bad vector", 2)
    parked.dismiss(wanted[0].pk, by=alice, now=at(days=1))
    monkeypatch.setattr(parked, "RELEASED_AT_ONCE", 2)
    monkeypatch.setattr(parked, "RELEASED_MAX", 5)
    assert parked.release_all(wanted[1].pk, by=alice, now=at(days=1)) == parked.Freed(5, 1)
    assert parked.release_all(wanted[6].pk, by=alice, now=at(days=1)) == parked.Freed(1, 0)
    assert parked.release_all(
        other[0].pk, by=alice, now=at(days=1), whole_stage=True
    ) == parked.Freed(2, 0)
    left = Claim.objects.exclude(parked_at=None)
    assert sorted(left.values_list("stage", flat=True)) == ["dedup", "embed", "embed", "embed"]
    assert DistillFailure.objects.filter(kind="released", owner=alice).count() == 8
    assert Act.objects.filter(verb="release", kind="unit").count() == 8


def test_it_sees_the_same_units_in_the_database_as_by_their_names(
    server: OpenAIServer, people: tuple[Principal, Principal, Principal]
) -> None:
    alice, bob, charlie = people
    ours = episode(alice, SAID, visibility="team")
    item = document(alice, "A document.", visibility="common")
    mine = note(alice, "The build needs the linker flag.")
    session = Session.objects.filter(owner=alice).first()
    assert session is not None
    named = [ours.unit_key, f"item:{item.pk}", f"note:{mine.pk}", f"session:{session.pk}"]
    odd = ["", "item:", "item:x", "note:x", "item:99999999999999999999", "what:1", "episode:none"]
    for unit in (*named, *odd):
        Claim.objects.create(stage="s", unit=unit, parked_at=at(1))
    for person, count in ((alice, 4), (bob, 2), (charlie, 1)):
        found = set(parked.rows(person).values_list("unit", flat=True))
        assert found == units.visible([*named, *odd], person) and len(found) == count
    assert parked.rows(None).count() == 11
    assert units.owners([*named, *odd]) == dict.fromkeys(named, alice.pk)
    sources = {one.unit: one.source for one in shown.described(parked.rows(None))}
    assert {unit: found and found.kind for unit, found in sources.items()} == {
        **{unit: unit.partition(":")[0] for unit in named}, **dict.fromkeys(odd)
    }  # fmt: skip


@pytest.mark.parametrize(
    ("said", "characters", "head"),
    [("", 4, ("", True)), ("abcd", 4, ("abcd", True)), ("abcde", 4, ("abcd", False)),
     ("ää" * 9, 4, ("ääää", False)), ("x" * 9_000_000, 400, ("x" * 400, False))],
)  # fmt: skip
def test_it_unpacks_no_more_of_a_reply_than_it_shows(
    said: str, characters: int, head: tuple[str, bool]
) -> None:
    packed = zlib.compress(said.encode()) if said else b""
    assert shown.unpack(packed, characters) == head


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
    assert "stays parked" in say("dismiss", unit)
    assert say("list").strip() == "nothing is parked" and unit in say("list", "--dismissed")
    assert "on the list" in say("bring-back", unit)
    assert "again" in say("release", unit)
    assert say("list").strip() == "nothing is parked"
    with pytest.raises(CommandError):
        say("release", unit)
