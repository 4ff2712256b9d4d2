"""Text as Postgres and UTF-8 can hold it.

Removes what breaks storing (NUL, lone surrogates, numbers that JSON has not) and, apart from that,
what an eye cannot see. Knows nothing about secrets, roles or where the text came from.
"""

from __future__ import annotations

from memory.text.folding import INVISIBLE
from memory.text.patterns import late

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Sequence
    from typing import Any

_SURROGATE = late("[\ud800-\udbff][\udc00-\udfff]|[\ud800-\udfff]")

_INVISIBLE = late("[{}]+".format("".join(f"{run[0]}-{run[1]}" for run in INVISIBLE)))

#: Single invisible characters that spell something: joiners (Persian, Indic, emoji) and the emoji
# selectors.
_SPELLING = frozenset("\u200c\u200d\ufe0e\ufe0f")


def clean_text(text: str) -> tuple[str, bool]:
    """Return the text without NUL and with lone surrogates as U+FFFD, and whether anything changed.

    A high and a low surrogate that stand together are the character they were meant to be.
    """
    dirty = "\x00" in text
    if dirty:
        text = text.replace("\x00", "")
    if text.isascii():
        return text, dirty
    try:
        # Why: encoding is the fastest search for a surrogate there is (ten times the pattern's
        # pace).
        text.encode()
    except UnicodeEncodeError:
        return _SURROGATE.sub(_repair, text), True
    return text, dirty


def _repair(match: re.Match[str]) -> str:
    found = match.group()
    if len(found) == 1:
        return "\ufffd"
    return found.encode("utf-16", "surrogatepass").decode("utf-16")


def clean(value: Any) -> tuple[Any, bool]:
    """Return a JSON value cleaned at every depth, keys too, and whether anything changed.

    Strings as in `clean_text`; NaN and the infinities become None, since jsonb has no word for
    them; tuples become lists. A key that cleaning makes equal to another gets underscores, so that
    no value is lost. No recursion: depth is the sender's choice, the stack is ours.
    """
    if isinstance(value, str):
        return clean_text(value)
    root: list[Any] = [None]
    todo: list[tuple[Any, Any, Any]] = [(value, root, 0)]
    changed = False
    while todo:
        item, parent, place = todo.pop()
        if isinstance(item, str):
            parent[place], dirty = clean_text(item)
            changed = changed or dirty
        elif isinstance(item, dict):
            parent[place], dirty = _clean_keys(item, todo)
            changed = changed or dirty
        elif isinstance(item, (list, tuple)):
            fresh = [None] * len(item)
            parent[place] = fresh
            todo.extend((child, fresh, index) for index, child in enumerate(item))
        elif isinstance(item, float) and item - item != 0:
            # NaN and the infinities: any other number less itself is nothing.
            parent[place] = None
            changed = True
        else:
            parent[place] = item
    return root[0], changed


def _clean_keys(
    item: dict[Any, Any], todo: list[tuple[Any, Any, Any]]
) -> tuple[dict[str, Any], bool]:
    """Make the dict anew with clean keys in the old order, and queue its values."""
    fresh: dict[str, Any] = {}
    changed = False
    for key, child in item.items():
        name, dirty = clean_text(key if isinstance(key, str) else str(key))
        changed = changed or dirty
        while name in fresh:
            name += "_"
        fresh[name] = None
        todo.append((child, fresh, name))
    return fresh, changed


def strip_invisible(text: str) -> tuple[str, int]:
    """Return the text without characters that show nothing, and how many there were.

    For the gate and for recall, never for the raw record. A single joiner or selector between two
    characters that are not ASCII stays: it spells a word or an emoji there, while inside ASCII it
    only hides.
    """
    removed = 0

    def drop(match: re.Match[str]) -> str:
        nonlocal removed
        run = match.group()
        if len(run) == 1 and run in _SPELLING and _spells(text, match):
            return run
        removed += len(run)
        return ""

    return _INVISIBLE.sub(drop, text), removed


def visible(text: str) -> tuple[str, Sequence[int]]:
    """Return the text without characters that show nothing, and where each of its characters stood.

    The places have one more entry, the end. What stays is what `strip_invisible` keeps.
    """
    if text.isascii() and not _INVISIBLE.search(text):
        return text, range(len(text) + 1)
    kept: list[str] = []
    places: list[int] = []
    last = 0
    for match in _INVISIBLE.finditer(text):
        run = match.group()
        if len(run) == 1 and run in _SPELLING and _spells(text, match):
            continue
        kept.append(text[last : match.start()])
        places.extend(range(last, match.start()))
        last = match.end()
    if not last:
        return text, range(len(text) + 1)
    kept.append(text[last:])
    places.extend(range(last, len(text) + 1))
    return "".join(kept), places


def _spells(text: str, match: re.Match[str]) -> bool:
    before = text[match.start() - 1 : match.start()]
    after = text[match.end() : match.end() + 1]
    if match.group() in "\ufe0e\ufe0f":
        # Why: keycaps and symbols take their selector after an ASCII digit, too, but never after a
        # letter.
        return bool(before) and not before.isalpha()
    return bool(before) and bool(after) and not before.isascii() and not after.isascii()
