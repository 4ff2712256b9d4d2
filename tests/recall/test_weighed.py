"""What was read of the ledger once is remembered, to a bound: what nobody asks for goes first."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from recall.weighed import Weighed, _Remembered

pytestmark = pytest.mark.django_db


def row(pk: int) -> Weighed:
    return Weighed(pk, "", ())


def test_it_forgets_first_what_was_read_longest_ago() -> None:
    kept = _Remembered(most=3)
    kept.put({pk: row(pk) for pk in (1, 2, 3)})
    assert set(kept.get([1])) == {1}
    kept.put({4: row(4)})
    assert set(kept.get([1, 2, 3, 4])) == {1, 3, 4}


def test_many_threads_fill_it_to_its_bound_at_once() -> None:
    kept = _Remembered(most=5)

    def work(first: int) -> None:
        for pk in range(first, first + 300):
            kept.put({pk: row(pk)})
            kept.get([pk, first])

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(0, 800, 100)))
    assert len(kept.get(range(1_200))) == 5
