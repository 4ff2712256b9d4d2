"""The demo with rows in every table and a payload in every text: what the pages must only show."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from random import Random

from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import User
from django.db import connection
from django.utils import timezone

from argus import postgres
from argus.demo.story import OWNER
from memory import keeping, projects
from memory.access import create_key, principal
from memory.llm.choice import embedder
from memory.models import (
    CaptureReceipt,
    Claim,
    Cooldown,
    DedupVerdict,
    DistillFailure,
    Episode,
    EpisodeTurn,
    Feedback,
    GateRejection,
    Injection,
    Note,
    Principal,
    Project,
    Proposal,
    RawItem,
    StageRun,
    TaskEvent,
    TaskItem,
)
from memory.models.note import FEEDBACKS
from memory.models.task import HAPPENINGS, OPENINGS
from recall.models import Calibration
from review import feed, holds, rejections
from tests import hostile, web

#: A superuser whose name is a payload; it is the demo's owner.
EVE = f"\"><img src=x onerror=hit('{hostile.MARK}')> {{{{ 7|add:7 }}}}"


#: Floors that let a little less through than those that come with Argus.
FLOORS = {
    source: {"semantic": 0.01, "keyword": 0.02, "relevance": 0.5} for source in ("note", "turn")
}


@contextmanager
def unguarded() -> Iterator[None]:
    """Django's connection as the server's superuser, whom no trigger and no grant holds back."""
    before = connection.settings_dict
    connection.close()
    connection.settings_dict = {**before, "USER": postgres.SUPERUSER}
    try:
        with connection.cursor() as cursor:
            cursor.execute("SET session_replication_role = replica")
        yield
    finally:
        connection.close()
        connection.settings_dict = before


def poison() -> dict[str, int]:
    """All of it; how many rows each field was filled in."""
    owner = principal(OWNER)
    _decide(owner)
    _write(owner)
    with unguarded():
        hostile.seed()
        filled = hostile.fill()
        Principal.objects.update(user=None)
        eve = web.user("eve", "reviewer", "operator", superuser=True, who=owner)
        eve.username, eve.password = EVE, make_password(web.PASSWORD, hasher="pbkdf2_sha256")
        eve.save()
        User.objects.exclude(pk=eve.pk).update(is_active=False)
    return filled


def _decide(by: Principal) -> None:
    """What people do, by the verbs."""
    now = timezone.now()
    live = list(Note.objects.visible_to(by).live(now).values_list("pk", flat=True)[:4])
    keeping.pin(live[0], by=by, now=now)
    keeping.retire_note(live[1], by=by, now=now, reason="old")
    drawn = feed.next_card(by=by, now=now, random=Random(1))
    feed.rate(drawn.note_id, 3, drawn=drawn.pk, by=by, now=now)
    feed.next_card(by=by, now=now, random=Random(2))
    for row in list(DedupVerdict.objects.as_pipeline().filter(status="pending"))[:1]:
        holds.reject(row.pk, by=by, now=now, reason="no")
    refused = list(GateRejection.objects.visible_to(by).filter(decisions=None).order_by("pk"))
    for row in refused[:2]:
        rejections.confirm(row.pk, by=by, now=now, reason="rightly")
    known = Project.objects.order_by("pk").first()
    assert known is not None
    projects.add_alias(known.pk, "haven", by=by, now=now, reason="so they say")
    projects.add_path(known.pk, "/srv/haven", by=by, now=now)
    other = projects.enter("moor")
    projects.merge(other.pk, known.pk, by=by, now=now, reason="one thing")
    for name in ("laptop", "desk"):
        create_key(owner=by.name, scopes=["capture"], name=name, by=by)


def _write(owner: Principal) -> None:
    """What machines write, where reflection would not say how it hangs together."""
    now = timezone.now()
    item = RawItem.objects.as_pipeline().filter(owner=owner, kind="turn").order_by("pk")[0]
    words = {"start": 0, "end": 9, "quote": item.body[:9], "sha256": "0" * 64}
    for number, opening in enumerate(OPENINGS):
        task = TaskItem.objects.create(
            owner=owner, opening=opening, title="a task", raw_item=item, session=item.session,
            source=item.source, project=item.project, opened_at=now,
            words=["one", "two"], **words | {"start": number},
        )  # fmt: skip
        for place, happening in enumerate(HAPPENINGS):
            TaskEvent.objects.create(
                item=task, happening=happening, said_by="user", raw_item=item, occurred_at=now,
                detail={"commit": "abc"}, **words | {"start": place},
            )  # fmt: skip
    injection = Injection.objects.as_pipeline().filter(owner=owner).order_by("-pk")[0]
    for note, verdict in zip(Note.objects.visible_to(owner)[:5], FEEDBACKS, strict=True):
        Feedback.objects.create(
            principal=owner, note=note, verdict=verdict, reason="so", injection=injection,
            project=note.project,
        )  # fmt: skip
    Calibration.objects.create(
        kind="floors", embedder=embedder().name, principal=owner, reason="tried",
        values=FLOORS, evidence={"by": "hand", "again": 1},
    )  # fmt: skip
    _propose(owner)
    _park(owner)
    for number, client in enumerate(("claude-code", "codex")):
        CaptureReceipt.objects.as_pipeline().create(
            owner=owner,
            seen=3,
            stored=1,
            duplicates=1,
            source=client,
            client={"machine": f"laptop {number}", "client": client, "version": "0.1", "name": "x"},
            misses=[{"session": "s", "client": client, "reason": "no server", "detail": "away"}],
            refused={"too_long": 1},
            refusals=[{"index": 1, "reason": "too_long", "excerpt": "x"}],
        )
        Cooldown.objects.create(
            provider=client, until=now + timedelta(hours=1), reason="rate limited"
        )
    StageRun.objects.create(
        stage="run", status="waiting", progress={"asked": "process", "worker": "one"},
        report={"units": 3, "refused": {"shape": 2}}, error="it broke",
    )  # fmt: skip


def _propose(owner: Principal) -> None:
    one = Episode.objects.as_pipeline().exclude(distilled_at=None).order_by("pk")[0]
    turn = EpisodeTurn.objects.filter(episode=one).select_related("raw_item")[0].raw_item
    run = StageRun.objects.create(
        stage="redistill", status="failed", error="odd", progress={"unit": one.unit_key}
    )
    text = hostile.dose("proposed", "", whole=True)
    Proposal.objects.as_pipeline().create(
        owner=owner, unit=one.unit_key, principal=owner, run=run, model_real="a model",
        notes=[{"title": text, "content": text, "source_ref": text, "importance": 0.5,
                "memory_kind": "semantic", "context": text, "keywords": [text], "tags": [text],
                "locator": {}, "item": turn.pk, "start": 0, "end": 5, "quote": text,
                "question": text, "answer": text}],
        refused=[{"candidate": {"title": "x", "content": "y"}, "reason": "shape", "detail": "z"}],
    )  # fmt: skip


def _park(owner: Principal) -> None:
    """A unit of every kind."""
    now = timezone.now()
    item = RawItem.objects.as_pipeline().filter(owner=owner).order_by("-pk")[0]
    note = Note.objects.as_pipeline().filter(owner=owner).order_by("-pk")[0]
    for unit in (f"item:{item.pk}", f"note:{note.pk}", "a unit of no kind"):
        Claim.objects.create(
            stage="distill", unit=unit, parked_at=now, parked_reason="odd", content_failures=5
        )
        DistillFailure.objects.create(
            unit=unit, owner=owner, kind="content", error="odd", reply=b"x", attempt=1
        )
