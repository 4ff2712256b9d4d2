"""Log lines: no vectors, no end without a word."""

from __future__ import annotations

import logging

from argus.logs import LINE_CHARACTERS_MAX, ShortFormatter, shorten


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
