"""The record: raw items that are never changed, what each post of them did, and their projects."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, get_args

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models import Q
from django.utils import timezone
from pgvector.django import HalfVectorField

from memory.llm.ports import VECTOR_SIZE
from memory.models.access import AccessKey, Principal
from memory.querysets import OwnedQuerySet, OwnerQuerySet

Visibility = Literal["private", "team", "common"]
VISIBILITIES: tuple[Visibility, ...] = get_args(Visibility)
Confidentiality = Literal["public", "internal", "restricted", "secret"]
CONFIDENTIALITIES: tuple[str, ...] = get_args(Confidentiality)
Kind = Literal["turn", "document", "image", "event", "synthesis"]
KINDS: tuple[Kind, ...] = get_args(Kind)


def strictest(confidentialities: Iterable[str]) -> str:
    """What holds for several rows together: confidentiality is inherited upward by maximum."""
    return max(confidentialities, key=CONFIDENTIALITIES.index)


class Project(models.Model):
    """An entry of the registry. `global` is explicit only; unattributed rows have none."""

    name = models.TextField(unique=True)
    origin = models.TextField(default="explicit")
    # A person merged it into that one, which may be taken back: rows keep the project that they
    # were given, and every read follows this.
    merged_into = models.ForeignKey(
        "self", null=True, blank=True, on_delete=models.PROTECT, related_name="merged"
    )
    created_at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return self.name


class ProjectAlias(models.Model):
    """Another name for a project."""

    name = models.TextField(unique=True)
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="aliases")

    def __str__(self) -> str:
        return f"{self.name} -> {self.project}"


class PathRule(models.Model):
    """Work below this folder belongs to the project."""

    prefix = models.TextField(unique=True)
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="paths")

    def __str__(self) -> str:
        return f"{self.prefix} -> {self.project}"


class Centroid(models.Model):
    """Running mean of one owner's attributed episodes of a project, for guessing the others."""

    owner = models.ForeignKey(Principal, on_delete=models.CASCADE)
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="centroids")
    model = models.TextField()
    vector = HalfVectorField(dimensions=VECTOR_SIZE)
    episodes = models.IntegerField(default=0)
    updated_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["owner", "project", "model"], name="centroid_once"),
        ]

    def __str__(self) -> str:
        return f"{self.project} of {self.owner} ({self.episodes})"


