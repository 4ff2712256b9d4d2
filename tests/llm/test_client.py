"""How: a scripted server on this machine; each of its troubles must become the right error."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from memory.errors import ContentError
from memory.llm.calls import Away
from memory.llm.remote.client import (
    Dialect,
    Truncated,
    Unsupported,
    adapt,
    chat,
    embeddings,
    read_text,
    retry_after,
)
from memory.llm.remote.endpoints import Endpoint
from tests.openai_server import (
    CHAT,
    EMBEDDINGS,
    RESET,
    OpenAIServer,
    Step,
    fails,
    gives,
    hangs,
    says,
)
from tests.ports import free_port

NOW = datetime(2026, 5, 4, tzinfo=UTC)
HTML = "<html><body><h1>502 Bad Gateway</h1></body></html>"


def at(server: OpenAIServer, kind: str = "chat", seconds: float = 10.0) -> Endpoint:
    return Endpoint(kind, server.url, "scripted", "sk-key", seconds)


def say(endpoint: Endpoint, dialect: Dialect = Dialect()) -> str:  # noqa: B008
    reply = chat(
        endpoint, ("system", "user"), schema_name="s", schema={"type": "object"},
        dialect=dialect, tokens_out_max=50,
    )  # fmt: skip
    return read_text(reply)


@pytest.mark.parametrize(
    ("step", "outcome"),
    [
        (fails(401), "http_401"),
        (fails(403), "http_403"),
        (fails(404, '{"error": {"message": "model not found"}}'), "http_404"),
        (fails(408), "http_408"),
        (fails(409), "http_409"),
        (fails(410), "http_410"),
        (fails(429), "http_429"),
        (fails(500), "http_5xx"),
        (fails(502, HTML), "http_5xx"),
        (fails(503), "http_5xx"),
        (hangs(3), "timeout"),
        (RESET, "connection"),
        (Step(HTML, content_type="text/html"), "no_answer"),
        (Step('{"hello": "I am another program"}'), "no_answer"),
        (Step("{broken"), "no_answer"),
    ],
)
def test_it_calls_a_server_away_that_gives_no_answer(
    server: OpenAIServer, step: Step, outcome: str
) -> None:
    server.script(CHAT, step)
    server.script(EMBEDDINGS, step)
    with pytest.raises(Away) as caught:
        say(at(server, seconds=0.5 if outcome == "timeout" else 10.0))
    assert caught.value.outcome == outcome
    assert caught.value.charged is (outcome == "timeout")
    assert len(server.requests) == 1, "it retried"


def test_it_calls_a_closed_port_refused() -> None:
    with pytest.raises(Away) as caught:
        say(Endpoint("chat", f"http://127.0.0.1:{free_port()}/v1", "m", "", 10.0))
    assert caught.value.outcome == "refused"


@pytest.mark.parametrize("status", [400, 413, 422])
def test_it_takes_a_refused_input_as_content_with_the_body(
    server: OpenAIServer, status: int
) -> None:
    server.script(CHAT, fails(status, '{"error": {"message": "context length exceeded"}}'))
    with pytest.raises(ContentError) as caught:
        say(at(server))
    assert "context length" in caught.value.raw


def test_it_tells_an_unknown_parameter_from_a_bad_input(server: OpenAIServer) -> None:
    server.script(CHAT, fails(400, '{"error": {"message": "response_format is not supported"}}'))
    with pytest.raises(Unsupported):
        say(at(server))


@pytest.mark.parametrize("kind", ["embed", "query"])
def test_it_takes_nan_in_an_embedding_servers_500_as_content(
    server: OpenAIServer, kind: str
) -> None:
    body = '{"error": {"message": "json: unsupported value: NaN"}}'
    server.script(EMBEDDINGS, fails(500, body), fails(500, '{"error": "out of memory"}'))
    with pytest.raises(ContentError):
        embeddings(at(server, kind), ["a"])
    with pytest.raises(Away):
        embeddings(at(server, kind), ["a"])


def test_it_shows_no_vector_in_a_message(server: OpenAIServer) -> None:
    echoed = str([0.123456] * 768)
    server.script(EMBEDDINGS, fails(400, f'{{"error": "bad input {echoed}"}}'))
    with pytest.raises(ContentError) as caught:
        embeddings(at(server, "embed"), ["a"])
    assert "0.123456" not in str(caught.value)


@pytest.mark.parametrize(
    ("step", "error"),
    [
        (says('{"notes": [', finish_reason="length"), Truncated),
        (says(None, refusal="I cannot help with that."), ContentError),
        (says("", finish_reason="content_filter"), ContentError),
    ],
)
def test_it_does_not_take_a_cut_or_refused_answer_for_one(
    server: OpenAIServer, step: Step, error: type[Exception]
) -> None:
    server.script(CHAT, step)
    with pytest.raises(error):
        say(at(server))


def test_it_sends_the_key_both_ways_and_the_schema(server: OpenAIServer) -> None:
    assert say(at(server))
    request = server.requests[0]
    assert request.headers["authorization"] == "Bearer sk-key"
    assert request.headers["apikey"] == "sk-key"
    assert request.body["response_format"]["type"] == "json_schema"
    assert request.body["response_format"]["json_schema"]["strict"] is True
    say(at(server), Dialect("plain", "max_completion_tokens", temperature=False))
    assert not {"response_format", "temperature", "max_tokens"} & set(server.requests[1].body)


def test_it_reads_vectors_by_their_index_and_asks_for_plain_floats(server: OpenAIServer) -> None:
    server.script(EMBEDDINGS, gives([[1.0], [2.0], [3.0]], order=[2, 0, 1]))
    reply = embeddings(at(server, "embed"), ["a", "b", "c"])
    assert reply.vectors == {0: [1.0], 1: [2.0], 2: [3.0]}
    assert server.requests[0].body["encoding_format"] == "float"


@pytest.mark.parametrize(
    ("message", "dialect"),
    [
        ("'response_format' of type json_schema is not supported", Dialect("json_object")),
        ("Unsupported parameter: 'max_tokens'", Dialect(tokens_name="max_completion_tokens")),
        ("'temperature' does not support 0 with this model", Dialect(temperature=False)),
        ("context length exceeded", None),
    ],
)
def test_it_adapts_to_what_a_server_says_it_cannot(message: str, dialect: Dialect | None) -> None:
    assert adapt(Dialect(), message) == dialect


def test_it_runs_out_of_rungs() -> None:
    assert adapt(Dialect("json_object"), "response_format") == Dialect("plain")
    assert adapt(Dialect("plain"), "response_format") is None


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("60", 60.0), ("0.5", 0.5), ("-3", 0.0), (None, None), ("", None), ("soon", None),
        ("inf", None), ("nan", None),
        (format_datetime(NOW + timedelta(seconds=90), usegmt=True), 90.0),
        (format_datetime(NOW - timedelta(seconds=90), usegmt=True), 0.0),
    ],
)  # fmt: skip
def test_it_understands_both_forms_of_retry_after(value: str | None, seconds: float | None) -> None:
    assert retry_after(value, NOW) == seconds


def test_it_hears_retry_after_in_both_forms(server: OpenAIServer) -> None:
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=60), usegmt=True)
    server.script(CHAT, fails(429, retry_after="17"), fails(503, retry_after=date))
    waits: list[float | None] = []
    for _ in range(2):
        with pytest.raises(Away) as caught:
            say(at(server))
        waits.append(caught.value.retry_after)
    assert waits[0] == 17
    assert waits[1] is not None and 50 < waits[1] <= 60


def test_it_keeps_the_key_out_of_what_is_printed(server: OpenAIServer) -> None:
    assert "sk-key" not in repr(at(server))
