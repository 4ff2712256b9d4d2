"""Bodies that are no JSON, too much of it, or JSON that no column can hold."""

from __future__ import annotations

import gzip
import io
import json
from typing import Any

import pytest
from django.test import Client

from memory.access import create_key
from memory.doors import CappedJSONParser, TooLarge
from memory.intake import NESTING_LEVELS_MAX
from memory.stages.capture import BATCH_BYTES_MAX
from tests.memory.door import TURN, problem, send
from tests.memory.posting import stored

pytestmark = pytest.mark.django_db


@pytest.fixture
def key() -> str:
    return create_key(owner="alice", scopes=["capture"])[0]


@pytest.mark.parametrize(
    "raw",
    [
        b"{",
        b"not json",
        b"\xff\xfe{}\x00",
        b'{"source":"a","body":"\xc3\x28"}',
        b'{"source":"a","body":"b","metadata":{"n":NaN}}',
        b'{"source":"a","body":"b","metadata":{"n":-Infinity}}',
        b'{"a":1}{"b":2}',
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b"[" * 100_000 + b"]" * 100_000,
        b'{"n":' + b"9" * 10_000 + b"}",
        gzip.compress(json.dumps(TURN).encode()),
    ],
)
def test_it_answers_400_for_what_is_no_json(key: str, raw: bytes) -> None:
    problem(send(key, raw), 400, "parse_error")


def test_it_answers_422_for_an_empty_body(key: str) -> None:
    problem(send(key, b""), 422, "invalid")


@pytest.mark.parametrize("levels", [NESTING_LEVELS_MAX + 1, 300, 500])
@pytest.mark.parametrize("field", ["metadata", "body", None])
def test_it_refuses_an_item_nested_too_deep_and_stores_its_siblings(
    key: str, levels: int, field: str | None
) -> None:
    deep = '{"a":' * levels + "1" + "}" * levels
    bad = json.dumps(TURN | {"session": "s9", field: 0}).replace(
        f'"{field}": 0', f'"{field}": {deep}'
    )
    raw = f'{{"items": [{json.dumps(TURN)}, {bad if field else deep}]}}'
    answer = send(key, raw.encode())
    assert answer.status_code == 200, answer.content
    assert (answer.json()["stored"], answer.json()["refused"]) == (1, {"invalid": 1})


def test_it_stores_metadata_as_deep_as_it_allows(key: str) -> None:
    deep: Any = 1
    for _ in range(NESTING_LEVELS_MAX):
        deep = {"a": deep}
    assert send(key, TURN | {"metadata": deep}).status_code == 201
    assert stored()[0].metadata == deep


def test_it_stores_numbers_that_json_has_and_columns_have_not(key: str) -> None:
    raw = json.dumps(TURN)[:-1] + ', "metadata": {"big": 1e400, "long": ' + "9" * 4000 + "}}"
    assert send(key, raw.encode()).status_code == 201
    assert stored()[0].metadata == {"big": None, "long": int("9" * 4000)}


def test_it_cleans_escapes_that_no_text_can_hold(key: str) -> None:
    raw = json.dumps(TURN | {"body": "BODY", "session": "BODY"}).replace(
        "BODY", "a\\u0000b\\ud83dc"
    )
    assert send(key, raw.encode()).status_code == 201
    assert (stored()[0].body, stored()[0].session) == ("ab\ufffdc", "ab\ufffdc")


def test_it_answers_413_for_a_body_over_the_cap(key: str) -> None:
    body = json.dumps({"items": [TURN | {"body": "x" * BATCH_BYTES_MAX}]}).encode()
    detail = problem(send(key, body), 413, "too_large")["detail"]
    assert str(BATCH_BYTES_MAX) in detail


def test_it_reads_no_more_than_the_cap_whatever_length_was_announced() -> None:
    stream = io.BytesIO(b" " * (BATCH_BYTES_MAX + 4096))
    with pytest.raises(TooLarge):
        CappedJSONParser().parse(stream)
    assert stream.tell() == BATCH_BYTES_MAX + 1


def test_it_asks_for_a_length_instead_of_reading_nothing(key: str) -> None:
    # What a server hands on for a chunked body: no length, and a header that says why.
    answer = Client().post(
        "/capture",
        b"",
        content_type="application/json",
        headers={"Authorization": f"Bearer {key}", "Transfer-Encoding": "chunked"},
        CONTENT_LENGTH="",
    )
    problem(answer, 411, "length_required")


def test_it_answers_415_for_a_form(key: str) -> None:
    problem(
        send(key, b"a=b", content_type="application/x-www-form-urlencoded"),
        415,
        "unsupported_media_type",
    )


def test_it_answers_405_for_another_method(key: str) -> None:
    answer = Client().get("/capture", headers={"Authorization": f"Bearer {key}"})
    problem(answer, 405, "method_not_allowed")
