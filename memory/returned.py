"""Raw items that a purge removed and that are here again, as a backup brings them.

Reads: raw items, by the hashes that the ledger keeps. Writes: nothing. Knows nothing about what
else says their words.
"""

from __future__ import annotations

from collections.abc import Collection

from memory.models import PurgeLedger, RawItem


def alike(ledger: PurgeLedger, owners: Collection[int] | None) -> list[int]:
    """Ids of the raw items that say, word for word, what went, were there before it went, and are
    of these owners: those whose items went. None of anybody where that is not known."""
    rows = RawItem.objects.as_pipeline().filter(
        sha256__in=ledger.hashes, captured_at__lt=ledger.created_at, owner__in=owners or ()
    )
    return list(rows.order_by("pk").values_list("pk", flat=True))


def back(
    ledger: PurgeLedger, owners: Collection[int] | None, *, stayed: Collection[int] | None
) -> frozenset[str]:
    """Those of them that went. `stayed`: those that did not, as the purge found them; where nobody
    has looked yet, nothing is known to be back."""
    if stayed is None:
        return frozenset()
    return frozenset(str(pk) for pk in alike(ledger, owners) if pk not in {*stayed})
