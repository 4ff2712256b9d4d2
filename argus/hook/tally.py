"""How much this machine sent, for whoever asks how it stands: sums, and no word of what was said.

A process counts what was acknowledged and adds it to one small file at its end. Knows nothing about
posts but their counts.
"""

from __future__ import annotations

import json
import time
from typing import Any

from argus.hook import home, sessions, trouble

#: Seconds for which another's addition is waited for.
WAIT_SECONDS = 1.0


class Tally:
    """What was acknowledged since the last `keep`."""

    def __init__(self) -> None:
        self._clear()

    def _clear(self) -> None:
        self.posts = self.items = self.filtered = 0
        self.redacted: dict[str, int] = {}

    def add(self, stored: int, told: dict[str, Any]) -> None:
        """Count one post: items that the server stored, and the range that was told with them."""
        self.posts += 1
        self.items += stored
        counts = told.get("range") or {}
        self.filtered += counts.get("filtered", 0)
        for name, count in counts.get("redacted", {}).items():
            self.redacted[name] = self.redacted.get(name, 0) + count

    def keep(self) -> None:
        """Add it to the file; what cannot be added now waits for the next time."""
        if not self.posts:
            return
        try:
            held = sessions.take("sent", WAIT_SECONDS)
            if held is None:
                return
            try:
                home.private("hook")
                home.write(home.place("hook", "sent.json"), json.dumps(self._sum(sent())).encode())
            finally:
                sessions.leave(held)
        except OSError as error:
            trouble.log(f"the counts of what was sent cannot be kept: {error.strerror}")
            return
        self._clear()

    def _sum(self, kept: dict[str, Any]) -> dict[str, Any]:
        now = trouble.stamp(time.time())
        names = sorted({*kept["redacted"], *self.redacted})
        return {
            "since": kept["since"] or now,
            "posts": kept["posts"] + self.posts,
            "items": kept["items"] + self.items,
            "redacted": {
                name: kept["redacted"].get(name, 0) + self.redacted.get(name, 0) for name in names
            },
            "filtered": kept["filtered"] + self.filtered,
            "last": now,
        }


def sent() -> dict[str, Any]:
    """What was ever sent: `since` and `last` (instants, "" for never), `posts`, `items` that the
    server stored, `redacted` by name, lines `filtered`. A file that is none counts as none."""
    found: dict[str, Any] = {
        "since": "", "posts": 0, "items": 0, "redacted": {}, "filtered": 0, "last": "",
    }  # fmt: skip
    try:
        with open(home.place("hook", "sent.json"), encoding="utf-8") as handle:
            kept = json.load(handle)
    except (OSError, ValueError, RecursionError):
        return found
    for name in found:
        value = kept.get(name) if isinstance(kept, dict) else None
        if type(value) is type(found[name]):
            found[name] = value
    counts = found["redacted"].items()
    found["redacted"] = {name: count for name, count in counts if type(count) is int}
    return found
