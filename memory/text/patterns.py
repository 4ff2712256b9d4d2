"""Patterns that are compiled when they first read something, and not when their module is imported.

Compiling the tables of this package takes ten times as long as starting Python, and most runs of
the client need two patterns of them. Knows nothing about what the patterns are for.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Callable


class Late:
    """A pattern in waiting; from its first use on its verbs are the compiled pattern's own."""

    def __init__(self, source: str | Callable[[], str]) -> None:
        self.source = source

    def __getattr__(self, name: str) -> object:
        # Reached only for what is not there yet.
        if name.startswith("__"):
            raise AttributeError(name)
        import re

        source = self.source if isinstance(self.source, str) else self.source()
        compiled = re.compile(source)
        for verb in ("search", "match", "fullmatch", "finditer", "findall", "sub", "split"):
            setattr(self, verb, getattr(compiled, verb))
        self.compiled = compiled
        return getattr(self if name == "compiled" else compiled, name)


def late(source: str | Callable[[], str]) -> re.Pattern[str]:
    """Return what reads like `re.compile(source)` and has compiled nothing yet.

    Flags stand in the source. A function gives the source when it is needed. A pattern that is
    wrong raises re.error at its first use.
    """
    # Said to be what it stands for, so that its users are checked as users of a pattern.
    return Late(source)  # type: ignore[return-value]
