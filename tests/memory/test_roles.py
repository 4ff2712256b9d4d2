"""Roles and people: who may log in, what they may do, whose rows they see, and how that ends."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from io import StringIO
from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.core.management import CommandError, call_command
from django.test import Client

from memory import people, roles
from memory.access import authenticate, create_key, derive_key, principal, revoke_one
from memory.errors import Conflict, NotFound, RefusedError
from memory.models import AccessKey, Act, Note, Principal
from tests import factories as make

pytestmark = pytest.mark.django_db

NOW = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)
PASSWORD = "a long word nobody guesses"


def run(*arguments: str, **options: Any) -> Any:
    out = StringIO()
    call_command(*arguments, stdout=out, **options)
    return out.getvalue()


def added(name: str = "carol", *given: str, **fields: Any) -> User:
    people.add(name, given or ("reader",), by=principal(), now=NOW, password=PASSWORD, **fields)
    return User.objects.get(username=name)


def opens(name: str, password: str) -> bool:
    """Whether the login page lets this person in."""
    answer = Client().post("/ui/login/", {"username": name, "password": password})
    return answer.status_code == 302


def may(user: User) -> set[str]:
    """What the user may of ours, asked anew: Django keeps permissions on the object."""
    fresh = User.objects.get(pk=user.pk)
    words = ("look", "decide", "operate", "see_all")
    return {word for word in words if fresh.has_perm(f"memory.{word}")}


# What a role may.


def test_a_role_may_what_it_says_and_nothing_else() -> None:
    roles.sync()
    for role, words in roles.ROLES.items():
        assert may(added(f"one-{role}", role)) == set(words)
    both = added("both", "reviewer", "operator")
    assert may(both) == {"look", "decide", "operate"}
    assert roles.roles_of(both) == ["reviewer", "operator"]


def test_no_role_may_see_the_rows_of_all_owners_but_a_superuser_may() -> None:
    roles.sync()
    everything = added("all", *roles.ROLES)
    assert "see_all" not in may(everything)
    assert may(added("root", superuser=True)) == {"look", "decide", "operate", "see_all"}


def test_syncing_again_mends_our_groups_and_leaves_others_alone() -> None:
    roles.sync()
    reader = Group.objects.get(name=roles.group_name("reader"))
    reader.permissions.set(Permission.objects.filter(codename__in=["look", "see_all", "add_user"]))
    other = Group.objects.create(name="Accounting")
    other.permissions.set(Permission.objects.filter(codename="add_user"))
    roles.sync()
    assert {one.codename for one in reader.permissions.all()} == {"look"}
    assert {one.codename for one in other.permissions.all()} == {"add_user"}


def test_giving_roles_keeps_groups_that_are_not_ours() -> None:
    roles.sync()
    user = added("carol", "reviewer")
    user.groups.add(Group.objects.create(name="Accounting"))
    roles.give(user, ["operator"])
    assert {group.name for group in user.groups.all()} == {"Accounting", "Argus operator"}
    roles.give(user, [])
    assert not user.is_staff and may(user) == set()


def test_an_unknown_role_is_refused_before_anything_happens() -> None:
    with pytest.raises(RefusedError, match="reader, reviewer, operator"):
        added("carol", "reader", "admin")
    assert not User.objects.filter(username="carol").exists() and not Act.objects.exists()


# Who stands for whom.


def test_a_new_person_stands_for_a_principal_of_their_own() -> None:
    roles.sync()
    user = added("carol")
    one = Principal.objects.get(name="carol")
    assert one.user == user and user.is_staff and not user.is_superuser
    act = Act.objects.get()
    assert (act.verb, act.kind, act.reference) == ("add", "person", "carol")
    assert act.principal == principal() and act.detail["roles"] == ["reader"]
    assert PASSWORD not in json.dumps(act.detail)


def test_a_name_is_no_proof_of_being_that_principal() -> None:
    create_key(owner="alice", scopes=["capture"])
    with pytest.raises(RefusedError, match="--principal alice"):
        added("alice")
    assert not User.objects.filter(username="alice").exists()
    assert added("alice", principal="alice") == Principal.objects.get(name="alice").user


def test_no_two_users_stand_for_one_principal() -> None:
    added("carol")
    with pytest.raises(RefusedError, match="another user"):
        added("carol2", principal="carol")
    with pytest.raises(NotFound):
        added("carol3", principal="nobody")
    with pytest.raises(RefusedError, match="already"):
        added("carol")
    assert [user.username for user in User.objects.all()] == ["carol"]


def test_a_team_lets_its_people_see_what_is_for_the_team() -> None:
    alice, _, _ = make.three()
    shared = make.note(alice, "The team deploys on Fridays only.", visibility="team")
    make.note(alice, "Alice keeps this to herself.")
    added("dora", teams=["pair"])
    dora = Principal.objects.get(name="dora")
    assert list(Note.objects.visible_to(dora)) == [shared]


@pytest.mark.parametrize("weak", ["12345678901", "password", "short"])
def test_a_password_that_is_easily_guessed_is_refused(weak: str) -> None:
    with pytest.raises(RefusedError, match="password|numeric|common|short"):
        people.add("carol", ["reader"], by=principal(), now=NOW, password=weak)
    assert not User.objects.exists() and not Principal.objects.filter(name="carol").exists()


# How it ends.


def test_a_removed_person_has_no_login_no_session_and_no_key() -> None:
    roles.sync()
    user = added("carol", "operator")
    key, parent = create_key(owner="carol", scopes=["capture", "recall"])
    child, _ = derive_key(parent, scopes=["recall"])
    kept, _ = create_key(owner="alice", scopes=["capture"])
    browser = Client()
    browser.force_login(user)
    assert people.remove("carol", by=principal(), now=NOW) == 2
    assert [authenticate(one, now=NOW) for one in (key, child)] == [None, None]
    assert authenticate(kept, now=NOW) is not None
    assert not opens("carol", PASSWORD)
    assert may(user) == set()
    assert browser.get("/ui/").status_code == 302, "the session stands for nobody any more"
    act = Act.objects.filter(kind="person", verb="remove").get()
    assert (act.reference, act.detail["keys"]) == ("carol", 2)


def test_whoever_comes_back_under_the_name_says_whether_it_is_the_same_person() -> None:
    added("carol")
    people.remove("carol", by=principal(), now=NOW, keep_keys=True)
    with pytest.raises(RefusedError, match="--principal carol"):
        added("carol")
    back = added("carol", "reviewer", principal="carol")
    assert back.is_active and Principal.objects.get(name="carol").user == back
    assert User.objects.count() == 1


def test_keys_stay_in_force_when_asked() -> None:
    added("carol")
    key, _ = create_key(owner="carol", scopes=["capture"])
    assert people.remove("carol", by=principal(), now=NOW, keep_keys=True) == 0
    assert authenticate(key, now=NOW) is not None


def test_the_last_superuser_stays() -> None:
    added("root", superuser=True)
    with pytest.raises(RefusedError, match="last superuser"):
        people.remove("root", by=principal(), now=NOW)
    added("second", superuser=True)
    people.remove("root", by=principal(), now=NOW)
    assert not User.objects.get(username="root").is_active


def test_roles_are_changed_and_the_change_is_told() -> None:
    roles.sync()
    user = added("carol", "reader")
    people.set_roles("carol", ["reviewer"], by=principal(), now=NOW)
    assert may(user) == {"look", "decide"}
    act = Act.objects.filter(verb="role").get()
    assert (act.detail["before"], act.detail["after"]) == (["reader"], ["reviewer"])
    with pytest.raises(RefusedError, match="remove carol"):
        people.set_roles("carol", [], by=principal(), now=NOW)
    with pytest.raises(NotFound):
        people.set_roles("nobody", ["reader"], by=principal(), now=NOW)


def test_who_leaves_a_team_sees_and_settles_nothing_of_it_any_more() -> None:
    roles.sync()
    added("carol", "reviewer", teams=["harbor", "crew"])
    carol, laptop = Principal.objects.get(name="carol"), Principal.objects.create(name="laptop")
    assert people.join("laptop", ["harbor"], by=principal(), now=NOW) == ["harbor"]
    shared = make.note(laptop, "The harbour opens at six.", visibility="team")
    seen = Note.objects.visible_to(carol)
    assert seen.filter(pk=shared.pk).exists()
    assert people.leave("carol", ["harbor"], by=principal(), now=NOW) == ["crew"]
    assert not Note.objects.visible_to(carol).filter(pk=shared.pk).exists()
    act = Act.objects.filter(verb="team", reference="carol").get()
    assert (act.kind, act.detail) == ("person", {"before": ["crew", "harbor"], "after": ["crew"]})
    assert people.join("carol", ["crew"], by=principal(), now=NOW) == ["crew"]
    assert Act.objects.filter(verb="team").count() == 2, "what changes nothing is no act"
    for name, teams in (("carol", ["harbor"]), ("nobody", ["crew"])):
        with pytest.raises(NotFound):
            people.leave(name, teams, by=principal(), now=NOW)
    with pytest.raises(RefusedError, match="at least one team"):
        people.join("carol", [" "], by=principal(), now=NOW)


# Commands.


def test_person_add_shows_a_password_once_that_opens() -> None:
    roles.sync()
    made = json.loads(run("person", "add", "carol", "--role", "reviewer,operator", "--json"))
    assert made["roles"] == ["reviewer", "operator"] and made["principal"] == "carol"
    assert opens("carol", made["password"])
    listed, told = run("person", "list"), run("person", "list", "--json")
    assert "carol" in listed and made["password"] not in listed + told
    assert Act.objects.get().door == "command"


def test_person_add_takes_a_password_from_a_pipe_and_prints_none(monkeypatch: Any) -> None:
    monkeypatch.setattr("sys.stdin", StringIO(f"{PASSWORD}\n"))
    said = run("person", "add", "carol", "--password-stdin")
    assert PASSWORD not in said and "password" not in said
    assert opens("carol", PASSWORD)


def test_person_role_and_remove_say_what_they_did() -> None:
    roles.sync()
    run("person", "add", "carol")
    assert "operator" in run("person", "role", "carol", "operator")
    create_key(owner="carol", scopes=["capture"])
    assert "carol is in crew, harbor now" in run("person", "join", "carol", "crew", "harbor")
    assert json.loads(run("person", "leave", "carol", "crew", "--json"))["teams"] == ["harbor"]
    assert "1 keys revoked" in run("person", "remove", "carol")
    assert "(removed)" in run("person", "list")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("add", "carol", "--role", "admin"), 2),
        (("add", "carol", "--role", ""), 2),
        (("add", "carol", "--principal", "nobody"), 2),
        (("remove", "nobody"), 2),
        (("role", "nobody", "reader"), 2),
        (("leave", "nobody", "crew"), 2),
        (("join", "nobody", "crew"), 2),
    ],
)
def test_person_fails_with_a_sentence_and_a_code(arguments: tuple[str, ...], code: int) -> None:
    with pytest.raises(CommandError) as told:
        run("person", *arguments)
    assert told.value.returncode == code


# Acts of keys.


def acts() -> list[tuple[str, str, str, str]]:
    rows = Act.objects.filter(kind="key").order_by("pk")
    return [(act.verb, act.reference, act.principal.name, act.door) for act in rows]


def test_every_way_to_make_or_revoke_a_key_leaves_an_act() -> None:
    made = json.loads(run("createkey", "--scope", "capture,recall", "--owner", "bob", "--json"))
    parent = AccessKey.objects.get(prefix=made["prefix"])
    _, child = derive_key(parent, scopes=["recall"])
    run("revokekey", parent.prefix)
    me = principal().name
    assert acts() == [
        ("make", parent.prefix, me, "command"),
        ("make", child.prefix, "bob", "api"),
        ("revoke", parent.prefix, me, "command"),
    ]
    derived = Act.objects.get(reference=child.prefix)
    assert derived.key == parent and derived.detail["parent"] == parent.prefix
    assert Act.objects.get(verb="revoke").detail["children"] == [child.prefix]
    said = json.dumps(list(Act.objects.values("detail", "reason")))
    assert made["key"] not in said


def test_what_argus_makes_for_itself_is_nobodys_act() -> None:
    create_key(owner="alice", scopes=["capture"])
    assert acts() == []


def test_one_revokes_ones_own_keys_and_hears_when_they_fell() -> None:
    alice, bob, _ = make.three()
    _, row = create_key(owner="alice", scopes=["capture"])
    _, child = derive_key(row, scopes=["capture"])
    with pytest.raises(NotFound):
        revoke_one(row.pk, by=bob, now=NOW)
    assert revoke_one(row.pk, by=alice, now=NOW, reason="lost laptop").revoked_at == NOW
    child.refresh_from_db()
    assert child.revoked_at == NOW
    assert Act.objects.filter(verb="revoke").get().reason == "lost laptop"
    with pytest.raises(Conflict, match="2026-05-04"):
        revoke_one(row.pk, by=alice, now=NOW)
    _, other = create_key(owner="alice", scopes=["capture"])
    revoke_one(other.pk, by=bob, now=NOW, everyones=True)
    other.refresh_from_db()
    assert other.revoked_at == NOW
