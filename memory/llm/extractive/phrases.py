"""A set of phrases as one fast pattern: what `memory.llm.extractive.cues` is written in.

It knows nothing about what the phrases are for.
"""

from __future__ import annotations

import re


def _branches(pattern: str) -> list[str]:
    """Return the top-level alternatives of a pattern."""
    found, depth, at = [], 0, 0
    for index, sign in enumerate(pattern):
        escaped = index > 0 and pattern[index - 1] == "\\"
        if escaped:
            continue
        depth += (sign in "([") - (sign in ")]")
        if sign == "|" and depth == 0:
            found.append(pattern[at:index])
            at = index + 1
    return [*found, pattern[at:]]


def _joined(branches: list[str]) -> re.Pattern[str]:
    r"""Compile alternatives so that those which begin a word are only tried where a word begins."""
    words = [branch[2:] for branch in branches if branch.startswith(r"\b")]
    others = [branch for branch in branches if not branch.startswith(r"\b")]
    return re.compile("|".join([*([rf"\b(?:{'|'.join(words)})"] if words else []), *others]))


class Cue:
    """A set of phrases. Patterns are in lower case; a text is asked in lower case.

    Alternatives in other scripts are left out for ASCII text: most text is, and it is asked often.
    """

    def __init__(self, *patterns: str) -> None:
        branches = [branch for pattern in patterns for branch in _branches(pattern)]
        self._every = _joined(branches)
        self._ascii = _joined([branch for branch in branches if branch.isascii()])

    def search(self, text: str) -> bool:
        """Return whether one of the phrases stands in the text."""
        lower = text.lower()
        return bool((self._ascii if text.isascii() else self._every).search(lower))