class Session(models.Model):
    """State of one client session of one owner: does it hold turns that no episode has yet?"""

    owner = models.ForeignKey(Principal, on_delete=models.PROTECT)
    source = models.TextField()
    key = models.TextField(blank=True)
    last_turn_at = models.DateTimeField(null=True)
    last_captured_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    ended_reason = models.TextField(default="", blank=True)
    pending = models.BooleanField(default=False)
    # Up to which raw item the stage `track` has read, and when.
    tracked_item = models.BigIntegerField(db_default=0)
    tracked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["owner", "source", "key"], name="session_once"),
        ]
        indexes = [
            # Read by track: sessions with turns that it has not read.
            models.Index(
                fields=["last_captured_at"],
                condition=Q(tracked_at=None) | Q(last_captured_at__gt=models.F("tracked_at")),
                name="session_untracked",
            ),
            # Read by segment: sessions with unsegmented turns.
            models.Index(
                fields=["last_captured_at"], condition=Q(pending=True), name="session_todo"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.source}:{self.key}"


class CaptureReceipt(models.Model):
    """What one post to capture did, item by reason. Frozen."""

    owner = models.ForeignKey(Principal, on_delete=models.PROTECT)
    key = models.ForeignKey(AccessKey, null=True, on_delete=models.PROTECT)
    source = models.TextField(default="", blank=True)
    seen = models.IntegerField()
    stored = models.IntegerField()
    duplicates = models.IntegerField()
    refused = models.JSONField(default=dict, blank=True)
    # [{index, reason, sha256, excerpt}] of each refused item.
    refusals = models.JSONField(default=list, blank=True)
    redacted = models.JSONField(default=dict, blank=True)
    # {seen, filtered, posted, ...} of the transcript range as the client counted it.
    client_range = models.JSONField(default=dict, blank=True)
    session_end = models.JSONField(default=dict, blank=True)
    # {name, version, machine, client}: which program posted, where, and for whom.
    client = models.JSONField(default=dict, blank=True)
    # [{session, client, reason, at, detail}] of what the client could not capture before.
    misses = models.JSONField(default=list, blank=True)
    milliseconds = models.IntegerField(default=0)
    created_at = models.DateTimeField(default=timezone.now)

    objects = OwnerQuerySet.as_manager()

    class Meta:
        indexes = [
            # Read by the board: what was captured lately.
            models.Index(fields=["-created_at"], name="receipt_recent"),
        ]

    def __str__(self) -> str:
        return f"{self.seen} seen, {self.stored} stored, {self.duplicates} duplicates"


class RawItem(models.Model):
    """A verbatim captured unit. Frozen: Postgres refuses to change or remove it."""

    owner = models.ForeignKey(Principal, on_delete=models.PROTECT)
    visibility = models.TextField(default="private")
    confidentiality = models.TextField(default="internal")
    source = models.TextField()
    kind = models.TextField(default="turn")
    role = models.TextField(default="", blank=True)
    body = models.TextField()
    session = models.TextField(default="", blank=True)
    cwd = models.TextField(default="", blank=True)
    project = models.ForeignKey(Project, null=True, on_delete=models.PROTECT)
    project_method = models.TextField(default="", blank=True)
    record_id = models.TextField(default="", blank=True)
    occurred_at = models.DateTimeField()
    captured_at = models.DateTimeField(default=timezone.now)
    metadata = models.JSONField(default=dict, blank=True)
    locator = models.JSONField(default=dict, blank=True)
    flags = models.JSONField(default=dict, blank=True)
    sha256 = models.TextField()
    dedup_key = models.TextField()
    copy_key = models.TextField(default="", blank=True)
    near_key = models.TextField(default="", blank=True)
    # No constraint in the database: the other one may be purged.
    near_duplicate_of = models.ForeignKey(
        "self", null=True, on_delete=models.DO_NOTHING, db_constraint=False
    )

    objects = OwnedQuerySet.as_manager()

    class Meta:
        constraints = [
            # The three identities of a raw item; ON CONFLICT settles concurrent posts by them.
            models.UniqueConstraint(
                fields=["owner", "source", "record_id"],
                condition=~Q(record_id=""),
                name="raw_item_record",
            ),
            models.UniqueConstraint(fields=["owner", "dedup_key"], name="raw_item_dedup"),
            models.UniqueConstraint(
                fields=["owner", "copy_key"], condition=~Q(copy_key=""), name="raw_item_copy"
            ),
            models.CheckConstraint(condition=Q(kind__in=KINDS), name="raw_item_kind"),
            models.CheckConstraint(condition=Q(visibility__in=VISIBILITIES), name="raw_item_sees"),
            models.CheckConstraint(
                condition=Q(confidentiality__in=CONFIDENTIALITIES), name="raw_item_goes"
            ),
        ]
        indexes = [
            # Read by segment: the turns of a session in time order.
            models.Index(
                fields=["owner", "source", "session", "occurred_at", "id"],
                condition=Q(kind="turn"),
                name="raw_item_turns",
            ),
            # Read by capture: is this nearly something we have?
            models.Index(
                fields=["owner", "near_key"], condition=~Q(near_key=""), name="raw_item_near"
            ),
            # Read by distill: documents, events and syntheses are units of their own.
            models.Index(fields=["id"], condition=~Q(kind="turn"), name="raw_item_units"),
            # Read by track: tasks that were posted as such.
            models.Index(fields=["id"], condition=Q(source="task"), name="raw_item_tasks"),
        ]

    def __str__(self) -> str:
        return f"{self.source} {self.kind} {self.pk}"


class Emission(models.Model):
    """A sample of the shingles of a text that Argus put out; capture knows it again by them."""

    owner = models.ForeignKey(Principal, on_delete=models.PROTECT)
    kind = models.TextField()
    reference = models.TextField(default="", blank=True)
    sha256 = models.TextField()
    shingles = ArrayField(models.BigIntegerField())
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["owner", "kind", "sha256"], name="emission_once"),
        ]
        indexes = [
            # Read by capture's derived filter.
            GinIndex(fields=["shingles"], name="emission_shingles"),
            # Read by dedup, for each note that may bear another out: does it lie in the vault?
            models.Index(fields=["owner", "kind", "reference"], name="emission_of"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.reference}"
