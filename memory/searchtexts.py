"""Search texts: every note and raw item has one, with its postings and its part in the statistics.

Reads: note, raw_item, session, episode. Writes: search_text, posting, term, collection.
Shared by the embed stage, which makes them, and by `memory.retire`, which takes notes out.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import IntegrityError, connection, transaction
from django.db.models import OuterRef, Q, Subquery
from django.db.models.functions import Left

from memory.lexical import Packed, dated, hashed, lexemes, pack, traits, weights
from memory.models import Note, RawItem, Session, WaitingItem, WaitingNote
from memory.models.waiting import TEXT

#: Texts indexed, or tails settled, in one transaction.
# Why: the row that counts a collection is held while it lasts, and whoever else indexes or retires
# for the same owner waits; a smaller batch pays for its statements.
# Calibrate: texts a second of one worker and of two for one owner, by halving and doubling.
TEXTS_A_BATCH = 256

#: Characters of a raw item whose terms are kept.
# Why: an item ends at a mebibyte; taking that apart costs seconds, and its terms are capped.
# Calibrate: with TERMS_A_TEXT_MAX, by questions about the ends of long documents.
INDEXED_CHARACTERS_MAX = 200_000

#: Terms of speakers' names kept of one owner.
# Why: a row that every question reads; a group of thousands is no dialogue.
SPEAKERS_MAX = 1_000

#: Characters of a speaker's name.
SPEAKER_CHARACTERS_MAX = 60

#: Metadata of a raw item that names who spoke.
SPEAKERS = ("speaker", "sender", "from", "author")


@dataclass(frozen=True)
class Text:
    """One text on its way into the index."""

    raw: bool
    key: int | UUID
    owner: int
    visibility: str
    project: int | None
    place: int | None
    occurred_at: datetime
    settled: bool
    live: bool
    packed: Packed
    traits: int
    speakers: tuple[int, ...] = ()


def index_notes(*, limit: int = TEXTS_A_BATCH, only: Collection[UUID] | None = None) -> int:
    """Index notes that are not, of these where some are named, oldest first; how many."""
    with transaction.atomic():
        # Locked: one that is retired meanwhile must find its postings, or be indexed as retired.
        rows = list(
            Note.objects.as_pipeline()
            .filter(Q() if only is None else Q(pk__in=only), waits__lacks=TEXT)
            .defer("embedding")
            .select_for_update(of=("self",), no_key=True, skip_locked=True)
            .order_by("created_at", "pk")[:limit]
        )
        return _insert([_of_note(row) for row in sorted(rows, key=lambda row: row.pk)])


def index_items(*, limit: int = TEXTS_A_BATCH) -> int:
    """Index raw items that are not, oldest first; how many."""
    place = Session.objects.filter(
        owner=OuterRef("owner"), source=OuterRef("source"), key=OuterRef("session")
    )
    rows = (
        RawItem.objects.as_pipeline()
        .filter(waits__lacks=TEXT)
        .annotate(
            place=Subquery(place.values("pk")[:1]), said=Left("body", INDEXED_CHARACTERS_MAX)
        )
        .order_by("pk")
        .values(
            "pk", "kind", "owner_id", "visibility", "project_id", "place", "role", "said",
            "metadata", "occurred_at", "placed__episode__project_id", "placed__episode_id",
        )[:limit]
    )  # fmt: skip
    # Taken apart before the transaction: that may take seconds, and keeps nobody waiting.
    texts = [_of_item(row) for row in rows]
    try:
        with transaction.atomic():
            return _insert(texts)
    except IntegrityError:
        # One was purged between the reading and the writing; the others are left to the next run.
        return 0


# In one order, and without those that another worker settles just now: nobody waits in a circle.
_SETTLE = """
WITH tails AS (
    SELECT s.id, t.episode_id FROM memory_searchtext s
    JOIN memory_episodeturn t ON t.raw_item_id = s.raw_item_id
    WHERE NOT s.settled ORDER BY s.id LIMIT %s FOR NO KEY UPDATE OF s SKIP LOCKED
)
UPDATE memory_searchtext s SET settled = true, project_id = e.project_id
FROM tails JOIN memory_episode e ON e.id = tails.episode_id WHERE s.id = tails.id
RETURNING s.id, s.project_id
"""


def settle(*, limit: int = TEXTS_A_BATCH) -> int:
    """Tails that lie in an episode by now get its project, oldest first; how many."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_SETTLE, [limit])
        moved = cursor.fetchall()
        cursor.execute(
            "UPDATE memory_posting p SET project_id = m.project"
            " FROM unnest(%s::bigint[], %s::bigint[]) AS m(text, project)"
            " WHERE p.text_id = m.text AND p.project_id IS DISTINCT FROM m.project",
            [[row[0] for row in moved], [row[1] for row in moved]],
        )
    return len(moved)


