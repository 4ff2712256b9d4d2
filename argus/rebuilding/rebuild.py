"""Rebuild: make everything above the raw items again, and say what came out otherwise.

Reads: all of the house. Writes: a throwaway database; told to, what the house has made, in one
transaction. Audits: act. Verify: no model is asked; what nobody changed comes out as it was; killed
at any moment, the house is the old one or the new one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any

from django.db import connection
from tqdm import tqdm

from argus.owner import as_owner
from argus.rebuilding import chronicle, settled
from argus.rebuilding.compared import Difference, compare
from argus.rebuilding.gathered import gather
from argus.rebuilding.played import Played, play
from argus.rebuilding.record import ask, bring, furnish
from argus.scratch import scratch
from memory.models import Principal

#: Troubles and units that are named.
NAMED_MAX = 20

# In the throwaway database: what waits about notes that were not made again, itself included.
HOLDS = """
SELECT v.id FROM was.memory_dedupverdict v WHERE v.status = 'pending'
    AND NOT EXISTS (SELECT FROM public.memory_dedupverdict again WHERE again.id = v.id)
    AND EXISTS (SELECT FROM was.memory_note n WHERE n.id IN (v.note_id, v.target_id)
        AND NOT EXISTS (SELECT FROM public.memory_note again WHERE again.id = n.id))
ORDER BY v.id
"""


@dataclass(frozen=True)
class Report:
    """What was done again (events by kind), what came out, and whether the house has it now."""

    events: Mapping[str, int]
    difference: Difference
    #: What nothing makes again and stays as it was: units whose reply is not in the log, and notes
    #: about which people decided, with what they decided.
    not_kept: tuple[str, ...]
    #: What could not be done again, and why.
    troubles: tuple[str, ...]
    counts: Mapping[str, int]
    #: What waits for a person about notes that are not made again: it is withdrawn with them.
    holds: tuple[int, ...] = ()
    done: bool = False

    @property
    def identical(self) -> bool:
        return self.difference.nothing

    def as_json(self) -> dict[str, Any]:
        """The report as one object."""
        return {
            "identical": self.identical,
            "done": self.done,
            "events": dict(self.events),
            "tables": {table: asdict(rows) for table, rows in self.difference.tables.items()},
            "notes": dict(self.difference.notes),
            "appear": [asdict(one) for one in self.difference.appear],
            "vanish": [asdict(one) for one in self.difference.vanish],
            "change": [asdict(one) for one in self.difference.change],
            "not_kept": list(self.not_kept),
            "troubles": list(self.troubles),
            "holds": list(self.holds),
            "counts": dict(self.counts),
        }


def rebuild(
    *, by: Principal, now: datetime, apply: bool = False, reason: str = "", progress: bool = False
) -> Report:
    """Make it again in a throwaway database, compare, and (`apply`) put it into the house, unless
    something could not be done again.

    Raises OwnerProblem without the owner's role; Conflict while workers are at work or when the
    house changed meanwhile (`apply` alone: looking is always allowed).
    """
    if apply:
        settled.refuse_at_work()
    real = dict(connection.settings_dict)
    with scratch(furnish=partial(furnish, real)), as_owner():
        mark = bring(real)
        events = chronicle.read()
        with tqdm(total=len(events), desc="rebuild", unit=" events", disable=_off(progress)) as bar:
            played = play(events, over=lambda _: bar.update())
        difference, waiting = compare(), tuple(pk for (pk,) in ask(HOLDS))
        # What could not be done again is missing from what was made: that is nobody's house.
        apply = apply and not played.troubles
        ready = gather() if apply and not difference.nothing else None
    report = _report(played, difference, waiting)
    if apply:
        settled.settle(ready, mark, by=by, now=now, reason=reason, counts=dict(report.counts))
        report = replace(report, done=True)
    return report


def _off(progress: bool) -> bool | None:
    """For tqdm: None is "on a terminal alone"."""
    return None if progress else True


def _report(played: Played, difference: Difference, holds: tuple[int, ...]) -> Report:
    tables = difference.tables.values()
    counts = {
        "events": sum(played.events.values()),
        "same": sum(one.same for one in tables),
        "more": sum(one.more for one in tables),
        "less": sum(one.less for one in tables),
        "not_kept": len(played.not_kept),
        "troubles": len(played.troubles),
        "holds_withdrawn": len(holds),
        **{f"notes_{word}": count for word, count in difference.notes.items()},
    }
    return Report(
        dict(played.events),
        difference,
        tuple(played.not_kept[:NAMED_MAX]),
        tuple(played.troubles[:NAMED_MAX]),
        counts,
        holds,
    )
