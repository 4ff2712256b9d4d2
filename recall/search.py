"""One engine, two sources: live notes, and raw items as evidence of what distilling missed.

Reads: note, search_text, turn_vector, and the lexical index, by `memory.tracks`, at a standby where
one is set (`memory.reading`): it finds, and what it found counts when the primary has it, too. Used
by prompt recall, by queries, and by whoever measures them. Knows nothing about which hit clears a
floor, about gates, or about what is done with a hit.
"""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django.db.models import Exists, OuterRef

from memory.attribution import family
from memory.errors import Confidential, ContentError, InfraError
from memory.lexical import hashed, lexeme, query_terms
from memory.llm.choice import embedder
from memory.llm.ports import Origin
from memory.models import Note, Principal, RawItem
from memory.querysets import OwnedQuerySet
from memory.reading import Read, anywhere
from memory.tracks import EXACT_ROWS_MAX, HNSW_EF_SEARCH, Asked, asked, heaviest, literal, nearest
from recall import candidates
from recall.calendar import YEAR_MAX, YEAR_MIN
from recall.calibration import in_force
from recall.entities import weights
from recall.floors import SOURCES, Source
from recall.found import TRACK_DEPTH, Found, Question, place
from recall.questions import impersonate
from recall.ranker import Ranker
from recall.reader import Reader, reader
from recall.times import windows

#: Texts that the keyword track brings for a question about the past.
# Why: what did not hold then is left out only afterwards, and a newer note must not hide an older
# one: ten times as many, so that one in ten may be of then.
# Calibrate: recall@5 of questions with `as_of` in a memory whose notes were superseded often.
CANDIDATES_OF_THE_PAST = 400

#: Postings read for one, shared among its terms.
# Why: a question about the past may take its time, and no more than this however old the archive.
# Calibrate: p95 of questions with `as_of` at 100,000 texts.
POSTINGS_OF_THE_PAST = 20_000

#: Texts that each main track brings, of each source, to be ordered by every number.
# Why: with the turns around them some 180 of a dialogue, which hold .95 of the evidence; 50 and 100
# order no better.
# Calibrate: share of the evidence among the candidates, and milliseconds.
CANDIDATES_A_TRACK = 40

assert max(CANDIDATES_A_TRACK, TRACK_DEPTH) <= HNSW_EF_SEARCH

#: The column of each source's pool that a hit's key stands in.
COLUMNS: tuple[tuple[Source, str], ...] = (("note", "pk"), ("turn", "raw_item"))

_CAPITAL = re.compile(r"\b[A-ZÀ-ÖØ-Þ][\w-]*")


@dataclass(frozen=True)
class Searched:
    """What a search found, best first, and what it took; `degraded` says why a track is missing.
    `pools` are the rows that may be shown, by source: whoever reads what was found asks them again,
    and what was retired since is not among them."""

    found: Sequence[Found]
    question: Question
    degraded: Mapping[str, str] = field(default_factory=dict)
    milliseconds: Mapping[str, float] = field(default_factory=dict)
    pools: Mapping[Source, OwnedQuerySet] = field(default_factory=dict)
    # Notes that the asker wants to see no more.
    silenced: Sequence[UUID] = ()
    # Where the tracks were read; None where there is no standby.
    read: Read | None = None


@dataclass(frozen=True)
class Past:
    """The moment asked about, and the moment whose knowledge counts."""

    as_of: datetime
    known_at: datetime

    @classmethod
    def asked(
        cls, *, as_of: datetime | None, known_at: datetime | None, now: datetime
    ) -> Past | None:
        """The past that these two mean; None when neither is given. Knowledge is today's, and the
        moment is that of the knowledge, where only the other is said."""
        if as_of is None and known_at is None:
            return None
        return cls(as_of or known_at or now, known_at or now)

    def as_json(self) -> dict[str, str]:
        """Both moments, for the ledger."""
        return {"as_of": self.as_of.isoformat(), "known_at": self.known_at.isoformat()}


def search(
    text: str,
    *,
    principal: Principal,
    now: datetime,
    past: Past | None = None,
    project: int | None = None,
    here: int | None = None,
    silent: Collection[str] = (),
    sources: Sequence[Source] = SOURCES,
    ranker: Ranker | None = None,
) -> Searched:
    """Both sources for a question, each in its order, notes first. Without an embedder the words
    alone answer, and it is said.

    `project` is a hard filter, for what is of a project merged with it, too; `here` is the project
    that asks, whose word on silence counts; `silent` words (names of projects) count in no
    coverage: at home they say nothing. `ranker` is the one in force, for whoever has it already.
    """
    timings: dict[str, float] = {}
    degraded: dict[str, str] = {}
    started = time.perf_counter()
    who = reader(principal, here)
    # "Last week" is the week before the moment that is asked about.
    moment = past.as_of if past and YEAR_MIN < past.as_of.year < YEAR_MAX else now
    question, known = ask(text, principal=principal, now=moment)
    if not text.strip():
        return Searched((), question)
    timings["ask"] = _since(started)
    started = time.perf_counter()
    question = embed(question, known[True].speakers, degraded)
    timings["embed"] = _since(started)
    projects = family(project)
    ranker = ranker or in_force(question.model).ranker
    pools = _pools(who, sources, projects if project else None, now=now, past=past)

    def find() -> list[Found]:
        started = time.perf_counter()
        worded = heaviest(
            principal,
            {source == "turn": known[source == "turn"] for source in sources},
            # What does not hold then is left out only after this: few of the heaviest may remain.
            depth=CANDIDATES_A_TRACK if past is None else CANDIDATES_OF_THE_PAST,
            postings=None if past is None else POSTINGS_OF_THE_PAST // max(len(question.terms), 1),
            live=past is None,
            projects=projects,
            mates=who.mates,
        )
        timings["keyword"] = _since(started)
        found: list[Found] = []
        for source, pool in pools.items():
            raw = source == "turn"
            started = time.perf_counter()
            whole = past is None and not project
            texts = [text for text, _ in worded[raw]]
            fetched = _of_source(source, pool, question, known[raw], texts, whole=whole)
            timings[source] = _since(started)
            started = time.perf_counter()
            if fetched.rows:
                found += place(source, fetched, question, known[raw], ranker, silent=silent)
            timings[f"rank_{source}"] = _since(started)
        return found

    found, read = anywhere(find)
    if read and read.server == "standby":
        started = time.perf_counter()
        found = _standing(found, pools)
        timings["standing"] = _since(started)
    return Searched(found, question, degraded, timings, pools, who.notes_out, read)


