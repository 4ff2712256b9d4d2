"""Replies that decided something, kept so that the same question is never paid twice.

Append-only. A rebuild finds every reply here and asks no model. Knows nothing about what is in a
reply; only replies that could be read are handed in.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from memory.errors import InfraError
from memory.models import ModelReply
from memory.text.identity import sha256

#: What makes questions asked anew different from the same ones before; nothing for all others.
_anew: ContextVar[tuple[str, ...]] = ContextVar("anew", default=())


#: Whether nobody is asked: a question has its reply in the log, or none.
_from_the_log: ContextVar[bool] = ContextVar("from_the_log", default=False)


class NotKept(InfraError):
    """The reply to this question is not in the log, and nobody was asked."""


@contextmanager
def from_the_log(only: bool = True) -> Iterator[None]:
    """Inside, in this thread alone, a question whose reply was not kept raises NotKept (`only`
    False: it is asked as ever)."""
    token = _from_the_log.set(only)
    try:
        yield
    finally:
        _from_the_log.reset(token)


def may_ask() -> None:
    """Call before a question goes out. Raises NotKept where only the log may answer."""
    if _from_the_log.get():
        raise NotKept


@contextmanager
def asked_anew(occasion: str) -> Iterator[None]:
    """Inside, in this thread alone, no reply that was kept before is read: questions are asked
    again, and their replies kept under this occasion beside the first ones, which stay."""
    token = _anew.set((occasion,))
    try:
        yield
    finally:
        _anew.reset(token)


@dataclass(frozen=True)
class Key:
    """What makes two questions the same one."""

    port: str
    model: str
    prompt_version: str
    input_sha256: str

    @classmethod
    def of(cls, port: str, model: str, prompt_version: str, texts: Sequence[str]) -> Key:
        """The key of a question made of these texts."""
        return cls(port, model, prompt_version, sha256("\x1e".join((*texts, *_anew.get()))))


@dataclass(frozen=True)
class Kept:
    """A reply as it came, with the model that gave it."""

    reply: str
    model_real: str


def kept_reply(key: Key, unit: str) -> Kept | None:
    """The reply to this question, or None.

    A unit that meets the reply of another one gets a copy of its own, so that purging either takes
    what was said about it and leaves the other's.
    """
    own = _own(key, unit)
    rows = {
        row.input_sha256: row
        for row in ModelReply.objects.filter(
            port=key.port,
            model=key.model,
            prompt_version=key.prompt_version,
            input_sha256__in=[key.input_sha256, own.input_sha256],
        )
    }
    row = rows.get(key.input_sha256) or rows.get(own.input_sha256)
    if row is None:
        return None
    kept = Kept(zlib.decompress(bytes(row.reply)).decode(), row.model_real)
    if unit not in row.units and own.input_sha256 not in rows:
        _insert(own, kept, unit)
    return kept


def replies_of(unit: str, *, port: str, model: str, prompt_version: str) -> list[Kept]:
    """What this model said of a unit, as the log has it, the first reply first; whatever it was
    asked."""
    rows = ModelReply.objects.filter(
        port=port, model=model, prompt_version=prompt_version, units__contains=[unit]
    )
    return [
        Kept(zlib.decompress(bytes(row.reply)).decode(), row.model_real)
        for row in rows.order_by("pk")
    ]


def keep_reply(key: Key, reply: str, *, model_real: str, unit: str) -> None:
    """Keep the reply of a question; the first one stays when two workers asked at once."""
    kept = Kept(reply, model_real)
    if _insert(key, kept, unit):
        return
    kept_reply(key, unit)


def _own(key: Key, unit: str) -> Key:
    joined = sha256(f"{key.input_sha256}\x1e{unit}")
    return Key(key.port, key.model, key.prompt_version, joined)


def _insert(key: Key, kept: Kept, unit: str) -> bool:
    row = ModelReply(
        port=key.port,
        model=key.model,
        prompt_version=key.prompt_version,
        input_sha256=key.input_sha256,
        model_real=kept.model_real,
        reply=zlib.compress(kept.reply.encode()),
        units=[unit],
    )
    before = ModelReply.objects.filter(
        port=key.port,
        model=key.model,
        prompt_version=key.prompt_version,
        input_sha256=key.input_sha256,
    )
    if before.exists():
        return False
    ModelReply.objects.bulk_create([row], ignore_conflicts=True)
    return bool(before.filter(units=[unit]).exists())
