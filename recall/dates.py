"""What single expressions of time mean by a clock, in English and German.

Pure. Reads one expression and the preposition before it; knows nothing about questions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, date, datetime, timedelta

from recall.calendar import (
    COUNT,
    COUNTS,
    DAY,
    FEW,
    LAST,
    LASTS,
    LENGTHS,
    MONTH,
    MONTHS,
    ORDINALS,
    SEASON,
    SEASONS,
    THESE,
    THIS,
    UNIT,
    UNITS,
    WEEKDAY,
    WEEKDAYS,
    YEAR,
    Clock,
    Stretch,
    any_of,
    count,
)

#: Characters before an expression in which its preposition stands.
PREFIX_CHARS = 32


def before(pattern: re.Pattern[str], text: str, start: int, low: int = 0) -> re.Match[str] | None:
    """What of the text before `start` ends there; the pattern closes with a dollar."""
    return pattern.search(text, max(low, start - PREFIX_CHARS), start)


def _timestamp(match: re.Match[str], clock: Clock) -> Stretch | None:
    day = date(int(match["y"]), int(match["m"]), int(match["d"]))
    if match["H"] is None:
        return clock.days(day)
    zone = match["z"] or ""
    written = f"{day.isoformat()}T{match['H']}:{match['M']}:{match['S'] or '00'}"
    written += "+00:00" if zone.upper() in ("Z", "UTC") else zone
    moment = datetime.fromisoformat(written)
    moment = moment if moment.tzinfo else moment.replace(tzinfo=clock.zone)
    moment = moment.astimezone(UTC)
    return Stretch(moment, moment + timedelta(seconds=1 if match["S"] else 60), True)


def _figures(match: re.Match[str], clock: Clock) -> Stretch | None:
    day, month = int(match["a"]), int(match["b"])
    if match["sign"] == "/" and day != month and day <= 12:
        if month <= 12:
            return None  # 3/5/2026 is March here and May there
        day, month = month, day
    year = int(match["y"] or clock.latest(month, day))
    return clock.days(date(year, month, day), exact=bool(match["y"]))


#: Months that are other words, too: names of people, verbs; and everything shortened.
_TWO_FACED = frozenset(["march", "april", "june", "august"]) | {
    name for name in MONTHS if len(name) <= 4 and name not in ("juni", "juli", "july", "märz")
}
_VERBS = frozenset(["may", "march", "mar"])
_GOES_ON = re.compile(r"\s(?:be|have|not|well|also|need|contain|we|i|it|you|on|to|the)\b", re.I)
_STAYS_VERB = re.compile(r"\s(?:be|have|not)\b", re.I)
_LEADS_MONTH = re.compile(
    r"\b(?:in|since|before|after|until|till|during|of|early|mid|late|between|im|seit|vor|nach|bis"
    rf"|ab|zwischen|vom|anfang|mitte|ende|{MONTH}\s(?:and|to|till|until|und|bis))[\s-]$",
    re.IGNORECASE,
)
# A verb after these begins its sentence: "May 3 workers share a lock?"
_BEGINS = ("", ".", "?", "!", ":", "\n")


def _dated(match: re.Match[str], clock: Clock) -> Stretch | None:
    """A month with its day, its year, both or neither."""
    if not _means_month(match):
        return None
    month, day = MONTHS[match["month"].lower()], int(match["d1"] or match["d2"] or 0)
    year = int(match["year"] or clock.latest(month, day or 1))
    exact = bool(match["year"] or match["before"])
    if match["before"]:
        year = clock.today.year - 1
    if not day:
        return clock.months(year, month, exact=exact)
    return clock.days(date(year, month, day), exact=exact)


def _means_month(match: re.Match[str]) -> bool:
    """Say whether a word that can be a name or a verb is the month here."""
    text, name = match.string, match["month"]
    verb = name.lower() in _VERBS
    if name.lower() not in _TWO_FACED:
        return True
    if match["o1"] or match["o2"]:
        return True
    if before(_LEADS_MONTH, text, match.start()):
        return not (verb and name.islower() and _STAYS_VERB.match(text, match.end()))
    if not name[0].isupper() or (verb and _GOES_ON.match(text, match.end())):
        return False
    inside = text[: match.start()].rstrip(" ")[-1:] not in _BEGINS
    year = match["year"] or match["before"]
    return bool(year or match["d1"] or (match["d2"] and (inside or not verb)))


def _quarter(match: re.Match[str], clock: Clock) -> Stretch | None:
    month = 3 * int(match["q"] or ORDINALS[match["word"].lower()]) - 2
    year = int(match["year"] or clock.latest(month))
    return clock.months(year, month, 3, exact=bool(match["year"]))


_LEADS_YEAR = re.compile(
    r"(?<![\w-])(?:in|since|before|after|until|till|during|early|mid|late|year|im|jahr|seit|vor|nach|bis"
    rf"|ab|anfang|mitte|ende|end\sof|between|zwischen|(?:between|from|zwischen|von)\s{YEAR}\s"
    r"(?:and|to|und|bis))[\s-]$", re.IGNORECASE,
)  # fmt: skip
_RANGE = re.compile(rf"\s(?:and|to|und|bis)\s{YEAR}\b", re.IGNORECASE)
_FROM = re.compile(r"\b(?:from|von)\s$", re.IGNORECASE)


def _year(match: re.Match[str], clock: Clock) -> Stretch | None:
    text, year = match.string, int(match["year"])
    led = before(_LEADS_YEAR, text, match.start()) or (
        before(_FROM, text, match.start()) and _RANGE.match(text, match.end())
    )
    if not led or year > clock.today.year + 1:
        return None
    month = match["month"]
    return clock.months(year, int(month)) if month else clock.months(year, 1, 12)


_BACK = {"yesterday": 1, "gestern": 1, "day before yesterday": 2, "vorgestern": 2}
_EVENINGS = ("last night", "yesterday evening", "gestern abend", "gestern nacht")


def _named(match: re.Match[str], clock: Clock) -> Stretch | None:
    words = " ".join(match.group().lower().split())
    if words in _EVENINGS:
        midnight, half = clock.days(clock.today).start, timedelta(hours=6)
        return Stretch(midnight - half, midnight + half, False)
    back = _BACK.get(words, _BACK.get(words.split()[0], 0))
    return clock.days(clock.today - back * DAY)


_THE = re.compile(r"\bthe\s$", re.IGNORECASE)


def _recent(match: re.Match[str], clock: Clock) -> Stretch | None:
    """This or the last of something, or the last few of it."""
    what, this = match["what"].lower(), bool(match["this"])
    if what in UNITS:
        unit, number = UNITS[what], match["n"] or ("few" if what in FEW else None)
        if this:
            return None if number else _calendar(clock, unit, 0)
        # Why: "last week" is one of the calendar, "the last week" the seven days before now.
        past = match["last"].lower() == "past" or before(_THE, match.string, match.start())
        short = unit in ("minute", "hour", "day")
        if number or short or (past and unit not in ("weekend", "night")):
            return _rolling(clock, unit, number or "1")
        return _calendar(clock, unit, 1)
    if match["n"]:
        return None
    if what in WEEKDAYS:
        back = (clock.today.weekday() - WEEKDAYS[what]) % 7
        return clock.days(clock.today - (back if this else back or 7) * DAY, exact=False)
    month, length = (SEASONS[what], 3) if what in SEASONS else (MONTHS[what], 1)
    year = clock.latest(month)
    running = clock.months(year, month, length).end > clock.now
    return clock.months(year - (running and not this), month, length, exact=False)


def _rolling(clock: Clock, unit: str, number: str) -> Stretch:
    start = clock.utc - timedelta(days=count(number) * LENGTHS[unit])
    if unit not in ("minute", "hour"):
        start = clock.days(start.astimezone(clock.zone).date()).start
    return Stretch(start, clock.utc, number.isdecimal())


def _calendar(clock: Clock, unit: str, back: int) -> Stretch | None:
    """The unit of the calendar in which today lies, or the one so many before."""
    today = clock.today
    monday = today - today.weekday() * DAY
    match unit:
        case "day":
            return clock.days(today - back * DAY)
        case "week":
            return clock.days(monday - 7 * back * DAY, 7)
        case "weekend":
            return clock.days(monday + (5 - 7 * back) * DAY, 2)
        case "month":
            return clock.months(today.year, today.month - back)
        case "quarter":
            return clock.months(today.year, (today.month - 1) // 3 * 3 + 1 - 3 * back, 3)
        case "year":
            return clock.months(today.year - back, 1, 12)
    return None


def _ago(match: re.Match[str], clock: Clock) -> Stretch | None:
    """So long ago: that day, or as much around it as the unit is long."""
    words = match["n"] or match["n2"]
    number, unit = count(words), UNITS[(match["unit"] or match["unit2"]).lower()]
    if unit == "day":
        return clock.days(clock.today - int(number) * DAY, exact=words.isdecimal() or number < 3)
    passed, length = timedelta(days=number * LENGTHS[unit]), timedelta(days=LENGTHS[unit])
    half = min(passed, length) / 2
    return Stretch(clock.utc - passed - half, clock.utc - passed + half, False)


def _since(match: re.Match[str], clock: Clock) -> Stretch | None:
    return _rolling(clock, UNITS[match["unit"].lower()], match["n"])


_LEADS_DAY = re.compile(
    r"\b(?:on|since|by|before|after|until|till|from|am|seit|bis|ab|vor|nach)\s(?:the\s|dem\s)?$",
    re.IGNORECASE,
)


def _weekday(match: re.Match[str], clock: Clock) -> Stretch | None:
    name, led = match["name"], before(_LEADS_DAY, match.string, match.start())
    # Why: "sat" and "wed" are words; "Sat" is none only behind its preposition.
    signs = (name[0].isupper(), bool(led), len(name) >= len("friday"))
    if sum(signs) < 2:
        return None
    back = (clock.today.weekday() - WEEKDAYS[name.lower()]) % 7
    return clock.days(clock.today - back * DAY, exact=False)


# Spring and fall are a framework and a verb: they need a word more.
_SEASONS_ALONE = frozenset(["summer", "sommer", "winter", "herbst"])
_LEADS_SEASON = re.compile(r"\b(?:in|during|over|im|of)\s(?:the\s)?$", re.IGNORECASE)


def _season(match: re.Match[str], clock: Clock) -> Stretch | None:
    month = SEASONS[match["name"].lower()]
    if match["year"]:
        return clock.months(int(match["year"]), month, 3, exact=False)
    if match["name"].lower() in _SEASONS_ALONE and before(
        _LEADS_SEASON, match.string, match.start()
    ):
        return clock.months(clock.latest(month), month, 3, exact=False)
    return None


# What a number or a word glued to these is: a path, a version, an option, an id.
_LEFT = r"(?:(?<![\w./\\=#@:$-])|(?<=\bmid-)|(?<=\bMid-))"
_RIGHT = r"(?![\w/\\=@(]|[-.:]\w)"
# Why: "in 2000 lines" is no year.
_COUNTED = (
    r"(?!\s{0,2}(?:ms|s|kb|mb|gb|%|\$|€|x|(?:lines?|files?|rows?|tests?|items?|bytes?|tokens?"
    r"|requests?|char(?:acter)?s?|records?|users?|cases?|errors?|commits?|words?|notes?|retries"
    r"|milliseconds?|seconds?|minutes?|hours?|days?|times|steps?|epochs?|iterations?|chunks?"
    r"|zeilen|dateien|zeichen|sekunden|minuten|stunden|tagen?|mal)\b))"
)
_DIGITS = "0"
_Rule = tuple[re.Pattern[str], Callable[[re.Match[str], Clock], Stretch | None]]
#: By the word with which an expression begins, in lower case; those in digits under _DIGITS.
# Why: a prompt has hundreds of words and names a time with one or two; the others cost a look-up.
_RULES: dict[str, list[_Rule]] = {}


def _rule(
    starts: Iterable[str],
    pattern: str,
    meaning: Callable[[re.Match[str], Clock], Stretch | None],
) -> None:
    compiled = re.compile(_LEFT + "(?:" + pattern + ")" + _RIGHT, re.IGNORECASE)
    for start in {word.split()[0] for word in starts}:
        _RULES.setdefault(start, []).append((compiled, meaning))


_rule(
    [_DIGITS],
    r"(?P<y>\d{4})(?P<sign>[-/])(?P<m>\d\d)(?P=sign)(?P<d>\d\d)(?:[T ](?P<H>\d\d):(?P<M>\d\d)"
    r"(?::(?P<S>\d\d)(?:[.,]\d{1,9})?)?\s?(?P<z>Z|UTC|[+-]\d\d:?\d\d)?)?",
    _timestamp,
)
_rule(
    [_DIGITS],
    rf"(?P<a>\d{{1,2}})(?P<sign>[./])\s?(?P<b>\d{{1,2}})(?P=sign)\s?(?P<y>{YEAR})",
    _figures,
)
_rule(
    ["am", "vom", "dem"],
    r"(?:am|vom|dem)\s(?P<a>\d{1,2})(?P<sign>\.)(?P<b>\d{1,2})\.(?P<y>)",
    _figures,
)
_rule(
    [_DIGITS, *MONTHS],
    rf"(?:(?P<d1>\d{{1,2}})(?P<o1>st|nd|rd|th|\.)?(?:\sof)?\s)?(?P<month>{MONTH})\b\.?"
    r"(?:\s(?P<d2>\d{1,2})(?P<o2>st|nd|rd|th)?(?![.:]\d|\w))?(?:(?:,?\s(?:of\s)?"
    rf"(?P<year>{YEAR})(?![.:]\d|\w))|(?P<before>,?\s(?:of\s)?(?:last\syear|letzten?s?\sjahre?s?)))?",
    _dated,
)
_rule(
    ["q1", "q2", "q3", "q4", *ORDINALS],
    rf"(?:(?-i:Q)(?P<q>[1-4])|(?P<word>{any_of(ORDINALS)})\s(?:quarter|quartal))"
    rf"(?:(?:\sof|\sin|\s?/)?\s?(?P<year>{YEAR}))?",
    _quarter,
)
_rule([_DIGITS], rf"(?P<year>{YEAR})(?:-(?P<month>0[1-9]|1[0-2]))?{_COUNTED}", _year)
_rule(
    [*_BACK, *_EVENINGS, "today", "this", "heute"],
    r"day\sbefore\syesterday|yesterday(?:\s(?:morning|afternoon|evening))?|today|last\snight"
    r"|this\s(?:morning|afternoon|evening)|vorgestern|gestern(?:\s(?:abend|nacht|früh))?|heute",
    _named,
)
_rule(
    [*LASTS, *THESE],
    rf"(?:(?P<last>{LAST})|(?P<this>{THIS}))\s(?:(?P<n>{COUNT})\s)?"
    rf"(?P<what>{UNIT}|{WEEKDAY}|{MONTH}|{SEASON})(?!\sof\b)",
    _recent,
)
_rule(
    [_DIGITS, *COUNTS, "vor"],
    rf"(?P<n>{COUNT})\s(?P<unit>{UNIT})\sago"
    rf"|vor\s(?:etwa\s|rund\s|ca\.\s)?(?P<n2>{COUNT})\s(?P<unit2>{UNIT})",
    _ago,
)
_rule(["since", "seit"], rf"(?:since|seit)\s(?P<n>{COUNT})\s(?P<unit>{UNIT})(?!\sago)", _since)
_rule(WEEKDAYS, rf"(?P<name>{WEEKDAY})", _weekday)
_rule(SEASONS, rf"(?P<name>{SEASON})(?:\s(?:of\s)?(?P<year>{YEAR}))?", _season)

_WORD = re.compile(r"[^\W_]+")
_FUTURE = re.compile(
    r"\b(?:next|every|each|any|coming|nächste[nrms]?|jede[nrms]?|kommende[nrms]?)\s$", re.I
)


def expressions(text: str, clock: Clock) -> Iterator[tuple[int, int, Stretch]]:
    """Yield the start, the end and the meaning of each, by start; of two the longer one first."""
    for word in _WORD.finditer(text):
        start = word.start()
        key = _DIGITS if text[start].isdecimal() else word.group().lower()
        rules = _RULES.get(key)
        if not rules or before(_FUTURE, text, start):
            continue
        read: list[tuple[int, int, Stretch]] = []
        for pattern, meaning in rules:
            if match := pattern.match(text, start):
                try:
                    stretch = meaning(match, clock)
                except (ValueError, OverflowError):  # no such day: 31 June, 9999 years ago
                    continue
                if stretch:
                    read.append((start, match.end(), stretch))
        yield from sorted(read, key=lambda piece: -piece[1])
