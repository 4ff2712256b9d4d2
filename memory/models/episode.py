"""Episodes: closed runs of turns, the checks that closed them, and the vectors of turns."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils import timezone
from pgvector.django import HalfVectorField, HnswIndex

from memory.llm.ports import VECTOR_SIZE
from memory.models.access import Principal
from memory.models.record import Project, RawItem
from memory.models.run import StageRun
from memory.querysets import OwnedQuerySet


class Episode(models.Model):
    """A closed run of turns of one session. Never changed once closed but for `distilled_at`."""

    owner = models.ForeignKey(Principal, on_delete=models.PROTECT)
    visibility = models.TextField(default="private")
    confidentiality = models.TextField(default="internal")
    source = models.TextField()
    session = models.TextField(default="", blank=True)
    # The same for the same turns, also after a rebuild: note ids are made from it.
    unit_key = models.TextField(unique=True)
    first_item = models.ForeignKey(RawItem, on_delete=models.PROTECT, related_name="+")
    last_item = models.ForeignKey(RawItem, on_delete=models.PROTECT, related_name="+")
    turn_count = models.IntegerField()
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField()
    boundary_reason = models.TextField()
    boundary_score = models.FloatField(null=True)
    late = models.BooleanField(default=False)
    project = models.ForeignKey(Project, null=True, on_delete=models.PROTECT)
    project_method = models.TextField(default="", blank=True)
    project_confidence = models.FloatField(default=0.0)
    cwd = models.TextField(default="", blank=True)
    distilled_at = models.DateTimeField(null=True, blank=True)
    run = models.ForeignKey(StageRun, null=True, on_delete=models.PROTECT)
    created_at = models.DateTimeField(default=timezone.now)

    objects = OwnedQuerySet.as_manager()

    class Meta:
        indexes = [
            # Read by distill: what is to do, oldest first.
            models.Index(
                fields=["started_at", "id"], condition=Q(distilled_at=None), name="episode_todo"
            ),
            # Read by segment: where the closed part of a session ends.
            models.Index(fields=["owner", "source", "session", "ended_at"], name="episode_session"),
            # Read by the list of episodes, latest first.
            models.Index(fields=["-started_at", "-id"], name="episode_latest"),
        ]

    def __str__(self) -> str:
        return f"episode {self.pk} ({self.turn_count} turns)"


class EpisodeTurn(models.Model):
    """A turn's place in its episode; a turn has one episode at most."""

    episode = models.ForeignKey(Episode, on_delete=models.PROTECT, related_name="turns")
    raw_item = models.OneToOneField(RawItem, on_delete=models.PROTECT, related_name="placed")
    position = models.IntegerField()

    class Meta:
        ordering = ["position"]

    def __str__(self) -> str:
        return f"{self.episode_id}[{self.position}]"


class SegmentCheck(models.Model):
    """One look for a border before a turn: measured, against what, fired or not. Frozen."""

    raw_item = models.ForeignKey(RawItem, on_delete=models.PROTECT)
    check_kind = models.TextField()
    score = models.FloatField(null=True)
    threshold = models.FloatField(null=True)
    fired = models.BooleanField()
    outcome = models.TextField(default="checked")
    # Whose vectors were compared, by a look at the topic.
    model = models.TextField(default="", blank=True)
    run = models.ForeignKey(StageRun, null=True, on_delete=models.PROTECT)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [
            # A border is looked at again while a tail is open; the row is written once.
            models.UniqueConstraint(
                fields=["raw_item", "check_kind", "outcome"], name="segment_check_once"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.check_kind} before {self.raw_item_id}: {self.score}"


class TurnVector(models.Model):
    """The vector of a turn: raw items are immutable, so it stands beside them."""

    raw_item = models.ForeignKey(RawItem, on_delete=models.PROTECT, related_name="vectors")
    model = models.TextField()
    embedding = HalfVectorField(dimensions=VECTOR_SIZE)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["raw_item", "model"], name="turn_vector_once"),
        ]
        indexes = [
            # Read by recall: nearest raw items.
            HnswIndex(
                name="turn_nearest",
                fields=["embedding"],
                m=16,
                ef_construction=64,
                opclasses=["halfvec_cosine_ops"],
            ),
        ]

    def __str__(self) -> str:
        return f"vector of {self.raw_item_id}"


class Attribution(models.Model):
    """How an episode got its project, with the numbers that decided. Frozen."""

    episode = models.ForeignKey(Episode, on_delete=models.PROTECT, related_name="attributions")
    project = models.ForeignKey(Project, null=True, on_delete=models.PROTECT)
    method = models.TextField()
    confidence = models.FloatField()
    cwd = models.TextField(default="", blank=True)
    cwd_mismatch = models.BooleanField(default=False)
    # Turns per project as capture attributed them: {"name": count}.
    turns = models.JSONField(default=dict)
    # Whose vectors the score compares.
    model = models.TextField(default="", blank=True)
    score = models.FloatField(null=True)
    threshold = models.FloatField(null=True)
    runner_up = models.TextField(default="", blank=True)
    runner_up_score = models.FloatField(null=True)
    centroid_episodes = models.IntegerField(null=True)
    centroid_age_seconds = models.FloatField(null=True)
    run = models.ForeignKey(StageRun, null=True, on_delete=models.PROTECT)
    created_at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return f"{self.method} -> {self.project}"


class DistilledItem(models.Model):
    """State: this document, event or synthesis was distilled."""

    raw_item = models.OneToOneField(RawItem, on_delete=models.PROTECT, related_name="distilled")
    distilled_at = models.DateTimeField()
    run = models.ForeignKey(StageRun, null=True, on_delete=models.PROTECT)

    def __str__(self) -> str:
        return f"{self.raw_item_id} at {self.distilled_at}"
