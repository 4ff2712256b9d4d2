"""Notes and raw turns by the ten thousand: made up, loaded by COPY, indexed for real.

Words follow Zipf's law over a made-up vocabulary, vectors lie in clusters as those of sentences do.
Rows go in as distill, capture and embed would leave them; `memory.searchtexts` indexes them.
"""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import numpy as np
import psycopg
from numpy.typing import NDArray
from pgvector import HalfVector
from pgvector.psycopg import register_vector

from memory.llm.ports import VECTOR_SIZE

Floats = NDArray[np.float64]

#: Distinct words, and by how many ranks the law is shifted.
# Why: without a shift the first words stand in every note, and those are stop words, which nobody
# asks for; with this one the commonest stands in about a fifth of the notes.
WORDS = 20_000
SHIFT = 20

#: Words of the shortest and the longest note.
NOTE_WORDS = (20, 40)

#: Clusters of vectors, numbers of a vector that are not zero, and how wide a cluster is.
CLUSTERS, MEANT, NOISE = 1_000, 384, 0.03

#: Turns of one session.
SESSION_TURNS = 40

#: Texts indexed in one transaction: a load waits for nobody.
TEXTS_A_LOAD = 4_000

START = datetime(2026, 3, 1, tzinfo=UTC)

_ONSETS = "bdfgklmnprstvz"
_VOWELS = "aiou"
_SYLLABLES = ["".join(pair) for pair in itertools.product(_ONSETS, _VOWELS)]


class Writing:
    """The same texts and vectors every time, however many were asked for at once."""

    def __init__(self, seed: int = 11, *, clusters: int = CLUSTERS) -> None:
        self.chance = np.random.default_rng(seed)
        trios = itertools.product(_SYLLABLES, repeat=3)
        every = ["".join(trio) + "k" for trio in trios]
        self.words = [every[at] for at in self.chance.permutation(len(every))[:WORDS]]
        share = 1.0 / (np.arange(WORDS) + SHIFT)
        self.bounds = np.cumsum(share / share.sum())
        self.centres = self.chance.normal(size=(clusters, MEANT)) / np.sqrt(MEANT)

    def texts(self, count: int) -> list[list[str]]:
        """The words of so many texts."""
        sizes = self.chance.integers(NOTE_WORDS[0], NOTE_WORDS[1] + 1, size=count)
        drawn = np.searchsorted(self.bounds, self.chance.random(int(sizes.sum())))
        ends = np.cumsum(sizes)
        return [
            [self.words[min(at, WORDS - 1)] for at in drawn[end - size : end]]
            for size, end in zip(sizes, ends, strict=True)
        ]

    def vectors(self, count: int) -> Floats:
        """So many unit-length vectors: [count, VECTOR_SIZE]."""
        near = self.centres[self.chance.integers(len(self.centres), size=count)]
        return self.around(near)

    def around(self, vectors: Floats, noise: float = NOISE) -> Floats:
        """A vector near each of these."""
        moved = np.zeros((len(vectors), VECTOR_SIZE))
        moved[:, :MEANT] = vectors[:, :MEANT] + self.chance.normal(
            scale=noise, size=(len(vectors), MEANT)
        )
        return np.asarray(moved / np.linalg.norm(moved, axis=1, keepdims=True))


@contextmanager
def without(address: str, *names: str) -> Iterator[None]:
    """These indexes are gone meanwhile, and built afterwards over what is there then: inserting
    into a live HNSW graph is many times slower."""
    with psycopg.connect(address, autocommit=True) as connection:
        made = []
        for name in names:
            row = connection.execute(
                "SELECT indexdef FROM pg_indexes WHERE indexname = %s", [name]
            ).fetchone()
            assert row is not None, f"no index {name}"
            made.append(str(row[0]))
            connection.execute(f"DROP INDEX {name}".encode())
        yield
        connection.execute("SET maintenance_work_mem = '1GB'")
        for statement in made:
            connection.execute(statement.encode())


