"""Asks a chat model for an object: kept reply first, then the ladder of what the server can do.

json_schema, then json_object, then plain text: each rung is tried once per provider and model and
remembered in this process. Each try is a call with its own ledger row. Knows no prompt.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any, TypeVar

from django.utils import timezone

from memory.errors import ContentError
from memory.llm.calls import Question, Reply, ask
from memory.llm.kept import Key, keep_reply, kept_reply, may_ask
from memory.llm.ports import Origin, Usage
from memory.llm.remote.client import Dialect, Unsupported, adapt, chat, read_text
from memory.llm.remote.endpoints import Endpoint

T = TypeVar("T")

#: Dialects tried for one question.
# Why: three rungs, one other name for the limit, one without temperature.
TRIES_MAX = 5

_dialects: dict[tuple[str, str], Dialect] = {}
_lock = threading.Lock()


@dataclass(frozen=True)
class Form:
    """What kind of answer a port wants; the same for all its questions."""

    port: str
    prompt_version: str
    schema: Mapping[str, Any]
    tokens_out_max: int


@dataclass(frozen=True)
class Answer:
    """The text of a reply, with what it cost (nothing when it was kept)."""

    text: str
    usage: Usage


def converse(
    endpoint: Endpoint,
    form: Form,
    texts: tuple[str, str],
    read: Callable[[str], T],
    *,
    origin: Origin,
    clock: Callable[[], datetime] = timezone.now,
) -> tuple[T, Answer]:
    """Ask with (system, user); `read` makes the value of the reply's text or raises ContentError.

    A reply that could be read is kept; the same question is answered from there ever after.
    """
    key = Key.of(form.port, endpoint.model, form.prompt_version, texts)
    kept = kept_reply(key, origin.unit)
    if kept is not None:
        try:
            usage = Usage(endpoint.model, kept.model_real, form.prompt_version)
            return read(kept.reply), Answer(kept.reply, usage)
        except ContentError:
            # Kept by a reader that understood more than this one: ask again.
            pass
    may_ask()
    value, answer = _climb(endpoint, form, texts, read, origin, clock)
    keep_reply(key, answer.text, model_real=answer.usage.model_real, unit=origin.unit)
    return value, answer


def _climb(
    endpoint: Endpoint,
    form: Form,
    texts: tuple[str, str],
    read: Callable[[str], T],
    origin: Origin,
    clock: Callable[[], datetime],
) -> tuple[T, Answer]:
    """Ask in the dialect known to work, or find it out."""
    place = (endpoint.provider, endpoint.model)
    dialect = _dialects.get(place, Dialect())

    def both(reply: Reply) -> tuple[T, str]:
        text = read_text(reply)
        return read(text), text

    for last in (False,) * (TRIES_MAX - 1) + (True,):
        question = Question(
            form.port,
            endpoint.provider,
            endpoint.model,
            texts,
            form.prompt_version,
            dialect.structured,
            form.tokens_out_max,
        )
        send = partial(
            chat,
            endpoint,
            schema_name=form.port,
            schema=form.schema,
            dialect=dialect,
            tokens_out_max=form.tokens_out_max,
        )
        origin.pulse()
        try:
            (value, text), usage = ask(question, send, both, origin=origin, clock=clock)
        except Unsupported as error:
            other = adapt(dialect, error.raw)
            if other is None or last:
                raise
            dialect = other
            continue
        with _lock:
            _dialects[place] = dialect
        return value, Answer(text, usage)
    raise AssertionError("the loop returns or raises")


def forget_dialects() -> None:
    """Forget what servers can do, as a new process does."""
    with _lock:
        _dialects.clear()


def total(asked: str, version: str, usages: list[Usage]) -> Usage:
    """One usage for the calls of one unit."""
    real = next((usage.model_real for usage in reversed(usages) if usage.model_real), "")
    return replace(
        Usage(asked, real, version),
        tokens_in=sum(usage.tokens_in for usage in usages),
        tokens_out=sum(usage.tokens_out for usage in usages),
    )
