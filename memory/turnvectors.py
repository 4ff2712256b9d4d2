"""Vectors of turns: kept beside the immutable raw items, made once per embedder.

Reads and writes: turn_vector, claim (what cannot be embedded). Shared by segment, which needs them
for topics, and embed, for what segment left without.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from django.db import transaction
from django.db.models.functions import Left

from memory import claims
from memory.errors import Confidential, ContentError
from memory.llm.ports import Embedder, Origin
from memory.models import Claim, RawItem, StageRun, TurnVector
from memory.models.record import CONFIDENTIALITIES

#: Turns embedded in one call.
# Why: as many as an embedder at a URL takes at once; what was made before it went away stays.
# Calibrate: turns a second of the embedder in use, by halving and doubling.
TURNS_A_BATCH = 64

#: Characters of a turn that its vector is made from.
# Why: what a turn is about is said early; the embedder's cost grows with length.
# Calibrate: dense recall@5 of turns with the cap halved and doubled.
TURN_EMBED_CHARACTERS_MAX = 2_000


def turn_vectors(
    run: StageRun, items: Sequence[RawItem], model: Embedder, origin: Origin, *, now: datetime
) -> dict[int, list[float]]:
    """The vectors of these turns by raw item id, made and kept where they are missing.

    A turn without one (the embedder cannot, or may not see it) is not in the answer: what it cannot
    embed is counted, and set aside at the limit of content failures. Raises InfraError when it is
    away; what was made before stays.
    """
    known = stored(items, model)
    parked = claims.parked(run.stage)
    missing = [i for i in items if i.pk not in known and unit_of(i.pk) not in parked]
    if not missing:
        return known
    for confidentiality in CONFIDENTIALITIES:
        # One by one: where a text may not leave, none of the same confidentiality is asked about.
        alike = [item.pk for item in missing if item.confidentiality == confidentiality]
        asked = replace(origin, confidentiality=confidentiality)
        for at in range(0, len(alike), TURNS_A_BATCH):
            try:
                bad = make(alike[at : at + TURNS_A_BATCH], model, asked)
            except Confidential:
                break
            _count(run, bad, now=now)
    # Read back: what is stored is rounded, and the next look must see the same numbers as this one.
    return known | stored(missing, model)


def stored(items: Sequence[RawItem], model: Embedder) -> dict[int, list[float]]:
    """The vectors of this model that these turns have, by raw item id."""
    rows = TurnVector.objects.filter(raw_item__in=[item.pk for item in items], model=model.name)
    return {pk: list(vector) for pk, vector in rows.values_list("raw_item_id", "embedding")}


def unit_of(item_id: int) -> str:
    """The unit of a turn that cannot be embedded: by this name a purge finds it, too."""
    return f"item:{item_id}"


def make(ids: Sequence[int], model: Embedder, origin: Origin) -> dict[int, ContentError]:
    """Make and keep vectors of raw items that nobody has any of this model for; errors by raw item
    id. A batch whose bad text is not named is halved, so that it costs nobody else. The claim of
    what got its vector goes. Raises InfraError and Confidential; what was made before stays."""
    # Read here: a body may be long, and only its beginning is needed.
    rows = RawItem.objects.as_pipeline().filter(pk__in=ids)
    texts = dict(rows.values_list("pk", Left("body", TURN_EMBED_CHARACTERS_MAX)))
    origin.pulse()
    try:
        vectors = model.embed([texts[pk] for pk in ids], origin=origin)
    except ContentError as error:
        if len(ids) == 1:
            return {ids[0]: error}
        half = len(ids) // 2
        return make(ids[:half], model, origin) | make(ids[half:], model, origin)
    # Both or neither: a worker killed between them would leave a claim on what is done.
    with transaction.atomic():
        TurnVector.objects.bulk_create(
            [
                TurnVector(raw_item_id=pk, model=model.name, embedding=vector)
                # In one order: two workers at the same turns wait for each other in no circle.
                for pk, vector in sorted(zip(ids, vectors, strict=True))
            ],
            ignore_conflicts=True,
        )
        # What failed before is done now.
        Claim.objects.filter(
            stage=origin.stage, unit__in=map(unit_of, ids), parked_at__isnull=True
        ).delete()
    return {}


def _count(run: StageRun, bad: dict[int, ContentError], *, now: datetime) -> None:
    """Count the failure of each turn; one that another worker counts just now is left to it."""
    by_unit = {unit_of(pk): error for pk, error in bad.items()}
    for one in claims.claim(run, list(by_unit), now=now, limit=len(by_unit)):
        claims.fail(run, one, by_unit[one.unit], now=now)
