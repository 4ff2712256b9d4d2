"""Notes, their evidence, and every judgement about them: rejections, failures, verdicts."""

from __future__ import annotations

from typing import get_args

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models import F, Q
from django.db.models.fields.json import KT
from django.utils import timezone
from pgvector.django import HalfVectorField, HnswIndex

from memory.llm.ports import VECTOR_SIZE, MemoryKind, Verdict
from memory.models.access import Principal
from memory.models.episode import Episode
from memory.models.record import CONFIDENTIALITIES, VISIBILITIES, Project, RawItem
from memory.models.run import StageRun
from memory.querysets import NoteQuerySet, OwnerQuerySet

LEVELS = ("note", "L0", "L1", "L2")
MEMORY_KINDS: tuple[MemoryKind, ...] = get_args(MemoryKind)
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
FEEDBACKS = ("useful", "wrong", "outdated", "never", "withdrawn")
#: Words by which somebody says that a note does not hold.
CALLED_OFF = ("wrong", "outdated")
VERDICT_STATUSES = ("applied", "pending", "approved", "rejected", "undone")


class Note(models.Model):
    """Distilled text with evidence. Frozen but for retirement, confidence and vector."""

    id = models.UUIDField(primary_key=True)
    owner = models.ForeignKey(Principal, on_delete=models.PROTECT)
    visibility = models.TextField(default="private")
    confidentiality = models.TextField(default="internal")
    level = models.TextField(default="note")
    memory_kind = models.TextField(default="semantic")
    title = models.TextField()
    content = models.TextField()
    context = models.TextField(default="", blank=True)
    keywords = ArrayField(models.TextField(), default=list, blank=True)
    tags = ArrayField(models.TextField(), default=list, blank=True)
    importance = models.FloatField(default=0.5)
    confidence = models.FloatField(default=0.5)
    # Whose words the evidence is: user, assistant, mixed, document.
    said_by = models.TextField(default="", blank=True)
    locator = models.JSONField(default=dict, blank=True)
    project = models.ForeignKey(Project, null=True, on_delete=models.PROTECT)
    # No constraint in the database: a note with evidence elsewhere outlives its purged unit.
    episode = models.ForeignKey(
        Episode, null=True, on_delete=models.DO_NOTHING, db_constraint=False, related_name="notes"
    )
    raw_item = models.ForeignKey(
        RawItem, null=True, on_delete=models.DO_NOTHING, db_constraint=False, related_name="notes"
    )
    session = models.TextField(default="", blank=True)
    unit_key = models.TextField()
    content_key = models.TextField()
    embedding = HalfVectorField(dimensions=VECTOR_SIZE, null=True)
    embedding_model = models.TextField(default="", blank=True)
    embedded_at = models.DateTimeField(null=True)
    question = models.TextField(default="", blank=True)
    answer = models.TextField(default="", blank=True)
    model_asked = models.TextField(default="", blank=True)
    model_real = models.TextField(default="", blank=True)
    prompt_version = models.TextField(default="", blank=True)
    valid_from = models.DateTimeField()
    valid_to = models.DateTimeField(null=True)
    invalidated_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(default=timezone.now)
    deleted_at = models.DateTimeField(null=True)
    retired_reason = models.TextField(default="", blank=True)
    run = models.ForeignKey(StageRun, null=True, on_delete=models.PROTECT)

    objects = NoteQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(level__in=LEVELS), name="note_level"),
            models.CheckConstraint(condition=Q(memory_kind__in=MEMORY_KINDS), name="note_kind"),
            models.CheckConstraint(condition=Q(visibility__in=VISIBILITIES), name="note_sees"),
            models.CheckConstraint(
                condition=Q(confidentiality__in=CONFIDENTIALITIES), name="note_goes"
            ),
            models.CheckConstraint(
                condition=Q(
                    confidence__gte=0, confidence__lte=1, importance__gte=0, importance__lte=1
                ),
                name="note_bounds",
            ),
        ]
        indexes = [
            # Read by recall and dedup: nearest live notes. Retired notes keep their vector for
            # audit but stay out of the graph.
            HnswIndex(
                name="note_nearest",
                fields=["embedding"],
                m=16,
                ef_construction=64,
                opclasses=["halfvec_cosine_ops"],
                condition=Q(deleted_at=None),
            ),
            # Read by recall/context and by the planner for owners with few notes.
            models.Index(
                fields=["owner", "project", "-importance", "-valid_from"],
                condition=Q(deleted_at=None),
                name="note_context",
            ),
            # Read by recall: what others let one see.
            models.Index(
                fields=["owner"],
                condition=Q(deleted_at=None) & ~Q(visibility="private"),
                name="note_shared",
            ),
            # Read by dedup: exact duplicates of an owner.
            models.Index(
                fields=["owner", "content_key"], condition=Q(deleted_at=None), name="note_content"
            ),
            # Read by distill: the notes of a unit.
            models.Index(fields=["unit_key"], name="note_unit"),
            # Read by the list of notes, latest first.
            models.Index(fields=["-created_at", "-id"], name="note_latest"),
            # Read by embed: live notes without a vector.
            models.Index(
                fields=["created_at"],
                condition=Q(deleted_at=None, embedding=None),
                name="note_unembedded",
            ),
        ]

    def __str__(self) -> str:
        return self.title


