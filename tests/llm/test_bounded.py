"""How: a server on this machine that drips, floods, lies about its answer or sends it elsewhere."""

from __future__ import annotations

import gzip
import itertools
import json
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from memory.errors import ArgusError, ContentError
from memory.llm.calls import Away, Oversized
from memory.llm.remote.bounded import ANSWER_BYTES_MAX, ERROR_BYTES_MAX
from memory.llm.remote.client import Dialect, chat, embeddings
from memory.llm.remote.endpoints import Endpoint
from tests.openai_server import CHAT, EMBEDDINGS, OpenAIServer, Step, fails, running, says

SECONDS = 0.5
#: What a slow machine may add to a deadline.
GRACE_SECONDS = 1.5
#: What the sockets between the two sides hold.
BUFFERS_BYTES = 16 * 2**20

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
ERROR_HEAD = b"HTTP/1.1 503 Busy\r\n\r\n"


def at(server: OpenAIServer, kind: str = "chat") -> Endpoint:
    return Endpoint(kind, server.url, "scripted", "sk-key", SECONDS)


def say(endpoint: Endpoint, user: str = "user") -> str:
    return chat(
        endpoint, ("system", user), schema_name="s", schema={"type": "object"},
        dialect=Dialect(), tokens_out_max=50,
    ).text  # fmt: skip


def caught(act: Callable[[], object]) -> ArgusError:
    with pytest.raises(ArgusError) as error:
        act()
    return error.value


def bytewise(head: bytes) -> Callable[[], Iterator[bytes]]:
    """The head byte by byte, and then for ever."""
    return lambda: (bytes([b]) for b in itertools.chain(head, itertools.repeat(ord("x"))))


def flood(head: bytes) -> Callable[[], Iterator[bytes]]:
    return lambda: itertools.chain([head], itertools.repeat(b'"' + b"[" * 65535))


@pytest.mark.parametrize(
    "pieces",
    [
        bytewise(HEAD),
        lambda: itertools.chain([HEAD + b"\r\n"], itertools.repeat(b"x")),
        lambda: itertools.chain([ERROR_HEAD], itertools.repeat(b"x")),
        lambda: itertools.repeat(b"HTTP/1.1 100 Continue\r\n\r\n"),
    ],
    ids=["head", "body", "error body", "continue"],
)
def test_it_ends_a_call_in_time_however_the_server_drips(
    server: OpenAIServer, pieces: Callable[[], Iterator[bytes]]
) -> None:
    server.script(CHAT, Step(pieces=pieces, drip_seconds=0.1))
    started = time.monotonic()
    error = caught(lambda: say(at(server)))
    assert SECONDS * 0.9 < time.monotonic() - started < SECONDS + GRACE_SECONDS
    assert isinstance(error, Away) and error.outcome == "timeout" and error.charged


def test_it_ends_a_call_in_time_when_nobody_reads_the_question() -> None:
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        url = f"http://127.0.0.1:{deaf.getsockname()[1]}/v1"
        started = time.monotonic()
        error = caught(lambda: say(Endpoint("chat", url, "m", "", SECONDS), "x" * 20_000_000))
    assert time.monotonic() - started < SECONDS + GRACE_SECONDS
    assert isinstance(error, Away) and error.outcome == "timeout"


def test_it_gives_each_call_of_one_connection_the_whole_time(server: OpenAIServer) -> None:
    server.script(CHAT, says("one"), replace(says("two"), hang_seconds=SECONDS * 0.6))
    assert say(at(server)) == "one"
    time.sleep(SECONDS * 0.8)
    assert say(at(server)) == "two"


@pytest.mark.parametrize("path", [CHAT, EMBEDDINGS])
def test_it_stops_reading_an_answer_without_end(server: OpenAIServer, path: str) -> None:
    server.script(path, Step(pieces=flood(HEAD + b"\r\n")))
    endpoint = replace(at(server), timeout_seconds=20.0)
    error = caught(lambda: say(endpoint) if path == CHAT else embeddings(endpoint, ["a"]))
    assert isinstance(error, Oversized) and 0 < len(error.raw) <= 2_000
    assert server.sent_bytes < ANSWER_BYTES_MAX + BUFFERS_BYTES


def test_it_takes_an_error_page_without_end_for_the_error_it_is(server: OpenAIServer) -> None:
    server.script(CHAT, Step(pieces=flood(ERROR_HEAD)))
    error = caught(lambda: say(replace(at(server), timeout_seconds=20.0)))
    assert isinstance(error, Away) and error.outcome == "http_5xx"
    assert server.sent_bytes < ERROR_BYTES_MAX + BUFFERS_BYTES


