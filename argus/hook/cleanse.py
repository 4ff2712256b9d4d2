"""What a person would not want to leave the machine, taken out of an item before it does.

Private spans first, then secrets, in every text of the item: words, folders, metadata, keys. Runs
in a detached child only: the rules cost more than a prompt may. Knows nothing about files or the
server.
"""

from __future__ import annotations

from typing import Any

from memory.text.clean import clean
from memory.text.private import MARK, strip_private
from memory.text.secrets import redact

#: Short texts known to hold no secret.
# Why: folders and metadata come again with every turn.
PLAIN_TEXTS_MAX = 2_000
PLAIN_CHARACTERS_MAX = 200

_plain: set[str] = set()


def cleanse(value: Any, counts: dict[str, int]) -> Any:
    """The JSON value without private spans and secrets; what was taken out is counted by name."""
    return _without(clean(value)[0], counts)


def said_nothing_else(body: str) -> bool:
    """Whether nothing is left of a text but marks of what was private."""
    return not body.replace(MARK, "").strip()


def _without(value: Any, counts: dict[str, int]) -> Any:
    if isinstance(value, str):
        return _text(value, counts)
    if isinstance(value, dict):
        return {_text(key, counts): _without(one, counts) for key, one in value.items()}
    if isinstance(value, list):
        return [_without(one, counts) for one in value]
    return value


def _text(text: str, counts: dict[str, int]) -> str:
    if text in _plain:
        return text
    kept, spans = strip_private(text)
    if spans:
        counts["private"] = counts.get("private", 0) + spans
    redacted = redact(kept)
    for name, count in redacted.counts.items():
        counts[name] = counts.get(name, 0) + count
    if redacted.text == text and len(text) <= PLAIN_CHARACTERS_MAX:
        if len(_plain) >= PLAIN_TEXTS_MAX:
            _plain.clear()
        _plain.add(text)
    return redacted.text
