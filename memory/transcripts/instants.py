"""Every time stamp that a source may hold, as an aware instant in UTC.

Knows nothing about who wrote it. Never reads the clock or the zone of this machine, so that the
same file gives the same instants everywhere.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone, tzinfo
from typing import Any

from memory.text.patterns import late

#: Years in which a stamp is believed.
# Why: zero means "unset" in every format seen (1970-01-01), and year 1 or 9999 is a sentinel.
# Calibrate: widen only for a source that is known to hold older things.
YEAR_MIN, YEAR_MAX = 1971, 2199

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
#: Seconds between 1601-01-01 (Chromium, Windows) and 1970-01-01.
WINDOWS_EPOCH_SECONDS = 11_644_473_600

_ISO = late(
    r"^\s*(\d{4})-(\d\d)-(\d\d)"
    r"(?:[Tt ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?\s*(Z|z|UTC|[+-]\d\d:?\d\d)?)?\s*$"
)
_LOG = late(r"^\s*(\d\d?)/([A-Za-z]{3})/(\d{4}):(\d\d):(\d\d):(\d\d)\s*([+-]\d{4})?\s*$")
_MONTH_NAMES = "jan feb mar apr may jun jul aug sep oct nov dec"
_MONTHS = {name: number for number, name in enumerate(_MONTH_NAMES.split(), 1)}


def instant(value: Any, zone: tzinfo = timezone.utc) -> tuple[datetime | None, str | None]:
    """(aware UTC, None), or (None, why): why is `missing`, `unreadable` or `impossible`.

    Numbers, and strings of digits, are epochs in s, ms, us or ns, told apart by size, or us since
    1601. A string without an offset is a time of `zone`; a date alone is its midnight there.
    """
    if value is None or value == "" or isinstance(value, bool):
        return None, "missing"
    if isinstance(value, (int, float)):
        return _epoch(float(value))
    if not isinstance(value, str):
        return None, "unreadable"
    if re.fullmatch(r"\s*-?\d+(\.\d+)?\s*", value):
        return _epoch(float(value))
    return _written(value, zone)


def stamp(value: Any, metadata: dict[str, Any], zone: tzinfo = timezone.utc) -> datetime | None:
    """The instant of `value`; when there is none, why goes to `metadata["time_problem"]`."""
    when, problem = instant(value, zone)
    if problem:
        metadata["time_problem"] = problem
    return when


def _epoch(number: float) -> tuple[datetime | None, str | None]:
    if number != number or number in (float("inf"), float("-inf")):
        return None, "unreadable"
    size = abs(number)
    if size >= 1e18:
        seconds = number / 1e9
    elif size >= 1e16:
        # 1.3e16 is both "us since 1601" today and the year 2381 in us since 1970.
        seconds = number / 1e6 - WINDOWS_EPOCH_SECONDS
    elif size >= 1e14:
        seconds = number / 1e6
    elif size >= 1e11:
        seconds = number / 1e3
    else:
        seconds = number
    try:
        return _believed(EPOCH + timedelta(microseconds=round(seconds * 1_000_000)))
    except OverflowError:
        return None, "impossible"


def _written(text: str, zone: tzinfo) -> tuple[datetime | None, str | None]:
    iso = _ISO.match(text)
    log = None if iso else _LOG.match(text)
    try:
        if iso:
            year, month, day, hour, minute, second, fraction, offset = iso.groups()
            when = datetime(
                int(year),
                int(month),
                int(day),
                int(hour or 0),
                int(minute or 0),
                # A leap second is the same instant as the next full one, near enough.
                min(int(second or 0), 59),
                int((fraction or "0").ljust(9, "0")[:6]),
                tzinfo=_zone(offset, zone),
            )
        elif log and log.group(2).lower() in _MONTHS:
            day, name, year, hour, minute, second, offset = log.groups()
            when = datetime(
                int(year),
                _MONTHS[name.lower()],
                int(day),
                int(hour),
                int(minute),
                int(second),
                tzinfo=_zone(offset, zone),
            )
        else:
            return None, "unreadable"
        return _believed(when.astimezone(timezone.utc))
    except (ValueError, OverflowError):
        return None, "impossible"


def _zone(offset: str | None, zone: tzinfo) -> tzinfo:
    if not offset:
        return zone
    if offset in ("Z", "z", "UTC"):
        return timezone.utc
    digits = offset[1:].replace(":", "")
    minutes = int(digits[:2]) * 60 + int(digits[2:])
    return timezone(timedelta(minutes=-minutes if offset[0] == "-" else minutes))


def _believed(when: datetime) -> tuple[datetime | None, str | None]:
    if YEAR_MIN <= when.year <= YEAR_MAX:
        return when, None
    return None, "impossible"
