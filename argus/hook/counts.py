"""What became of the lines of a range, as the server hears it. Knows nothing about lines."""

from __future__ import annotations

from typing import Any


class Counts:
    """What became of the lines of a range; `seen` = `filtered` + `posted`."""

    def __init__(self, kept: dict[str, Any] | None = None) -> None:
        kept = kept or {}
        self.seen = _number(kept.get("seen"))
        self.filtered = _number(kept.get("filtered"))
        self.posted = 0
        self.reasons: dict[str, int] = _numbers(kept.get("reasons"))
        self.redacted: dict[str, int] = _numbers(kept.get("redacted"))

    def leave_out(self, reason: str) -> None:
        self.seen += 1
        self.filtered += 1
        self.reasons[reason] = self.reasons.get(reason, 0) + 1

    def as_json(self) -> dict[str, Any]:
        return dict(vars(self))


def _number(value: Any) -> int:
    return value if isinstance(value, int) else 0


def _numbers(value: Any) -> dict[str, int]:
    return {k: v for k, v in value.items() if isinstance(v, int)} if isinstance(value, dict) else {}
