"""Tables that review alone reads: when notes come up again, and which came up why."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils import timezone

from memory.models import Note, Principal

DRAWN_BY = ("draw", "due", "pinned")


class Card(models.Model):
    """State: a note under spaced repetition by one principal, as the `fsrs` library keeps it."""

    principal = models.ForeignKey(Principal, on_delete=models.PROTECT, related_name="cards")
    # The foreign keys to notes cascade in the database: a purge takes what hangs on them along.
    note = models.ForeignKey(
        Note, on_delete=models.DO_NOTHING, db_constraint=False, related_name="cards"
    )
    state = models.JSONField()
    due_at = models.DateTimeField()
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["principal", "note"], name="card_once")]
        indexes = [
            # Read by the feed: what is due.
            models.Index(fields=["principal", "due_at"], name="card_due"),
        ]

    def __str__(self) -> str:
        return f"{self.note_id} due {self.due_at}"


class Rating(models.Model):
    """How well somebody knew a note when it came up: 1 again, 2 hard, 3 good, 4 easy. Frozen."""

    principal = models.ForeignKey(Principal, on_delete=models.PROTECT)
    note = models.ForeignKey(
        Note, on_delete=models.DO_NOTHING, db_constraint=False, related_name="ratings"
    )
    rating = models.IntegerField()
    # The card before and after; nothing before the first time.
    before = models.JSONField(default=dict, blank=True)
    after = models.JSONField(default=dict, blank=True)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(rating__gte=1, rating__lte=4), name="rating_of_four"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.rating} for {self.note_id}"


class Draw(models.Model):
    """A note that the feed showed, and how likely that was. Frozen."""

    principal = models.ForeignKey(Principal, on_delete=models.PROTECT)
    note = models.ForeignKey(
        Note, on_delete=models.DO_NOTHING, db_constraint=False, related_name="draws"
    )
    drawn_by = models.TextField()
    # Of this note at this draw, and how many notes it was drawn from; 1 when it was due or pinned.
    probability = models.FloatField()
    pool = models.IntegerField()
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(drawn_by__in=DRAWN_BY), name="draw_by"),
        ]
        indexes = [
            # Read by the feed: how often, and when last, a note was shown to somebody.
            models.Index(fields=["principal", "note", "-id"], name="draw_shown"),
        ]

    def __str__(self) -> str:
        return f"{self.note_id} by {self.drawn_by}"
