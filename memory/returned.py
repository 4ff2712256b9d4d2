"""Raw items that a purge removed and that are here again, as a backup brings them.

Reads: raw items, by the hashes that the ledger keeps; purge_proof. Writes: nothing. Knows nothing
about what else says their words.
"""

from __future__ import annotations

from collections.abc import Collection

from memory.models import PurgeLedger, PurgeProof, RawItem

#: Raw items that said the same and stayed, which a proof names.
# Why: somebody may have said "yes" a hundred thousand times; then nobody tells what came back.
TWINS_KEPT_MAX = 4_096


def twins(ledger: PurgeLedger, owners: Collection[int]) -> list[int] | None:
    """Ids of the raw items of these owners that say, word for word, what just went; None where they
    are too many to keep. To be asked in the purge's own transaction: later some may be back."""
    found = _alike(ledger, owners)[: TWINS_KEPT_MAX + 1]
    return None if len(found) > TWINS_KEPT_MAX else found


def back(row: PurgeProof) -> list[int] | None:
    """Ids of the raw items that the purge of this proof removed and that are here: they say the
    same, were there before it went, and are of those whose items went, but none of its twins. None
    where the proof does not tell, as those of before."""
    of, stayed = row.scanned.get("of"), row.scanned.get("twins")
    if of is None or stayed is None:
        return None
    kept = {*stayed}
    return [pk for pk in _alike(row.ledger, of) if pk not in kept]


def _alike(ledger: PurgeLedger, owners: Collection[int]) -> list[int]:
    rows = RawItem.objects.as_pipeline().filter(
        sha256__in=ledger.hashes, captured_at__lt=ledger.created_at, owner__in=owners
    )
    return list(rows.order_by("pk").values_list("pk", flat=True))
