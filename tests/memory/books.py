"""A row in every table that Postgres keeps from change: by the real verbs, else written plainly."""

from __future__ import annotations

import json
from typing import Any

from django.conf import settings
from django.db import connection

from exporter.models import ExportedFile
from memory.access import principal
from memory.acts import record_act
from memory.ledger import emit
from memory.llm.kept import Key, keep_reply
from memory.models import (
    Decision,
    DistillFailure,
    Episode,
    Feedback,
    Finding,
    GateRejection,
    Injection,
    LedgerDay,
    LlmCall,
    Note,
    Principal,
    Proposal,
    PurgeLedger,
    PurgeProof,
    RejectedFact,
    RejectionDecision,
    StageRun,
    TaskEvent,
    TaskItem,
)
from memory.stages.distill import distill
from memory.text.identity import sha256
from recall.models import Calibration, Impact
from review.models import Draw, Rating
from tests import factories

#: Sentences that the extractive distiller takes for worth keeping.
DECIDED = (
    "We decided to keep the job queue in Postgres because one store is enough for us.",
    "Noted: the job queue stays in Postgres, and the worker polls it every second.",
    "Root cause of the slow export: the vault was written twice for every single note.",
    "Fixed: the export now writes each note of the vault exactly once.",
)
REPEATED = (
    "Remember that we decided to keep the job queue in Postgres, one store is enough for us.",
    "Understood, the job queue stays where it is.",
)


def purge(items: list[int], actor: str = "alice", reason: str = "asked to") -> dict[str, Any]:
    """What the purge function answers."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT argus_purge(%s, %s, %s)", [items, actor, reason])
        answer: dict[str, Any] = json.loads(cursor.fetchone()[0])
    return answer


def owner_role() -> str:
    """The role that owns the tables."""
    assert settings.OWNER_DATABASE is not None
    return str(settings.OWNER_DATABASE["USER"])


def count(table: str, where: str = "true") -> int:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT count(*) FROM {table} WHERE {where}")
        return int(cursor.fetchone()[0])


def two_sessions() -> tuple[Episode, Episode]:
    """Two closed and distilled episodes of Alice, a working day apart."""
    alice = principal("alice")
    first = factories.episode(alice, DECIDED)
    second = factories.episode(alice, REPEATED, session="s2", start=factories.at(days=1))
    distill(clock=factories.clock(factories.at(days=2)))
    first.refresh_from_db(from_queryset=Episode.objects.as_pipeline())
    second.refresh_from_db(from_queryset=Episode.objects.as_pipeline())
    return first, second


def _person(alice: Principal, episode: Episode) -> None:
    """What people say, and what they were promised."""
    record_act(alice, "reject", "verdict", 1, now=factories.at(days=3))
    refused = GateRejection.objects.create(
        owner=alice, episode=episode, reason="poison", candidate={}
    )
    RejectionDecision.objects.create(rejection=refused, principal=alice, action="confirm")
    Proposal.objects.create(owner=alice, unit=episode.unit_key, principal=alice)
    RejectedFact.objects.create(owner=alice, content_key="k", rejection=refused, principal=alice)
    task = TaskItem.objects.create(
        owner=alice, opening="promise", title="keep it", raw_item=episode.first_item, start=0,
        end=2, quote="We", sha256=sha256("We"), opened_at=episode.started_at,
    )  # fmt: skip
    TaskEvent.objects.create(
        item=task, happening="confirmed", principal=alice, occurred_at=episode.ended_at
    )


def fill() -> None:
    """Rows in every frozen table, committed or in the test's transaction."""
    first, second = two_sessions()
    alice, now = first.owner, factories.at(days=3)
    old = Note.objects.as_pipeline().filter(episode=first).first()
    new = Note.objects.as_pipeline().filter(episode=second).first()
    assert old and new, "the distiller found nothing in the sentences of this test"
    held = factories.verdict(new, old)
    Decision.objects.create(
        verdict=held,
        principal=alice,
        action="reject",
        status_before="pending",
        status_after="rejected",
    )
    DistillFailure.objects.create(unit=first.unit_key, owner=alice, kind="content", error="no JSON")
    LlmCall.objects.create(stage="distill", port="distill", model_asked="m", outcome="ok")
    keep_reply(Key.of("distill", "m", "1", ["q"]), "{}", model_real="m", unit=first.unit_key)
    given = Injection.objects.create(owner=alice, mode="notes", outcome="no_hits", query="queue?")
    Feedback.objects.create(principal=alice, note=new, verdict="useful", injection=given)
    Impact.objects.create(injection=given, method="overlap", score=0.2, used=False)
    Calibration.objects.create(kind="floors", embedder="m", values={}, principal=alice)
    Rating.objects.create(principal=alice, note=new, rating=3)
    Draw.objects.create(principal=alice, note=new, drawn_by="draw", probability=0.5, pool=2)
    ExportedFile.objects.create(
        run=StageRun.objects.create(stage="export", status="done"), owner=alice, note=new,
        kind="note", key=str(new.pk), path="shop/x.md", action="written", sha256="0", size=1,
    )  # fmt: skip
    _person(alice, first)
    emit(
        "We keep the job queue in Postgres, so one store is enough.",
        owner=alice,
        kind="recall",
        now=now,
    )
    spare = factories.document(alice, "A page that nobody needs.")
    purge([spare.pk])
    _operating()


def _operating() -> None:
    """What the house found of itself."""
    Finding.objects.create(
        run=StageRun.objects.create(stage="verify", status="done"),
        check_name="indexes",
        kind="index",
        reference="note_nearest",
    )
    PurgeProof.objects.create(ledger=PurgeLedger.objects.latest("pk"), proved=True)
    LedgerDay.objects.create(ledger="injection", day=factories.at().date(), counts={"rows": 1})
