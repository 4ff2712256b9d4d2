"""Tasks: what somebody promised or asked for, and what was said and shown of it since."""

from __future__ import annotations

from typing import Literal, get_args

from django.db import models
from django.db.models import Q
from django.utils import timezone

from memory.models.access import Principal
from memory.models.record import Project, RawItem
from memory.models.run import StageRun
from memory.querysets import OwnedQuerySet

Opening = Literal["promise", "request", "posted"]
OPENINGS: tuple[Opening, ...] = get_args(Opening)
Happening = Literal[
    "claim_done", "claim_failed", "confirmed", "denied", "test_passed", "test_failed", "commit"
]
HAPPENINGS: tuple[Happening, ...] = get_args(Happening)


class TaskItem(models.Model):
    """Something to do, and the words that opened it. Frozen; its status follows from its events."""

    owner = models.ForeignKey(Principal, on_delete=models.PROTECT)
    visibility = models.TextField(default="private")
    confidentiality = models.TextField(default="internal")
    opening = models.TextField()
    title = models.TextField()
    source = models.TextField(default="", blank=True)
    session = models.TextField(default="", blank=True)
    project = models.ForeignKey(Project, null=True, on_delete=models.PROTECT)
    # The foreign key cascades in the database: what was purged asked for nothing.
    raw_item = models.ForeignKey(
        RawItem, on_delete=models.DO_NOTHING, db_constraint=False, related_name="tasks"
    )
    # Offsets in characters of the raw item's body: body[start:end] == quote.
    start = models.IntegerField()
    end = models.IntegerField()
    quote = models.TextField()
    sha256 = models.TextField()
    # The words that a later claim is known by.
    words = models.JSONField(default=list, blank=True)
    opened_at = models.DateTimeField()
    run = models.ForeignKey(StageRun, null=True, on_delete=models.PROTECT)
    created_at = models.DateTimeField(default=timezone.now)

    objects = OwnedQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(opening__in=OPENINGS), name="task_opening"),
            # A turn that is read again opens nothing twice.
            models.UniqueConstraint(fields=["raw_item", "start"], name="task_item_once"),
        ]
        indexes = [
            # Read by the list of tasks, latest first.
            models.Index(fields=["-opened_at", "-id"], name="task_item_latest"),
            # Read by track: what is open in a session.
            models.Index(fields=["owner", "source", "session"], name="task_item_session"),
        ]

    def __str__(self) -> str:
        return self.title


class TaskEvent(models.Model):
    """A claim about a task, or evidence for or against it, with the words that say so. Frozen."""

    item = models.ForeignKey(
        TaskItem, on_delete=models.DO_NOTHING, db_constraint=False, related_name="events"
    )
    happening = models.TextField()
    # Whose words: user, assistant, event; or the person who said it on a page.
    said_by = models.TextField(default="", blank=True)
    principal = models.ForeignKey(Principal, null=True, on_delete=models.PROTECT)
    raw_item = models.ForeignKey(
        RawItem, null=True, on_delete=models.DO_NOTHING, db_constraint=False, related_name="+"
    )
    start = models.IntegerField(null=True)
    end = models.IntegerField(null=True)
    quote = models.TextField(default="", blank=True)
    sha256 = models.TextField(default="", blank=True)
    # {commit: id} and the like.
    detail = models.JSONField(default=dict, blank=True)
    occurred_at = models.DateTimeField()
    run = models.ForeignKey(StageRun, null=True, on_delete=models.PROTECT)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(happening__in=HAPPENINGS), name="task_happening"),
            models.CheckConstraint(
                condition=Q(raw_item__isnull=False, start__isnull=False, end__isnull=False)
                | Q(principal__isnull=False),
                name="task_event_points",
            ),
            models.UniqueConstraint(
                fields=["item", "raw_item", "start", "happening"], name="task_event_once"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.happening} of {self.item_id}"
