"""What a person says beside the record: pins, decisions about refusals, facts never to be learned,
and notes proposed anew."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.utils import timezone

from memory.models.access import Principal
from memory.models.note import GateRejection, Note
from memory.models.run import StageRun
from memory.querysets import OwnerQuerySet

REJECTION_ACTIONS = ("accept", "confirm", "forbid", "undo")
PROPOSAL_STATUSES = ("open", "applied", "dropped")


class Pin(models.Model):
    """State: this principal wants the note first, in contexts and in the feed."""

    principal = models.ForeignKey(Principal, on_delete=models.PROTECT, related_name="pins")
    # The foreign key cascades in the database, as everywhere here: a purge takes it along.
    note = models.ForeignKey(
        Note, on_delete=models.DO_NOTHING, db_constraint=False, related_name="pins"
    )
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["principal", "note"], name="pin_once")]

    def __str__(self) -> str:
        return f"{self.note_id} by {self.principal_id}"


class RejectionDecision(models.Model):
    """What a person decided about what the gate refused. Frozen; the newest one holds."""

    rejection = models.ForeignKey(
        GateRejection, on_delete=models.DO_NOTHING, db_constraint=False, related_name="decisions"
    )
    principal = models.ForeignKey(Principal, on_delete=models.PROTECT)
    action = models.TextField()
    # The note that was made of it, when it was accepted.
    note = models.ForeignKey(
        Note, null=True, on_delete=models.DO_NOTHING, db_constraint=False, related_name="accepted"
    )
    reason = models.TextField(default="", blank=True)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(action__in=REJECTION_ACTIONS), name="rejection_decision_action"
            ),
        ]
        indexes = [
            # Read by the list of refusals: what was decided last.
            models.Index(fields=["rejection", "-id"], name="rejection_decided"),
        ]

    def __str__(self) -> str:
        return f"{self.action} {self.rejection_id} by {self.principal_id}"


class RejectedFact(models.Model):
    """State: what its owner never wants to learn again, by hashes only.

    The gate refuses a candidate with this key, or with nearly all of these shingles.
    """

    owner = models.ForeignKey(Principal, on_delete=models.PROTECT)
    content_key = models.TextField()
    shingles = ArrayField(models.BigIntegerField(), default=list, blank=True)
    # Where its words can be read, as long as they are there: the database sets nothing there when
    # they are purged.
    rejection = models.ForeignKey(
        GateRejection, null=True, on_delete=models.DO_NOTHING, db_constraint=False
    )
    principal = models.ForeignKey(Principal, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField(default=timezone.now)
    lifted_at = models.DateTimeField(null=True, blank=True)

    objects = OwnerQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["owner", "content_key"],
                condition=Q(lifted_at=None),
                name="rejected_fact_once",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.content_key[:12]} of {self.owner_id}"


class Proposal(models.Model):
    """State: what distilling a unit again would make of it, until a person applies or drops it."""

    owner = models.ForeignKey(Principal, on_delete=models.PROTECT)
    unit = models.TextField()
    # [{title, content, ..., item, start, end, quote}] and [{candidate, reason, detail}].
    notes = models.JSONField(default=list, blank=True)
    refused = models.JSONField(default=list, blank=True)
    model_asked = models.TextField(default="", blank=True)
    model_real = models.TextField(default="", blank=True)
    prompt_version = models.TextField(default="", blank=True)
    status = models.TextField(default="open")
    principal = models.ForeignKey(Principal, on_delete=models.PROTECT, related_name="+")
    decided_by = models.ForeignKey(Principal, null=True, on_delete=models.PROTECT, related_name="+")
    decided_at = models.DateTimeField(null=True)
    run = models.ForeignKey(StageRun, null=True, on_delete=models.PROTECT)
    created_at = models.DateTimeField(default=timezone.now)

    objects = OwnerQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(status__in=PROPOSAL_STATUSES), name="proposal_status"
            ),
            models.UniqueConstraint(
                fields=["unit"], condition=Q(status="open"), name="proposal_open_once"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.unit} {self.status}"