def withdraw(notes: Collection[UUID]) -> None:
    """Take notes that were retired out of what is searched and counted. Inside the transaction of
    the retirement; one that somebody revived meanwhile stays."""
    _turn(notes, live=False)


def restore(notes: Collection[UUID]) -> None:
    """Put notes back that were revived; one that somebody retired meanwhile stays away."""
    _turn(notes, live=True)


def pending() -> int:
    """Notes and raw items without a search text."""
    return sum(rows.objects.filter(lacks=TEXT).count() for rows in (WaitingNote, WaitingItem))


def index_all(*, over: Callable[[], bool]) -> int:
    """Index whatever is not, until nothing is left or `over`; how many."""
    while not over() and settle():
        pass
    done = 0
    for some in (index_notes, index_items):
        while not over() and (count := some()):
            done += count
    return done


def speaker(metadata: dict[str, Any]) -> str:
    """Who spoke, where the source says so."""
    name = next((str(metadata[key]) for key in SPEAKERS if metadata.get(key)), "")
    return name[:SPEAKER_CHARACTERS_MAX]


def _of_note(note: Note) -> Text:
    body = "\n".join((note.title, note.content, " ".join(note.keywords), note.context))
    return Text(
        raw=False,
        key=note.pk,
        owner=note.owner_id,
        visibility=note.visibility,
        project=note.project_id,
        place=None,
        occurred_at=note.valid_from,
        settled=True,
        live=note.deleted_at is None,
        packed=pack(body, dated(note.valid_from)),
        traits=traits(note.content),
    )


def _of_item(row: dict[str, Any]) -> Text:
    body = row["said"]
    turn, episode = row["kind"] == "turn", row["placed__episode_id"]
    # Who wrote a document does not speak in it.
    name = speaker(row["metadata"]) if turn else ""
    head = f"{name} {dated(row['occurred_at'])}"
    return Text(
        raw=True,
        key=row["pk"],
        owner=row["owner_id"],
        visibility=row["visibility"],
        project=row["placed__episode__project_id"] if episode else row["project_id"],
        place=row["place"] if turn else None,
        occurred_at=row["occurred_at"],
        settled=bool(episode) or not turn,
        live=True,
        packed=pack(body, head),
        traits=traits(body),
        speakers=tuple(hashed(term) for term in lexemes(name)),
    )


_INSERT = """
INSERT INTO memory_searchtext (raw, raw_item_id, note_id, owner_id, visibility, project_id,
    place_id, occurred_at, settled, terms, counts, heads, length, traits, created_at)
SELECT t.*, now() FROM unnest(%s::bool[], %s::bigint[], %s::uuid[], %s::bigint[], %s::text[],
    %s::bigint[], %s::bigint[], %s::timestamptz[], %s::bool[], %s::bytea[], %s::bytea[],
    %s::bytea[], %s::int[], %s::int[]) AS t
ON CONFLICT DO NOTHING RETURNING id, raw_item_id, note_id
"""
_POSTINGS = (
    "COPY memory_posting (text_id, term, weight, raw, live, owner_id, visibility, project_id)"
    " FROM STDIN"
)


def _insert(texts: Sequence[Text]) -> int:
    """Texts that another worker indexed meanwhile are left to it. In one order, whoever does it:
    two workers wait for each other and never in a circle."""
    if not texts:
        return 0
    columns: list[list[Any]] = [
        [one.raw for one in texts],
        [one.key if one.raw else None for one in texts],
        [None if one.raw else one.key for one in texts],
        [one.owner for one in texts],
        [one.visibility for one in texts],
        [one.project for one in texts],
        [one.place for one in texts],
        [one.occurred_at for one in texts],
        [one.settled for one in texts],
        [one.packed.terms for one in texts],
        [one.packed.counts for one in texts],
        [one.packed.heads for one in texts],
        [one.packed.length for one in texts],
        [one.traits for one in texts],
    ]
    with connection.cursor() as cursor:
        cursor.execute(_INSERT, columns)
        ids = {raw or note: pk for pk, raw, note in cursor.fetchall()}
        fresh = [one for one in texts if one.key in ids]
        means = _count(fresh)
        with cursor.copy(_POSTINGS) as copy:
            for one in fresh:
                mean = means.get((one.owner, one.raw), float(one.packed.length))
                for term, weight in weights(one.packed, mean):
                    copy.write_row(
                        (ids[one.key], term, weight, one.raw, one.live, one.owner,
                         one.visibility, one.project)
                    )  # fmt: skip
    return len(fresh)


