"""The books of the machinery: stage runs, claims, model calls, replies, budgets, cool-downs."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils import timezone


class StageRun(models.Model):
    """One run of one stage. What it is stays; how it goes may change."""

    stage = models.TextField()
    status = models.TextField(default="running")
    trigger_source = models.TextField(default="command")
    worker = models.TextField(default="")
    report = models.JSONField(default=dict, blank=True)
    error = models.TextField(default="", blank=True)
    # Counts so far, by word, told before each unit.
    progress = models.JSONField(default=dict, blank=True)
    # Somebody asked it to stop; it does before its next unit.
    cancel_asked_at = models.DateTimeField(null=True, blank=True)
    started_at = models.DateTimeField(default=timezone.now)
    heartbeat_at = models.DateTimeField(default=timezone.now)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        indexes = [
            # Read by the board, the doctor and `open_run`: the last runs of a stage.
            models.Index(fields=["stage", "-started_at"], name="stage_run_last"),
            # Read by `close_lost`: runs whose worker may be gone.
            models.Index(fields=["stage"], condition=Q(status="running"), name="stage_run_running"),
        ]

    def __str__(self) -> str:
        return f"{self.stage} {self.pk} {self.status}"


class Claim(models.Model):
    """A unit that a worker has in hand, or that is parked. State; gone when the unit is done."""

    stage = models.TextField()
    unit = models.TextField()
    worker = models.TextField(default="", blank=True)
    lease_until = models.DateTimeField(null=True)
    attempts = models.IntegerField(default=0)
    content_failures = models.IntegerField(default=0)
    parked_at = models.DateTimeField(null=True)
    parked_reason = models.TextField(default="", blank=True)
    # A person said to leave it parked: it stays aside and out of the queue.
    dismissed_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["stage", "unit"], name="claim_once"),
        ]
        indexes = [
            # Read by the board and the parked queue.
            models.Index(
                fields=["stage"], condition=Q(parked_at__isnull=False), name="claim_parked"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.stage} {self.unit}"


class LlmCall(models.Model):
    """One call of a model port, whatever came of it. Frozen; carries no body."""

    stage = models.TextField()
    port = models.TextField()
    unit = models.TextField(default="", blank=True)
    model_asked = models.TextField()
    model_real = models.TextField(default="", blank=True)
    prompt_version = models.TextField(default="", blank=True)
    structured_mode = models.TextField(default="", blank=True)
    tokens_in = models.IntegerField(default=0)
    tokens_out = models.IntegerField(default=0)
    milliseconds = models.IntegerField(default=0)
    outcome = models.TextField()
    redacted = models.JSONField(default=dict, blank=True)
    run = models.ForeignKey(StageRun, null=True, on_delete=models.PROTECT)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        indexes = [
            # Read by the board: calls of the last day by stage.
            models.Index(fields=["created_at", "stage"], name="llm_call_recent"),
        ]

    def __str__(self) -> str:
        return f"{self.port} {self.model_asked}: {self.outcome}"


class ModelReply(models.Model):
    """A reply that decided something; a rebuild reads it here and asks no model. Frozen."""

    port = models.TextField()
    model = models.TextField()
    prompt_version = models.TextField()
    input_sha256 = models.TextField()
    model_real = models.TextField(default="", blank=True)
    # zlib-compressed UTF-8.
    reply = models.BinaryField()
    units = models.JSONField(default=list, blank=True)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["port", "model", "prompt_version", "input_sha256"],
                name="model_reply_once",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.port} {self.model} {self.input_sha256[:12]}"


class TokenDay(models.Model):
    """Tokens of one day, reserved before each call and corrected after it. State."""

    day = models.DateField(unique=True)
    tokens = models.BigIntegerField(default=0)
    # What a person allowed on this day beyond the setting.
    extra = models.BigIntegerField(db_default=0)

    def __str__(self) -> str:
        return f"{self.day}: {self.tokens}"


class Cooldown(models.Model):
    """A provider that asked for rest; every worker keeps away until then. State."""

    provider = models.TextField(unique=True)
    until = models.DateTimeField()
    reason = models.TextField(default="", blank=True)

    def __str__(self) -> str:
        return f"{self.provider} until {self.until}"


class PurgeLedger(models.Model):
    """One purge: who, why, what went. Written by the purge function alone. Frozen."""

    # The transaction that may delete; the triggers look for their own here (see 0002_guards).
    actor = models.TextField()
    reason = models.TextField()
    counts = models.JSONField(default=dict)
    hashes = models.JSONField(default=list)
    files_pending = models.BooleanField(default=False)
    created_at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return f"purge {self.pk} by {self.actor}"
