"""The ledger read back in numbers: what floors read of every hit that was weighed, row by row.

Reads: injection. Shared by whoever learns from the ledger and whoever asks what other floors would
have done. No text but the question's is read. Rows are frozen: what was read of one once is kept.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from threading import Lock
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import JSONField
from django.db.models.expressions import RawSQL

from memory.querysets import OwnerQuerySet
from memory.text.tongue import tongue
from recall.floors import REFUSALS, SOURCES, Evidence, Source, above
from recall.notes import NOTES_MAX

#: The latest recalls that are read back.
# Why: some days of work: enough to see what a floor does, and read in a tenth of a second.
# Calibrate: milliseconds of the page of floors with the ledger full.
RECALLS_READ_MAX = 200

#: Rows whose numbers are kept in memory.
# Why: each move of a slider asks for the same ones again; some kilobytes each.
ROWS_REMEMBERED_MAX = 1_000

#: Sets of recalls whose numbers are kept in order.
# Why: a person moves sliders over one, and looks at another in between.
LEDGERS_REMEMBERED_MAX = 4

#: What floors read of each hit, as lists of numbers: a row as it is kept is ten times as long.
_NUMBERS = """(
    SELECT jsonb_agg(jsonb_build_array(
        hit->'source', coalesce(hit->'note', hit->'turn'), hit->'relevance', hit->'cosine',
        hit#>'{tracks,keyword,score}', hit->'coverage', hit->'score', hit->'boost',
        hit->'refused', hit->'injected', hit->'turns', hit->'twins') ORDER BY place)
    FROM jsonb_array_elements(
        CASE jsonb_typeof(memory_injection.hits)
        WHEN 'array' THEN memory_injection.hits ELSE '[]' END
    ) WITH ORDINALITY AS hits (hit, place)
)"""


@dataclass(frozen=True)
class Kept:
    """One hit as the ledger has it. `key` is the id of the note or turn; `folded` are those that
    it stands for beside itself. `withheld` says why, where it was no floor that kept it back."""

    source: Source
    key: str
    evidence: Evidence
    relevance: float
    sent: bool
    refused: str = ""
    folded: frozenset[str] = frozenset()

    @cached_property
    def withheld(self) -> bool:
        return bool(self.refused) and self.refused not in REFUSALS

    @cached_property
    def fate(self) -> str:
        """One of FATES."""
        if self.sent:
            return "sent"
        return "dropped" if self.refused in REFUSALS else "other"


#: What became of a hit: it went out; a floor kept it back; or another hit stood for it, there was
#: no room, or no agent may be given it.
FATES = ("sent", "dropped", "other")


# Why not equal by what they hold: a row is read once, and hundreds of them are a key of `numbers`.
@dataclass(frozen=True, eq=False)
class Weighed:
    """One recall as the ledger has it, its hits of each source best first. `room` is how many it
    asked for, `score` the floor of the final score where it asked for one of its own.

    `whole`: every hit has the numbers that floors read; rows of an older time lack some.
    """

    injection: int
    query: str
    hits: tuple[Kept, ...]
    room: int = NOTES_MAX
    score: float | None = None
    whole: bool = True


@lru_cache(maxsize=LEDGERS_REMEMBERED_MAX)
def numbers(rows: tuple[Weighed, ...]) -> Mapping[tuple[str, Source, str], Sequence[float]]:
    """The `relevance` and the final `score` of all hits, by source and fate, each in order."""
    found: dict[tuple[str, Source, str], list[float]] = {
        (name, source, fate): []
        for name in ("relevance", "score")
        for source in SOURCES
        for fate in FATES
    }
    for row in rows:
        for hit in row.hits:
            found["relevance", hit.source, hit.fate].append(hit.relevance)
            found["score", hit.source, hit.fate].append(hit.evidence.score)
    for some in found.values():
        some.sort()
    return found


def evidence_of(hit: Mapping[str, Any], model: str, spoken: str) -> Evidence | None:
    """What floors read of a hit of the ledger, by the embedder that was asked and the tongue of the
    question; None for one of an older time, which lacks numbers."""
    if not (_is_number(hit.get("coverage")) and _is_number(hit.get("score"))):
        return None
    keyword = ((hit.get("tracks") or {}).get("keyword") or {}).get("score")
    return Evidence(
        above(hit.get("cosine"), model, spoken),
        keyword or 0.0,
        hit["coverage"],
        hit["score"],
        here=(hit.get("boost") or 1.0) > 1.0,
    )


def weighed(
    rows: OwnerQuerySet, *, model: str, modes: Sequence[str] = ("prompt",)
) -> list[Weighed]:
    """The latest of these injections that an embedder weighed anything for, latest first."""
    asked = rows.filter(mode__in=modes, model_asked=model, gate="").order_by("-pk")
    keys = list(asked.values_list("pk", flat=True)[:RECALLS_READ_MAX])
    known = _remembered.get(keys)
    if missing := [pk for pk in keys if pk not in known]:
        columns = ("pk", "query", "options", "model_asked", "numbers")
        numbered = asked.filter(pk__in=missing).annotate(
            numbers=RawSQL(_NUMBERS, (), output_field=JSONField())
        )
        fresh = {pk: _read(pk, *values) for pk, *values in numbered.values_list(*columns)}
        _remembered.put(fresh)
        known |= fresh
    return [known[pk] for pk in keys if pk in known]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


class _Remembered:
    """Rows by id and database, the least lately read forgotten first. Several threads of a web
    process read and write it."""

    def __init__(self, most: int = ROWS_REMEMBERED_MAX) -> None:
        self._rows: OrderedDict[tuple[str, int], Weighed] = OrderedDict()
        self._most = most
        self._lock = Lock()

    def get(self, keys: Iterable[int]) -> dict[int, Weighed]:
        here = str(connection.settings_dict["NAME"])
        with self._lock:
            found = {pk: row for pk in keys if (row := self._rows.get((here, pk))) is not None}
            for pk in found:
                self._rows.move_to_end((here, pk))
        return found

    def put(self, rows: Mapping[int, Weighed]) -> None:
        here = str(connection.settings_dict["NAME"])
        with self._lock:
            self._rows |= {(here, pk): row for pk, row in rows.items()}
            while len(self._rows) > self._most:
                self._rows.popitem(last=False)


_remembered = _Remembered()


def _read(
    pk: int, query: str, options: Mapping[str, Any], model: str, numbers: Iterable[Any] | None
) -> Weighed:
    spoken = tongue(query)
    hits = [_kept(hit, model, spoken) for hit in _named(numbers or ())]
    # A row of another shape asked for nothing of its own.
    options = options if isinstance(options, Mapping) else {}
    room = options.get("notes")
    floor = options.get("floor")
    return Weighed(
        pk,
        query,
        tuple(hit for hit in hits if hit is not None),
        room if isinstance(room, int) else NOTES_MAX,
        floor if isinstance(floor, int | float) else None,
        whole=None not in hits,
    )


_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")

_NAMES = (
    "source", "key", "relevance", "cosine", "keyword", "coverage", "score", "boost", "refused",
    "injected", "turns", "twins",
)  # fmt: skip


def _named(numbers: Iterable[Sequence[Any]]) -> Iterator[dict[str, Any]]:
    for values in numbers:
        hit = dict(zip(_NAMES, values, strict=True))
        for name in ("turns", "twins"):
            hit[name] = hit[name] if isinstance(hit[name], list) else []
        for name in ("cosine", "keyword", "boost"):
            hit[name] = hit[name] if _is_number(hit[name]) else None
        yield hit | {"tracks": {"keyword": {"score": hit["keyword"]}}}


def _kept(hit: Mapping[str, Any], model: str, spoken: str) -> Kept | None:
    evidence = evidence_of(hit, model, spoken)
    if evidence is None or not _is_number(hit["relevance"]):
        return None
    if hit["source"] not in ("note", "turn") or not _is_id(hit["source"], hit["key"]):
        return None
    return Kept(
        source=hit["source"],
        key=str(hit["key"]),
        evidence=evidence,
        relevance=hit["relevance"],
        sent=bool(hit["injected"]),
        refused=str(hit["refused"] or ""),
        folded=frozenset(str(one) for name in ("turns", "twins") for one in hit[name] or ()),
    )


def _is_id(source: Source, key: object) -> bool:
    if source == "turn":
        return str(key).isdecimal()
    return _UUID.fullmatch(str(key)) is not None


def note_ids(hits: Iterable[Kept]) -> list[UUID]:
    """Ids of the notes among these hits."""
    return [UUID(hit.key) for hit in hits if hit.source == "note"]
