"""The lexical half of finding notes: what is indexed of a text, and what a query asks for.

Shared by recall and dedup. Terms come from `memory.text`, because Postgres cannot segment CJK and
splits identifiers; Postgres only stores and ranks them. Reads: pg_stats (for common terms).
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from django.contrib.postgres.search import SearchQuery
from django.db import connection

from memory.text.stem import stem
from memory.text.words import terms, words

#: Positions kept of one term in one text; Postgres's own limit.
POSITIONS_MAX = 255

#: Share of the notes that hold a term from which on it is dropped from queries.
# Why: measured on 10k texts, dropping terms in over 20 % costs no quality and saves five sixths
# of the time of the lexical track.
# Calibrate: recall@5 of the lexical track with and without, see tests/bench.
COMMON_SHARE_MAX = 0.20

#: Notes that one term of a query may bring to be ranked; a term of more is common, too.
# Why: ranking costs some 2 ms for a thousand notes, whatever the share; so the lexical track costs
# the same at 100,000 notes as at 10,000.
# Calibrate: recall@5 and p50 of the lexical track at 100,000 notes, by halving and doubling.
TERM_NOTES_MAX = 2_000

#: Common terms asked for when a query has no other; the rarest of them.
COMMON_TERMS_ASKED_MAX = 3

#: Terms of one query; the rarest are kept when there are more.
QUERY_TERMS_MAX = 24

NOTHING: Mapping[str, float] = {}

#: Seconds that the list of common terms is believed.
COMMON_TERMS_SECONDS = 60.0


def lexemes(text: str) -> list[str]:
    """Stemmed terms of a text, in order, repeats included."""
    return [stem(word) for word in words(text)]


def document(parts: Sequence[str]) -> str:
    """The tsvector literal of a note's texts: every term with its positions."""
    places: dict[str, list[int]] = {}
    for position, lexeme in enumerate(lexemes("\n".join(parts)), start=1):
        at = places.setdefault(lexeme, [])
        if len(at) < POSITIONS_MAX:
            at.append(min(position, 16_383))
    return " ".join(
        f"{quoted(lexeme)}:{','.join(map(str, at))}" for lexeme, at in sorted(places.items())
    )


def query_terms(text: str, common: Mapping[str, float] = NOTHING) -> list[str]:
    """Distinct stemmed terms of a query, stop words and common terms dropped.

    When nothing but common terms is asked for, the rarest of them are. `common` has their shares.
    """
    asked = list(dict.fromkeys(stem(term) for term in terms(text)))
    rare = [term for term in asked if term not in common]
    if not rare:
        return sorted(asked, key=lambda term: common[term])[:COMMON_TERMS_ASKED_MAX]
    return rare[:QUERY_TERMS_MAX]


class AnyOf(SearchQuery):
    """Asks for any of these terms, which are lexemes already: Postgres parses nothing in them."""

    def __init__(self, lexemes_: Sequence[str]) -> None:
        self.literal = " | ".join(quoted(lexeme) for lexeme in lexemes_)
        super().__init__(self.literal, search_type="raw")

    def as_sql(  # type: ignore[override]
        self, *args: Any, **kwargs: Any
    ) -> tuple[str, list[str]]:
        # Why a list: the lookup adds it to a list of its own.
        return "%s::tsquery", [self.literal]


def quoted(lexeme: str) -> str:
    """A lexeme as Postgres reads it: no operator in it can act."""
    escaped = lexeme.replace("\\", "\\\\").replace("'", "''")
    return f"'{escaped}'"


_common: tuple[float, Mapping[str, float]] = (0.0, NOTHING)


def common_terms() -> Mapping[str, float]:
    """Terms that too many notes hold, with their shares, as Postgres's own statistics know them.

    Empty until the table was analysed, which is when it is too small to matter.
    """
    global _common
    read_at, known = _common
    if time.monotonic() - read_at < COMMON_TERMS_SECONDS and read_at:
        return known
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT most_common_elems::text::text[], most_common_elem_freqs,"
            " (SELECT reltuples FROM pg_class WHERE oid = 'memory_note'::regclass) FROM pg_stats"
            " WHERE schemaname = current_schema AND tablename = 'memory_note'"
            " AND attname = 'search'"
        )
        row = cursor.fetchone()
    elements, shares, notes = row if row and row[0] else ([], [], 0)
    most = min(COMMON_SHARE_MAX, TERM_NOTES_MAX / max(notes, 1))
    # The array ends with two numbers that belong to no term.
    known = {term: share for term, share in zip(elements, shares, strict=False) if share > most}
    _common = (time.monotonic(), known)
    return known
