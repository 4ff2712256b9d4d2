"""The server's limits for what stands beside the words of an item, kept before it is posted.

A name that is too long is shortened and stays one of a kind, so that the turn is stored all the
same. Knows nothing about secrets: what is cut here was cleansed before, half a secret looks like
none.
"""

from __future__ import annotations

import hashlib
from typing import Any

#: Characters of each short field that the server takes.
FIELD_CHARACTERS_MAX = {
    "source": 64, "role": 64, "session": 500, "project": 200, "record_id": 500, "cwd": 4096,
}  # fmt: skip
#: Levels of objects and lists that it takes.
NESTING_LEVELS_MAX = 32

#: What is left of an object or a list that lies deeper.
DEEPER = "..."

#: Fields by which two things are told apart: what goes of them is hashed.
_NAMES = ("session", "record_id")

#: Characters of such a hash.
_HASH_CHARACTERS = 32


def fit(item: dict[str, Any]) -> dict[str, Any]:
    """The item with short fields as short as the server takes them."""
    for name in FIELD_CHARACTERS_MAX:
        if name in item:
            item[name] = short(name, item[name])
    return item


def short(name: str, text: str) -> str:
    """The text as this field of an item takes it."""
    most = FIELD_CHARACTERS_MAX[name]
    if len(text) <= most:
        return text
    if name not in _NAMES:
        return text[:most]
    told = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:_HASH_CHARACTERS]
    return f"{text[: most - len(told) - 1]}~{told}"


def shallow(value: Any, levels: int = NESTING_LEVELS_MAX) -> Any:
    """The JSON value with no more than so many levels; what lies deeper is gone."""
    if not isinstance(value, (dict, list)):
        return value
    if levels == 0:
        return DEEPER
    if isinstance(value, dict):
        return {name: shallow(one, levels - 1) for name, one in value.items()}
    return [shallow(one, levels - 1) for one in value]
