"""What a question asks for and whom it names, read from its words alone. Pure.

Knows nothing about candidates or about how they are ordered.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from memory.lexical import lexeme, lexemes
from recall.calendar import MONTH_NAMES

_KINDS = {
    "when": r"\bwhen\b|\bwhat (?:date|day|month|year|time)\b|\bwhich (?:year|month|day)\b"
    r"|^how (?:long|often)\b|\bwann\b|\bseit wann\b|\bwie (?:lange|oft)\b",
    "where": r"\bwhere\b|\bwhich\b|\bname of\b|\bwhat (?:game|book|movie|city|country|place|band)\b"
    r"|\bwo(?:hin|her)?\b|\bwelche[rnsm]?\b",
    "many": r"\bhow (?:many|much|often|long|old)\b|\bwie (?:viele?|oft|lange|alt)\b",
    "why": r"\bwhy\b|\breason\b|\bwhat (?:inspired|motivat\w+|made)\b"
    r"|\bwarum\b|\bwieso\b|\bgrund\b",
    "several": r"^(?:what|which)(?: \w+){0,2} \w+s\b|^welche \w+(?:en|e)\b",
}
_PATTERNS = {kind: re.compile(pattern, re.IGNORECASE) for kind, pattern in _KINDS.items()}

#: What a question can ask for; one may be of several kinds. Those that a feature is crossed with.
KINDS = tuple(_KINDS)

_NUMBER = re.compile(r"\d+(?:st|nd|rd|th)?$")
_MONTHS = frozenset(map(lexeme, MONTH_NAMES))
_NAME = re.compile(r"\b([^\W\d_][\w\-]*)(['’]s\b|['’](?!\w))?")
_JOINED = re.compile(r"\bI(?:,? (?:and|und|&|or|oder) )I\b|\bI,? (?:and|und) my\b")


def kinds(text: str) -> frozenset[str]:
    """Which of KINDS a question is."""
    text = text.strip()
    return frozenset(kind for kind, pattern in _PATTERNS.items() if pattern.search(text))


def of_date(word: str) -> bool:
    """Whether a query term is a part of a date: a number or the (stemmed) name of a month."""
    return word in _MONTHS or bool(_NUMBER.match(word))


def impersonate(text: str, speakers: Collection[str]) -> str:
    """The question as the one who is asked about would say it: a speaker's name becomes I or my.

    What a person says of themselves names nobody, and a vector of it lies far from any question
    that does. `speakers` are the names as the index keeps them; nobody named: the text as it came.
    """
    if not speakers:
        return text

    def said(match: re.Match[str]) -> str:
        name, owns = match.groups()
        if name[:1].isupper() and _is_named(name, speakers):
            return "my" if owns else "I"
        return match.group(0)

    return _JOINED.sub(_together, _NAME.sub(said, text))


def _together(match: re.Match[str]) -> str:
    return "our" if match.group().endswith("my") else "we"


def _is_named(name: str, speakers: Collection[str]) -> bool:
    return any(part in speakers for part in lexemes(name))
