"""Health: what waits for a person: held verdicts and what the gate refused.

Reads: dedup_verdict, gate_rejection, rejection_decision. Bounded by an index and a number of rows.
Knows nothing about pages, and decides nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from memory.lately import ask, counted_to, owned
from memory.models import GateRejection, Note, Principal

#: Up to how many of what waits are counted.
COUNTED_MAX = 1_000

#: Newest refusals that are looked at for undecided ones.
# Why: a person who looks at 200 of them looks at the list, too.
REFUSALS_LOOKED_AT = 200


@dataclass(frozen=True)
class Held:
    """What waits for the decision of this person, or for anybody's, counted to a bound."""

    holds: int = 0
    oldest_hold_at: datetime | None = None
    undecided: int = 0

    @property
    def holds_told(self) -> str:
        return counted_to(self.holds, COUNTED_MAX)

    @property
    def undecided_told(self) -> str:
        """Of the newest REFUSALS_LOOKED_AT refusals."""
        return counted_to(self.undecided, REFUSALS_LOOKED_AT)


# Both notes must be the person's to decide, as where it is decided; and both must be there still,
# as in the queue (`review.holds.waiting`): of two of which one is gone there is nothing to approve.
HOLDS_SQL = """
SELECT count(*), min(created_at) FROM (
    SELECT created_at FROM memory_dedupverdict v WHERE status = 'pending'
        AND EXISTS (SELECT 1 FROM memory_note WHERE id = v.note_id AND {mine}
            AND deleted_at IS NULL OFFSET 0)
        AND EXISTS (SELECT 1 FROM memory_note WHERE id = v.target_id AND {mine}
            AND deleted_at IS NULL OFFSET 0)
    ORDER BY created_at LIMIT %(most)s) t
"""

# Undecided is what nobody decided, and what was decided and taken back; what a rejected fact kept
# out was decided with that. `review.shown.rejections.waiting`, the list of them, says the same.
UNDECIDED_SQL = """
SELECT count(*) FROM (
    SELECT id, reason FROM memory_gaterejection WHERE {mine} ORDER BY id DESC LIMIT %(looked)s) r
WHERE reason <> 'rejected' AND NOT EXISTS (
    SELECT 1 FROM memory_rejectiondecision d
    WHERE d.rejection_id = r.id AND d.action <> 'undo' AND NOT EXISTS (
        SELECT 1 FROM memory_rejectiondecision newer
        WHERE newer.rejection_id = d.rejection_id AND newer.id > d.id))
"""


def health(owner: Principal | None) -> Held:
    """What waits for this principal; for whomever of None."""
    notes = Note.objects.as_pipeline() if owner is None else Note.objects.decidable_by(owner)
    holds, oldest = ask(HOLDS_SQL, {"most": COUNTED_MAX + 1}, mine=notes)[0]
    undecided = ask(
        UNDECIDED_SQL,
        {"looked": REFUSALS_LOOKED_AT + 1},
        mine=owned(GateRejection.objects.all(), owner),
    )
    return Held(
        holds=holds,
        oldest_hold_at=oldest,
        undecided=undecided[0][0],
    )
