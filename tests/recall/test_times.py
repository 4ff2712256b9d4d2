"""Times that a question names: what is one, what only looks like one, and which days are meant."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recall.times import WINDOWS_MAX, windows
from tests.growth import GROWTH_MAX, growth

BERLIN = ZoneInfo("Europe/Berlin")
#: A Wednesday.
NOW = datetime(2026, 6, 17, 15, 30, tzinfo=BERLIN)


def read(question: str, now: datetime = NOW) -> list[tuple[str, str]]:
    """The windows in local days, and hours where they are no midnight."""

    def local(moment: datetime) -> str:
        return f"{moment.astimezone(now.tzinfo):%Y-%m-%d %H:%M}".removesuffix(" 00:00")

    return [(local(window.start), local(window.end)) for window in windows(question, now=now)]


@pytest.mark.parametrize(
    ("question", "start", "end"),
    [
        ("what did we decide yesterday", "2026-06-16", "2026-06-17"),
        ("the day before yesterday", "2026-06-15", "2026-06-16"),
        ("what broke today?", "2026-06-17", "2026-06-18"),
        ("last night's run", "2026-06-16 18:00", "2026-06-17 06:00"),
        ("what broke last week", "2026-06-08", "2026-06-15"),
        ("this week", "2026-06-15", "2026-06-22"),
        ("last weekend", "2026-06-13", "2026-06-15"),
        ("31 June 2026", "2026-06-01", "2026-07-01"),
        ("last month's deploys", "2026-05-01", "2026-06-01"),
        ("this year", "2026-01-01", "2027-01-01"),
        ("last quarter", "2026-01-01", "2026-04-01"),
        ("during the past week", "2026-06-10", "2026-06-17 15:30"),
        ("in the last 3 days", "2026-06-14", "2026-06-17 15:30"),
        ("in the last two hours", "2026-06-17 13:30", "2026-06-17 15:30"),
        ("3 days ago", "2026-06-14", "2026-06-15"),
        ("an hour ago", "2026-06-17 14:00", "2026-06-17 15:00"),
        ("two weeks ago we chose redis", "2026-05-31 03:30", "2026-06-07 03:30"),
        ("since Monday", "2026-06-15", "2026-06-17 15:30"),
        ("last Friday", "2026-06-12", "2026-06-13"),
        ("last Wednesday", "2026-06-10", "2026-06-11"),
        ("on Wednesday", "2026-06-17", "2026-06-18"),
        ("on Sat we deployed", "2026-06-13", "2026-06-14"),
        ("what changed before March", "1970-01-01 01:00", "2026-03-01"),
        ("after May", "2026-06-01", "2026-06-17 15:30"),
        ("by July 10, 2022", "1970-01-01 01:00", "2022-07-11"),
        ("in May", "2026-05-01", "2026-06-01"),
        ("in may", "2026-05-01", "2026-06-01"),
        ("in June", "2026-06-01", "2026-07-01"),
        ("in July", "2025-07-01", "2025-08-01"),
        ("in May 2025", "2025-05-01", "2025-06-01"),
        ("in May last year", "2025-05-01", "2025-06-01"),
        ("the October release", "2025-10-01", "2025-11-01"),
        ("mid-May", "2026-05-11 08:00", "2026-05-21 16:00"),
        ("the first half of September 2025", "2025-09-01", "2025-09-16"),
        ("3 May", "2026-05-03", "2026-05-04"),
        ("on May 3rd, 2026", "2026-05-03", "2026-05-04"),
        ("the 3rd of May 2026", "2026-05-03", "2026-05-04"),
        ("25 December", "2025-12-25", "2025-12-26"),
        ("on 2026-05-03", "2026-05-03", "2026-05-04"),
        ("2026/05/03", "2026-05-03", "2026-05-04"),
        ("05/13/2026", "2026-05-13", "2026-05-14"),
        ("it failed at 2026-05-03T10:11Z", "2026-05-03 12:11", "2026-05-03 12:12"),
        ("2026-05-03T10:11:12+02:00", "2026-05-03 10:11", "2026-05-03 10:11"),
        ("in 2025", "2025-01-01", "2026-01-01"),
        ("since 2025", "2025-01-01", "2026-06-17 15:30"),
        ("Q3", "2025-07-01", "2025-10-01"),
        ("Q1 2026", "2026-01-01", "2026-04-01"),
        ("third quarter of 2025", "2025-07-01", "2025-10-01"),
        ("last summer", "2025-06-01", "2025-09-01"),
        ("summer 2021", "2021-06-01", "2021-09-01"),
        ("between March and May", "2026-03-01", "2026-06-01"),
        ("from 2024 to 2025", "2024-01-01", "2026-01-01"),
        ("between November and February", "2025-11-01", "2026-03-01"),
        ("the Sunday before October 25, 2022", "2022-10-18", "2022-10-25"),
        ("the week after 3 May 2026", "2026-05-04", "2026-05-11"),
        ("heute", "2026-06-17", "2026-06-18"),
        ("was haben wir gestern entschieden", "2026-06-16", "2026-06-17"),
        ("letzte Woche", "2026-06-08", "2026-06-15"),
        ("im Mai", "2026-05-01", "2026-06-01"),
        ("am 3. Mai 2026", "2026-05-03", "2026-05-04"),
        ("am 3.5. war das", "2026-05-03", "2026-05-04"),
        ("3.5.2026", "2026-05-03", "2026-05-04"),
        ("vor drei Tagen", "2026-06-14", "2026-06-15"),
        ("in den letzten 3 Tagen", "2026-06-14", "2026-06-17 15:30"),
        ("seit zwei Wochen", "2026-06-03", "2026-06-17 15:30"),
        ("seit März", "2026-03-01", "2026-06-17 15:30"),
        ("letzten Sommer", "2025-06-01", "2025-09-01"),
        ("zwischen März und Mai", "2026-03-01", "2026-06-01"),
    ],
)  # fmt: skip
def test_it_reads_the_time_that_is_named(question: str, start: str, end: str) -> None:
    assert read(question) == [(start, end)]


@pytest.mark.parametrize(
    "question",
    [
        "",
        "may I march on with python 3.11 and django 2024.1 on port 2025?",
        "May I use 3 workers?",
        "May 3 workers share a lock?",
        "it may 3 times fail, and we march 5 steps",
        "fix ABC-2024 in v2.0.1, PR #2025 at src/app/2024/foo.py",
        "it takes 2025 ms in 2025 lines of code, after 2000 requests",
        "ports 2025 and 2026, or from 2000 to 4000",
        "logs/2026-05-03.txt and 2026-05-03-notes.md",
        "`since 2025-01-01` is what the flag --since 2025 means",
        "```\n2026-05-03 10:11 started\n```",
        "spring boot may fall through",
        "Sat on a chair, he sat and wed",
        "next week, every Monday, on Mondays",
        "03/05/2026 is two days",
        "9999 years ago",
        "the last 3 commits, the last time, this file",
        "quantised as Q4_K_M",
        "sep=',' and Mar. x",
        "for a day or two",
    ],
)
def test_it_reads_no_time_in_what_only_looks_like_one(question: str) -> None:
    assert read(question) == []


def test_it_says_which_words_it_read_and_whether_it_had_a_choice() -> None:
    first, second = windows("what broke since early May, and on 2026-05-03?", now=NOW)
    assert (first.said.text, first.exact) == ("since early May", False)
    assert (second.said.text, second.exact) == ("2026-05-03", True)


def test_it_means_the_days_of_the_clocks_own_zone() -> None:
    early = datetime(2026, 6, 17, 1, tzinfo=BERLIN)
    (here,) = windows("yesterday", now=early)
    (there,) = windows("yesterday", now=early.astimezone(UTC))
    assert here.start == datetime(2026, 6, 15, 22, tzinfo=UTC)
    assert there.start == datetime(2026, 6, 15, tzinfo=UTC)
    # The day on which the clocks go forward has 23 hours.
    (short,) = windows("on 2026-03-29", now=NOW)
    assert (short.end - short.start).total_seconds() == 23 * 3600


def test_it_refuses_a_clock_without_a_zone() -> None:
    with pytest.raises(ValueError):
        windows("yesterday", now=datetime(2026, 6, 17))


def test_it_asks_about_no_time_in_a_pasted_log() -> None:
    lines = [f"2026-05-{day:02} started" for day in range(1, WINDOWS_MAX + 2)]
    assert len(windows("\n".join(lines[:-1]), now=NOW)) == WINDOWS_MAX
    assert windows("\n".join(lines), now=NOW) == ()


PIECES = (  # noqa: SIM905
    "in|May|last|3|days|ago|2025|since|before|the week before|Monday|2026-02-29|29 February|Q4"
    "|between|and|vor|zwei|Monaten|letzte|Woche|early|31.|Dezember|9999|years|`|summer"
).split("|")


@given(
    st.one_of(st.text(), st.lists(st.sampled_from(PIECES)).map(" ".join)),
    st.datetimes(
        datetime(1971, 1, 1),
        datetime(2098, 12, 31),
        timezones=st.sampled_from([UTC, BERLIN, ZoneInfo("Asia/Kathmandu")]),
    ),
)
def test_it_gives_ordered_windows_for_any_words_at_any_time(text: str, now: datetime) -> None:
    for window in windows(text, now=now):
        assert window.start < window.end
        assert window.start.utcoffset() == window.end.utcoffset() == UTC.utcoffset(None)
        if "`" not in text:
            assert text[window.said.start : window.said.end] == window.said.text


@pytest.mark.parametrize(
    "piece", ["last ", "the day ", "1 ", "2025 may ", "`", "``` ", "-", "vor "]
)
def test_it_takes_no_longer_than_the_text(piece: str) -> None:
    def work(size: int) -> None:
        text = piece * (size // len(piece))
        windows(text, now=NOW)

    assert growth(work, 2_000) < GROWTH_MAX
