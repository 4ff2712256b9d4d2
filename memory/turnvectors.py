"""Vectors of turns: kept beside the immutable raw items, made once per embedder.

Reads and writes: turn_vector. Shared by segment, which needs them for topics, and reembed.
"""

from __future__ import annotations

from collections.abc import Sequence

from memory.errors import Confidential, ContentError, InfraError
from memory.llm.ports import Embedder, Origin
from memory.models import RawItem, TurnVector
from memory.models.record import CONFIDENTIALITIES

#: Turns embedded in one call.
TURNS_A_BATCH = 64

#: Characters of a turn that its vector is made from.
# Why: what a turn is about is said early; the embedder's cost grows with length.
# Calibrate: dense recall@5 of turns with the cap halved and doubled.
TURN_EMBED_CHARACTERS_MAX = 2_000


def turn_vectors(
    items: Sequence[RawItem], model: Embedder, origin: Origin
) -> dict[int, list[float]]:
    """The vectors of these turns by raw item id, made and kept where they are missing.

    A turn without one (the embedder is away, cannot, or may not see it) is not in the answer; the
    call's own row says why.
    """
    known = _stored(items, model)
    missing = [item for item in items if item.pk not in known]
    # Read back: what is stored is rounded, and the next look must see the same numbers as this one.
    try:
        for at in range(0, len(missing), TURNS_A_BATCH):
            _make(missing[at : at + TURNS_A_BATCH], model, origin)
    except InfraError:
        pass
    return known | _stored(missing, model) if missing else known


def _stored(items: Sequence[RawItem], model: Embedder) -> dict[int, list[float]]:
    rows = TurnVector.objects.filter(raw_item__in=items, model=model.name)
    return {pk: list(vector) for pk, vector in rows.values_list("raw_item_id", "embedding")}


def _make(items: Sequence[RawItem], model: Embedder, origin: Origin) -> None:
    texts = [item.body[:TURN_EMBED_CHARACTERS_MAX] for item in items]
    strictest = max((i.confidentiality for i in items), key=CONFIDENTIALITIES.index)
    try:
        vectors = model.embed(
            texts, origin=Origin(origin.stage, origin.unit, strictest, origin.run_id)
        )
    except (ContentError, Confidential):
        if len(items) > 1:
            half = len(items) // 2
            _make(items[:half], model, origin)
            _make(items[half:], model, origin)
        return
    TurnVector.objects.bulk_create(
        [
            TurnVector(raw_item=item, model=model.name, embedding=vector)
            for item, vector in zip(items, vectors, strict=True)
        ],
        ignore_conflicts=True,
    )
