"""Whether work grows with its input and not faster, on a machine that is busy with other things.

Processor time of this process, the best of several: only more work makes it longer.
"""

from __future__ import annotations

import time
from collections.abc import Callable

#: Eight times the input may take this many times as long.
# Why: quadratic would be 64 times; caches and the collector make linear work ten times, at times.
GROWTH_MAX = 40

#: Below this the small run is noise.
FLOOR_SECONDS = 0.002


def cpu_seconds(work: Callable[[], object], runs: int = 3) -> float:
    """Processor seconds of the quickest of several runs."""
    best = float("inf")
    for _ in range(runs):
        begun = time.process_time()
        work()
        best = min(best, time.process_time() - begun)
    return best


def growth(work: Callable[[int], object], size: int) -> float:
    """How many times as long the work takes on eight times the size."""
    small = cpu_seconds(lambda: work(size))
    # Why once: what is quadratic is far over the limit, and takes long.
    large = cpu_seconds(lambda: work(8 * size), runs=1)
    if large > GROWTH_MAX * max(small, FLOOR_SECONDS):
        large = cpu_seconds(lambda: work(8 * size), runs=2)
    return large / max(small, FLOOR_SECONDS)
