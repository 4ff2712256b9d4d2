"""Which floors are in force, and how others come into force: who adopted them, when, and why.

Reads: calibration. Writes: calibration, a row for each adoption; no row is ever changed, and the
newest for the embedder in use is what the next recall obeys. Cosines of one embedder say nothing
about another's, so its rows do not count there.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import connection

from memory.errors import ContentError, RefusedError
from memory.models import Principal
from memory.text.clean import clean_text
from memory.text.secrets import redact
from recall.floors import SOURCES, Floors, Source, Weights, shipped
from recall.models import Calibration
from recall.proposal import Proposal
from recall.ranker import Ranker, parse
from recall.ranker import shipped as shipped_ranker
from recall.training import Comparison

logger = logging.getLogger(__name__)

#: Characters of a reason.
# Why: a sentence or two; the numbers behind it are kept beside it.
REASON_CHARACTERS_MAX = 1_000

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
    return Calibration.objects.create(
        kind="floors",
        embedder=embedder,
        values={source: stored(floors) for source, floors in proposal.floors.items()},
        evidence={
            **proposal.evidence,
            "chosen_on": proposal.chosen_on.as_json(),
            "held_out": proposal.held_out.as_json(),
            "before": proposal.before.as_json(),
        },
        principal=principal,
        reason=_reason(reason),
        created_at=now,
    )


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
    return Calibration.objects.create(
        kind="ranker",
        embedder=embedder,
        values=values,
        evidence={"new": asdict(new), "before": asdict(old), "ridge": comparison.ridge},
        principal=principal,
        reason=_reason(reason),
        created_at=now,
    )


def _reason(given: str) -> str:
    reason = redact(clean_text(given)[0]).text.strip()
    if len(reason) > REASON_CHARACTERS_MAX:
        raise RefusedError(f"a reason has {REASON_CHARACTERS_MAX} characters at most")
    return reason


def stored(floors: Floors) -> dict[str, Any]:
    """One source's floors as an adoption keeps them."""
    told = asdict(floors)
    return {name: told[name] for name in (*ADOPTED, "weights")}


def history(embedder: str, *, limit: int) -> list[Calibration]:
    """The latest adoptions for an embedder, of floors and of rankers, newest first."""
    rows = Calibration.objects.filter(embedder=embedder)
    return list(rows.select_related("principal").order_by("-pk")[:limit])
