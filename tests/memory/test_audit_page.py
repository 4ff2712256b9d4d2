"""The audit page: one's own acts, others' on one's keys and roles, and the thing of each act."""

from __future__ import annotations

import json
from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from django.utils import timezone

from memory import people
from memory.access import create_key, principal, revoke_one
from memory.acts import record_act, through
from memory.models import Act
from memory.shown.acts import PLACES, told
from tests import factories as make
from tests.web import asked, staff

pytestmark = pytest.mark.django_db


def text(answer: Any) -> str:
    body = b"".join(answer.streaming_content) if answer.streaming else answer.content
    return unescape(body.decode())


def act(by: Any, verb: str = "approve", kind: str = "verdict", ref: Any = 7, **more: Any) -> Act:
    record_act(by, verb, kind, ref, now=more.pop("now", timezone.now()), **more)
    return Act.objects.latest("pk")


def test_a_key_that_was_made_on_a_page_is_on_the_audit() -> None:
    alice, _, _ = make.three()
    browser = staff("operator", who=alice)
    browser.post("/ui/keys/make", {"scope": ["capture"], "name": "tower"})
    row = Act.objects.get(kind="key")
    shown = text(browser.get("/ui/audit/"))
    assert f'/ui/keys/?q={row.reference}"' in shown and "make" in shown and "alice" in shown


def test_one_sees_ones_own_acts_and_what_others_did_to_ones_keys_and_roles() -> None:
    alice, bob, charlie = make.three()
    act(alice, reason="alice saw that it is old")
    act(bob, reason="bob saw that it is old")
    _, key = create_key(owner="alice", scopes=["capture"])
    _, bobs = create_key(owner="bob", scopes=["capture"])
    for one in (key, bobs):
        revoke_one(one.pk, by=charlie, now=timezone.now(), everyones=True)
    record_act(charlie, "role", "person", "alice", now=timezone.now(), detail={"user": "alice"})
    shown = text(staff("reader", who=alice).get("/ui/audit/"))
    assert "alice saw" in shown and "bob saw" not in shown
    assert key.prefix in shown and bobs.prefix not in shown
    assert shown.count("charlie") == 2
    exported = text(staff("reader", who=alice).get("/ui/audit/?format=csv"))
    assert "bob saw" not in exported


def test_a_superuser_who_asks_sees_everybodys_and_that_is_an_act_as_well() -> None:
    alice, bob, _ = make.three()
    act(bob, reason="bob saw that it is old")
    browser = staff(who=alice, superuser=True)
    assert "bob saw" not in text(browser.get("/ui/audit/"))
    browser.post("/ui/owners", {"all": "on"})
    shown = text(browser.get("/ui/audit/"))
    assert "bob saw" in shown and "see_all" in shown
    assert "bob saw" not in text(browser.get("/ui/audit/?who=alice"))
    assert "bob saw" in text(browser.get("/ui/audit/?who=bob"))


def test_a_person_that_was_added_is_told_with_who_did_it_and_how() -> None:
    me = principal()
    with through("command"):
        people.add("carol", ["reader"], by=me, now=timezone.now(), password="a long odd word")
    shown = text(staff("reader", who=me).get("/ui/audit/"))
    assert "person" in shown and "carol" in shown and "command" in shown
    assert "a long odd word" not in shown


def test_it_filters_by_verb_kind_door_reference_reason_and_day() -> None:
    alice, _, _ = make.three()
    old = timezone.now() - timedelta(days=3)
    first = act(alice, reason="it is stale", ref=41, now=old)
    with through("command"):
        second = act(alice, "retire", "note", "0f0f")
    browser = staff("reader", who=alice)

    def found(query: str) -> set[int]:
        return {
            one["id"] for one in json.loads(text(browser.get(f"/ui/audit/?{query}&format=json")))
        }

    assert found("") == {first.pk, second.pk}
    assert found("verb=app") == found("kind=verdict") == found("q=41") == {first.pk}
    assert found("q=stale") == found("door=api") | {first.pk} == {first.pk}
    assert found("door=command") == found("q=0f0f") == {second.pk}
    assert found(f"until={old:%Y-%m-%d}") == {first.pk}
    assert found(f"since={timezone.now():%Y-%m-%d}") == {second.pk}
    assert found("kind=nonsense") == set()


def test_every_kind_of_thing_has_a_place_or_none_and_odd_ids_break_nothing() -> None:
    alice, _, _ = make.three()
    note = "6f0b7f9e-6d0c-5b0f-9b0e-0a2d3c4e5f60"
    good = {"note": note, "feed": note, "key": "ab12", "unit": "item:7", "owners": "/ui/"}
    links = {kind: told(act(alice, kind=kind, ref=good.get(kind, 7))).link for kind in PLACES}
    assert links["verdict"] == "/ui/review/7/" and links["note"] == f"/ui/notes/{note}/"
    assert links["unit"] == "/ui/parked/?q=item%3A7" and links["owners"] == ""
    assert links["rejected_fact"] == "/ui/rejections/?shelf=forbid"
    for odd in ("", "x", "-1", "7; drop", '"><script>', "9" * 40):
        for kind in [*PLACES, "odd"]:
            link = told(act(alice, kind=kind, ref=odd)).link
            assert "<" not in link and '"' not in link


def test_hostile_words_are_shown_as_words() -> None:
    alice, _, _ = make.three()
    odd = '"><img src=x onerror=alert(1)>'
    act(alice, odd, odd, odd, reason=odd, detail={odd: [odd], "counts": {odd: odd}})
    shown = staff("reader", who=alice).get("/ui/audit/").content.decode()
    assert "<img" not in shown and "&lt;img src=x" in shown


def test_it_pages_by_keys_and_counts_to_a_bound() -> None:
    alice, _, _ = make.three()
    made = [act(alice, ref=number) for number in range(60)]
    browser = staff("reader", who=alice)
    first = browser.get("/ui/audit/")
    assert first.context["listed"].total == "60"
    assert [row.pk for row in first.context["listed"].rows] == [one.pk for one in made[:29:-1]]
    second = browser.get(f"/ui/audit/{first.context['listed'].older}")
    assert [row.pk for row in second.context["listed"].rows] == [one.pk for one in made[29::-1]]


def test_an_empty_audit_says_what_will_come_here_and_no_role_finds_none() -> None:
    alice, _, _ = make.three()
    assert "Nobody did anything yet" in text(staff("reader", who=alice).get("/ui/audit/"))
    assert staff(who=alice).get("/ui/audit/").status_code == 404


def test_it_asks_as_much_for_one_act_as_for_thirty() -> None:
    alice, _, _ = make.three()
    browser = staff("reader", who=alice)
    act(alice)
    one = asked(browser, "/ui/audit/")
    _, key = create_key(owner="alice", scopes=["capture"])
    for number in range(30):
        with through("api", key):
            act(alice, ref=number)
    assert len(asked(browser, "/ui/audit/")) == len(one)
