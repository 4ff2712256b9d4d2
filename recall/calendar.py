"""Days, months and the words for them in English and German.

Pure. Knows nothing about sentences: `recall.dates` reads expressions, `recall.times` questions.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo

#: Years that a number can be.
# Why: nothing was captured before; a number further off is a port, a size or a count.
YEAR_MIN, YEAR_MAX = 1970, 2099

DAY = timedelta(days=1)


@dataclass(frozen=True)
class Stretch:
    """From `start` up to and without `end`, in UTC; `exact` when no other reading was possible."""

    start: datetime
    end: datetime
    exact: bool


@dataclass(frozen=True)
class Clock:
    """The moment from which is counted, and the zone whose days are meant."""

    now: datetime
    zone: tzinfo

    @property
    def today(self) -> date:
        return self.now.date()

    @property
    def utc(self) -> datetime:
        return self.now.astimezone(UTC)

    def days(self, first: date, count: int = 1, exact: bool = True) -> Stretch:
        """So many days from the midnight that begins `first`."""
        return Stretch(self._midnight(first), self._midnight(first + count * DAY), exact)

    def months(self, year: int, month: int, count: int = 1, exact: bool = True) -> Stretch:
        """So many months from the first of this one, which may be counted from another year."""
        first, after = (
            date(index // 12, index % 12 + 1, 1)
            for index in (year * 12 + month - 1, year * 12 + month - 1 + count)
        )
        return Stretch(self._midnight(first), self._midnight(after), exact)

    def latest(self, month: int, day: int = 1) -> int:
        """The year in which this day of the year has begun last."""
        return self.today.year - ((month, day) > (self.today.month, self.today.day))

    def _midnight(self, day: date) -> datetime:
        return datetime(day.year, day.month, day.day, tzinfo=self.zone).astimezone(UTC)


def _numbered(lines: str, start: int = 0) -> dict[str, int]:
    """The words of each line under its number."""
    return {
        word: number
        for number, line in enumerate(lines.strip().split("\n"), start)
        for word in line.split()
    }


MONTHS = _numbered(
    """
january jan januar jänner
february feb februar
march mar märz maerz
april apr
may mai
june jun juni
july jul juli
august aug
september sept sep
october oct oktober okt
november nov
december dec dezember dez
""",
    start=1,
)
#: The whole English names, as texts are dated with them: "jan" can be a person.
MONTH_NAMES = tuple({number: name for name, number in reversed(MONTHS.items())}.values())[::-1]
WEEKDAYS = _numbered("""
monday mon montag
tuesday tue tues dienstag
wednesday wed mittwoch
thursday thu thurs donnerstag
friday fri freitag
saturday sat samstag sonnabend
sunday sonntag
""")
# The month that begins each.
SEASONS = {
    "spring": 3, "frühling": 3, "frühjahr": 3, "summer": 6, "sommer": 6,
    "autumn": 9, "fall": 9, "herbst": 9, "winter": 12,
}  # fmt: skip
_UNITS_LINES = (
    "minute minutes minuten", "hour hours stunde stunden", "day days tag tage tagen",
    "week weeks woche wochen", "weekend wochenende", "night nacht",
    "month months monat monate monaten monats", "quarter quarters quartal quartale quartalen",
    "year years jahr jahre jahren jahres",
)  # fmt: skip
UNITS = {word: line.split()[0] for line in _UNITS_LINES for word in line.split()}
FEW = frozenset("days weeks months years tage tagen wochen monaten jahren".split())  # noqa: SIM905
#: Days of a unit, where a length must be known.
LENGTHS = {
    "minute": 1 / 1440, "hour": 1 / 24, "day": 1.0, "night": 1.0, "week": 7.0, "weekend": 7.0,
    "month": 30.44, "quarter": 91.3, "year": 365.25,
}  # fmt: skip
_COUNTS_LINES: tuple[tuple[float, str], ...] = (
    (0.5, "half a|half an|einer halben|einem halben"),
    (1, "a|an|one|ein|eine|einem|einer|einen"), (2, "two|a couple of|couple of|zwei"),
    (3, "three|a few|few|drei|ein paar|paar|einigen"), (4, "four|several|vier|mehreren"),
    (5, "five|fünf"), (6, "six|sechs"), (7, "seven|sieben"), (8, "eight|acht"), (9, "nine|neun"),
    (10, "ten|zehn"), (11, "eleven|elf"), (12, "twelve|zwölf"),
)  # fmt: skip
COUNTS = {word: number for number, line in _COUNTS_LINES for word in line.split("|")}
ORDINALS = _numbered("first erstes ersten\nsecond zweites zweiten\nthird drittes dritten\n"
                      "fourth viertes vierten", start=1)  # fmt: skip


def any_of(words: Iterable[str]) -> str:
    """The pattern of any of these, the longest first."""
    longest = sorted(words, key=len, reverse=True)
    return "(?:" + "|".join(word.replace(" ", r"\s") for word in longest) + ")"


MONTH, WEEKDAY, SEASON, UNIT = any_of(MONTHS), any_of(WEEKDAYS), any_of(SEASONS), any_of(UNITS)
COUNT = rf"(?:\d{{1,4}}|{any_of(COUNTS)})"
YEAR = r"(?:19[7-9]\d|20\d\d)"
LASTS = ["last", "past", "previous"] + [
    stem + ending
    for stem in ("letzte", "vorige", "vergangene")
    for ending in ("", "n", "r", "m", "s")
]
THESE = ["this", "diese", "diesen", "dieser", "diesem", "dieses"]
LAST, THIS = any_of(LASTS), any_of(THESE)


def count(word: str) -> float:
    """The number that digits or a number's word say."""
    return float(word) if word.isdecimal() else COUNTS[" ".join(word.lower().split())]