def _count(texts: Iterable[Text]) -> dict[tuple[int, bool], float]:
    """Add the living of these to the statistics; the mean length of each collection after that.

    The terms of the others are entered with nothing: who revives one must find their rows. A text
    without a word counts for nothing, as no posting says when it goes.
    """
    sizes: Counter[tuple[int, bool]] = Counter()
    lengths: Counter[tuple[int, bool]] = Counter()
    holding: Counter[tuple[int, bool, int]] = Counter()
    names: defaultdict[tuple[int, bool], set[int]] = defaultdict(set)
    for one in texts:
        names[one.owner, one.raw].update(one.speakers)
        counted = int(one.live and one.packed.length > 0)
        sizes[one.owner, one.raw] += counted
        lengths[one.owner, one.raw] += counted * one.packed.length
        holding.update(
            {(one.owner, one.raw, term): counted for term, _ in weights(one.packed, 1.0)}
        )
    means = {}
    with connection.cursor() as cursor:
        for owner, raw in sorted(sizes):
            cursor.execute(
                "INSERT INTO memory_collection (owner_id, raw, texts, length, speakers)"
                " VALUES (%s, %s, %s, %s, %s) ON CONFLICT (owner_id, raw) DO UPDATE SET"
                " texts = memory_collection.texts + excluded.texts,"
                " length = memory_collection.length + excluded.length,"
                " speakers = ARRAY(SELECT unnest(memory_collection.speakers)"
                f" UNION SELECT unnest(excluded.speakers) LIMIT {SPEAKERS_MAX})"
                " RETURNING texts, length",
                [owner, raw, sizes[owner, raw], lengths[owner, raw], sorted(names[owner, raw])],
            )
            count, length = cursor.fetchone()
            if count:
                means[owner, raw] = length / count
        rows = sorted(holding.items())
        cursor.execute(
            "INSERT INTO memory_term (owner_id, raw, term, texts)"
            " SELECT * FROM unnest(%s::bigint[], %s::bool[], %s::bigint[], %s::bigint[])"
            " ON CONFLICT (owner_id, raw, term) DO UPDATE SET"
            " texts = memory_term.texts + excluded.texts",
            [
                [owner for (owner, _, _), _ in rows],
                [raw for (_, raw, _), _ in rows],
                [term for (_, _, term), _ in rows],
                [count for _, count in rows],
            ],
        )
    return means


# Why the note is asked: whoever retires a note that is retired holds no lock on it, and another may
# have revived it by the time the collection is his. What is searched follows what is so.
_TURN = """
WITH turned AS (
    UPDATE memory_posting p SET live = %(live)s
    FROM memory_searchtext s JOIN memory_note n ON n.id = s.note_id
    WHERE s.note_id = ANY(%(notes)s) AND (n.deleted_at IS NOT NULL) = %(retired)s
      AND p.text_id = s.id AND p.live IS DISTINCT FROM %(live)s
    RETURNING p.owner_id, p.term, p.text_id, s.length
), terms AS (
    SELECT owner_id, term, count(*) AS texts FROM turned GROUP BY owner_id, term
), counted AS (
    UPDATE memory_collection c SET texts = c.texts + %(sign)s * t.texts,
        length = c.length + %(sign)s * t.length
    FROM (SELECT owner_id, count(*) AS texts, sum(length) AS length
          FROM (SELECT DISTINCT owner_id, text_id, length FROM turned) one GROUP BY owner_id) t
    WHERE c.owner_id = t.owner_id AND NOT c.raw
)
UPDATE memory_term m SET texts = m.texts + %(sign)s * t.texts FROM terms t
WHERE m.owner_id = t.owner_id AND NOT m.raw AND m.term = t.term
"""


def _turn(notes: Collection[UUID], *, live: bool) -> None:
    if not notes:
        return
    with connection.cursor() as cursor:
        # Collections before terms, as whoever indexes takes them: all wait at one door.
        cursor.execute(
            "SELECT FROM memory_collection WHERE NOT raw AND owner_id IN"
            " (SELECT owner_id FROM memory_note WHERE id = ANY(%s)) ORDER BY owner_id FOR UPDATE",
            [list(notes)],
        )
        sign = 1 if live else -1
        cursor.execute(
            _TURN, {"notes": list(notes), "live": live, "retired": not live, "sign": sign}
        )
