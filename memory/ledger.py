"""What Argus put out: injections, and samples of every emitted text so that it is known again.

Reads: evidence. Reads and writes: emission, injection. Knows nothing about how notes are found or
rendered.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Sequence
from datetime import datetime
from uuid import UUID

from django.db import connection
from django.db.models import Q

from memory.models import Emission, Evidence, Injection, Principal
from memory.text.identity import sha256
from memory.text.shingles import shingles

#: Share of a text's sampled shingles that one emission must hold for the text to be its echo.
# Why: a person who quotes one remembered sentence and goes on is not an echo; a pasted block is.
# Calibrate: `derived` refusals on the receipts, read by eye; none should be a person's own words.
ECHO_SHARE_MIN = 0.8

#: Words below which a text is not compared.
# Why: one remembered sentence said again by a person is news ("it still holds"), not an echo.
ECHO_WORDS_MIN = 40

#: Characters that count as a word in scripts without spaces.
ECHO_WORD_CHARACTERS = 3
UNSPACED = re.compile("[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")

#: What a file of the vault is on the books as; also the source of what a person writes in one.
VAULT = "vault"

#: Sampled shingles that must agree.
ECHO_SHINGLES_MIN = 3


def came_from_us(bodies: Sequence[str], *, owner: Principal) -> list[bool]:
    """Whether each text is (nearly whole) something that Argus put out to this owner."""
    samples = [
        frozenset(shingles(body)) if _length(body) >= ECHO_WORDS_MIN else frozenset()
        for body in bodies
    ]
    wanted = {one for sample in samples for one in _telltale(sample)}
    if not wanted:
        return [False] * len(bodies)
    emitted = _emitted(sorted(wanted), owner)
    return [_echoes(sample, emitted) for sample in samples]


def _telltale(sample: frozenset[int]) -> list[int]:
    """So many of the sample that an echo must hold one of them: what it may lack, and one more."""
    if len(sample) < ECHO_SHINGLES_MIN:
        return []
    needed = math.ceil(ECHO_SHARE_MIN * len(sample))
    return sorted(sample)[: len(sample) - needed + 1]


def _emitted(wanted: list[int], owner: Principal) -> list[frozenset[int]]:
    """The samples of what was put out and holds one of these."""
    # Why SQL: the queryset makes a parameter of each number, thousands in a batch.
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT shingles FROM memory_emission WHERE owner_id = %s AND shingles && %s::bigint[]",
            [owner.pk, wanted],
        )
        return [frozenset(row) for (row,) in cursor.fetchall()]


def _length(body: str) -> int:
    """Words of a text, counted cheaply; characters by the handful where nobody writes spaces."""
    words = body.count(" ") + body.count("\n") + 1
    if not body.isascii():
        words += len(UNSPACED.findall(body)) // ECHO_WORD_CHARACTERS
    return words


def _echoes(sample: frozenset[int], emitted: Sequence[frozenset[int]]) -> bool:
    if len(sample) < ECHO_SHINGLES_MIN:
        return False
    return any(len(sample & one) >= ECHO_SHARE_MIN * len(sample) for one in emitted)


def emit(text: str, *, owner: Principal, kind: str, reference: str = "", now: datetime) -> None:
    """Remember a sample of a text that leaves for an agent or a file."""
    sample = sorted(set(shingles(text)))
    if not sample:
        return
    Emission.objects.bulk_create(
        [
            Emission(
                owner=owner,
                kind=kind,
                reference=reference,
                sha256=sha256(text),
                shingles=sample,
                created_at=now,
            )
        ],
        ignore_conflicts=True,
    )


def lie_in_vault(notes: Collection[UUID], *, owner: Principal) -> bool:
    """Whether a file of the owner's vault ever told one of these notes."""
    told = Emission.objects.filter(
        owner=owner, kind=VAULT, reference__in=[str(note) for note in notes]
    )
    return told.exists()


def shown_in(notes: Collection[UUID], *, owner: Principal, sessions: Collection[str]) -> set[UUID]:
    """Which of these notes were ever put into one of these sessions ("": one that was not named):
    as notes, or as a raw item that bears them out, which says the same.

    Whenever it was: when a thing was said is told by the client's clock, when it was shown by ours,
    and a statement that came first loses no more than one step of confidence.
    """
    told: dict[int, set[UUID]] = {}
    edges = Evidence.objects.filter(note__in=list(notes), raw_item__isnull=False)
    for note, item in edges.values_list("note", "raw_item"):
        told.setdefault(item, set()).add(note)
    rows = (
        Injection.objects.as_pipeline()
        .filter(owner=owner, session__in=list(sessions))
        .filter(Q(note_ids__overlap=list(notes)) | Q(turn_ids__overlap=list(told)))
    )
    shown: set[UUID] = set()
    for note_ids, turn_ids in rows.values_list("note_ids", "turn_ids"):
        shown.update(note_ids, *(told.get(item, ()) for item in turn_ids))
    return shown & set(notes)
