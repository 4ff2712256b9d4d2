"""What waits for a stage: a row for each thing and each row that is not there yet.

State, kept by the database itself (see 0015_waiting): a note or raw item that comes waits, and one
that got its row does not. So that to find work costs by the work, and not by all there is.
"""

from __future__ import annotations

from django.db import models

from memory.models.note import Note
from memory.models.record import RawItem

#: What a note waits for: its search text, its verdict.
TEXT, VERDICT = "text", "verdict"

#: What a raw item waits for beside its search text: a vector; if it is no turn, to be distilled.
VECTOR, DISTILLED = "vector", "distilled"


class WaitingNote(models.Model):
    """A note without its search text, or without a verdict of dedup."""

    pk = models.CompositePrimaryKey("lacks", "note")
    lacks = models.TextField()
    note = models.ForeignKey(
        Note, on_delete=models.DO_NOTHING, db_constraint=False, db_index=False, related_name="waits"
    )

    def __str__(self) -> str:
        return f"{self.note_id} lacks {self.lacks}"


class WaitingItem(models.Model):
    """A raw item without its search text or a vector, or one to be distilled by itself that was
    not."""

    pk = models.CompositePrimaryKey("lacks", "raw_item")
    lacks = models.TextField()
    raw_item = models.ForeignKey(
        RawItem, on_delete=models.DO_NOTHING, db_constraint=False, db_index=False,
        related_name="waits",
    )  # fmt: skip

    def __str__(self) -> str:
        return f"{self.raw_item_id} lacks {self.lacks}"
