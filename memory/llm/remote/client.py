"""The client of OpenAI-compatible servers: one HTTP call, its troubles turned into our errors.

What a server cannot do right now is Away (wait, nothing counts); what it will never do with this
input is ContentError. Nothing is retried here: the stages decide. Knows nothing about prompts,
budgets or the database.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import Any, NoReturn

import httpx2
import openai
from openai import OpenAI

from memory.errors import ContentError
from memory.llm.calls import Away, Reply
from memory.llm.remote.bounded import open_client
from memory.llm.remote.endpoints import Endpoint
from memory.llm.remote.wire import read_chat, read_embeddings, read_opening, read_ranking
from memory.llm.vectors import BadVectors
from memory.text.clean import clean_text

#: Characters of a server's error that are shown.
# Why: some servers answer with a page of HTML or with the whole input.
# Calibrate: enough for one sentence of a proxy.
ERROR_CHARS_MAX = 300

_UNFIT = re.compile(r"response_format|json_schema|json_object|json schema|grammar|structured", re.I)
_NAN = re.compile(r"unsupported value|\bnan\b|\binf(?:inity)?\b", re.IGNORECASE)

#: Statuses that are about the input; every other one says "not now" or "not so configured".
_ABOUT_INPUT = frozenset({400, 413, 422})


class Truncated(ContentError):
    """The model stopped at its token limit; the reply is cut off."""


class Unsupported(ContentError):
    """The server does not know a parameter of the request; the message says which."""


@dataclass(frozen=True)
class Dialect:
    """Which parameters a server understands, found out by asking."""

    structured: str = "json_schema"
    tokens_name: str = "max_tokens"
    temperature: bool = True


def chat(
    endpoint: Endpoint,
    texts: Sequence[str],
    *,
    schema_name: str,
    schema: Mapping[str, Any],
    dialect: Dialect,
    tokens_out_max: int,
) -> Reply:
    """One chat completion of (system, user). Raises Away or ContentError.

    Truncated and refused answers are not raised here but by `read_text`: they cost tokens.
    """
    system, user = texts
    parameters: dict[str, Any] = {dialect.tokens_name: tokens_out_max}
    if dialect.temperature:
        parameters["temperature"] = 0
    if dialect.structured == "json_schema":
        wanted = {"name": schema_name, "strict": True, "schema": dict(schema)}
        parameters["response_format"] = {"type": "json_schema", "json_schema": wanted}
    elif dialect.structured == "json_object":
        parameters["response_format"] = {"type": "json_object"}
    try:
        answer = _client(endpoint).chat.completions.with_raw_response.create(
            model=endpoint.model,
            messages=[{"role": "system", "content": system}, {"role": "user", "content": user}],
            **parameters,
        )
    except openai.OpenAIError as error:
        _translate(error, endpoint)
    return read_chat(answer.content, endpoint.provider)


def read_text(reply: Reply) -> str:
    """The text of a chat reply. Raises ContentError for a refusal, Truncated for a cut-off one."""
    if reply.refusal:
        raise ContentError("The model refused", reply.refusal)
    if reply.finish_reason == "length":
        raise Truncated(raw=reply.text)
    if reply.finish_reason == "content_filter":
        raise ContentError("The provider's filter stopped the answer", reply.text)
    return reply.text


def embeddings(endpoint: Endpoint, texts: Sequence[str]) -> Reply:
    """One embeddings call; vectors by position. Raises Away or ContentError."""
    try:
        answer = _client(endpoint).embeddings.with_raw_response.create(
            # Why float: the client's default is base64, which many servers do not speak.
            model=endpoint.model,
            input=list(texts),
            encoding_format="float",
        )
    except openai.OpenAIError as error:
        _translate(error, endpoint)
    return read_embeddings(answer.content, endpoint.provider)


def rerank(endpoint: Endpoint, query: str, texts: Sequence[str], *, bare: bool) -> Reply:
    """One rerank call; scores by position. Raises Away or ContentError.

    `bare`: in the words of text-embeddings-inference, which serves one model and names none.
    """
    named = {
        "model": endpoint.model,
        "query": query,
        "documents": list(texts),
        "top_n": len(texts),
    }
    body = {"query": query, "texts": list(texts), "truncate": True} if bare else named
    try:
        answer = _client(endpoint).post("/rerank", cast_to=httpx2.Response, body=body)
    except openai.OpenAIError as error:
        _translate(error, endpoint)
    return read_ranking(answer.content, endpoint.provider)


def opening(
    endpoint: Endpoint, texts: Sequence[str], *, dialect: Dialect, tokens_max: int, likeliest: int
) -> Reply:
    """The first tokens of a completion of (system, user) with their likeliest alternatives.

    Raises Away or ContentError. A server that knows no log-probabilities may leave them out.
    """
    system, user = texts
    parameters: dict[str, Any] = {dialect.tokens_name: tokens_max}
    if dialect.temperature:
        parameters["temperature"] = 0
    try:
        answer = _client(endpoint).chat.completions.with_raw_response.create(
            model=endpoint.model,
            messages=[{"role": "system", "content": system}, {"role": "user", "content": user}],
            logprobs=True,
            top_logprobs=likeliest,
            **parameters,
        )
    except openai.OpenAIError as error:
        _translate(error, endpoint)
    return read_opening(answer.content, endpoint.provider)


def adapt(dialect: Dialect, message: str) -> Dialect | None:
    """The dialect to try after a server refused a parameter, or None when it was not about one."""
    if "max_tokens" in message and dialect.tokens_name == "max_tokens":
        return replace(dialect, tokens_name="max_completion_tokens")
    if "temperature" in message and dialect.temperature:
        return replace(dialect, temperature=False)
    if _UNFIT.search(message):
        if dialect.structured == "json_schema":
            return replace(dialect, structured="json_object")
        if dialect.structured == "json_object":
            return replace(dialect, structured="plain")
    return None


def retry_after(value: str | None, now: datetime) -> float | None:
    """Seconds to wait by a Retry-After header (seconds or an HTTP date), or None."""
    if not value:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            until = parsedate_to_datetime(value)
        except (ValueError, OverflowError):
            return None
        seconds = (until.replace(tzinfo=until.tzinfo or UTC) - now).total_seconds()
    return max(0.0, seconds) if math.isfinite(seconds) else None


@lru_cache(maxsize=16)
def _client(endpoint: Endpoint) -> OpenAI:
    return OpenAI(
        base_url=endpoint.url,
        # The client insists on a key; servers without one ignore it.
        api_key=endpoint.key or "none",
        timeout=endpoint.timeout_seconds,
        max_retries=0,
        http_client=open_client(endpoint.url, endpoint.timeout_seconds),
        default_headers={
            "Accept-Encoding": "identity",
            # Gateways (Kong) read this header instead of Authorization.
            **({"apikey": endpoint.key} if endpoint.key else {}),
        },
    )


def _translate(error: Exception, endpoint: Endpoint) -> NoReturn:
    provider = endpoint.provider
    if isinstance(error, openai.APITimeoutError):
        seconds = endpoint.timeout_seconds
        raise Away(f"{provider} did not answer in {seconds:g} s", "timeout", charged=True) from None
    if isinstance(error, openai.APIStatusError):
        _translate_status(error, endpoint)
    if isinstance(error, openai.APIConnectionError):
        cause = error.__cause__ or error
        refused = "refused" in str(cause).lower()
        outcome = "refused" if refused else "connection"
        raise Away(f"{provider} is not reachable: {_short(str(cause))}", outcome) from None
    raise Away(f"{provider}: {_short(str(error))}", "no_answer") from None


def _translate_status(error: openai.APIStatusError, endpoint: Endpoint) -> NoReturn:
    status = error.status_code
    body = clean_text(error.response.text)[0]
    message = f"{endpoint.provider} answered {status}: {_short(body)}"
    wait = retry_after(error.response.headers.get("retry-after"), datetime.now(UTC))
    # Why: an embedding server that computed NaN says 500, and will say it again for this text.
    nan = status >= 500 and endpoint.kind != "chat" and _NAN.search(body)
    if status not in _ABOUT_INPUT and not nan:
        outcome = "http_5xx" if status >= 500 else f"http_{status}"
        raise Away(message, outcome, wait) from None
    if status in (400, 422) and adapt(Dialect(), body) is not None:
        raise Unsupported(message, body) from None
    raise (BadVectors(message, raw=body) if nan else ContentError(message, body)) from None


def _short(text: str) -> str:
    """One line without long runs of numbers: an echoed vector is no message."""
    text = re.sub(r"\[[\s\d.,eE+-]{80,}\]?", "[numbers]", clean_text(text)[0])
    return " ".join(text.split())[:ERROR_CHARS_MAX]
