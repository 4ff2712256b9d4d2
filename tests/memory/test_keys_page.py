"""Keys on a page: one's own, made with no more than one may, shown once, revoked at once."""

from __future__ import annotations

import csv
import json
import re
from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from django.contrib.sessions.models import Session
from django.utils import timezone

from memory.access import authenticate, create_key, derive_key
from memory.models import AccessKey, Act
from tests import factories as make
from tests.web import asked, htmx, staff

pytestmark = pytest.mark.django_db


def text(answer: Any) -> str:
    body = b"".join(answer.streaming_content) if answer.streaming else answer.content
    return unescape(body.decode())


def made_key(answer: Any) -> str:
    found = re.search(r'id="new-key">(argus_[^<]+)<', text(answer))
    assert found is not None
    return found[1]


def test_an_operator_makes_a_key_that_is_shown_once_and_opens() -> None:
    alice, _, _ = make.three()
    browser = staff("operator", who=alice)
    answer = browser.post("/ui/keys/make", {"name": "tower", "scope": ["capture", "recall"]})
    assert answer.status_code == 200 and "no-store" in answer["Cache-Control"]
    key = made_key(answer)
    row = authenticate(key, now=timezone.now())
    assert row is not None and (row.principal, row.name) == (alice, "tower")
    assert row.scopes == ["capture", "recall"]
    listed = text(browser.get("/ui/keys/"))
    assert row.prefix in listed and "tower" in listed and key not in listed
    assert key not in text(browser.get("/ui/keys/?format=json"))
    for session in Session.objects.all():
        assert key not in json.dumps(session.get_decoded())
    act = Act.objects.get(kind="key")
    assert (act.verb, act.reference, act.door) == ("make", row.prefix, "page")
    assert act.principal == alice


def test_nobody_gives_what_one_has_not() -> None:
    alice, _, _ = make.three()
    operator = staff("operator", who=alice)
    assert 'value="resolve"' not in text(operator.get("/ui/keys/")).split('id="make"')[1]
    answer = operator.post("/ui/keys/make", {"scope": ["capture", "resolve"]})
    assert answer.status_code == 403 and not AccessKey.objects.exists()
    both = staff("operator", "reviewer", who=alice)
    assert both.post("/ui/keys/make", {"scope": ["resolve"]}).status_code == 200
    assert AccessKey.objects.get().scopes == ["resolve"]


@pytest.mark.parametrize("scopes", [[], ["everything"], ["capture", "everything"]])
def test_a_key_for_nothing_or_for_what_there_is_not_is_refused(scopes: list[str]) -> None:
    alice, _, _ = make.three()
    answer = staff("operator", who=alice).post("/ui/keys/make", {"scope": scopes})
    assert answer.status_code == 422 and "capture, recall, operate, resolve" in text(answer)
    assert not AccessKey.objects.exists()


def test_a_name_keeps_no_secret_and_no_markup() -> None:
    alice, _, _ = make.three()
    secret, _ = create_key(owner="alice", scopes=["capture"])
    browser = staff("operator", who=alice)
    browser.post("/ui/keys/make", {"scope": ["recall"], "name": f"<b>x</b> {secret}\0" + "y" * 500})
    row = AccessKey.objects.latest("pk")
    assert secret not in row.name and "\0" not in row.name and len(row.name) <= 200
    assert b"<b>x</b>" not in browser.get("/ui/keys/").content


def test_one_sees_ones_own_keys_and_a_superuser_all_when_asked() -> None:
    alice, bob, _ = make.three()
    _, mine = create_key(owner="alice", scopes=["capture"])
    _, bobs = create_key(owner="bob", scopes=["capture"])
    browser = staff(who=alice, superuser=True)
    assert bobs.prefix not in text(browser.get("/ui/keys/"))
    assert bobs.prefix not in text(browser.get("/ui/keys/?format=csv"))
    assert browser.post(f"/ui/keys/{bobs.pk}/revoke").status_code == 404
    browser.post("/ui/owners", {"all": "on"})
    shown = text(browser.get("/ui/keys/"))
    assert bobs.prefix in shown and mine.prefix in shown
    assert browser.post(f"/ui/keys/{bobs.pk}/revoke").status_code == 302
    bobs.refresh_from_db()
    assert bobs.revoked_at is not None
    assert Act.objects.get(verb="revoke").detail["for"] == "bob"