class Evidence(models.Model):
    """Edge from a note to the span, or to the parent note, that bears it out. Frozen."""

    note = models.ForeignKey(Note, on_delete=models.PROTECT, related_name="evidence")
    raw_item = models.ForeignKey(RawItem, null=True, on_delete=models.PROTECT, related_name="cited")
    parent = models.ForeignKey(Note, null=True, on_delete=models.PROTECT, related_name="children")
    # Offsets in characters of the raw item's body: body[start:end] == quote.
    quote = models.TextField()
    start = models.IntegerField(null=True)
    end = models.IntegerField(null=True)
    sha256 = models.TextField()
    # distill, or duplicate/refine when a retired note left its evidence to this one.
    origin = models.TextField(default="distill")
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(raw_item__isnull=False, start__isnull=False, end__isnull=False)
                | Q(parent__isnull=False),
                name="evidence_points",
            ),
        ]

    def __str__(self) -> str:
        return self.quote[:80]


class GateRejection(models.Model):
    """A candidate that the write gate refused, and why. Frozen."""

    owner = models.ForeignKey(Principal, on_delete=models.PROTECT)
    episode = models.ForeignKey(Episode, null=True, on_delete=models.PROTECT)
    raw_item = models.ForeignKey(RawItem, null=True, on_delete=models.PROTECT)
    reason = models.TextField()
    detail = models.TextField(default="", blank=True)
    candidate = models.JSONField()
    model_asked = models.TextField(default="", blank=True)
    model_real = models.TextField(default="", blank=True)
    prompt_version = models.TextField(default="", blank=True)
    run = models.ForeignKey(StageRun, null=True, on_delete=models.PROTECT)
    created_at = models.DateTimeField(default=timezone.now)

    objects = OwnerQuerySet.as_manager()

    class Meta:
        indexes = [
            # Read by the list of refusals, latest first.
            models.Index(fields=["owner", "-id"], name="rejection_latest"),
            # Read by the board: refusals of the last day.
            models.Index(fields=["-created_at"], name="rejection_recent"),
        ]

    def __str__(self) -> str:
        return f"{self.reason}: {self.detail[:60]}"


class DistillFailure(models.Model):
    """One failed attempt at a unit, with the raw reply where there was one. Frozen."""

    stage = models.TextField(default="distill")
    unit = models.TextField()
    owner = models.ForeignKey(Principal, null=True, on_delete=models.PROTECT)
    # content counts to parking; released: a person set the unit free again.
    kind = models.TextField()
    error = models.TextField()
    # zlib-compressed UTF-8; empty when nothing came back.
    reply = models.BinaryField(default=b"")
    attempt = models.IntegerField(default=0)
    parked = models.BooleanField(default=False)
    run = models.ForeignKey(StageRun, null=True, on_delete=models.PROTECT)
    created_at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return f"{self.stage} {self.unit}: {self.error[:60]}"


