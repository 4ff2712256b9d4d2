"""The tracks: ranked lists of notes or raw items for a query, by meaning and by words.

Reads: note, search_text, posting, term, collection, turn_vector. Shared by recall and dedup. Knows
nothing about fusion, floors, or what is done with what is found.

Raw SQL, because this is the path that every prompt waits for. Who may see what is spelled in
`memory.querysets` alone and comes as a queryset, the pool: of notes, or of raw items' search texts.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from memory.lexical import Statistics, rarest
from memory.models import Note, Principal
from memory.querysets import OwnedQuerySet, condition
from memory.reading import server

#: Rows up to which the nearest are found by comparing all of them.
# Why: exact and the same every time; the graph loses rows where many vectors are the same, where a
# filter leaves few, or where nothing is near. Comparing costs as much as the graph at about 700
# rows and three times that here, some milliseconds.
# Calibrate: p50 of both at this size, and recall@10 of the graph, `python -m tests.bench.scale`.
EXACT_ROWS_MAX = 2_000

#: Candidates that HNSW looks at.
# Why: recall@10 of 1.0 at 1,000 to 100,000 notes whose vectors lie in clusters, as those of
# sentences do; 200 costs twice as much. Must be at least the depth of a track.
# Calibrate: recall@10 of the index against an exact scan, `python -m tests.bench.scale`.
HNSW_EF_SEARCH = 100

#: Rows taken from the graph, of which the nearest are kept.
# Why: what passes the filters comes out in rounds, and a later round may hold what is nearer.
# Strict order throws that away: beside 5,000 alike notes of somebody else, which hold a walk fast
# until they are used up, it found .90 of the nearest ten, this finds all.
# Calibrate: as HNSW_EF_SEARCH.
GRAPH_ROWS_MIN = 50

assert GRAPH_ROWS_MIN <= HNSW_EF_SEARCH

#: Postings read of one term, the heaviest first.
# Why: what stands far down the list of a common term is in no top thirty by it; that this is
# bounded is what makes the track cost the same at any size.
# Calibrate: recall@5 of the lexical track against no bound, and p50, at 100,000 texts,
# `python -m tests.bench.scale`.
POSTINGS_A_TERM = 200

#: Texts that hold a term up to which all its postings are read.
# Why: a term this rare is what a text is found by, and its list is short. At 100,000 texts the
# bound of 200 alone loses .017 of recall@5; with this nothing, and no time.
# Calibrate: as POSTINGS_A_TERM.
TERM_WHOLE_TEXTS_MAX = 1_000


@dataclass(frozen=True)
class Asked:
    """A query's terms (hashes, in order) in one collection, and what is known of them there;
    `speakers` are those that name somebody who speaks in it."""

    terms: tuple[int, ...]
    known: Statistics
    speakers: frozenset[int] = frozenset()


#: How the graph is walked: until enough rows pass the filters, and without looking for another way,
#: which is chosen by count (`few`), not by statistics that may be old.
WIDE_SCAN = (
    "SET LOCAL hnsw.iterative_scan = relaxed_order;"
    f" SET LOCAL hnsw.ef_search = {HNSW_EF_SEARCH};"
    " SET LOCAL enable_sort = off; SET LOCAL enable_hashjoin = off;"
    " SET LOCAL enable_mergejoin = off; "
)
# Why: inside a caller's transaction what is set lasts to its end. Back to the defaults of session
# and role, which nothing else here changes.
_AS_BEFORE = (
    "; SET LOCAL enable_sort TO DEFAULT; SET LOCAL enable_hashjoin TO DEFAULT;"
    " SET LOCAL enable_mergejoin TO DEFAULT; SET LOCAL hnsw.iterative_scan TO DEFAULT;"
    " SET LOCAL hnsw.ef_search TO DEFAULT"
)


def few(pool: OwnedQuerySet) -> bool:
    """Whether a pool is small enough to compare every row of it."""
    where, params = condition(pool)
    table = pool.model._meta.db_table
    with server().cursor() as cursor:
        cursor.execute(
            f"SELECT count(*) FROM (SELECT FROM {table} WHERE {where}"
            f" LIMIT {EXACT_ROWS_MAX + 1}) few",
            params,
        )
        return bool(cursor.fetchone()[0] <= EXACT_ROWS_MAX)


def nearest(
    pool: OwnedQuerySet,
    vector: Sequence[float] | str,
    model: str,
    *,
    depth: int,
    exact: bool | None = None,
) -> list[tuple[Any, float]]:
    """The `depth` rows of the pool nearest to a vector (numbers, or their `literal`) of the same
    model, as (key, cosine).

    `exact` chooses the way; left out, the size of the pool does. What the graph gives too few of is
    compared, so that no row that passes is missing for want of others. Ties go by key.
    """
    exact = few(pool) if exact is None else exact
    where, params = condition(pool)
    notes = pool.model is Note
    written = vector if isinstance(vector, str) else literal(vector)
    if not exact:
        sql = (_NOTE_GRAPH if notes else _TURN_GRAPH).format(
            where=where, order="", depth=max(depth, GRAPH_ROWS_MIN)
        )
        found = _rows(WIDE_SCAN + sql + _AS_BEFORE, [written, *params, model])
        if len(found) >= depth:
            return sorted(found, key=lambda row: (-row[1], row[0]))[:depth]
    given = [written, *params, model] if notes else [written, model, *params]
    sql = _NOTE_ALL if notes else _TURN_ALL
    return _rows(sql.format(where=where, order=", 1", depth=depth), given)


# Why OFFSET 0: the texts are looked up one by one, in the order of the graph, or their vectors
# in turn. Left to choose, the planner takes what a predicate's subqueries cost once for a price of
# every row, and reads a whole table instead.
_NOTE_GRAPH = (
    "SELECT memory_note.id, embedding <=> %s::halfvec AS distance FROM memory_note"
    " WHERE {where} AND embedding_model = %s ORDER BY distance{order} LIMIT {depth}"
)
_TURN_GRAPH = (
    "SELECT memory_searchtext.id, v.embedding <=> %s::halfvec AS distance"
    " FROM memory_turnvector v CROSS JOIN LATERAL (SELECT * FROM memory_searchtext s"
    " WHERE s.raw_item_id = v.raw_item_id OFFSET 0) memory_searchtext"
    " WHERE {where} AND v.model = %s ORDER BY distance{order} LIMIT {depth}"
)
# Adding nothing hides the order from the index.
_NOTE_ALL = _NOTE_GRAPH.replace("embedding <=> %s::halfvec", "(embedding <=> %s::halfvec) + 0")
_TURN_ALL = (
    "SELECT memory_searchtext.id, v.embedding <=> %s::halfvec AS distance"
    " FROM memory_searchtext CROSS JOIN LATERAL (SELECT t.embedding FROM memory_turnvector t"
    " WHERE t.raw_item_id = memory_searchtext.raw_item_id AND t.model = %s OFFSET 0) v"
    " WHERE {where} ORDER BY distance{order} LIMIT {depth}"
)


def _rows(sql: str, params: Sequence[Any]) -> list[tuple[Any, float]]:
    """What the one statement of several that asks something answers. One message to the server,
    which is one transaction to it, is a third of the time of four."""
    with server().cursor() as cursor:
        cursor.execute(sql, params)
        while cursor.description is None:
            cursor.nextset()
        return [(key, 1.0 - distance) for key, distance in cursor.fetchall()]


def literal(vector: Sequence[float]) -> str:
    """A vector as Postgres reads it."""
    return "[" + ",".join(map(str, vector)) + "]"


def asked(
    principal: Principal, terms: Sequence[int], weights: Sequence[float] = ()
) -> dict[bool, Asked]:
    """What is known of these terms among the principal's own texts, by source (raw or note);
    `weights` is what each counts beside a plain word's 1.

    One's own alone: what others write must not move what one finds.
    """
    found: dict[bool, Statistics] = {}
    speakers: frozenset[int] = frozenset()
    with server().cursor() as cursor:
        cursor.execute(
            "SELECT c.raw, c.texts, c.length, ARRAY(SELECT unnest(c.speakers) INTERSECT"
            " SELECT unnest(%s::bigint[])), ARRAY("
            "  SELECT coalesce(t.texts, 0) FROM unnest(%s::bigint[]) WITH ORDINALITY q (term, n)"
            "  LEFT JOIN memory_term t"
            "    ON t.owner_id = c.owner_id AND t.raw = c.raw AND t.term = q.term ORDER BY n)"
            " FROM memory_collection c WHERE c.owner_id = %s",
            [list(terms), list(terms), principal.pk],
        )
        for raw, texts, length, names, holding in cursor.fetchall():
            speakers |= frozenset(names)
            mean = length / max(texts, 1)
            found[raw] = Statistics(texts, mean, tuple(holding), tuple(weights))
    nothing = Statistics(0, 1.0, (0,) * len(terms), tuple(weights))
    return {raw: _rarest(terms, found.get(raw, nothing), speakers) for raw in (False, True)}


def _rarest(terms: Sequence[int], known: Statistics, speakers: frozenset[int]) -> Asked:
    kept = rarest(terms, known)
    holding = tuple(known.holding[at] for at in kept)
    weights = tuple(known.weights[at] for at in kept) if known.weights else ()
    return Asked(
        tuple(terms[at] for at in kept),
        Statistics(known.texts, known.mean_length, holding, weights),
        speakers,
    )


_HEAVIEST = """
SELECT raw, text_id, score FROM (
    SELECT raw, text_id, sum(part) AS score,
           row_number() OVER (PARTITION BY raw ORDER BY sum(part) DESC, text_id) AS place
    FROM (
        SELECT a.raw, p.text_id, a.idf * p.weight AS part
        FROM unnest(%(raw)s::bool[], %(term)s::bigint[], %(idf)s::float8[], %(most)s::int[])
             AS a (raw, term, idf, most)
        CROSS JOIN LATERAL (
            (SELECT text_id, weight FROM memory_posting
             WHERE owner_id = %(me)s AND raw = a.raw AND term = a.term {narrow}
             ORDER BY weight DESC LIMIT a.most)
            UNION ALL
            (SELECT text_id, weight FROM memory_posting
             WHERE raw = a.raw AND term = a.term AND visibility = 'common'
               AND owner_id <> %(me)s {narrow}
             ORDER BY weight DESC LIMIT a.most)
            {team}
        ) p
    ) parts GROUP BY raw, text_id
) ranked WHERE place <= %(depth)s ORDER BY raw, place
"""


# Mate by mate: what strangers show to their teams is not even passed over.
_TEAM = """
            UNION ALL
            (SELECT text_id, weight FROM unnest(%(mates)s::bigint[]) mate CROSS JOIN LATERAL (
                SELECT text_id, weight FROM memory_posting
                WHERE owner_id = mate AND raw = a.raw AND term = a.term AND visibility = 'team'
                {narrow} ORDER BY weight DESC LIMIT a.most) of_mate)
