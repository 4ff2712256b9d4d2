"""What the demo's rows say: every number that is printed is counted here, from the tables.

Reads only. Knows nothing about how the rows came to be, or how they are shown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from django.db.models import Count, F, Q, QuerySet, Sum
from django.db.models.functions import Substr
from django.utils import timezone

from memory import edits
from memory.models import (
    CaptureReceipt,
    Claim,
    DedupVerdict,
    DistillFailure,
    Episode,
    Evidence,
    GateRejection,
    Injection,
    Note,
    Principal,
    RawItem,
    SearchText,
    SegmentCheck,
    Session,
    StageRun,
    TaskItem,
    TurnVector,
)
from memory.text import region
from review import tasks

Row = dict[str, Any]


def capture(owner: Principal) -> Row:
    """Receipts in sum, and the record by source."""
    receipts = CaptureReceipt.objects.visible_to(owner)
    totals = receipts.aggregate(
        seen=Sum("seen", default=0),
        stored=Sum("stored", default=0),
        duplicates=Sum("duplicates", default=0),
    )
    items = _own(RawItem, owner)
    sessions = _tally(Session.objects.filter(owner=owner), "source")
    by_source = items.values("source").annotate(
        turns=Count("pk", filter=Q(kind="turn")), others=Count("pk", filter=~Q(kind="turn"))
    )
    return {
        **totals,
        "refused": _sum(receipts.values_list("refused", flat=True)),
        # Not from the receipts: they count again when the same text is posted again.
        "redacted": _sum(
            items.filter(flags__has_key="redacted").values_list("flags__redacted", flat=True)
        ),
        "raw_items": items.count(),
        # What a person wrote on a page, a note's other words, came by no receipt.
        "captured": items.exclude(source=edits.SOURCE).count(),
        "sources": [
            {**row, "sessions": sessions.get(row["source"], 0)}
            for row in by_source.order_by("source")
        ],
    }


def segment(owner: Principal) -> Row:
    """Episodes by project, how it was found, and why they ended; looks for a border."""
    episodes = _own(Episode, owner)
    checks = SegmentCheck.objects.filter(raw_item__owner=owner)
    return {
        "episodes": episodes.count(),
        "turns": episodes.aggregate(turns=Sum("turn_count", default=0))["turns"],
        "reasons": _tally(episodes, "boundary_reason"),
        "checks": list(
            checks.values("check_kind")
            .annotate(looked=Count("pk"), fired=Count("pk", filter=Q(fired=True)))
            .order_by("check_kind")
        ),
        "projects": list(
            episodes.values("project_method", name=F("project__name"))
            .annotate(episodes=Count("pk"))
            .order_by("name", "project_method")
        ),
    }


def distill(owner: Principal, shown: int) -> Row:
    """Notes by distiller, some of them, what the gate refused, and what is parked."""
    notes = _own(Note, owner)
    rejections = GateRejection.objects.visible_to(owner).order_by("pk")
    fields = ("title", "said_by", "model_real", "confidence", "retired_reason", "valid_from")
    best = notes.order_by("-importance", "valid_from", "pk")
    return {
        "notes": notes.count(),
        "distillers": _tally(notes, "model_real"),
        "shown": list(best.values(*fields, name=F("project__name"))[:shown]),
        "rejected": _tally(rejections, "reason"),
        "rejections": list(rejections.values("reason", "detail", "candidate", "model_real")),
        "parked": _parked(owner),
        "unproved": _unproved(owner),
    }


def embed(owner: Principal) -> Row:
    """What is in the search index, and vectors by the model that made them."""
    texts = SearchText.objects.visible_to(owner).filter(owner=owner)
    return {
        "indexed": {
            "notes": texts.filter(raw=False).count(),
            "raw_items": texts.filter(raw=True).count(),
        },
        "notes": _tally(_own(Note, owner).filter(embedding__isnull=False), "embedding_model"),
        "turns": _tally(TurnVector.objects.filter(raw_item__owner=owner), "model"),
    }


def dedup(owner: Principal) -> Row:
    """Verdicts by kind and status, who judged, and every one that is more than distinct."""
    verdicts = DedupVerdict.objects.visible_to(owner)
    told = verdicts.exclude(verdict="distinct").order_by("note__valid_from", "pk")
    return {
        "kinds": list(
            verdicts.values("verdict", "status")
            .annotate(n=Count("pk"))
            .order_by("verdict", "status")
        ),
        "judges": _tally(verdicts, "model_real"),
        "told": list(
            told.values(
                "pk", "verdict", "status", "similarity", "reasoning", "confidence_before",
                "confidence_after", new=F("note__content"), old=F("target__content"),
                old_confidence=F("target__confidence"),
            )
        ),
        # A decided hold stays one: the second run may come after a person has decided.
        "ever_held": verdicts.filter(
            Q(status="pending") | Q(decisions__status_before="pending"), verdict="supersede"
        )
        .distinct()
        .count(),
    }  # fmt: skip


def track(owner: Principal) -> Row:
    """Tasks by where they stand, and all of them."""
    told = tasks.told_rows(TaskItem.objects.visible_to(owner).filter(owner=owner))
    rows = [
        {"status": tasks.status_of(row), "opening": row.opening, "title": row.title,
         "project": row.project.name if row.project else ""}
        for row in told.order_by("opened_at", "pk")
    ]  # fmt: skip
    return {"statuses": dict(Counter(row["status"] for row in rows)), "tasks": rows}


def recall(owner: Principal) -> Row:
    """Injection rows by outcome."""
    return {"outcomes": _tally(Injection.objects.visible_to(owner), "outcome")}


def export(owner: Principal, vault: Path, report: Row, most: int) -> Row:
    """The vault: where it is, what was counted, some of its files, live notes without one."""
    paths = {
        region.identity(path.read_bytes()): path.relative_to(vault).as_posix()
        for path in sorted(vault.rglob("*.md"))
    }
    live = Note.objects.visible_to(owner).live(timezone.now()).values_list("pk", flat=True)
    missing = [str(pk) for pk in live if str(pk) not in paths]
    files = sorted(paths.values())
    return {
        "vault": str(vault),
        "report": report,
        "files": len(files),
        "shown": files[:most],
        "missing": missing,
    }


def runs(since: int) -> list[Row]:
    """Stage runs after the one with this id: stage, status, milliseconds, report."""
    rows = StageRun.objects.filter(pk__gt=since).order_by("pk")
    return [
        {
            "stage": run.stage,
            "status": run.status,
            "milliseconds": round((run.finished_at - run.started_at).total_seconds() * 1000)
            if run.finished_at
            else None,
            "report": run.report,
        }
        for run in rows
    ]


def last_run() -> int:
    """The id of the newest stage run, 0 when there is none."""
    return StageRun.objects.order_by("-pk").values_list("pk", flat=True).first() or 0


def _parked(owner: Principal) -> list[Row]:
    """Units of this owner that are set aside: what they begin with, and the attempts behind it."""
    items = _own(RawItem, owner).exclude(kind="turn").values_list("pk", "body")
    episodes = _own(Episode, owner).values_list("unit_key", "first_item__body")
    units = {f"item:{pk}": body for pk, body in items} | dict(episodes)
    claims = Claim.objects.filter(stage="distill", unit__in=units, parked_at__isnull=False)
    failures = _tally(DistillFailure.objects.filter(stage="distill", unit__in=units), "unit")
    return [
        {
            "unit": claim.unit,
            "what": units[claim.unit].strip().partition("\n")[0][:60],
            "reason": claim.parked_reason,
            "failures": failures.get(claim.unit, 0),
        }
        for claim in claims.order_by("pk")
    ]


def _unproved(owner: Principal) -> int:
    """Evidence whose quote is not the span of its raw item: must be 0."""
    spans = Evidence.objects.filter(note__owner=owner, raw_item__isnull=False).annotate(
        span=Substr("raw_item__body", F("start") + 1, F("end") - F("start"))
    )
    return spans.exclude(span=F("quote")).count()


def _own(model: type[RawItem | Episode | Note], owner: Principal) -> Any:
    """Rows that this principal wrote, not those it may see as well."""
    return model.objects.visible_to(owner).filter(owner=owner)


def _tally(rows: QuerySet[Any, Any], column: str) -> dict[str, int]:
    counted = rows.order_by().values(column).annotate(n=Count("pk")).order_by("-n", column)
    return {row[column]: row["n"] for row in counted}


def _sum(dicts: Iterable[dict[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for one in dicts:
        total.update(one)
    return dict(total)