class DedupVerdict(models.Model):
    """What one note is to an older one. Only its status and who decided may change."""

    owner = models.ForeignKey(Principal, on_delete=models.PROTECT)
    note = models.ForeignKey(Note, on_delete=models.PROTECT, related_name="verdicts")
    target = models.ForeignKey(Note, null=True, on_delete=models.PROTECT, related_name="judged")
    verdict = models.TextField()
    status = models.TextField(default="applied")
    similarity = models.FloatField(null=True)
    lexical = models.FloatField(null=True)
    # [{note, similarity, lexical}] of all that the judge was shown.
    candidates = models.JSONField(default=list, blank=True)
    reasoning = models.TextField(default="", blank=True)
    # Of the note that stays: the old one of a duplicate, the new one of a refinement.
    confidence_before = models.FloatField(null=True)
    confidence_after = models.FloatField(null=True)
    corroborates = models.BooleanField(default=False)
    model_asked = models.TextField(default="", blank=True)
    model_real = models.TextField(default="", blank=True)
    prompt_version = models.TextField(default="", blank=True)
    run = models.ForeignKey(StageRun, null=True, on_delete=models.PROTECT)
    created_at = models.DateTimeField(default=timezone.now)
    decided_by = models.ForeignKey(
        Principal, null=True, on_delete=models.PROTECT, related_name="decided"
    )
    decided_at = models.DateTimeField(null=True)

    objects = OwnerQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(verdict__in=VERDICTS), name="verdict_kind"),
            models.CheckConstraint(condition=Q(status__in=VERDICT_STATUSES), name="verdict_status"),
        ]
        indexes = [
            # Read by the queue of holds.
            models.Index(
                fields=["created_at"], condition=Q(status="pending"), name="verdict_pending"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.verdict} ({self.status})"


class Decision(models.Model):
    """What a person decided about a verdict, and why. Frozen; replayed by a rebuild."""

    verdict = models.ForeignKey(DedupVerdict, on_delete=models.PROTECT, related_name="decisions")
    principal = models.ForeignKey(Principal, on_delete=models.PROTECT)
    action = models.TextField()
    reason = models.TextField(default="", blank=True)
    status_before = models.TextField()
    status_after = models.TextField()
    created_at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return f"{self.action} by {self.principal}"


class Injection(models.Model):
    """One recall: what was asked, what every track said, what went to the agent. Frozen."""

    owner = models.ForeignKey(Principal, on_delete=models.PROTECT)
    mode = models.TextField()
    query = models.TextField(default="", blank=True)
    session = models.TextField(default="", blank=True)
    cwd = models.TextField(default="", blank=True)
    project = models.ForeignKey(Project, null=True, on_delete=models.PROTECT)
    outcome = models.TextField()
    gate = models.TextField(default="", blank=True)
    # What was asked for beside the words: sources, times, project, budget.
    options = models.JSONField(default=dict, blank=True)
    # Notes and raw turns that went out, in order; the rest of `hits` was seen and left out.
    note_ids = ArrayField(models.UUIDField(), default=list, blank=True)
    turn_ids = ArrayField(models.BigIntegerField(), default=list, blank=True)
    hits = models.JSONField(default=list, blank=True)
    floors = models.JSONField(default=dict, blank=True)
    timings = models.JSONField(default=dict, blank=True)
    degraded = ArrayField(models.TextField(), default=list, blank=True)
    omitted = models.IntegerField(default=0)
    characters = models.IntegerField(default=0)
    model_asked = models.TextField(default="", blank=True)
    created_at = models.DateTimeField(default=timezone.now)

    objects = OwnerQuerySet.as_manager()

    class Meta:
        constraints = [
            # A recall that never reached us is told once, however often its client tells of it.
            models.UniqueConstraint(
                F("owner"),
                KT("options__id"),
                condition=Q(outcome="skipped"),
                name="injection_skipped_once",
            ),
        ]
        indexes = [
            # Read by confidence: had this note been shown to the session that repeats it?
            models.Index(fields=["owner", "session"], name="injection_session"),
            # Read by the ledger page and the doctor.
            models.Index(fields=["-created_at"], name="injection_recent"),
            # Read by the list of injections, latest first.
            models.Index(fields=["owner", "-id"], name="injection_latest"),
            # Read by the page of a note: where was it put before an agent?
            GinIndex(fields=["note_ids"], name="injection_notes"),
        ]

    def __str__(self) -> str:
        return f"{self.mode} {self.outcome}"


class Feedback(models.Model):
    """What somebody said about a note that recall gave. Frozen; the newest of a kind counts, and
    counts for who gave it alone."""

    principal = models.ForeignKey(Principal, on_delete=models.PROTECT)
    # The foreign key cascades in the database: a purged note takes what was said of it along.
    note = models.ForeignKey(
        Note, on_delete=models.DO_NOTHING, db_constraint=False, related_name="feedback"
    )
    # Where it holds; nothing means everywhere.
    project = models.ForeignKey(Project, null=True, on_delete=models.PROTECT)
    verdict = models.TextField()
    reason = models.TextField(default="", blank=True)
    injection = models.ForeignKey(Injection, null=True, on_delete=models.PROTECT)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(verdict__in=FEEDBACKS), name="feedback_verdict"),
        ]
        indexes = [
            # Read by every recall: what this principal wants to see no more.
            models.Index(fields=["principal", "note", "-id"], name="feedback_newest"),
        ]

    def __str__(self) -> str:
        return f"{self.verdict} by {self.principal}"
