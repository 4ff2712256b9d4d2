"""What distilling a unit again would change, asked by nobody: for `reconcile`.

Reads: note, evidence, proposal, model_reply. Writes: proposal, where something would change.
Audits: llm_call; the proposal names the run. Applies nothing: a person does (`memory.redistill`).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction

from memory.llm.choice import distiller
from memory.llm.ports import Origin
from memory.making import Unit, judge
from memory.models import Principal, Proposal, StageRun
from memory.redistill import (
    FATES,
    Changes,
    compare,
    notes_of,
    open_proposal,
    pairs_of,
    row_of,
)


@dataclass(frozen=True)
class Difference:
    """What distilling a unit again would change, and the proposal for it; of a document there is
    none, as its page has nowhere to decide one. `fresh`: it was made just now."""

    changes: Changes
    proposal: Proposal | None
    fresh: bool

    @property
    def counts(self) -> dict[str, int]:
        same = len(_reworded(self.changes))
        counts = {fate: len(getattr(self.changes, fate)) for fate in FATES}
        counts = counts | {"come": counts["come"] - same, "go": counts["go"] - same}
        return {fate: count for fate, count in counts.items() if count}


def _reworded(changes: Changes) -> set[tuple[str, str]]:
    """Notes that come in the words, and with the quote, of one that goes: another prompt gives the
    same note another id. Pure."""
    come = {(one.note.content, one.edge.quote) for one in changes.come}
    go = {(note.content, edge.quote) for note in changes.go for edge in note.evidence.all()}
    return come & go


def differ(
    run: StageRun, unit: Unit, *, by: Principal, origin: Origin, now: datetime
) -> Difference | None:
    """Distill again and keep what would change as a proposal; None where nothing would, or where a
    person dropped the same before. What was answered before is not asked again.

    Raises InfraError and ContentError as the distiller does.
    """
    draft = distiller(origin.confidentiality).distill(unit.passages, origin=origin)
    judged = judge(draft, unit, origin)
    fields = row_of(unit, draft, judged) | {"principal": by, "run": run, "created_at": now}
    meant = Proposal(unit=unit.key, status="open", **fields)
    changes = compare(pairs_of(meant, unit, now=now), notes_of(unit.key))
    same = len(_reworded(changes))
    if changes.nothing or (same == len(changes.come) == len(changes.go) and not changes.back):
        return None
    if waiting := open_proposal(unit.key):
        return Difference(changes, waiting, fresh=False)
    rows = Proposal.objects.as_pipeline()
    last = rows.filter(unit=unit.key, status="dropped").order_by("-pk").first()
    if last is not None and last.notes == json.loads(json.dumps(fields["notes"])):
        return None
    if unit.episode is None:
        return Difference(changes, None, fresh=False)
    with transaction.atomic():
        made, fresh = rows.get_or_create(unit=unit.key, status="open", defaults=fields)
    return Difference(changes, made, fresh=fresh)
