"""How: rejected facts whose refusal is gone, in a terminal."""

from __future__ import annotations

import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from memory import rejected
from memory.access import principal
from memory.models import Act, RejectedFact
from review.shown import rejected_facts
from tests.factories import at, three

pytestmark = pytest.mark.django_db


def say(*arguments: str) -> str:
    out = StringIO()
    call_command("rejection", *arguments, stdout=out)
    return out.getvalue()


def test_it_lists_in_a_terminal_what_has_no_words_any_more_and_lifts_it() -> None:
    me, other = principal(), three()[0]
    assert say("list", "--facts").strip() == "nothing is forbidden without words"
    fact = rejected.forbid("Nothing of it is left.", owner=me, by=me, now=at(0))
    foreign = rejected.forbid("Nothing of that is left.", owner=other, by=other, now=at(0))
    assert say("list", "--facts").startswith(f"{fact.pk}  forbidden by {me}  2026-03-02")
    (told,) = json.loads(say("--json", "list", "--facts"))["facts"]
    assert (told["fact"], told["by"]) == (fact.pk, me.name)
    assert "may be learned again" in say("lift", str(fact.pk), "--reason", "it is so now")
    assert rejected.said("Nothing of it is left.", owner=me) is None
    act = Act.objects.get(kind="rejected_fact")
    assert (act.verb, act.reference, act.reason, act.door) == (
        "lift", str(fact.pk), "it is so now", "command"
    )  # fmt: skip
    with pytest.raises(CommandError, match="was lifted at"):
        say("lift", str(fact.pk))
    with pytest.raises(CommandError, match="no rejected fact"):
        say("lift", str(foreign.pk))
    assert RejectedFact.objects.visible_to(other).get().lifted_at is None


def test_it_says_in_a_terminal_that_there_are_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rejected_facts, "FACTS_MAX", 1)
    me = principal()
    first = rejected.forbid("Nothing of it is left.", owner=me, by=me, now=at(0))
    assert "there are more" not in say("list", "--facts")
    second = rejected.forbid("Nor of this.", owner=me, by=me, now=at(1))
    lines = say("list", "--facts").splitlines()
    assert [line.split()[0] for line in lines] == [str(second.pk), "there"] and first.pk


def test_it_forbids_a_statement_by_its_words(monkeypatch: pytest.MonkeyPatch) -> None:
    me, words = principal(), "The team plans to move the queue to Kafka."
    monkeypatch.setattr("sys.stdin", StringIO(f"{words}\n"))
    told = say("forbid", "--words", "-", "--reason", "we left it open")
    fact = RejectedFact.objects.visible_to(me).get()
    assert f"rejected fact {fact.pk}" in told and str(fact.pk) in say("list", "--facts")
    act = Act.objects.get(kind="rejected_fact")
    assert (act.verb, act.reference, act.reason) == ("forbid", str(fact.pk), "we left it open")
    assert rejected.said("the team plans to move the queue to kafka", owner=me)
    with pytest.raises(CommandError, match="there is nothing to forbid"):
        say("forbid", "--words", words)
    for wrong in ((), ("1", "--words", words), ("--words", ""), ("--words", "x " * 2_000)):
        with pytest.raises(CommandError) as error:
            say("forbid", *wrong)
        assert error.value.returncode == 2, wrong
    say("lift", str(fact.pk))
    assert rejected.said(words, owner=me) is None
