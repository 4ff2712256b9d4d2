"""Replies that decided something, kept so that the same question is never paid twice.

Append-only. A rebuild finds every reply here and asks no model. Knows nothing about what is in a
reply; only replies that could be read are handed in.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

from memory.models import ModelReply
from memory.text.identity import sha256


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
        return cls(port, model, prompt_version, sha256("\x1e".join(texts)))


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
