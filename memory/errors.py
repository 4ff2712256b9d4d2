"""What can go wrong, as one tree: the class says what to do about it.

The message of an error is its docstring unless a better one is given. Knows nothing about HTTP,
Django or who raises what; only the model client turns answers of a server into these.
"""

from __future__ import annotations

from typing import Any


class ArgusError(Exception):
    """Argus could not do what was asked."""

    #: For whoever asked, in the message's place, where more can be said than may be kept: messages
    #: are kept with runs, outlive a purge, and are read by others.
    told: str = ""
    #: What was done before it: a report, a dataclass; None where there is none.
    report: Any = None

    def __init__(self, message: str = "") -> None:
        super().__init__(message or (type(self).__doc__ or "").strip().split("\n")[0])


class InfraError(ArgusError):
    """Something we need is away; nothing is counted against the unit, try again later."""

    #: Seconds that the other side asked us to wait, or None.
    retry_after: float | None

    def __init__(self, message: str = "", retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class BudgetExhausted(InfraError):
    """The token budget of the day is spent; background work waits for the next day."""


class ContentError(ArgusError):
    """The answer cannot be used; this counts towards parking the unit, with the raw answer kept."""

    #: What the other side said, unchanged.
    raw: str

    def __init__(self, message: str = "", raw: str = "") -> None:
        super().__init__(message)
        self.raw = raw


class RefusedError(ArgusError):
    """The input is refused for a reason that trying again will not change."""

    #: One word for counting.
    reason: str

    def __init__(self, message: str = "", reason: str = "refused") -> None:
        super().__init__(message)
        self.reason = reason


class Confidential(RefusedError):
    """The text may not leave for this provider."""

    def __init__(self, message: str = "") -> None:
        super().__init__(message, reason="confidential")


class ConfigurationError(ArgusError):
    """A setting has a value that is not allowed."""


class NotFound(ArgusError):
    """There is no such thing, or it is not yours to see."""


class Forbidden(ArgusError):
    """This principal may not do that."""


class Conflict(ArgusError):
    """Someone else decided meanwhile."""
