"""Tables that recall alone reads: which numbers are in force, and whether recall was used."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils import timezone

from memory.models import Injection, Principal, StageRun

CALIBRATIONS = ("floors", "ranker")
IMPACT_METHODS = ("kl", "overlap")


class Calibration(models.Model):
    """Numbers that somebody adopted, on what evidence. Frozen; the newest of a kind for the
    embedder in use is in force."""

    kind = models.TextField()
    embedder = models.TextField()
    values = models.JSONField()
    evidence = models.JSONField(default=dict, blank=True)
    principal = models.ForeignKey(Principal, on_delete=models.PROTECT)
    reason = models.TextField(default="", blank=True)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(kind__in=CALIBRATIONS), name="calibration_kind"),
        ]
        indexes = [
            # Read by every recall: the newest of a kind.
            models.Index(fields=["kind", "embedder", "-id"], name="calibration_newest"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} by {self.principal}"


class Impact(models.Model):
    """One look at whether an injection changed what the agent said after it. Frozen."""

    injection = models.OneToOneField(Injection, on_delete=models.PROTECT, related_name="impact")
    method = models.TextField()
    score = models.FloatField()
    used = models.BooleanField()
    # Numbers by note; no text.
    detail = models.JSONField(default=dict, blank=True)
    model_asked = models.TextField(default="", blank=True)
    model_real = models.TextField(default="", blank=True)
    run = models.ForeignKey(StageRun, null=True, on_delete=models.PROTECT)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(method__in=IMPACT_METHODS), name="impact_method"),
        ]
        indexes = [
            # Read by the board: the share of injections that were used, lately.
            models.Index(fields=["-created_at"], name="impact_recent"),
        ]

    def __str__(self) -> str:
        return f"{self.method} {self.score:.2f}"
