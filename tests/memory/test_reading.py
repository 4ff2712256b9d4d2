"""How far behind a standby is, by what both servers said; and that without one nothing changes."""

from __future__ import annotations

import pytest

from memory.reading import Mark, anywhere, lag_seconds, look, server

MARKS = [Mark(10.0, 100), Mark(11.0, 200), Mark(12.0, 300)]


@pytest.mark.parametrize(
    ("replayed", "lag"),
    [
        (300, 0.0),
        # All the primary had written when it was asked, and more: a quiet primary is no lag.
        (320, 0.0),
        (299, 1.5),
        (250, 1.5),
        (100, 2.5),
        (99, None),
    ],
)
def test_it_knows_at_most_how_far_behind_a_standby_is(replayed: int, lag: float | None) -> None:
    assert lag_seconds(MARKS, replayed=replayed, at=12.5) == lag


def test_it_says_that_it_does_not_know_before_it_has_asked() -> None:
    assert lag_seconds([], replayed=5, at=1.0) is None


@pytest.mark.django_db
def test_it_reads_where_everything_is_when_no_standby_is_set() -> None:
    found, read = anywhere(lambda: server().alias)
    assert (found, read, look()) == ("default", None, None)