def test_it_asks_for_plain_bytes_and_inflates_nothing(server: OpenAIServer) -> None:
    bomb = gzip.compress(bytes(50_000_000))
    coded = b"content-encoding: gzip\r\n\r\n"
    server.script(
        CHAT,
        Step(pieces=lambda: [HEAD + coded + bomb]),
        Step(pieces=lambda: [ERROR_HEAD[:-2] + coded + bomb]),
    )
    outcomes = []
    for _ in range(2):
        error = caught(lambda: say(at(server)))
        assert isinstance(error, Away)
        outcomes.append(error.outcome)
    assert outcomes == ["no_answer", "http_5xx"]
    assert server.requests[0].headers["accept-encoding"] == "identity"


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_it_sends_nothing_to_the_host_of_a_redirect(server: OpenAIServer, status: int) -> None:
    with running() as other:
        server.script(CHAT, fails(status, location=other.url + "/chat/completions"))
        error = caught(lambda: say(at(server)))
        assert not other.requests
    assert isinstance(error, Away) and error.outcome == f"http_{status}"


@pytest.mark.parametrize("charset", ["undefined", "zlib", "idna", "utf-16", "x" * 5_000])
@pytest.mark.parametrize("status", [200, 400, 500])
def test_it_does_not_stumble_over_a_charset(
    server: OpenAIServer, charset: str, status: int
) -> None:
    step = replace(says("fine"), status=status, content_type=f"application/json; charset={charset}")
    server.script(CHAT, step)
    if status == 200:
        assert say(at(server)) == "fine"
    else:
        assert isinstance(caught(lambda: say(at(server))), Away if status == 500 else ContentError)


def test_it_shows_an_error_without_what_cannot_be_stored(server: OpenAIServer) -> None:
    server.script(CHAT, fails(400, "no\x00 such \x00thing"))
    error = caught(lambda: say(at(server)))
    assert isinstance(error, ContentError)
    assert "\x00" not in str(error) + error.raw and "such thing" in error.raw


@pytest.mark.parametrize("value", ["Mon, 99999999999999999999 Jan 2026 00:00:00 GMT", "1e999"])
def test_it_ignores_a_retry_after_that_is_no_time(server: OpenAIServer, value: str) -> None:
    server.script(CHAT, fails(429, retry_after=value))
    error = caught(lambda: say(at(server)))
    assert isinstance(error, Away) and error.retry_after is None


@pytest.mark.parametrize(
    "body",
    [
        "",
        "\x00",
        "[" * 50_000,
        "[" + "[]," * 200_000 + "[]]",
        "[]",
        '"text"',
        "null",
        "9" * 50_000,
        "data: {}\n\ndata: [DONE]",
    ]
    + [f'{{"choices": {odd}}}' for odd in ("null", "[]", "[null]", '["x"]', "[{}]", "{}")]
    + [f'{{"choices": [{{"message": {odd}}}]}}' for odd in ("1", '{"content": [1]}')],
)
def test_it_calls_a_server_away_whose_answer_is_no_chat(server: OpenAIServer, body: str) -> None:
    server.script(CHAT, Step(body, content_type="text/plain"))
    error = caught(lambda: say(at(server)))
    assert isinstance(error, Away) and error.outcome == "no_answer"


@pytest.mark.parametrize("index", [[], "0", 0.5, True, 10**30, {}])
def test_it_takes_vectors_of_unreadable_positions_for_none(
    server: OpenAIServer, index: object
) -> None:
    server.script(EMBEDDINGS, Step(json.dumps({"data": [{"index": index, "embedding": [1.0]}]})))
    assert isinstance(caught(lambda: embeddings(at(server), ["a"])), ContentError)


def test_it_goes_through_the_proxy_of_the_environment_but_for_exceptions(
    server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", server.url.removesuffix("/v1"))
    monkeypatch.setenv("no_proxy", "direct.invalid")
    elsewhere = "http://model.invalid/v1"
    server.script(elsewhere + "/chat/completions", says("by proxy"))
    assert say(Endpoint("chat", elsewhere, "m", "", SECONDS)) == "by proxy"
    error = caught(lambda: say(Endpoint("chat", "http://direct.invalid/v1", "m", "", 5.0)))
    assert isinstance(error, Away) and error.outcome in ("connection", "timeout")
    assert len(server.requests) == 1
