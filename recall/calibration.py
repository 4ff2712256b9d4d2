"""Which floors are in force, and how others come into force: who adopted them, when, and why.

Reads: calibration. Writes: calibration, a row for each adoption. Audits: act. No row is ever
changed, and the newest for the embedder in use is what the next recall obeys. Cosines of one
embedder say nothing about another's, so its rows do not count there.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import connection, transaction

from memory.acts import record_act, tidy_reason
from memory.errors import Conflict, ContentError, RefusedError
from memory.models import Principal
from recall.floors import SOURCES, Floors, Source, Weights, shipped
from recall.models import Calibration
from recall.proposal import Proposal
from recall.ranker import Ranker, parse
from recall.ranker import shipped as shipped_ranker
from recall.training import Comparison

logger = logging.getLogger(__name__)

#: What of a source's floors an adoption decides. The final score's is a setting of the machine.
ADOPTED = ("semantic", "keyword", "relevance")


@dataclass(frozen=True)
class InForce:
    """The floors of every source and the ranker, and the adoptions they are from (None: Argus's
    own)."""

    floors: Mapping[Source, Floors]
    ranker: Ranker
    calibration: int | None = None
    ranker_calibration: int | None = None


_NEWEST = (
    "SELECT DISTINCT ON (kind) kind, id, values FROM recall_calibration WHERE embedder = %s"
    " ORDER BY kind, embedder, id DESC"
)


def in_force(embedder: str) -> InForce:
    """What a recall with this embedder obeys now. One statement, because every prompt waits for it.

    What another version wrote and this one cannot read counts as none.
    """
    floors = shipped(embedder, score=settings.ARGUS.recall_floor)
    ranker = shipped_ranker()
    ids: dict[str, int] = {}
    with connection.cursor() as cursor:
        cursor.execute(_NEWEST, [embedder])
        for kind, pk, kept in cursor.fetchall():
            values = kept if isinstance(kept, dict) else json.loads(kept)
            try:
                if kind == "floors":
                    floors, ids[kind] = _adopted(floors, values), pk
                else:
                    ranker, ids[kind] = parse(values), pk
            except (ContentError, KeyError, TypeError, ValueError, AttributeError) as error:
                logger.warning("calibration %s counts as none: %s", pk, error)
    return InForce(floors, ranker, ids.get("floors"), ids.get("ranker"))


def _adopted(floors: dict[Source, Floors], values: Mapping[str, Any]) -> dict[Source, Floors]:
    adopted = {
        source: replace(
            floors[source],
            **{name: float(given[name]) for name in ADOPTED},
            weights=Weights(**given["weights"]),
        )
        for source in SOURCES
        if (given := values.get(source))
    }
    return {**floors, **adopted}


def adopt(
    proposal: Proposal, *, embedder: str, principal: Principal, reason: str, now: datetime
) -> Calibration:
    """Put proposed floors into force, with the evidence and the reason.

    Raises RefusedError when nothing was proposed, or when the floors in force do better on the
    questions that were held out.
    """
    if not proposal.changes:
        raise RefusedError(f"nothing to adopt: {'; '.join(proposal.kept) or 'the same floors'}")
    if worse := proposal.worse:
        raise RefusedError(f"not adopted: {worse}")
    return _put(
        "floors",
        {source: stored(floors) for source, floors in proposal.floors.items()},
        {
            **proposal.evidence,
            "chosen_on": proposal.chosen_on.as_json(),
            "held_out": proposal.held_out.as_json(),
            "before": proposal.before.as_json(),
        },
        embedder=embedder,
        principal=principal,
        reason=reason,
        now=now,
    )


@transaction.atomic
def adopt_floors(
    floors: Mapping[Source, Floors],
    *,
    embedder: str,
    instead_of: int | None,
    evidence: Mapping[str, Any],
    principal: Principal,
    reason: str,
    now: datetime,
) -> Calibration:
    """Put floors that somebody set by hand into force; the final score's stays the machine's.

    `instead_of` is the adoption that was in force when they were chosen (None: Argus's own).
    Raises Conflict when it is another one by now, RefusedError when nothing would change.
    """
    with connection.cursor() as cursor:
        # One at a time: of two people who saved at once the second one hears of the first.
        cursor.execute("SELECT pg_advisory_xact_lock(hashtext('recall_calibration'))")
    standing = in_force(embedder)
    if standing.calibration != instead_of:
        raise Conflict(_told_since(standing.calibration))
    values = {source: stored(one) for source, one in floors.items()}
    if values == {source: stored(one) for source, one in standing.floors.items()}:
        raise RefusedError("nothing to adopt: these floors are in force")
    return _put(
        "floors",
        values,
        evidence,
        embedder=embedder,
        principal=principal,
        reason=reason,
        now=now,
    )


def _told_since(pk: int | None) -> str:
    rows = Calibration.objects.select_related("principal")
    row = rows.filter(pk=pk).first() if pk else None
    if row is None:
        return "other floors are in force by now: look again"
    at = f"{row.created_at:%Y-%m-%d %H:%M}"
    return f"{row.principal} adopted other floors at {at} UTC: look again"


def floors_of(row: Calibration) -> dict[Source, Floors]:
    """The floors of every source that an adoption put into force, with what holds today where it
    says nothing. Raises RefusedError when this version cannot read it."""
    base = shipped(row.embedder, score=settings.ARGUS.recall_floor)
    try:
        return _adopted(base, row.values)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise RefusedError(f"calibration {row.pk} is of another version: {error}") from None


def adopt_ranker(
    ranker: Ranker,
    comparison: Comparison,
    *,
    embedder: str,
    principal: Principal,
    reason: str,
    now: datetime,
) -> Calibration:
    """Put a retrained ranker into force. Raises RefusedError when it is not better than the one in
    force on folds that it was not trained on, or holds what is no weight."""
    new, old = comparison.new, comparison.shipped
    if not comparison.better:
        raise RefusedError(
            f"not adopted: on held-out folds the trained ranker has recall@5 {new.recall5:.3f}, "
            f"recall@10 {new.recall10:.3f}, MRR {new.mrr10:.3f}, the one in force "
            f"{old.recall5:.3f}, {old.recall10:.3f}, {old.mrr10:.3f}"
        )
    values = ranker.as_json()
    try:
        # What no recall could read would be in force in name alone.
        parse(values)
    except ContentError as error:
        raise RefusedError(f"not adopted: {error}") from None
    return _put(
        "ranker",
        values,
        {"new": asdict(new), "before": asdict(old), "ridge": comparison.ridge},
        embedder=embedder,
        principal=principal,
        reason=reason,
        now=now,
    )


@transaction.atomic
def _put(
    kind: str,
    values: Mapping[Any, Any],
    evidence: Mapping[str, Any],
    *,
    embedder: str,
    principal: Principal,
    reason: str,
    now: datetime,
) -> Calibration:
    """The row that the next recall obeys, and the act of who put it there."""
    reason = tidy_reason(reason)
    row = Calibration.objects.create(
        kind=kind,
        embedder=embedder,
        values=dict(values),
        evidence=dict(evidence),
        principal=principal,
        reason=reason,
        created_at=now,
    )
    detail = {"kind": kind, "embedder": embedder}
    record_act(principal, "adopt", "floors", row.pk, now=now, reason=reason, detail=detail)
    return row


def stored(floors: Floors) -> dict[str, Any]:
    """One source's floors as an adoption keeps them."""
    told = asdict(floors)
    return {name: told[name] for name in (*ADOPTED, "weights")}


def history(embedder: str, *, limit: int) -> list[Calibration]:
    """The latest adoptions for an embedder, of floors and of rankers, newest first."""
    rows = Calibration.objects.filter(embedder=embedder)
    return list(rows.select_related("principal").order_by("-pk")[:limit])
