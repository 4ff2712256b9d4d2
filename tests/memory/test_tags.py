"""What tags write as HTML by themselves: every value of it is escaped, whatever stands in it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from memory.templatetags.argus import bars, buttons, counts, facts, looks, of, options, values

WILD = "<b>\"'&"
TAMED = "&lt;b&gt;&quot;&#x27;&amp;"


def one(**fields: Any) -> Any:
    return SimpleNamespace(**fields)


BAR = one(kind=WILD, x=WILD, y=1.5, width=2.0, height=3.0, label=WILD)


@pytest.mark.parametrize(
    ("written", "times"),
    [
        (options(one(options=[(WILD, WILD), ("a", "b")], value="a")), 2),
        (bars(one(bars=[BAR])), 3),
        (counts(one(rows=[(WILD, WILD, (WILD, 4))])), 3),
        (values(one(rows=[(WILD, 1_234.5)])), 1),
        (facts([(WILD, WILD)]), 2),
        (looks([one(outcome=WILD, check_kind=WILD, model=WILD)]), 3),
        (buttons(WILD, [(WILD, WILD)], [WILD], WILD), 5),
    ],
)
def test_it_escapes_every_value(written: str, times: int) -> None:
    assert WILD not in written and written.count(TAMED) == times, written


def test_it_marks_what_was_chosen() -> None:
    written = options(one(options=[("a", "A"), ("b", "B")], value="b"))
    assert written == '<option value="a">A</option><option value="b" selected>B</option>'
    assert buttons("say", [("x", "X")], ["x"], "t").count(' aria-pressed="true"') == 1
    assert '<td class="number">1,234.5</td>' in values(one(rows=[("May", 1_234.5)]))


@pytest.mark.parametrize("kind", ["gap", "size", "topic"])
@pytest.mark.parametrize("measured", [None, 31.5])
@pytest.mark.parametrize("limit", [None, 31.0])
def test_a_look_without_a_number_is_told_as_any_other(
    kind: str, measured: float | None, limit: float | None
) -> None:
    look = one(
        outcome="checked", check_kind=kind, model="", score=measured, threshold=limit, fired=True
    )
    written = looks([look])
    assert "<strong>a border</strong>" in written
    assert f"limit {'–' if limit is None else 31}" in written


def test_a_count_to_a_bound_is_many() -> None:
    told = [of(count, "verdict") for count in ("0", "1", "2", "1,000+", 1)]
    assert told == ["0 verdicts", "1 verdict", "2 verdicts", "1,000+ verdicts", "1 verdict"]
