"""Floors that a person chose come into force, with what they would have done as the evidence.

Reads: injection, feedback, calibration. Writes: calibration, by `recall.calibration`. Audits: act.
Knows nothing about forms: a page hands over numbers by name. Verify: nobody puts floors into force
in place of others than those that it saw.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from memory.errors import NotFound
from memory.llm.choice import embedder
from memory.models import Injection, Principal
from memory.querysets import OwnerQuerySet
from recall.calibration import adopt_floors, floors_of, in_force
from recall.floors import shipped
from recall.models import Calibration
from recall.trial import Trial, tried, try_floors


def set_floors(
    given: Mapping[str, str],
    *,
    instead_of: int | None,
    principal: Principal,
    reason: str,
    now: datetime,
) -> Calibration:
    """Put the floors of `given` into force, with what they would have done as the evidence.

    `instead_of` is the adoption that the person saw in force (None: Argus's own). Raises Conflict
    when there is another one by now, RefusedError for what is no floor or changes nothing.
    """
    trial = try_floors(given, rows=_own(principal), principal=principal)
    return _adopt(trial, {}, instead_of, principal=principal, reason=reason, now=now)


def set_again(
    pk: int | None,
    *,
    instead_of: int | None,
    principal: Principal,
    reason: str,
    now: datetime,
) -> Calibration:
    """Put the floors of an earlier adoption into force again, by a row of its own; None: those that
    come with Argus. Raises as `set_floors`, and NotFound when there is no such adoption."""
    model = embedder().name
    if pk is None:
        then = shipped(model, score=0.0)
    else:
        row = Calibration.objects.filter(pk=pk, kind="floors", embedder=model).first()
        if row is None:
            raise NotFound(f"no floors were adopted as calibration {pk} for {model}")
        then = floors_of(row)
    standing = in_force(model)
    then = {
        source: replace(one, score=standing.floors[source].score) for source, one in then.items()
    }
    rows = _own(principal)
    trial = tried(then, standing, model, rows=rows, principal=principal)
    again = {"again": pk or "shipped"}
    return _adopt(trial, again, instead_of, principal=principal, reason=reason, now=now)


def _adopt(
    trial: Trial,
    more: Mapping[str, object],
    instead_of: int | None,
    *,
    principal: Principal,
    reason: str,
    now: datetime,
) -> Calibration:
    return adopt_floors(
        trial.then,
        embedder=trial.model,
        instead_of=instead_of,
        evidence={"by": "hand", "whatif": trial.whatif.as_json(), **more},
        principal=principal,
        reason=reason,
        now=now,
    )


def _own(principal: Principal) -> OwnerQuerySet:
    return Injection.objects.visible_to(principal)
