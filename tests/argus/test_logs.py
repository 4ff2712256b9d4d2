"""Log lines: no vectors, no end without a word."""

from __future__ import annotations

import logging

import pytest

from argus.logs import LINE_CHARACTERS_MAX, READ_CHARACTERS_MAX, ShortFormatter, shorten
from tests.growth import GROWTH_MAX, cpu_seconds, growth


def test_it_cuts_a_vector_wherever_it_stands() -> None:
    vector = ",".join(f"{number / 7:.6f}" for number in range(768))
    for text in (f"[{vector}]", vector.replace(",", ", "), f"... '[{vector}]'::halfvec ..."):
        assert "<768 numbers>" in shorten(text)
        assert "0.142857" not in shorten(text)


def test_it_leaves_short_lists_and_versions_alone() -> None:
    text = "ports 5432, 5433, 5434; version 18.6, at 2026-11-29 20:56:58,079"
    assert shorten(text) == text


def test_it_cuts_the_traceback_too() -> None:
    try:
        raise ValueError("[" + ", ".join(["1e-05"] * 20) + "]")
    except ValueError as error:
        record = logging.LogRecord(
            "argus", logging.ERROR, "", 0, "it broke", None, (ValueError, error, None)
        )
    assert "ValueError: [<20 numbers>]" in ShortFormatter().format(record)


def test_it_says_how_long_a_cut_line_was() -> None:
    huge = "x" * (LINE_CHARACTERS_MAX + 1)
    assert shorten(huge).endswith(f"({len(huge)} characters)")


@pytest.mark.parametrize("unit", ["1", "1.", "1,", "1 ", "-1e", "a", ".", "1, "])
def test_it_is_not_held_up_by_what_somebody_sends(unit: str) -> None:
    assert growth(lambda chars: shorten(unit * (chars // len(unit))), 8_000) <= GROWTH_MAX
    assert cpu_seconds(lambda: shorten(unit * 400_000)) < 2


@pytest.mark.parametrize(
    "line",
    ["Not Found: /nope/{}", "Invalid HTTP_HOST header: '{}'. You may need", "GET /x?token={} 404"],
)
def test_it_hides_a_secret_wherever_it_stands(line: str) -> None:
    secret = "ghp_" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7" + "aB3dE6gH9"
    record = logging.LogRecord("django", logging.WARNING, "", 0, line, None, None)
    record.msg = line.format(secret)
    written = ShortFormatter().format(record)
    assert secret not in written
    assert "[redacted:" in written


def test_it_says_how_long_a_line_was_that_was_not_read_to_the_end() -> None:
    huge = "1," * READ_CHARACTERS_MAX
    assert shorten(huge).endswith(f"({len(huge)} characters)")
