"""What people did through Argus: one row for each act, whatever door it came by."""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from memory.models.access import AccessKey, Principal

DOORS = ("page", "command", "api")


class Act(models.Model):
    """Who did what to which thing, when and why. Frozen.

    Written in the transaction of its effect. What was decided stands in the typed row as well (a
    decision, a feedback); this is the one list of all of it.
    """

    principal = models.ForeignKey(Principal, on_delete=models.PROTECT, related_name="acts")
    # approve, reject, undo, edit, retire, restore, pin, accept, release, revoke, merge, ...
    verb = models.TextField()
    # Which noun, and its id as text: ids are numbers, uuids and names of units.
    kind = models.TextField()
    reference = models.TextField(default="", blank=True)
    reason = models.TextField(default="", blank=True)
    # Numbers, ids and names; never a text of the record, which a purge could not reach here.
    detail = models.JSONField(default=dict, blank=True)
    door = models.TextField(default="page")
    key = models.ForeignKey(AccessKey, null=True, on_delete=models.PROTECT)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=models.Q(door__in=DOORS), name="act_door"),
        ]
        indexes = [
            # Read by the audit page for one person; for all of them the primary key is the order.
            models.Index(fields=["principal", "-id"], name="act_of"),
            # Read by whoever asks what was done to a thing.
            models.Index(fields=["kind", "reference", "-id"], name="act_on"),
        ]

    def __str__(self) -> str:
        return f"{self.verb} {self.kind} {self.reference} by {self.principal}"