"""


def heaviest(
    principal: Principal,
    sources: Mapping[bool, Asked],
    *,
    depth: int,
    live: bool = True,
    projects: Collection[int] = (),
    postings: int | None = None,
    mates: Collection[int] = (),
) -> dict[bool, list[tuple[int, float]]]:
    """The `depth` best search texts by BM25 of each source, as (search text, score): one's own,
    common ones, and what these `mates` show to their team.

    The score lacks what a text has of a term whose heaviest postings it is not among: whoever
    needs it whole reads the terms of the texts. With `live` off, retired notes are found, too.
    """
    rows = [
        (raw, term, idf, postings or _most(texts))
        for raw, one in sources.items()
        for term, idf, texts in zip(
            one.terms, one.known.idf().tolist(), one.known.holding, strict=True
        )
        # In what people say, a name stands for whom they talk to; who speaks is in the header.
        if not (raw and term in one.speakers)
    ]
    found: dict[bool, list[tuple[int, float]]] = {raw: [] for raw in sources}
    if not rows:
        return found
    narrow = (" AND live" if live else "") + (
        " AND project_id = ANY(%(projects)s)" if projects else ""
    )
    team = _TEAM.format(narrow=narrow) if mates else ""
    sql = _HEAVIEST.format(narrow=narrow, team=team)
    params: dict[str, Any] = {
        "mates": list(mates),
        "raw": [row[0] for row in rows],
        "term": [row[1] for row in rows],
        "idf": [row[2] for row in rows],
        "most": [row[3] for row in rows],
        "me": principal.pk,
        "projects": list(projects),
        "depth": depth,
    }
    with server().cursor() as cursor:
        cursor.execute(sql, params)
        for raw, text, score in cursor.fetchall():
            found[raw].append((text, score))
    return found


def _most(texts: int) -> int:
    return TERM_WHOLE_TEXTS_MAX if texts <= TERM_WHOLE_TEXTS_MAX else POSTINGS_A_TERM


def notes_of(texts: Sequence[int]) -> dict[int, UUID]:
    """Note ids by search text."""
    with server().cursor() as cursor:
        cursor.execute(
            "SELECT id, note_id FROM memory_searchtext WHERE id = ANY(%s) AND NOT raw",
            [list(texts)],
        )
        return dict(cursor.fetchall())