def _standing(found: Sequence[Found], pools: Mapping[Source, OwnedQuerySet]) -> list[Found]:
    """What of it the primary would find as well: retired, purged or hidden since the standby heard
    of it, it is not weighed."""
    kept: set[Any] = set()
    for source, column in COLUMNS:
        keys = [one.key for one in found if one.source == source]
        if keys:
            rows = pools[source].filter(**{f"{column}__in": keys})
            kept.update(rows.values_list(column, flat=True))
    return [one for one in found if one.key in kept]


def ask(text: str, *, principal: Principal, now: datetime) -> tuple[Question, dict[bool, Asked]]:
    """The question as the tracks need it, but for its vectors, and what is known of its terms."""
    named = {lexeme(word): weight for word, weight in weights(text).items()}
    words = tuple(dict.fromkeys([*query_terms(text), *named]))
    exact = frozenset(word for word, weight in named.items() if weight > 1)
    times = tuple((one.start.timestamp(), one.end.timestamp()) for one in windows(text, now=now))
    terms = tuple(map(hashed, words))
    question = Question(text, words, terms, embedder().name, names=exact, stretches=times)
    known = asked(principal, terms, [named.get(word, 1.0) for word in words])
    # "Port" may be somebody's name; who asks for a port writes it small.
    capitals = {hashed(lexeme(word.lower())) for word in _CAPITAL.findall(text)}
    return question, {
        raw: replace(one, speakers=one.speakers & capitals) for raw, one in known.items()
    }


def embed(question: Question, speakers: Collection[int], degraded: dict[str, str]) -> Question:
    """The question with its vectors; what keeps the semantic track away is written down. One that
    names who speaks is embedded as that person would say it, too."""
    spoken = {word for word in question.words if hashed(word) in speakers}
    said = impersonate(question.text, spoken)
    origin = Origin("recall")
    try:
        vector = embedder().embed_query(question.text, origin=origin)
        told = vector if said == question.text else embedder().embed_query(said, origin=origin)
    except (InfraError, ContentError, Confidential) as error:
        degraded["semantic"] = str(error)
        return question
    return replace(question, vector=vector, said=told)


def _pools(
    who: Reader,
    sources: Sequence[Source],
    projects: Sequence[int] | None,
    *,
    now: datetime,
    past: Past | None,
) -> dict[Source, OwnedQuerySet]:
    """The rows of each source that may be shown; of these projects alone, where they are given."""
    pools: dict[Source, OwnedQuerySet] = {}
    for source in sources:
        pool = _turns(who, past) if source == "turn" else _notes(who, now, past)
        pools[source] = pool if projects is None else pool.filter(project__in=projects)
    return pools


def _notes(who: Reader, now: datetime, past: Past | None) -> OwnedQuerySet:
    if past is None:
        return who.notes().live(now)
    return who.notes().believed(as_of=past.as_of, known_at=past.known_at)


def _turns(who: Reader, past: Past | None) -> OwnedQuerySet:
    if past is None:
        return who.turns()
    captured = RawItem.objects.as_pipeline().filter(
        pk=OuterRef("raw_item"), captured_at__lte=past.known_at
    )
    return who.turns().filter(Exists(captured), occurred_at__lte=past.as_of)


def _of_source(
    source: Source,
    rows: OwnedQuerySet,
    question: Question,
    known: Asked,
    texts: Sequence[int],
    *,
    whole: bool,
) -> candidates.Fetched:
    """The candidates of one source: what either main track brings, and the times asked about.
    `whole`: the pool is all that the reader may see."""
    vector = question.vector if source == "note" or not known.speakers else question.said
    written = literal(vector) if vector is not None else ""
    keys: list[Any] = []
    if written:
        # Known to be many by the statistics: nobody counts.
        exact = False if whole and known.known.texts > EXACT_ROWS_MAX else None
        near = nearest(rows, written, question.model, depth=CANDIDATES_A_TRACK, exact=exact)
        keys = [key for key, _ in (*near, *_of_times(rows, written, question))]
    if source == "note":
        return candidates.notes(rows, keys=keys, texts=texts, vector=written, model=question.model)
    both = list(dict.fromkeys([*texts, *keys]))
    return candidates.turns(rows, texts=both, vector=written, model=question.model)


def _of_times(rows: OwnedQuerySet, vector: str, question: Question) -> Iterator[tuple[Any, float]]:
    """The nearest of each time that the question speaks of."""
    when = "valid_from" if rows.model is Note else "occurred_at"
    for start, end in question.stretches:
        inside = {
            f"{when}__gte": datetime.fromtimestamp(start, UTC),
            f"{when}__lt": datetime.fromtimestamp(end, UTC),
        }
        yield from nearest(rows.filter(**inside), vector, question.model, depth=TRACK_DEPTH)


def _since(started: float) -> float:
    return round((time.perf_counter() - started) * 1000, 2)
