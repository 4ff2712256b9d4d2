"""The lexical half of finding notes: what is indexed of a text, and what a query asks for.

Shared by recall and dedup. Terms come from `memory.text`, because Postgres cannot segment CJK and
splits identifiers; Postgres only stores and ranks them. Reads: pg_stats (how common a term is).
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.contrib.postgres.search import SearchQuery
from django.db import connection

from memory.text.stem import stem
from memory.text.words import terms, words

#: Positions kept of one term in one text; Postgres's own limit.
POSITIONS_MAX = 255

#: Share of the notes that hold a term from which on no note is looked up by it.
# Why: measured on 10k texts, dropping terms in over 20 % costs no quality and saves five sixths
# of the time of the lexical track.
# Calibrate: recall@5 of the lexical track with and without, see tests/bench.
COMMON_SHARE_MAX = 0.20

#: Notes that the terms of a query together may bring to be ranked.
# Why: ranking is what the lexical track costs, some 2 ms for a thousand notes; bounded, it costs
# the same at 100,000 notes as at 10,000.
# Calibrate: recall@5 and p50 of the lexical track at 100,000 notes, by halving and doubling.
NOTES_RANKED_MAX = 3_000

#: Terms of one query; the rarest are kept when there are more.
QUERY_TERMS_MAX = 24

#: Seconds that statistics are believed.
STATISTICS_SECONDS = 60.0


@dataclass(frozen=True)
class Statistics:
    """How many notes there are, and the share of them that holds a term, where it is known."""

    notes: float = 0.0
    shares: Mapping[str, float] = field(default_factory=dict)

    def share(self, term: str) -> float:
        return self.shares.get(term, 0.0)


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


UNKNOWN = Statistics()


def query_terms(text: str, known: Statistics = UNKNOWN) -> list[str]:
    """Distinct stemmed terms of a query without stop words, in order: what notes are ranked by."""
    asked = list(dict.fromkeys(stem(term) for term in terms(text)))
    rarest = set(sorted(asked, key=known.share)[:QUERY_TERMS_MAX])
    return [term for term in asked if term in rarest]


def selective(asked: Sequence[str], known: Statistics = UNKNOWN) -> list[str]:
    """The terms by which notes are looked up: common ones only rank what the others brought.

    The most common are dropped first; the rarest is looked up in any case.
    """
    chosen: set[str] = set()
    brought = 0.0
    for term in sorted(asked, key=known.share):
        brought += known.share(term) * known.notes
        if chosen and (known.share(term) > COMMON_SHARE_MAX or brought > NOTES_RANKED_MAX):
            break
        chosen.add(term)
    return [term for term in asked if term in chosen]


class AnyOf(SearchQuery):
    """Asks for any of these terms, which are lexemes already: Postgres parses nothing in them."""

    def __init__(self, lexemes_: Sequence[str]) -> None:
        self.literal = " | ".join(quoted(lexeme) for lexeme in lexemes_)
        super().__init__(self.literal, search_type="raw")

    # Django lets a lookup extend these parameters, its stubs promise a tuple.
    def as_sql(  # type: ignore[override]
        self, *args: Any, **kwargs: Any
    ) -> tuple[str, list[str]]:
        # Why a list: the lookup adds it to a list of its own.
        return "%s::tsquery", [self.literal]


def quoted(lexeme: str) -> str:
    """A lexeme as Postgres reads it: no operator in it can act."""
    escaped = lexeme.replace("\\", "\\\\").replace("'", "''")
    return f"'{escaped}'"


_statistics: tuple[float, Statistics] = (0.0, UNKNOWN)


def forget_statistics() -> None:
    """Read them anew at the next query: the database is another one now."""
    global _statistics
    _statistics = (0.0, UNKNOWN)


def statistics() -> Statistics:
    """What Postgres's own statistics know of the terms of all notes.

    Empty until the table was analysed, which is when it is too small to matter.
    """
    global _statistics
    read_at, known = _statistics
    if time.monotonic() - read_at < STATISTICS_SECONDS and read_at:
        return known
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT c.reltuples, s.most_common_elems::text::text[], s.most_common_elem_freqs"
            " FROM pg_stats s JOIN pg_class c ON c.oid = 'memory_note'::regclass"
            " WHERE s.schemaname = current_schema AND s.tablename = 'memory_note'"
            " AND s.attname = 'search' AND s.most_common_elems IS NOT NULL"
        )
        row = cursor.fetchone()
    # Not strict: the frequencies end with two numbers that belong to no term.
    known = Statistics(row[0], dict(zip(row[1], row[2], strict=False))) if row else UNKNOWN
    _statistics = (time.monotonic(), known)
    return known
