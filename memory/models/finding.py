"""What was found wrong with the record, and what was proved of a purge."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils import timezone

from memory.models.access import Principal
from memory.models.run import PurgeLedger, StageRun
from memory.querysets import OwnerQuerySet


class Finding(models.Model):
    """One thing that a run of verify or reconcile found. Frozen: the next run finds it again, or
    does not."""

    run = models.ForeignKey(StageRun, on_delete=models.PROTECT, related_name="findings")
    # Whose thing it is; none for what belongs to the house, like an index.
    owner = models.ForeignKey(Principal, null=True, on_delete=models.PROTECT, related_name="+")
    check_name = models.TextField()
    # Which noun, and its id as text, as on an act.
    kind = models.TextField()
    reference = models.TextField(default="", blank=True)
    # Numbers, ids and names; never a text of the record, which a purge could not reach here.
    detail = models.JSONField(default=dict, blank=True)
    created_at = models.DateTimeField(default=timezone.now)

    objects = OwnerQuerySet.as_manager()

    class Meta:
        indexes = [
            # Read by whoever asks what is wrong with a thing.
            models.Index(fields=["kind", "reference", "-id"], name="finding_on"),
        ]

    def __str__(self) -> str:
        return f"{self.check_name}: {self.kind} {self.reference}"


class PurgeProof(models.Model):
    """What a scan for the words of a purge found afterwards. Frozen; the newest one counts."""

    ledger = models.ForeignKey(PurgeLedger, on_delete=models.PROTECT, related_name="proofs")
    proved = models.BooleanField()
    # [{place, column, ids, by_right}]: where the words still stand. No text.
    elsewhere = models.JSONField(default=list, blank=True)
    # {columns, rows, files} that were looked at.
    scanned = models.JSONField(default=dict, blank=True)
    # Hashes of some of the shingles that went, so that the proof can be made again.
    shingles = ArrayField(models.BigIntegerField(), default=list, blank=True)
    # Files of the vault or of the home that could not be removed yet.
    files_pending = models.BooleanField(default=False)
    created_at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return f"purge {self.ledger_id}: {'clean' if self.proved else 'elsewhere'}"


class LedgerDay(models.Model):
    """What a ledger said of a day whose rows were let go. Frozen."""

    ledger = models.TextField()
    day = models.DateField()
    # {rows, ...} by what the ledger counts.
    counts = models.JSONField(default=dict)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["ledger", "day"], name="ledger_day_once"),
        ]

    def __str__(self) -> str:
        return f"{self.ledger} on {self.day}"
