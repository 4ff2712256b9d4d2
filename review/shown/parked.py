"""What a page shows of parked units: where each comes from, why it failed, what a model said of it.

Reads: claim, distill_failure, episode, raw_item, note, session. Bodies and replies are read in
pieces. Knows nothing about who may see a unit, or how it is set free (`review.parked`).
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.db import connection
from django.db.models import BinaryField, Q, QuerySet
from django.db.models.functions import Left, Substr
from django.http import HttpRequest
from django.urls import reverse

from memory.models import Claim, DistillFailure, Episode, Note, RawItem, Session
from memory.web.addresses import at
from memory.web.listing import Choice, Column, Day, Listed, Words, list_rows
from memory.web.page import number

#: Characters of a raw reply that are shown in a list.
# Why: enough to see what went wrong (prose, a cut-off, an apology); the whole is in the row.
REPLY_CHARACTERS_MAX = 400

#: Characters of each reply on a unit's own page, and of one that is asked for whole.
REPLY_HEAD_CHARACTERS_MAX = 2_000
REPLY_WHOLE_CHARACTERS_MAX = 200_000

#: Parked units on a page of the list: each is a card of some lines.
UNITS_A_PAGE = 15

#: Characters of the source by which a person knows what a unit is.
SOURCE_CHARACTERS_MAX = 120

#: Failures of a unit that are shown, latest first.
# Why: five park it; a unit that was set free three times has some twenty.
FAILURES_SHOWN_MAX = 20

#: Kinds of failure that are counted, and among how many parked units.
# Why: "retry all of a kind" is for the few that an outage left behind.
KINDS_SHOWN_MAX = 8
KINDS_COUNTED_MAX = 1_000

#: Bytes of UTF-8 that a character may take.
_CHARACTER_BYTES = 4

#: Bytes by which what is packed may be longer than what was packed.
_PACKING_BYTES = 1_024

#: The beginning of the last reply to each of some units in each stage. Parameters: bytes, units.
# Why SQL: the list asks this for every page, and a queryset takes longer to put together.
LAST_REPLIES = """
SELECT DISTINCT ON (stage, unit) stage, unit, substr(reply, 1, %s) FROM memory_distillfailure
WHERE kind = 'content' AND unit = ANY(%s) AND reply <> '' ORDER BY stage, unit, id DESC
"""


@dataclass(frozen=True)
class Source:
    """Where a unit comes from: which page shows it, its first words, its project."""

    kind: str
    key: str
    words: str = ""
    project: str = ""

    @property
    def page(self) -> str:
        if self.kind == "session":
            return f"{reverse('admin:episodes')}?{urlencode({'session': self.key})}"
        return at(self.key, self.kind)


@dataclass(frozen=True)
class Parked:
    """A unit that a stage leaves alone, why, and the head of the last reply there was."""

    id: int
    stage: str
    unit: str
    reason: str
    parked_at: datetime
    failures: int
    attempts: int
    reply: str
    dismissed_at: datetime | None = None
    source: Source | None = None

    @property
    def key(self) -> str:
        return str(self.id)

    @property
    def page(self) -> str:
        """The address of the page of its source."""
        return self.source.page if self.source else ""

    @property
    def after(self) -> str:
        failed = f"after {self.failures} failure{'' if self.failures == 1 else 's'}"
        if not self.attempts:
            return failed
        tries = f"{self.attempts} attempt{'' if self.attempts == 1 else 's'}"
        return f"{failed} and {tries} without an answer"


@dataclass(frozen=True)
class Failure:
    """One attempt that came to nothing, or a person's word. `whole`: the reply ends where it ends
    here."""

    id: int
    kind: str
    error: str
    attempt: int
    parked: bool
    reply: str
    whole: bool
    created_at: datetime


@dataclass(frozen=True)
class Kind:
    """What is parked in one stage for one reason; `like` is one claim of it."""

    stage: str
    reason: str
    units: int
    like: int


COLUMNS = (
    Column("claim", lambda row: row.pk),
    Column("stage", lambda row: row.stage),
    Column("unit", lambda row: row.unit),
    Column("reason", lambda row: row.parked_reason),
    Column("failures", lambda row: row.content_failures),
    Column("attempts", lambda row: row.attempts),
    Column("parked_at", lambda row: row.parked_at),
    Column("dismissed_at", lambda row: row.dismissed_at),
)


def list_parked(request: HttpRequest, rows: QuerySet[Claim]) -> Listed:
    """A page of parked units, latest first; `shelf=dismissed` has those that were dismissed."""
    with connection.cursor() as cursor:
        # Why SQL: a word for a select is no reason to put a queryset together.
        cursor.execute(
            "SELECT DISTINCT stage FROM memory_claim WHERE parked_at IS NOT NULL ORDER BY stage"
        )
        stages = [(stage, stage) for (stage,) in cursor.fetchall()]
    return list_rows(
        request,
        rows.filter(dismissed_at__isnull=not away(request)),
        order=("-parked_at", "-pk"),
        filters=(
            Words("q", "Search", _search),
            Choice("stage", "Stage", stages),
            Day("since", "Since", "parked_at__gte"),
            Day("until", "Until", "parked_at__lt"),
        ),
        columns=COLUMNS,
        title="parked units",
        page_rows=UNITS_A_PAGE,
        keep=("shelf",),
    )


def away(request: HttpRequest) -> bool:
    """Whether the request asks for what was dismissed."""
    return request.GET.get("shelf") == "dismissed"


def _search(rows: Any, text: str) -> Any:
    return rows.filter(Q(parked_reason__icontains=text) | Q(unit__icontains=text))


def latest(rows: QuerySet[Claim]) -> list[tuple[str, str, int]]:
    """Stage, reason and claim of the latest units that are parked and not dismissed."""
    found = rows.filter(dismissed_at=None).order_by("-parked_at")
    return list(found.values_list("stage", "parked_reason", "pk")[:KINDS_COUNTED_MAX])


def kinds(claims: Iterable[tuple[str, str, int]]) -> list[Kind]:
    """What these (of `latest`) fail of, most first."""
    like: dict[tuple[str, str], list[int]] = {}
    for stage, reason, pk in claims:
        like.setdefault((stage, reason), []).append(pk)
    found = [Kind(*kind, units=len(ids), like=min(ids)) for kind, ids in like.items()]
    return sorted(found, key=lambda one: (-one.units, one.stage))[:KINDS_SHOWN_MAX]


def described(claims: Iterable[Claim]) -> list[Parked]:
    """These claims with the heads of their last replies and their sources: a query for each kind of
    source and one for the replies, however many there are."""
    listed = list(claims)
    replies, sources = _replies([row.unit for row in listed]), _sources([r.unit for r in listed])
    return [
        Parked(
            id=row.pk,
            stage=row.stage,
            unit=row.unit,
            reason=row.parked_reason,
            parked_at=row.parked_at,
            failures=row.content_failures,
            attempts=row.attempts,
            reply=replies.get((row.stage, row.unit), ""),
            dismissed_at=row.dismissed_at,
            source=sources.get(row.unit),
        )
        for row in listed
        if row.parked_at is not None
    ]


def failures(claim: Claim, *, whole: int | None = None) -> list[Failure]:
    """The failures of a claim's unit in its stage, latest first, each with the head of its reply;
    of the one that `whole` names all of it, up to a bound."""
    own = DistillFailure.objects.filter(stage=claim.stage, unit=claim.unit).defer("reply")
    asked = [whole] if whole is not None else []
    rows = own.exclude(pk__in=asked).order_by("-pk")[:FAILURES_SHOWN_MAX]
    found = _unpacked(rows, REPLY_HEAD_CHARACTERS_MAX)
    found += _unpacked(own.filter(pk__in=asked), REPLY_WHOLE_CHARACTERS_MAX)
    return sorted(found, key=lambda one: -one.id)


def _unpacked(rows: QuerySet[DistillFailure], characters: int) -> list[Failure]:
    heads: Any = rows.annotate(head=_head(characters))
    return [_failure(row, row.head, characters) for row in heads]


def _head(characters: int) -> Substr:
    """As much of a packed reply as so many characters can take."""
    return Substr("reply", 1, _packed_bytes(characters), output_field=BinaryField())


def _packed_bytes(characters: int) -> int:
    """Bytes that so many characters take at most: packed they are hardly longer."""
    return characters * _CHARACTER_BYTES + _PACKING_BYTES


def _failure(row: DistillFailure, packed: bytes, characters: int) -> Failure:
    reply, whole = unpack(bytes(packed), characters)
    return Failure(
        id=row.pk,
        kind=row.kind,
        error=row.error,
        attempt=row.attempt,
        parked=row.parked,
        reply=reply,
        whole=whole,
        created_at=row.created_at,
    )


def unpack(packed: bytes, characters: int) -> tuple[str, bool]:
    """The beginning of a packed reply, and whether that is all of it; no more is unpacked than is
    shown, whatever it would come to."""
    if not packed:
        return "", True
    opened = zlib.decompressobj()
    text = opened.decompress(packed, characters * _CHARACTER_BYTES).decode(errors="replace")
    return text[:characters], opened.eof and len(text) <= characters


def _replies(named: Sequence[str]) -> dict[tuple[str, str], str]:
    """The head of each unit's last reply, by stage and unit."""
    with connection.cursor() as cursor:
        cursor.execute(LAST_REPLIES, [_packed_bytes(REPLY_CHARACTERS_MAX), list(named)])
        return {
            (stage, unit): unpack(bytes(head), REPLY_CHARACTERS_MAX)[0]
            for stage, unit, head in cursor.fetchall()
        }