def test_revoking_names_the_keys_that_fall_with_it_and_ends_all_at_once() -> None:
    alice, _, _ = make.three()
    key, row = create_key(owner="alice", scopes=["capture", "recall"], name="tower")
    child_key, child = derive_key(row, scopes=["recall"], name="prompts")
    browser = htmx(staff("operator", who=alice))
    shown = text(browser.get("/ui/keys/"))
    assert f"so do the 1 it made: <code>{child.prefix}</code> prompts" in shown
    answer = browser.post(f"/ui/keys/{row.pk}/revoke", {"reason": "lost"})
    assert answer.status_code == 200 and "revoked" in text(answer)
    assert "<html" not in text(answer) and "said" in answer["HX-Trigger"]
    assert [authenticate(one, now=timezone.now()) for one in (key, child_key)] == [None, None]
    act = Act.objects.get(verb="revoke")
    assert (act.reason, act.detail["children"]) == ("lost", [child.prefix])
    again = browser.post(f"/ui/keys/{row.pk}/revoke")
    assert again.status_code == 409 and "was revoked at" in text(again)


def test_a_plain_browser_goes_back_to_the_list() -> None:
    alice, _, _ = make.three()
    _, row = create_key(owner="alice", scopes=["capture"])
    answer = staff("operator", who=alice).post(f"/ui/keys/{row.pk}/revoke", follow=True)
    assert answer.redirect_chain == [("/ui/keys/", 302)] and "Revoked." in text(answer)


@pytest.mark.parametrize("role", ["reader", "reviewer"])
def test_who_does_not_operate_looks_and_does_nothing(role: str) -> None:
    alice, _, _ = make.three()
    _, row = create_key(owner="alice", scopes=["capture"])
    browser = staff(role, who=alice)
    shown = text(browser.get("/ui/keys/"))
    assert row.prefix in shown and "Make the key" not in shown and "/revoke" not in shown
    assert browser.post("/ui/keys/make", {"scope": ["capture"]}).status_code == 404
    assert browser.post(f"/ui/keys/{row.pk}/revoke").status_code == 404
    assert staff(who=alice).get("/ui/keys/").status_code == 404
    row.refresh_from_db()
    assert row.revoked_at is None


def test_it_filters_by_name_scope_state_use_and_day() -> None:
    alice, _, _ = make.three()
    key, used = create_key(owner="alice", scopes=["capture"], name="tower")
    authenticate(key, now=timezone.now())
    _, gone = create_key(owner="alice", scopes=["recall"], name="laptop")
    AccessKey.objects.filter(pk=gone.pk).update(revoked_at=timezone.now())
    browser = staff("operator", who=alice)

    def found(query: str) -> set[str]:
        shown = text(browser.get(f"/ui/keys/?{query}&format=csv"))
        return {row["prefix"] for row in csv.DictReader(shown.splitlines())}

    assert found("") == {used.prefix, gone.prefix}
    assert found("q=tow") == found("scope=capture") == found("state=force") == {used.prefix}
    assert found("used=never") == found("state=revoked") == {gone.prefix}
    assert found(f"q={gone.prefix}") == {gone.prefix}
    tomorrow = timezone.now() + timedelta(days=1)
    assert found(f"since={tomorrow:%Y-%m-%d}") == set()
    assert "Nothing is like that" in text(browser.get("/ui/keys/?q=nothing"))


def test_an_empty_list_says_what_to_do() -> None:
    alice, _, _ = make.three()
    assert "make one below" in text(staff("operator", who=alice).get("/ui/keys/"))


def test_it_asks_as_much_for_one_key_as_for_thirty() -> None:
    alice, _, _ = make.three()
    browser = staff("operator", who=alice)
    _, row = create_key(owner="alice", scopes=["capture"])
    derive_key(row, scopes=["capture"])
    one = asked(browser, "/ui/keys/")
    for _ in range(15):
        derive_key(create_key(owner="alice", scopes=["capture"])[1], scopes=["capture"])
    assert len(asked(browser, "/ui/keys/")) == len(one)
