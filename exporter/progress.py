"""How far an export is, told to whoever watches: nobody, unless a command asks for a bar.

Knows nothing about what is counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from tqdm import tqdm

_watched: ContextVar[bool] = ContextVar("watched", default=False)


@contextmanager
def watched() -> Iterator[None]:
    """Bars within this block are shown, where there is a terminal."""
    token = _watched.set(True)
    try:
        yield
    finally:
        _watched.reset(token)


@contextmanager
def bar(total: int, unit: str = "file") -> Iterator[Callable[[int], object]]:
    """What is told how many more are done; a bar where somebody watches."""
    # `disable=None`: a bar on a terminal only.
    with tqdm(
        total=total, unit=unit, disable=None if _watched.get() else True, leave=False
    ) as shown:
        yield shown.update
