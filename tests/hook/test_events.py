"""What clients send on stdin: read once, in time, whatever it is."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argus.hook.events import EVENT_BYTES_MAX, Event, read_event, safe
from argus.hook.quickjson import dump, parse
from tests.hook.ground import HANG_SECONDS

PROMPT = {
    "session_id": "8c1d",
    "transcript_path": "/home/dev/.claude/projects/-x/8c1d.jsonl",
    "cwd": "/home/dev/src/x",
    "hook_event_name": "UserPromptSubmit",
    "prompt": "which port?",
    "permission_mode": "default",
}


@pytest.fixture(autouse=True)
def somewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    out, into = os.pipe()
    yield out, into
    for end in (out, into):
        os.close(end)


def read(data: bytes) -> Event | None:
    """The event of these bytes, from a pipe that is closed after them."""
    out, into = os.pipe()

    def write() -> None:
        with os.fdopen(into, "wb") as handle:
            handle.write(data)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        return read_event("claude", out)
    finally:
        writer.join()
        os.close(out)


def test_it_reads_what_a_client_sends():
    event = read(json.dumps(PROMPT).encode())
    assert event is not None
    assert (event.client, event.name, event.session) == ("claude", "UserPromptSubmit", "8c1d")
    assert (event.cwd, event.prompt, event.agent) == ("/home/dev/src/x", "which port?", "")


def test_it_waits_for_no_end_of_a_pipe_that_is_never_closed(pipe):
    out, into = pipe
    os.write(into, json.dumps(PROMPT).encode() + b"\n")
    started = time.monotonic()
    event = read_event("claude", out)
    assert event is not None and event.prompt == "which port?"
    assert time.monotonic() - started < HANG_SECONDS


def test_it_takes_an_event_that_comes_in_pieces(pipe):
    out, into = pipe
    data = json.dumps(
        {**PROMPT, "prompt": 'a } brace } and "more" 🦭'}, ensure_ascii=False
    ).encode()

    def slowly() -> None:
        for at in range(0, len(data), 7):
            os.write(into, data[at : at + 7])
            time.sleep(0.002)

    writer = threading.Thread(target=slowly)
    writer.start()
    event = read_event("claude", out)
    writer.join()
    assert event is not None and event.prompt == 'a } brace } and "more" 🦭'


@pytest.mark.parametrize("data", [b"", b'{"prompt": "half'])
def test_it_gives_up_after_a_second_when_the_object_does_not_come(pipe, data: bytes):
    out, into = pipe
    os.write(into, data)
    started = time.monotonic()
    assert read_event("claude", out) is None
    assert 0.8 < time.monotonic() - started < HANG_SECONDS


@pytest.mark.parametrize(
    "data",
    [b"", b"  \n", b"null", b"[]", b'"text"', b"{", b"{'a': 1}", b"\xff{", b"[" * 200_000, b"NaN"],
    ids=["empty", "blank", "null", "list", "text", "open", "quotes", "bytes", "deep", "nan"],
)  # fmt: skip
def test_it_makes_no_event_of_what_is_no_object(somewhere, data: bytes):
    assert read(data) is None
    assert "no event" in (somewhere / ".argus/log/argus-hook.log").read_text()


def test_it_bears_other_types_than_it_expects():
    event = read(
        b"\xef\xbb\xbf"
        + json.dumps(
            {
                "session_id": 7,
                "transcript_path": None,
                "cwd": ["/x"],
                "prompt": {"a": 1},
                "message": "x",
            }
        ).encode()
        + b"\r\n"
    )
    assert event is not None
    assert [event.session, event.transcript, event.prompt, event.name] == [""] * 4
    assert event.message is None


def test_it_mends_half_characters_and_takes_no_path_with_a_nul():
    event = read(rb'{"prompt": "a\ud83dz", "cwd": "/x\u0000y", "session_id": "\udfff"}')
    assert event is not None
    event.prompt.encode()
    event.session.encode()
    assert event.prompt[0] + event.prompt[-1] == "az"
    assert event.cwd == os.getcwd()


@pytest.mark.parametrize("cwd", ["", "src", "../x", "~", "/" + "a/" * 2_100, "/x\0y", None, 7])
def test_it_is_where_the_process_is_when_the_client_says_no_folder(cwd):
    event = read(json.dumps({"cwd": cwd}).encode())
    assert event is not None and event.cwd == os.getcwd()


def test_it_keeps_pis_message():
    event = read(b'{"message": {"role": "user", "content": []}}')
    assert event is not None and event.message == {"role": "user", "content": []}


def test_it_passes_over_an_event_that_is_too_large_and_reads_it_to_its_end(somewhere):
    assert read(json.dumps({"prompt": "x" * (EVENT_BYTES_MAX + 1)}).encode()) is None
    assert "passed over" in (somewhere / ".argus/log/argus-hook.log").read_text()


def test_it_reads_a_large_prompt_quickly():
    started = time.monotonic()
    event = read(json.dumps({"prompt": "} " * 900_000}).encode())
    assert event is not None and len(event.prompt) == 1_800_000
    assert time.monotonic() - started < HANG_SECONDS


def test_it_bears_a_closed_stdin():
    out, into = os.pipe()
    os.close(out)
    os.close(into)
    assert read_event("claude", out) is None


@pytest.mark.parametrize("name", ["8c1d-22", "a.b_c", "x" * 128])
def test_it_leaves_a_harmless_session_its_name(name: str):
    assert safe(name) == name


@pytest.mark.parametrize(
    "name", ["", "..", ".x", "../../x", "a/b", "a\0b", "x" * 129, "ü", "a b", "\ud800"]
)
def test_it_makes_a_file_name_of_any_session(name: str):
    made = safe(name)
    assert len(made) == 64 and made.isalnum()
    assert made != safe(name + "x")


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**18), 10**18) | st.floats(width=32) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)  # fmt: skip


@given(VALUES)
def test_it_writes_and_reads_json_as_json_does(value):
    # What is no number in JSON is null for us, both ways.
    plain = json.loads(json.dumps(value), parse_constant=lambda name: None)
    assert json.loads(dump(value)) == plain
    assert parse(json.dumps(value)) == plain
    assert dump(value).isascii()


@given(st.text())
def test_it_raises_one_kind_of_error_for_what_is_no_json(text: str):
    try:
        ours: object = parse(text)
    except ValueError:
        ours = ValueError
    try:
        theirs: object = json.loads(text, strict=False, parse_constant=lambda name: None)
    except ValueError:
        theirs = ValueError
    assert ours == theirs
