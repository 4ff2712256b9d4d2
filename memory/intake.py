"""What is made of one posted item before it is stored: refused by reason, or cleaned and keyed.

Pure: decides about an item alone, from the item, the project rules and the clock. Knows nothing
about HTTP, transcripts, other items or the database. Used by capture alone, whose file it would
double.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from memory.attribution import NAME_CHARACTERS_MAX, Attributed, Registry, attribute
from memory.models.record import Confidentiality, Kind, Visibility
from memory.text.clean import clean, clean_text
from memory.text.fence import unwrap
from memory.text.identity import copy_key, dedup_key, near_key
from memory.text.poison import harness, poison
from memory.text.private import MARK, strip_private
from memory.text.region import ours as ours_of
from memory.text.secrets import redact

#: Bytes of one body.
# Why: one 8 MiB tool output must not cost its siblings; a turn of a person is a few KB.
ITEM_BYTES_MAX = 1024 * 1024

#: How far ahead of our clock an item may claim to be.
# Why: clocks of clients drift by minutes; a note from the future would never be live.
FUTURE_HOURS_MAX = 24

#: Instants before this are not believed.
PAST_MIN = datetime(1970, 1, 2, tzinfo=UTC)

#: Characters of each short field; a longer one is no name of anything.
# Why: session, record id and project stand in indexes, and Postgres refuses an index entry over
# 2,704 bytes: one such item would fail its whole post, on every retry.
FIELD_CHARACTERS_MAX = {
    "source": 64, "role": 64, "session": 500, "project": NAME_CHARACTERS_MAX, "record_id": 500,
    "cwd": 4096,
}  # fmt: skip

#: Levels of objects and lists in metadata and locator.
# Why: what the parser can still read may be too deep for whoever writes it down again.
NESTING_LEVELS_MAX = 32


@dataclass(frozen=True)
class Incoming:
    """One posted item, parsed but not yet judged. Unknown fields were dropped by the parser."""

    source: str
    body: str
    kind: Kind = "turn"
    role: str = ""
    session: str = ""
    cwd: str = ""
    project: str = ""
    record_id: str = ""
    original_timestamp: datetime | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    locator: dict[str, Any] = field(default_factory=dict)
    visibility: Visibility = "private"
    confidentiality: Confidentiality = "internal"
    # Of one without an instant of its own: when it was first captured, elsewhere. No client says
    # so; what is imported does.
    first_captured: datetime | None = None


@dataclass(frozen=True)
class Invalid:
    """A posted item that could not be parsed: what is wrong, and its text for the receipt."""

    detail: str
    text: str = ""


@dataclass(frozen=True)
class Refusal:
    """Why one item is not stored."""

    index: int
    reason: str
    text: str
    detail: str = ""


@dataclass(frozen=True)
class Prepared:
    """An item ready to be stored: cleaned, redacted, attributed and keyed."""

    index: int
    item: Incoming
    body: str
    attributed: Attributed
    occurred_at: datetime
    flags: dict[str, Any]
    dedup_key: str
    copy_key: str
    near_key: str


def judge(
    index: int, item: Incoming | Invalid, *, registry: Registry, now: datetime
) -> Prepared | Refusal:
    """Decide about one item alone, without the database: refuse it, or make it ready."""
    if isinstance(item, Invalid):
        return Refusal(index, "invalid", item.text, item.detail)
    if wrong := fault(item):
        return Refusal(index, "invalid", item.body, wrong)
    body, sanitised = clean_text(item.body)
    flags: dict[str, Any] = {"sanitised": True} if sanitised else {}
    # Before all else: what stands in a private span decides about nothing around it.
    body, private = strip_private(body)
    if private:
        flags["private"] = private
        if not body.replace(MARK, "").strip():
            return Refusal(index, "private", body)
    body, ours = unwrap(body)
    if ours:
        flags["derived_stripped"] = True
    if not body.strip():
        return Refusal(index, "derived" if ours else "empty", item.body)
    if len(body) * 4 > ITEM_BYTES_MAX and (size := len(body.encode())) > ITEM_BYTES_MAX:
        detail = f"{size} bytes, {ITEM_BYTES_MAX} are allowed: split it, or post a summary"
        return Refusal(index, "oversized", body, detail)
    if item.kind != "turn" and ours_of(body.encode()):
        return Refusal(index, "derived", body, "a file that Argus wrote into a vault")
    if item.kind == "turn" and (what := harness(body)):
        return Refusal(index, "harness", body, what)
    if item.kind == "turn" and (what := poison(body, item.role.lower())):
        return Refusal(index, "poison", body, what)
    return _keyed(index, item, body, flags, registry=registry, now=now)


def fault(item: Incoming) -> str:
    """What keeps an item that parsed from being stored at all, or ""."""
    for name, characters in FIELD_CHARACTERS_MAX.items():
        if (length := len(getattr(item, name))) > characters:
            return f"{name} has {length} characters, {characters} are allowed"
    for name in ("metadata", "locator"):
        if nested(getattr(item, name)) > NESTING_LEVELS_MAX:
            return f"{name} is nested over {NESTING_LEVELS_MAX} levels deep"
    return ""


def nested(value: Any) -> int:
    """Levels of objects and lists; counting ends one above NESTING_LEVELS_MAX."""
    level, depth = [value], 0
    while depth <= NESTING_LEVELS_MAX:
        level = [one for one in level if isinstance(one, (dict, list))]
        if not level:
            break
        depth += 1
        level = [
            child for one in level for child in (one.values() if isinstance(one, dict) else one)
        ]
    return depth


def _keyed(
    index: int,
    item: Incoming,
    body: str,
    flags: dict[str, Any],
    *,
    registry: Registry,
    now: datetime,
) -> Prepared:
    """Redact every text of the item, attribute it and make its keys."""
    named, changed = clean(
        {
            "source": item.source, "role": item.role.lower(), "session": item.session,
            "cwd": item.cwd, "project": item.project, "record_id": item.record_id,
            "metadata": item.metadata, "locator": item.locator,
        }
    )  # fmt: skip
    if changed:
        flags["sanitised"] = True
    found: Counter[str] = Counter()
    body = _redacted(body, found)
    safe = Incoming(
        body=body, kind=item.kind, original_timestamp=item.original_timestamp,
        visibility=item.visibility, confidentiality=item.confidentiality,
        **{name: _redacted(value, found) for name, value in named.items()},
    )  # fmt: skip
    if private := found.pop(MARK, 0):
        flags["private"] = flags.get("private", 0) + private
    if found:
        flags["redacted"] = dict(found)
    occurred_at, clock = instant(item.original_timestamp, now=now)
    if item.original_timestamp is None and item.first_captured is not None:
        occurred_at, _ = instant(item.first_captured, now=now)
    if clock:
        flags["clock"] = clock
    attributed = attribute(registry, project=safe.project, cwd=safe.cwd, metadata=safe.metadata)
    # Without an instant of its own an item has no place in time, so only its session tells it
    # from another one of the same words.
    known = occurred_at if item.original_timestamp and clock in ("", "naive") else None
    copy = copy_key(attributed.name, known, safe.role, body) if known and attributed.name else ""
    return Prepared(
        index, safe, body, attributed, occurred_at, flags,
        dedup_key(safe.session, known, safe.role, body), copy, near_key(body) or "",
    )  # fmt: skip


#: Short texts known to hold nothing secret or private, and the length up to which a text is short.
# Why: names, folders and metadata come again with every turn; looking at a dozen of them costs
# more than looking at the body. A text that holds a secret is never kept.
# Calibrate: time of a batch by the share of texts that were known.
PLAIN_TEXTS_MAX = 10_000
PLAIN_CHARACTERS_MAX = 200

_plain: set[str] = {""}


def _is_plain(text: str) -> bool:
    """Whether the text holds nothing secret or private; short ones are looked at once."""
    if text in _plain:
        return True
    if redact(text).counts or strip_private(text)[1]:
        return False
    if len(text) <= PLAIN_CHARACTERS_MAX:
        if len(_plain) >= PLAIN_TEXTS_MAX:
            _plain.clear()
        _plain.add(text)
    return True


def _redacted(value: Any, found: Counter[str]) -> Any:
    """The value with what is secret or private replaced, keys too; counted in `found` by rule, what
    is private by its mark."""
    if isinstance(value, str):
        if _is_plain(value):
            return value
        value, private = strip_private(value)
        found[MARK] += private
        redacted = redact(value)
        found.update(redacted.counts)
        return redacted.text
    if isinstance(value, dict):
        return {_redacted(key, found): _redacted(one, found) for key, one in value.items()}
    if isinstance(value, list):
        return [_redacted(one, found) for one in value]
    return value


def instant(given: datetime | None, *, now: datetime) -> tuple[datetime, str]:
    """(aware UTC instant, flag): a time that cannot be true is replaced by ours, and flagged.

    One without a zone is taken as UTC, and flagged `naive`.
    """
    if given is None:
        return now, ""
    naive = "naive" if given.tzinfo is None else ""
    try:
        utc = given.replace(tzinfo=UTC) if naive else given.astimezone(UTC)
    except OverflowError:
        return now, "impossible"
    if utc > now + timedelta(hours=FUTURE_HOURS_MAX):
        return now, "future"
    if utc < PAST_MIN:
        return now, "impossible"
    return utc, naive
