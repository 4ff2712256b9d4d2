"""The vectors of the last queries, so that one prompt that is asked about twice is embedded once.

Knows nothing about models. Safe to call from several threads.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable

from memory.llm.vectors import Vector
from memory.text.identity import sha256

#: Queries whose vector is remembered.
# Why: hooks ask twice for one prompt (retry, several tools), and 3 kB each is nothing.
# Calibrate: hit rate in a day of prompts.
QUERIES_KEPT_MAX = 512


class Recent:
    """Vectors by the hash of their query; the one asked for longest ago goes first."""

    def __init__(self, room: int = QUERIES_KEPT_MAX) -> None:
        self._room = room
        self._lock = threading.Lock()
        self._vectors: OrderedDict[str, Vector] = OrderedDict()

    def of(self, query: str, make: Callable[[], Vector]) -> Vector:
        """The vector of the query, made when it is not remembered; two may make it at once."""
        key = sha256(query)
        with self._lock:
            if key in self._vectors:
                self._vectors.move_to_end(key)
                return self._vectors[key]
        vector = make()
        with self._lock:
            self._vectors[key] = vector
            while len(self._vectors) > self._room:
                self._vectors.popitem(last=False)
        return vector
