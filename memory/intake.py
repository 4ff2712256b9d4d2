"""What is made of one posted item before it is stored: refused by reason, or cleaned and keyed.

Pure: decides about an item alone, from the item, the project rules and the clock. Knows nothing
about HTTP, transcripts, other items or the database. Used by capture alone, whose file it would
double.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from memory.attribution import Attributed, Registry, attribute
from memory.text.clean import clean, clean_text
from memory.text.fence import unwrap
from memory.text.identity import copy_key, dedup_key, near_key
from memory.text.poison import harness, poison
from memory.text.secrets import redact

#: Bytes of one body.
# Why: one 8 MiB tool output must not cost its siblings; a turn of a person is a few KB.
ITEM_BYTES_MAX = 1024 * 1024

#: How far ahead of our clock an item may claim to be.
# Why: clocks of clients drift by minutes; a note from the future would never be live.
FUTURE_HOURS_MAX = 24

#: Instants before this are not believed.
PAST_MIN = datetime(1970, 1, 2, tzinfo=UTC)

Kind = Literal["turn", "document", "image", "event", "synthesis"]
Visibility = Literal["private", "team", "common"]
Confidentiality = Literal["public", "internal", "restricted", "secret"]


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
    body, sanitised = clean_text(item.body)
    flags: dict[str, Any] = {"sanitised": True} if sanitised else {}
    body, ours = unwrap(body)
    if ours:
        flags["derived_stripped"] = True
    if not body.strip():
        return Refusal(index, "derived" if ours else "empty", item.body)
    if len(body) * 4 > ITEM_BYTES_MAX and (size := len(body.encode())) > ITEM_BYTES_MAX:
        detail = f"{size} bytes, {ITEM_BYTES_MAX} are allowed: split it, or post a summary"
        return Refusal(index, "oversized", body, detail)
    if item.kind == "turn" and (what := harness(body)):
        return Refusal(index, "harness", body, what)
    if item.kind == "turn" and (what := poison(body, item.role)):
        return Refusal(index, "poison", body, what)
    redacted = redact(body)
    if redacted.counts:
        flags["redacted"] = redacted.counts
    occurred_at, clock = instant(item.original_timestamp, now=now)
    if clock:
        flags["clock"] = clock
    return _keyed(index, item, redacted.text, flags, occurred_at, registry)


def _keyed(
    index: int,
    item: Incoming,
    body: str,
    flags: dict[str, Any],
    occurred_at: datetime,
    registry: Registry,
) -> Prepared:
    """Attribute the item and make its keys; every other text of it is cleaned and redacted, too."""
    cleaned, changed = clean(
        {
            "source": item.source, "role": item.role.lower(), "session": item.session,
            "cwd": item.cwd, "project": item.project, "record_id": item.record_id,
            "metadata": item.metadata, "locator": item.locator,
        }
    )  # fmt: skip
    if changed:
        flags["sanitised"] = True
    metadata = _redact_deep(cleaned.pop("metadata"))
    locator = _redact_deep(cleaned.pop("locator"))
    fields = {name: redact(text).text for name, text in cleaned.items()}
    safe = Incoming(
        **fields, body=body, kind=item.kind, metadata=metadata, locator=locator,
        original_timestamp=item.original_timestamp, visibility=item.visibility,
        confidentiality=item.confidentiality,
    )  # fmt: skip
    attributed = attribute(registry, project=safe.project, cwd=safe.cwd, metadata=metadata)
    # Without an instant of its own an item has no place in time, so only its session tells it
    # from another one of the same words.
    known = occurred_at if item.original_timestamp and "clock" not in flags else None
    copy = copy_key(attributed.name, known, safe.role, body) if known and attributed.name else ""
    return Prepared(
        index, safe, body, attributed, occurred_at, flags,
        dedup_key(safe.session, known, safe.role, body), copy, near_key(body) or "",
    )  # fmt: skip


def _redact_deep(value: Any) -> Any:
    if isinstance(value, str):
        return redact(value).text
    if isinstance(value, dict):
        return {key: _redact_deep(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_redact_deep(one) for one in value]
    return value


def instant(given: datetime | None, *, now: datetime) -> tuple[datetime, str]:
    """(aware UTC instant, flag): a time that cannot be true is replaced by ours, and flagged."""
    if given is None:
        return now, ""
    try:
        utc = given.replace(tzinfo=UTC) if given.tzinfo is None else given.astimezone(UTC)
    except OverflowError:
        return now, "impossible"
    if utc > now + timedelta(hours=FUTURE_HOURS_MAX):
        return now, "future"
    if utc < PAST_MIN:
        return now, "impossible"
    return utc, ""
