"""Keys: made once, shown once, told by digest, revoked at once."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from memory.access import (
    CHILDREN_MAX,
    LAST_USED_MINUTES,
    authenticate,
    create_key,
    derive_key,
    digest,
    principal,
    revoke_key,
)
from memory.errors import Forbidden, NotFound, RefusedError
from memory.models import AccessKey, Principal
from memory.text.secrets import redact
from tests.memory.books import count
from tests.memory.door import problem

pytestmark = pytest.mark.django_db

NOW = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)


def run(*arguments: str, **options: Any) -> Any:
    out = StringIO()
    call_command(*arguments, stdout=out, **options)
    return out.getvalue()


def test_it_stores_the_digest_and_never_the_key() -> None:
    key, row = create_key(owner="alice", scopes=["recall", "capture"])
    assert row.digest == digest(key) and len(row.digest) == 64
    assert count("memory_accesskey", f"position('{key[15:]}' IN memory_accesskey::text) > 0") == 0
    assert row.scopes == ["capture", "recall"], "in the order of the scopes, whatever was asked"
    assert key.split("_")[1] == row.prefix


def test_no_two_keys_are_alike() -> None:
    made = [create_key(owner="alice", scopes=["capture"]) for _ in range(20)]
    assert len({key for key, _ in made}) == len({row.prefix for _, row in made}) == 20


def test_a_key_is_a_secret_to_our_own_rules() -> None:
    for _ in range(20):
        key, _row = create_key(owner="alice", scopes=["capture"])
        assert key not in redact(f"export ARGUS_KEY={key}\n").text
        assert redact(f"my key is {key}.").counts == {"argus_key": 1}


def test_a_key_stands_for_one_principal() -> None:
    keys = {name: create_key(owner=name, scopes=["capture"])[0] for name in ("alice", "alice2")}
    for name, key in keys.items():
        row = authenticate(key, now=NOW)
        assert row is not None and row.principal == principal(name)
    assert Principal.objects.count() == 2


@pytest.mark.parametrize(
    "changed", [str.upper, str.strip, lambda key: key[:-1], lambda key: key + "x"]
)
def test_only_the_whole_key_opens(changed: Any) -> None:
    key, _ = create_key(owner="alice", scopes=["capture"])
    found = authenticate(changed(key), now=NOW)
    assert (found is not None) == (changed(key) == key)


@pytest.mark.parametrize("odd", ["", "argus__", "\x00", "\ud83d", "ü" * 500, "x" * 100_000])
def test_it_answers_nothing_for_what_is_no_key(odd: str) -> None:
    create_key(owner="alice", scopes=["capture"])
    assert authenticate(odd, now=NOW) is None


def test_the_digest_is_no_key() -> None:
    _, row = create_key(owner="alice", scopes=["capture"])
    assert authenticate(row.digest, now=NOW) is None
    assert authenticate(row.prefix, now=NOW) is None


def test_it_notes_the_last_use_and_not_every_use() -> None:
    key, row = create_key(owner="alice", scopes=["capture"])

    def used(after_minutes: float) -> datetime | None:
        authenticate(key, now=NOW + timedelta(minutes=after_minutes))
        row.refresh_from_db()
        return row.last_used_at

    assert row.last_used_at is None
    assert used(0) == NOW
    assert used(LAST_USED_MINUTES) == NOW
    assert used(LAST_USED_MINUTES + 1) == NOW + timedelta(minutes=LAST_USED_MINUTES + 1)


def test_a_revoked_key_opens_nothing_and_keeps_the_moment() -> None:
    key, row = create_key(owner="alice", scopes=["capture"])
    other, _ = create_key(owner="alice", scopes=["capture"])
    assert revoke_key(row.prefix, now=NOW).revoked_at == NOW
    assert authenticate(key, now=NOW) is None
    assert authenticate(other, now=NOW) is not None
    with pytest.raises(NotFound):
        revoke_key(row.prefix, now=NOW + timedelta(days=1))
    row.refresh_from_db()
    assert row.revoked_at == NOW
    with pytest.raises(NotFound):
        revoke_key("", now=NOW)


@pytest.mark.parametrize("scopes", [[], ["capture", "everything"], ["Capture"], [""]])
def test_it_refuses_a_key_for_nothing_or_for_what_there_is_not(scopes: list[str]) -> None:
    with pytest.raises(RefusedError, match="capture, recall, operate, resolve"):
        create_key(owner="alice", scopes=scopes)
    assert not AccessKey.objects.exists()


# Commands.


def test_createkey_shows_the_key_once_and_keys_never() -> None:
    made = json.loads(run("createkey", "--scope", "capture, recall", "--owner", "bob", "--json"))
    assert made["owner"] == "bob" and made["scopes"] == ["capture", "recall"]
    row = authenticate(made["key"], now=NOW)
    assert row is not None and row.prefix == made["prefix"]
    listed, told = run("keys"), run("keys", "--json")
    assert made["prefix"] in listed and made["prefix"] in told
    assert made["key"] not in listed + told and row.digest not in listed + told
    assert "in force" in listed


def test_createkey_makes_a_key_of_whom_commands_act_for(settings: Any) -> None:
    settings.ARGUS = settings.ARGUS.model_copy(update={"principal": "carol"})
    assert json.loads(run("createkey", "--scope", "operate", "--json"))["owner"] == "carol"


def test_createkey_prints_the_key_on_a_line_of_its_own() -> None:
    line = run("createkey", "--scope", "capture", "--owner", "bob").splitlines()[0]
    assert authenticate(line, now=NOW) is not None


@pytest.mark.parametrize("scope", ["everything", "", ","])
def test_createkey_calls_a_wrong_scope_a_wrong_argument(scope: str) -> None:
    with pytest.raises(CommandError, match="allowed|needs") as told:
        run("createkey", "--scope", scope)
    assert told.value.returncode == 2


def test_revokekey_revokes_by_prefix_and_fails_for_an_unknown_one() -> None:
    key, row = create_key(owner="alice", scopes=["capture"])
    assert row.prefix in run("revokekey", row.prefix)
    assert authenticate(key, now=NOW) is None
    assert "revoked" in run("keys")
    with pytest.raises(CommandError) as told:
        run("revokekey", row.prefix)
    assert told.value.returncode == 2
    assert key not in str(told.value)


def test_keys_says_when_there_is_none() -> None:
    assert "no keys" in run("keys")
    assert json.loads(run("keys", "--json")) == {"keys": []}


# Keys that keys make.


def ask(key: str, method: str = "post", **body: Any) -> Any:
    headers = {"Authorization": f"Bearer {key}"}
    return getattr(Client(), method)(
        "/keys", json.dumps(body), content_type="application/json", headers=headers
    )


def test_a_key_makes_one_that_may_less_and_stands_for_the_same_person() -> None:
    key, parent = create_key(owner="alice", scopes=["capture", "recall"])
    answer = ask(key, scopes=["recall"], name="a machine's prompts")
    assert answer.status_code == 201 and "no-store" in answer["Cache-Control"]
    made = answer.json()
    assert made["scopes"] == ["recall"]
    row = authenticate(made["key"], now=NOW)
    assert row is not None and (row.prefix, row.name) == (made["prefix"], "a machine's prompts")
    assert (row.principal, row.parent) == (parent.principal, parent)
    assert f"made by {parent.prefix}" in run("keys")
    told = {
        one["prefix"]: one["parent__prefix"] for one in json.loads(run("keys", "--json"))["keys"]
    }
    assert told == {parent.prefix: None, row.prefix: parent.prefix}


def test_a_key_is_told_what_it_may() -> None:
    key, row = create_key(owner="alice", scopes=["capture", "recall"], name="laptop")
    told = Client().get("/keys", headers={"Authorization": f"Bearer {key}"})
    assert told.status_code == 200
    assert told.json() == {
        "prefix": row.prefix,
        "name": "laptop",
        "scopes": ["capture", "recall"],
    }


def test_a_key_keeps_no_secret_in_its_name() -> None:
    key, _ = create_key(owner="alice", scopes=["recall"])
    assert ask(key, scopes=["recall"], name=f"for {key}\x00").status_code == 201
    name = AccessKey.objects.exclude(parent=None).get().name
    assert key not in name and "\x00" not in name


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"scopes": ["capture", "operate"]}, 403, "forbidden"),
        ({"scopes": ["operate"]}, 403, "forbidden"),
        ({"scopes": ["everything"]}, 422, "refused"),
        ({"scopes": []}, 422, "refused"),
        ({"scopes": "capture"}, 422, "invalid"),
        ({"name": "x"}, 422, "invalid"),
        ({"scopes": ["capture"], "name": "x" * 201}, 422, "invalid"),
    ],
)
def test_no_key_makes_one_that_may_more_or_nothing(body: Any, status: int, code: str) -> None:
    key, _ = create_key(owner="alice", scopes=["capture", "recall"])
    problem(ask(key, **body), status, code)
    assert AccessKey.objects.count() == 1


def test_a_key_that_a_key_made_makes_none() -> None:
    key, _ = create_key(owner="alice", scopes=["capture", "recall"])
    child = ask(key, scopes=["recall"]).json()["key"]
    problem(ask(child, scopes=["recall"]), 403, "forbidden")


def test_nobody_makes_or_revokes_a_key_without_one() -> None:
    problem(Client().get("/keys"), 401, "not_authenticated")
    for method in ("post", "delete"):
        problem(getattr(Client(), method)("/keys"), 401, "not_authenticated")
        problem(ask("argus_0000_nothing", method), 401, "authentication_failed")


def test_a_key_makes_so_many_and_no_more_until_some_are_revoked() -> None:
    key, parent = create_key(owner="alice", scopes=["recall"])
    made = [derive_key(parent, scopes=["recall"])[0] for _ in range(CHILDREN_MAX)]
    problem(ask(key, scopes=["recall"]), 422, "refused")
    assert ask(made[0], "delete").status_code == 204
    assert ask(key, scopes=["recall"]).status_code == 201


def test_a_key_revokes_itself_and_no_other() -> None:
    key, parent = create_key(owner="alice", scopes=["capture", "recall"])
    child, sister = (ask(key, scopes=["recall"]).json()["key"] for _ in range(2))
    answer = ask(child, "delete")
    assert (answer.status_code, answer.content) == (204, b"")
    assert authenticate(child, now=NOW) is None
    problem(ask(child, "delete"), 401, "authentication_failed")
    assert authenticate(key, now=NOW) == parent and authenticate(sister, now=NOW)


@pytest.mark.parametrize("by", ["door", "command"])
def test_a_key_falls_with_the_one_that_made_it(by: str) -> None:
    key, parent = create_key(owner="alice", scopes=["capture", "recall"])
    other, _ = create_key(owner="alice", scopes=["recall"])
    child = ask(key, scopes=["recall"]).json()["key"]
    if by == "door":
        assert ask(key, "delete").status_code == 204
    else:
        run("revokekey", parent.prefix)
    assert authenticate(key, now=NOW) is authenticate(child, now=NOW) is None
    assert AccessKey.objects.filter(revoked_at=None).count() == 1
    assert authenticate(other, now=NOW) is not None


def test_a_key_whose_maker_fell_opens_nothing_even_when_its_own_row_says_nothing() -> None:
    key, parent = create_key(owner="alice", scopes=["recall"])
    child, _ = derive_key(parent, scopes=["recall"])
    AccessKey.objects.filter(pk=parent.pk).update(revoked_at=NOW)
    assert authenticate(child, now=NOW) is None
    with pytest.raises(Forbidden, match="revoked"):
        derive_key(parent, scopes=["recall"])
