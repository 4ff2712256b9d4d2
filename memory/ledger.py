"""What Argus put out: injections, and samples of every emitted text so that it is known again.

Reads and writes: emission, injection. Knows nothing about how notes are found or rendered.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from uuid import UUID

from memory.models import Emission, Injection, Principal
from memory.text.identity import sha256
from memory.text.shingles import shingles

#: Share of a text's sampled shingles that one emission must hold for the text to be its echo.
# Why: a person who quotes one remembered sentence and goes on is not an echo; a pasted block is.
# Calibrate: `derived` refusals on the receipts, read by eye; none should be a person's own words.
ECHO_SHARE_MIN = 0.8

#: Words below which a text is not compared.
# Why: one remembered sentence said again by a person is news ("it still holds"), not an echo.
ECHO_WORDS_MIN = 40

#: Sampled shingles that must agree.
ECHO_SHINGLES_MIN = 3


def came_from_us(bodies: Sequence[str], *, owner: Principal) -> list[bool]:
    """Whether each text is (nearly whole) something that Argus put out to this owner."""
    samples = [
        frozenset(shingles(body)) if body.count(" ") >= ECHO_WORDS_MIN - 1 else frozenset()
        for body in bodies
    ]
    wanted = {one for sample in samples if len(sample) >= ECHO_SHINGLES_MIN for one in sample}
    if not wanted:
        return [False] * len(bodies)
    rows = Emission.objects.filter(owner=owner, shingles__overlap=sorted(wanted))
    emitted = [frozenset(row) for row in rows.values_list("shingles", flat=True)]
    return [_echoes(sample, emitted) for sample in samples]


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


def shown_before(
    notes: Collection[UUID], *, owner: Principal, session: str, by: datetime
) -> set[UUID]:
    """Which of these notes had been put into this session before `by`."""
    if not session:
        return set()
    rows = Injection.objects.filter(
        owner=owner, session=session, created_at__lte=by, note_ids__overlap=list(notes)
    )
    return {note for ids in rows.values_list("note_ids", flat=True) for note in ids} & set(notes)