def stage(
    connection: psycopg.Connection,
    texts: Sequence[Sequence[str]],
    vectors: Floats,
    first: int,
    seed: int,
) -> None:
    """Texts, numbered from `first`, with vectors and ids, in a temporary table `staged`."""
    register_vector(connection)
    connection.execute(
        "CREATE TEMP TABLE staged (n int, id uuid, text text, embedding halfvec, at timestamptz)"
    )
    chance = np.random.default_rng([seed, first])
    with connection.cursor().copy("COPY staged FROM STDIN WITH (FORMAT binary)") as copy:
        copy.set_types(["int4", "uuid", "text", "halfvec", "timestamptz"])
        for n, (words, vector) in enumerate(zip(texts, vectors, strict=True), start=first):
            copy.write_row(
                (
                    n,
                    uuid.UUID(bytes=chance.bytes(16)),
                    " ".join(words),
                    HalfVector(vector),
                    START + timedelta(minutes=n),
                )
            )


def add_notes(
    address: str,
    owner: int,
    model: str,
    texts: Sequence[Sequence[str]],
    vectors: Floats,
    *,
    first: int = 0,
    project: int | None = None,
    visibility: str = "private",
    seed: int = 11,
) -> list[uuid.UUID]:
    """Live notes with their vectors, by the owner of the tables; their ids, in order."""
    with psycopg.connect(address) as connection:
        stage(connection, texts, vectors, first, seed)
        connection.execute(
            "INSERT INTO memory_note (id, owner_id, visibility, confidentiality, level,"
            " memory_kind, title, content, context, keywords, tags, importance, confidence,"
            " said_by, locator, project_id, session, unit_key, content_key, embedding,"
            " embedding_model, embedded_at, question, answer, model_asked, model_real,"
            " prompt_version, valid_from, created_at, retired_reason)"
            " SELECT id, %s, %s, 'internal', 'note', 'semantic', left(text, 60), text, '',"
            " '{}', '{}', 0.5, 0.5, 'user', '{}', %s, 's' || n / 10, 'made:' || n, 'made' || n,"
            " embedding, %s, at, '', '', '', '', '', at, at, '' FROM staged ORDER BY n",
            [owner, visibility, project, model],
        )
        rows = connection.execute("SELECT id FROM staged ORDER BY n").fetchall()
    return [row[0] for row in rows]


def add_turns(
    address: str,
    owner: int,
    model: str,
    texts: Sequence[Sequence[str]],
    vectors: Floats,
    *,
    first: int = 0,
    seed: int = 12,
) -> None:
    """Raw turns with their sessions and vectors, by the owner of the tables."""
    with psycopg.connect(address) as connection:
        stage(connection, texts, vectors, first, seed)
        connection.execute(
            "INSERT INTO memory_session (owner_id, source, key, ended_reason, pending)"
            " SELECT DISTINCT %s::bigint, 'api', 'made' || n / %s, '', false FROM staged"
            " ON CONFLICT DO NOTHING",
            [owner, SESSION_TURNS],
        )
        connection.execute(
            "WITH made AS (INSERT INTO memory_rawitem (owner_id, visibility, confidentiality,"
            " source, kind, role, body, session, cwd, project_method, record_id, occurred_at,"
            " captured_at, metadata, locator, flags, sha256, dedup_key, copy_key, near_key)"
            " SELECT %s, 'private', 'internal', 'api', 'turn', 'user', text, 'made' || n / %s, '',"
            " '', '', at, at, '{}', '{}', '{}', encode(sha256(convert_to(text, 'UTF8')), 'hex'),"
            " 'made' || n, '', '' FROM staged"
            " ORDER BY n RETURNING id, dedup_key)"
            " INSERT INTO memory_turnvector (raw_item_id, model, embedding, created_at)"
            " SELECT made.id, %s, embedding, at FROM staged JOIN made"
            " ON made.dedup_key = 'made' || n",
            [owner, SESSION_TURNS, model],
        )


def index() -> int:
    """Index whatever is not, in batches for a load; how many texts."""
    from memory.searchtexts import index_items, index_notes

    done = 0
    for some in (index_notes, index_items):
        while count := some(limit=TEXTS_A_LOAD):
            done += count
    return done


def analyze(address: str, *tables: str) -> None:
    """As autovacuum leaves them after a while."""
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(f"VACUUM ANALYZE {', '.join(tables)}".encode())
