"""Learning from labels: the floors or the ranker that they speak for, told, and adopted on request.

Reads and writes what `recall.labels` and `recall.calibration` do. Shared by the command and
whoever else lets people calibrate. Every verb returns a report and the lines that tell it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from memory.errors import RefusedError
from memory.llm.choice import embedder
from memory.llm.thresholds import recall_floor
from memory.models import Principal
from recall.calibration import adopt, adopt_ranker, history, in_force
from recall.floors import SOURCES, Floors
from recall.labels import LabelledQuestion, examples, from_ledger, label, useful
from recall.models import Calibration
from recall.proposal import Outcome, Proposal, Row, propose
from recall.training import train

#: Adoptions that are listed.
LISTED_MAX = 5


@dataclass(frozen=True)
class Told:
    """A report for programs, its lines for people, and whether something was left as it was."""

    report: dict[str, Any]
    lines: list[str]
    partial: bool = False


def standing() -> Told:
    """What is in force, and who put it there."""
    model = embedder().name
    now, own = in_force(model), recall_floor(model, "english")
    rows = history(model, limit=LISTED_MAX)
    report = {
        "embedder": model,
        "calibration": now.calibration,
        "ranker_calibration": now.ranker_calibration,
        "floors": {source: floors.as_json(own=own) for source, floors in now.floors.items()},
        "weights": {source: asdict(floors.weights) for source, floors in now.floors.items()},
        "adoptions": [_adoption(row) for row in rows],
    }
    lines = [
        f"embedder: {model}; floors from {_origin(now.calibration)}, "
        f"ranker from {_origin(now.ranker_calibration)}"
    ]
    lines += [_floors_line(source, now.floors[source], own) for source in SOURCES]
    for row in rows:
        at = f"{row.created_at:%Y-%m-%d %H:%M}"
        lines.append(f"{at}  {row.pk}  {row.kind}  {row.principal}  {row.reason}".rstrip())
    return Told(report, lines)


def learn_floors(
    questions: Sequence[LabelledQuestion],
    *,
    ledger: bool,
    target: float,
    adopting: bool,
    reason: str,
    principal: Principal,
    now: datetime,
    progress: bool = False,
) -> Told:
    """Propose floors from questions, and from the ledger; `adopting` puts them into force.

    Raises RefusedError when they are not to be adopted, InfraError when the embedder is away.
    """
    model = embedder().name
    labelled = label(questions, principal=principal, now=now, progress=progress)
    labelled += from_ledger(principal) if ledger else []
    proposal = propose(labelled, base=in_force(model).floors, target=target)
    report, lines = _proposal(proposal, model)
    if adopting:
        row = adopt(proposal, embedder=model, principal=principal, reason=reason, now=now)
        report["adopted"] = row.pk
        lines.append(_adopted(row))
    return Told(report, lines, partial=bool(proposal.kept))


def learn_ranker(
    questions: Sequence[LabelledQuestion],
    *,
    ledger: bool,
    adopting: bool,
    reason: str,
    principal: Principal,
    now: datetime,
    progress: bool = False,
) -> Told:
    """Train a ranker from the one in force; `adopting` puts it into force.

    Raises RefusedError when there are too few labels, or when it is not better on held-out folds.
    """
    model = embedder().name
    asked = [*questions, *(useful(principal) if ledger else [])]
    made = examples(asked, principal=principal, now=now, progress=progress)
    try:
        ranker, compared = train(made, in_force(model).ranker, trained={"on": "own labels"})
    except ValueError as error:
        raise RefusedError(str(error)) from None
    report = {
        "embedder": model,
        "new": asdict(compared.new),
        "before": asdict(compared.shipped),
        "better": compared.better,
        "adopted": None,
    }
    lines = [f"{'on held-out folds':<18} {'recall@5':>8} {'recall@10':>9} {'MRR':>6}"]
    for name, one in (("trained", compared.new), ("in force", compared.shipped)):
        lines.append(f"{name:<18} {one.recall5:>8.3f} {one.recall10:>9.3f} {one.mrr10:>6.3f}")
    if adopting:
        row = adopt_ranker(
            ranker, compared, embedder=model, principal=principal, reason=reason, now=now
        )
        report["adopted"] = row.pk
        lines.append(_adopted(row))
    return Told(report, lines)


def _proposal(proposal: Proposal, model: str) -> tuple[dict[str, Any], list[str]]:
    """The table, the floors, and what becomes of the questions."""
    own = recall_floor(model, "english")
    outcomes = {
        "chosen_on": proposal.chosen_on,
        "held_out": proposal.held_out,
        "before": proposal.before,
    }
    report = {
        "embedder": model,
        "floors": {source: floors.as_json(own=own) for source, floors in proposal.floors.items()},
        **{name: one.as_json() for name, one in outcomes.items()},
        "kept": list(proposal.kept),
        "refitted": list(proposal.refitted),
        "rows": [_row_json(row, own) for row in proposal.rows],
        "changes": proposal.changes,
        "adopted": None,
    }
    lines = [f"{'source':<6} {'track':<9} {'floor':>7} {'precision':>9} {'recall':>7} {'false':>7}"]
    lines += [_row_line(row, own) for row in proposal.rows]
    lines += [_floors_line(source, proposal.floors[source], own) for source in SOURCES]
    lines += [_outcome_line(name, one) for name, one in outcomes.items()]
    return report, [*lines, *proposal.kept]


def _row_json(row: Row, own: float) -> dict[str, Any]:
    return {
        "source": row.source,
        "track": row.track,
        "floor": round(_cosine(row, own), 4),
        "precision": round(row.precision, 4),
        "recall": round(row.recall, 4),
        "false": round(row.false, 4),
        "proposed": row.proposed,
    }


def _row_line(row: Row, own: float) -> str:
    """One floor of the table; a star marks the one that is proposed."""
    return (
        f"{row.source:<6} {row.track:<9} {_cosine(row, own):>7.3f} {row.precision:>9.1%} "
        f"{row.recall:>7.1%} {row.false:>7.1%}{' *' if row.proposed else ''}"
    )


def _cosine(row: Row, own: float) -> float:
    """The floor as people read it: a semantic one is a cosine, for English."""
    return row.floor + (own if row.track == "semantic" else 0.0)


def _floors_line(source: str, floors: Floors, own: float) -> str:
    told = floors.as_json(own=own).items()
    return f"{source}: {', '.join(f'{name} {value:g}' for name, value in told)}"


def _outcome_line(name: str, one: Outcome) -> str:
    return (
        f"{name.replace('_', ' '):<9} right {one.right:.1%} of {one.answerable}, "
        f"false {one.false:.1%} of {one.unanswerable}"
    )


def _adoption(row: Calibration) -> dict[str, Any]:
    return {
        "id": row.pk,
        "kind": row.kind,
        "by": str(row.principal),
        "at": row.created_at.isoformat(),
        "reason": row.reason,
        "evidence": row.evidence,
    }


def _adopted(row: Calibration) -> str:
    return f"adopted as calibration {row.pk}: the next recall obeys it"


def _origin(calibration: int | None) -> str:
    return f"calibration {calibration}" if calibration else "Argus"