def _sources(named: Sequence[str]) -> dict[str, Source]:
    """Where these units come from; what is gone meanwhile is left out."""
    keys: dict[str, list[str]] = {}
    for unit in named:
        kind, _, key = unit.partition(":")
        keys.setdefault(kind, []).append(key)
    found: dict[str, Source] = {}
    body = Left("first_item__body", SOURCE_CHARACTERS_MAX)
    if "episode" in keys:
        episodes = Episode.objects.as_pipeline().filter(unit_key__in=named)
        for unit, pk, project, words in episodes.annotate(words=body).values_list(
            "unit_key", "pk", "project__name", "words"
        ):
            found[unit] = Source("episode", str(pk), words, project or "")
    if numbers := _numbers(keys.get("item", ())):
        items = RawItem.objects.as_pipeline().filter(pk__in=numbers)
        words_of = Left("body", SOURCE_CHARACTERS_MAX)
        for pk, project, words in items.annotate(words=words_of).values_list(
            "pk", "project__name", "words"
        ):
            found[f"item:{pk}"] = Source("item", str(pk), words, project or "")
    if uuids := _uuids(keys.get("note", ())):
        notes = Note.objects.as_pipeline().filter(pk__in=uuids)
        for note, project, title in notes.values_list("pk", "project__name", "title"):
            words = title[:SOURCE_CHARACTERS_MAX]
            found[f"note:{note}"] = Source("note", str(note), words, project or "")
    if numbers := _numbers(keys.get("session", ())):
        for pk, source, key in Session.objects.filter(pk__in=numbers).values_list(
            "pk", "source", "key"
        ):
            found[f"session:{pk}"] = Source("session", key, f"{source} {key}".strip())
    return found


def _numbers(keys: Iterable[str]) -> list[int]:
    return [found for key in keys if (found := number(key)) is not None]


def _uuids(keys: Iterable[str]) -> list[UUID]:
    return [UUID(key) for key in keys if len(key) == 36 and key.count("-") == 4]
