"""Geometry of charts: every value has its place inside the picture, and its row in the table."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest
from django.template.loader import render_to_string
from hypothesis import given
from hypothesis import strategies as st

from memory.web.charts import PLOT_WIDTH, SPARK_HEIGHT, SPARK_WIDTH, histogram, lengths, sparkline

finite = st.floats(allow_nan=False, allow_infinity=False, width=32)


def places(points: str) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in (point.split(",") for point in points.split())]


def test_it_draws_a_line_from_the_oldest_to_the_newest() -> None:
    line = sparkline([0, 1, 4, 2], label="runs")
    drawn = places(line.points)
    assert [x for x, _ in drawn] == sorted(x for x, _ in drawn)
    # More is higher up, and up is a smaller y.
    heights = [y for _, y in drawn]
    assert heights[2] < heights[3] < heights[1] < heights[0]
    assert (line.low, line.high, line.last, line.total) == (0, 4, 2, 7)
    assert line.rows == (("3", 0.0), ("2", 1.0), ("1", 4.0), ("0", 2.0))
    assert drawn[-1] == (line.x, line.y)


def test_it_draws_nothing_of_nothing_and_a_flat_line_of_zeros() -> None:
    assert sparkline([]).points == ""
    assert sparkline([]).told == "nothing yet"
    flat = places(sparkline([0, 0, 0]).points)
    assert len({y for _, y in flat}) == 1


@given(st.lists(finite, min_size=1, max_size=30))
def test_it_keeps_a_line_inside_its_picture(values: list[float]) -> None:
    drawn = places(sparkline(values).points)
    assert len(drawn) == len(values)
    assert all(0 <= x <= SPARK_WIDTH and 0 <= y <= SPARK_HEIGHT for x, y in drawn)


def test_it_stacks_the_kinds_of_a_bar_and_counts_every_value() -> None:
    plot = histogram({"sent": [1.0, 1.1, 3.0], "dropped": [1.05, -9.0]}, low=0.0, high=4.0, bars=4)
    assert plot.totals == (("sent", 3), ("dropped", 2))
    first, second, third, fourth = plot.bars
    assert [(bar.kind, bar.count) for bar in plot.bars] == [
        ("dropped", 1), ("sent", 2), ("dropped", 1), ("sent", 1),
    ]  # fmt: skip
    # What is below the scale stands in the first bar; a stack has one foot.
    assert first.x < second.x == third.x < fourth.x
    assert third.y + third.height == pytest.approx(second.y, abs=0.02)
    assert plot.rows == (("0", "1", (0, 1)), ("1", "2", (2, 1)), ("3", "4", (1, 0)))


def test_it_puts_marks_where_their_values_are_and_their_words_inside() -> None:
    plot = histogram(
        {"sent": [0.0, 10.0]}, marks=[(9.0, "tried", "tried"), (1.0, "in force", "floor")]
    )
    low, high = plot.marks
    assert (low.label, low.anchor, high.label, high.anchor) == ("in force", "start", "tried", "end")
    assert low.x < high.x
    assert low.word_y != high.word_y


@pytest.mark.parametrize(
    ("values", "anchors", "higher"),
    [
        # Close to each other they part outward, in either half and across the middle.
        ((2.0, 2.5), ["end", "start"], None),
        ((7.5, 8.0), ["end", "start"], None),
        ((4.9, 5.1), ["end", "start"], None),
        # At a rim there is no room: the word of the outer one goes over the inner line.
        ((0.1, 0.3), ["start", "start"], 0),
        ((9.7, 9.9), ["end", "end"], 1),
    ],
)
def test_no_line_of_a_mark_strikes_the_word_of_another(
    values: tuple[float, float], anchors: list[str], higher: int | None
) -> None:
    marks = [(value, "in force", "floor") for value in values]
    plot = histogram({"sent": [0.0, 10.0]}, marks=marks)
    assert [mark.anchor for mark in plot.marks] == anchors
    if higher is not None:
        outer, inner = plot.marks[higher], plot.marks[1 - higher]
        assert outer.word_y < inner.y == inner.word_y


def test_a_histogram_has_its_numbers_as_a_table_that_can_be_opened_again() -> None:
    plot = histogram({"sent": [0.0, 10.0]}, label="Notes by final score")
    table = render_to_string("ui/_histogram.html", {"plot": plot})
    assert '<details class="values" id="table-notes-by-final-score">' in table
    assert '<td class="number">0.25</td><td class="number">1</td>' in table
    assert "Steps that hold nothing are left out." in table


def test_it_takes_marks_into_the_scale_when_no_value_is_near() -> None:
    plot = histogram({"sent": [2.0, 3.0]}, marks=[(-1.8, "floor", "floor")])
    assert (plot.low, plot.high) == (-1.8, 3.0)
    assert [tick.label for tick in plot.ticks] == ["-1", "0", "1", "2", "3"]


def test_it_survives_numbers_that_are_none() -> None:
    plot = histogram({"sent": [math.nan, math.inf, 1.0]}, marks=[(math.nan, "x", "floor")])
    assert (plot.totals, plot.marks) == ((("sent", 1),), ())
    assert histogram({"sent": []}).bars == ()


@given(st.lists(finite, max_size=60), st.lists(finite, max_size=60))
def test_it_loses_no_value_and_leaves_no_picture(sent: list[float], dropped: list[float]) -> None:
    plot = histogram({"sent": sent, "dropped": dropped})
    assert sum(bar.count for bar in plot.bars) == len(sent) + len(dropped)
    assert sum(sum(counts) for *_, counts in plot.rows) == len(sent) + len(dropped)
    for bar in plot.bars:
        assert bar.x >= 0 and bar.x + bar.width <= PLOT_WIDTH
        assert bar.y >= 0 and bar.y + bar.height <= plot.base + 0.1


def test_it_draws_lengths_on_one_scale() -> None:
    bars = lengths({"ask": 5.0, "embed": 10.0, "none": 0.0})
    assert [row.width for row in bars.rows] == [bars.width / 2, bars.width, 0.0]
    assert [row.width for row in lengths({"none": 0.0}).rows] == [0.0]


@pytest.mark.parametrize(
    ("template", "context"),
    [
        ("ui/_sparkline.html", {"spark": sparkline([1, 2], label="<b>runs</b>")}),
        (
            "ui/_histogram.html",
            {
                "plot": histogram(
                    {"sent": [0.25, 0.5]}, label="<b>x</b>", marks=[(0.3, "f", "floor")]
                )
            },
        ),
        ("ui/_lengths.html", {"bars": lengths({"<b>": 1.25}), "unit": "ms"}),
    ],
)
def test_it_is_drawn_without_a_style_and_with_its_words_escaped(
    template: str, context: dict[str, Any]
) -> None:
    drawn = render_to_string(template, context)
    assert "<b>" not in drawn and "style=" not in drawn
    assert "<svg" in drawn


def test_a_sparkline_has_its_numbers_as_a_table_that_can_be_opened() -> None:
    drawn = sparkline([1200.0, 0.5], label="<b>runs</b>", names=["<i>one</i>", "two"])
    table = render_to_string("ui/_sparkline_table.html", {"spark": drawn, "each": "day"})
    assert "<details" in table and '<th scope="col">day</th>' in table
    assert "<b>" not in table and "<i>" not in table and "style=" not in table
    cells = re.findall(r'<th scope="row">(.*?)</th><td class="number">(.*?)</td>', table)
    assert cells == [("&lt;i&gt;one&lt;/i&gt;", "1,200"), ("two", "0.5")]
    assert "<table" not in render_to_string("ui/_sparkline_table.html", {"spark": sparkline([])})
