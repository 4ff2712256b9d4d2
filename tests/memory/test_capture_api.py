"""POST /capture and its neighbours, as a client on the other side of HTTP sees them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from memory.access import SCOPES, create_key, revoke_key
from memory.models import AccessKey, CaptureReceipt, Session
from memory.stages.capture import BATCH_ITEMS_MAX
from tests.memory.door import TURN, problem, send
from tests.memory.posting import stored

pytestmark = pytest.mark.django_db


@pytest.fixture
def key() -> str:
    return create_key(owner="alice", scopes=["capture"])[0]


# One item.


def test_it_answers_201_for_a_new_item_and_200_for_a_known_one(key: str) -> None:
    first, again = send(key, TURN), send(key, TURN)
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json()["id"] == again.json()["id"] == stored()[0].pk
    assert (first.json()["duplicate"], again.json()["duplicate"]) == (False, True)
    assert first["Content-Type"] == "application/json"


def test_it_answers_200_with_the_reason_for_a_refused_item(key: str) -> None:
    answer = send(key, TURN | {"role": "assistant", "body": "API Error: 529 overloaded_error"})
    assert answer.status_code == 200
    assert (answer.json()["id"], answer.json()["refused"]) == (None, "poison")
    assert CaptureReceipt.objects.as_pipeline().get().pk == answer.json()["receipt"]


@pytest.mark.parametrize(
    ("wrong", "pointer"),
    [
        ({"body": None}, "/body"),
        ({"body": ["no text"]}, "/body"),
        ({"source": 5}, "/source"),
        ({"kind": "thought"}, "/kind"),
        ({"visibility": "everybody"}, "/visibility"),
        ({"confidentiality": "\ud83d"}, "/confidentiality"),
        ({"metadata": "host=a"}, "/metadata"),
        ({"original_timestamp": "yesterday"}, "/original_timestamp"),
        ({"original_timestamp": "2026-02-30T00:00:00Z"}, "/original_timestamp"),
        ({"original_timestamp": "2026-06-30T23:59:60Z"}, "/original_timestamp"),
        ({"original_timestamp": 10**30}, "/original_timestamp"),
    ],
)
def test_it_answers_422_with_a_pointer_and_leaves_a_receipt(
    key: str, wrong: dict[str, Any], pointer: str
) -> None:
    body = problem(send(key, TURN | wrong), 422, "invalid")
    assert [one["pointer"] for one in body["errors"]] == [pointer]
    assert not stored()
    receipt = CaptureReceipt.objects.as_pipeline().get()
    assert (receipt.seen, receipt.refused) == (1, {"invalid": 1})
    assert pointer in receipt.refusals[0]["detail"]


@pytest.mark.parametrize("data", [[], "text", 7, None, True, [TURN], {}])
def test_it_answers_422_for_json_that_is_no_item(key: str, data: Any) -> None:
    problem(send(key, data), 422, "invalid")


def test_it_answers_422_for_an_item_that_cannot_be_kept(key: str) -> None:
    body = problem(send(key, TURN | {"session": "s" * 5000}), 422, "refused")
    assert "session" in body["detail"]
    assert CaptureReceipt.objects.as_pipeline().get().refused == {"invalid": 1}


def test_it_does_not_repeat_what_it_was_sent(key: str) -> None:
    answer = send(key, TURN | {"kind": "canary-kind", "body": ["canary-body"]})
    assert "canary" not in answer.content.decode()


# A batch.


def test_it_judges_each_item_of_a_batch_alone(key: str) -> None:
    items = [TURN, {"body": 5}, "no item", TURN, TURN | {"body": ""}, TURN | {"body": "Another."}]
    answer = send(key, {"items": items})
    body = answer.json()
    assert answer.status_code == 200
    assert (body["stored"], body["duplicates"]) == (2, 1)
    assert body["refused"] == {"invalid": 2, "empty": 1}
    told = [one.get("refused") or one["duplicate"] for one in body["items"]]
    assert told == [False, "invalid", "invalid", True, "empty", False]
    assert body["items"][0]["id"] == body["items"][3]["id"]


def test_it_takes_five_hundred_items_and_not_one_more(key: str) -> None:
    items = [TURN | {"body": f"Turn {number}."} for number in range(BATCH_ITEMS_MAX + 1)]
    problem(send(key, {"items": items}), 413, "too_large")
    assert not stored() and not CaptureReceipt.objects.as_pipeline().exists()
    answer = send(key, {"items": items[:-1]})
    assert (answer.status_code, answer.json()["stored"]) == (200, BATCH_ITEMS_MAX)


def test_it_keeps_what_the_client_counted_and_the_end_of_the_session(key: str) -> None:
    envelope = {
        "items": [TURN],
        "range": {"seen": 7, "filtered": 6, "posted": 1},
        "session_end": {"session": "s1", "reason": "clear"},
        "of a later version": 1,
    }
    assert send(key, envelope).status_code == 200
    receipt = CaptureReceipt.objects.as_pipeline().get()
    assert receipt.client_range == envelope["range"]
    assert receipt.session_end == envelope["session_end"]
    assert receipt.key == AccessKey.objects.get()
    assert Session.objects.get().ended_reason == "clear"


@pytest.mark.parametrize(
    "envelope",
    [
        {"items": "many"},
        {"items": None},
        {"items": [TURN], "session_end": "s1"},
        {"items": [TURN], "range": {"seen": "all"}},
        {"items": [TURN], "range": [1]},
    ],
)
def test_it_answers_422_for_an_envelope_that_is_none(key: str, envelope: Any) -> None:
    problem(send(key, envelope), 422, "invalid")
    assert not stored()


@pytest.mark.parametrize("alone", [True, False])
def test_it_ignores_what_a_client_has_no_say_in(key: str, alone: bool) -> None:
    said: dict[str, Any] = {"owner": "bob", "owner_id": 999, "id": 12345, "confidence": 1.0}
    said |= {"captured_at": "2001-01-01", "deleted_at": "2001-01-01", "valid_to": "2001-01-01"}
    said |= {"dedup_key": "x", "near_duplicate_of": 1, "flags": {"a": 1}}
    send(key, TURN | said if alone else {"items": [TURN | said], **said})
    row = stored()[0]
    assert (row.owner.name, row.flags, row.near_duplicate_of_id) == ("alice", {}, None)
    assert row.pk != 12345 and row.dedup_key != "x"
    assert timezone.now() - row.captured_at < timedelta(minutes=1)


# Who may.


@pytest.mark.parametrize("name", ["Authorization", "apikey", "X-API-Key"])
def test_it_takes_a_key_in_any_of_three_headers(key: str, name: str) -> None:
    value = f"Bearer {key}" if name == "Authorization" else key
    assert send(None, TURN, headers={name: value}).status_code == 201


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": "Bearer "},
        {"Authorization": "Bearer argus_00000000_unknown"},
        {"Authorization": "Basic YWxpY2U6cGFzcw=="},
        {"Authorization": "Bearer sch\u00f6n"},
        {"X-API-Key": "' OR 1=1 --"},
    ],
)
def test_it_answers_401_and_how_to_authenticate(headers: dict[str, str]) -> None:
    answer = send(None, TURN, headers=headers)
    assert answer.status_code == 401
    assert problem(answer, 401, answer.json()["code"])["code"] in (
        "not_authenticated",
        "authentication_failed",
    )
    assert answer["WWW-Authenticate"] == 'Bearer realm="argus"'


def test_it_looks_at_the_key_before_it_reads_the_body() -> None:
    assert send(None, b"not json").status_code == 401


def test_it_forgets_a_key_the_moment_it_is_revoked(key: str) -> None:
    client = Client()
    assert send(key, TURN, client).status_code == 201
    revoke_key(AccessKey.objects.get().prefix, now=timezone.now())
    assert send(key, TURN, client).status_code == 401


@pytest.mark.parametrize("name", ["key", "api_key", "token", "anything"])
def test_it_refuses_a_key_in_the_address_even_with_a_good_header(key: str, name: str) -> None:
    for given in (None, key):
        answer = send(given, TURN, path=f"/capture?{name}={key}")
        assert key not in answer.content.decode()
        problem(answer, 400, "parse_error")
    assert not stored()


def test_it_takes_no_login_of_a_browser_for_a_key(django_user_model: Any) -> None:
    client = Client()
    client.force_login(django_user_model.objects.create_superuser("root", password="x"))
    assert send(None, TURN, client).status_code == 401


PATHS = {"/capture": "capture", "/segment": "operate", "/process": "operate"}


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("scope", SCOPES)
def test_it_opens_each_door_to_its_own_scope_only(path: str, scope: str) -> None:
    given, _ = create_key(owner="alice", scopes=[scope])
    answer = send(given, TURN if path == "/capture" else {}, path=path)
    if scope == PATHS[path]:
        assert answer.status_code in (200, 201)
    else:
        assert PATHS[path] in problem(answer, 403, "permission_denied")["detail"]
        assert not stored()


def test_it_writes_for_whom_the_key_stands() -> None:
    for name in ("alice", "bob"):
        given, _ = create_key(owner=name, scopes=["capture"])
        assert send(given, TURN).status_code == 201
    assert [row.owner.name for row in stored()] == ["alice", "bob"]
    assert [row.owner.name for row in CaptureReceipt.objects.as_pipeline().order_by("pk")] == [
        "alice",
        "bob",
    ]


# When something we need is away.


def test_it_answers_503_and_when_to_ask_again_without_a_database(tmp_path: Path) -> None:
    program = """
        import django, json
        django.setup()
        from django.test import Client
        client = Client(SERVER_NAME="localhost", headers={"Authorization": "Bearer argus_0_x"})
        answer = client.post("/capture", b"{}", content_type="application/json")
        print(json.dumps([answer.status_code, dict(answer.headers), answer.json()]))
    """
    environment = {
        **os.environ,
        "ARGUS_HOME": str(tmp_path),
        "ARGUS_DATABASE_URL": "postgresql://nobody:hunter2@127.0.0.1:9/nothing",
        "DJANGO_SETTINGS_MODULE": "argus.settings",
    }
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        env=environment, capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    status, headers, body = json.loads(done.stdout)
    assert (status, body["status"], body["code"]) == (503, 503, "database_away")
    assert headers["Content-Type"] == "application/problem+json"
    assert int(headers["Retry-After"]) > 0
    assert "hunter2" not in done.stdout + done.stderr and "127.0.0.1" not in body["detail"]


def test_it_answers_the_same_ids_when_the_first_answer_was_lost(key: str) -> None:
    batch = {"items": [TURN, TURN | {"body": "Another."}]}
    lost, again = send(key, batch).json(), send(key, batch).json()
    assert (again["stored"], again["duplicates"]) == (0, 2)
    assert [one["id"] for one in again["items"]] == [one["id"] for one in lost["items"]]


@pytest.mark.django_db
def test_it_lets_only_a_key_that_may_resolve_post_for_others() -> None:
    shared = {**TURN, "visibility": "common", "project": "global", "body": "Ports start at 9400."}
    plain, _ = create_key(owner="bob", scopes=["capture"])
    answer = send(plain, {"items": [shared, TURN]})
    assert answer.json()["refused"] == {"invalid": 1} and answer.json()["stored"] == 1
    assert "/visibility" in answer.json()["items"][0]["detail"]
    assert problem(send(plain, shared), 422, "refused")["detail"].endswith("the scope resolve")
    publisher, _ = create_key(owner="bob", scopes=["capture", "resolve"])
    assert send(publisher, shared).status_code == 201
