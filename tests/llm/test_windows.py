"""How: bodies of known shape are cut into windows; nothing is lost, borders are honoured."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from memory.llm.ports import Passage
from memory.llm.remote.tokens import estimate
from memory.llm.remote.windows import windows

WHEN = datetime(2026, 5, 1, tzinfo=UTC)


def passage(body: str, number: int = 1, kind: str = "turn") -> Passage:
    return Passage(number, "user", body, WHEN, kind)


def test_it_cuts_turns_between_turns() -> None:
    turns = [passage("word " * 60, number) for number in range(10)]
    found = windows(turns, tokens_max=200)
    assert [[e.number for e in window] for window in found] == [
        [1, 2],
        [3, 4],
        [5, 6],
        [7, 8],
        [9, 10],
    ]
    assert all(extract.text == turns[0].body for window in found for extract in window)


def test_it_cuts_documents_at_headings() -> None:
    parts = [f"# Part {n}\n\n" + "Some sentence here. " * 30 for n in range(4)]
    found = windows([passage("\n".join(parts), kind="document")], tokens_max=200)
    assert [window[0].text.strip().split("\n")[0] for window in found] == [
        f"# Part {n}" for n in range(4)
    ]


def test_it_cuts_a_wall_without_any_border_by_length() -> None:
    body = "A" * 10_000
    found = [
        extract.text for window in windows([passage(body)], tokens_max=100) for extract in window
    ]
    assert "".join(found) == body
    assert all(estimate(text) <= 100 for text in found)


def test_it_leaves_out_empty_turns() -> None:
    assert windows([passage("  \n")]) == []


@given(st.lists(st.text(alphabet="ab .\n#数é", max_size=400), max_size=5), st.integers(5, 80))
def test_it_loses_nothing_but_blanks_and_keeps_the_limit(bodies: list[str], limit: int) -> None:
    passages = [passage(body, n) for n, body in enumerate(bodies)]
    found = windows(passages, tokens_max=limit)
    for n, body in enumerate(bodies, start=1):
        texts = [e.text for window in found for e in window if e.number == n]
        assert "".join("".join(texts).split()) == "".join(body.split())
        assert all(text in body for text in texts)
    assert all(sum(estimate(e.text) for e in window) <= limit for window in found)
