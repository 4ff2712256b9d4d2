"""Tables that the exporter alone reads: what was written into the vault, when and by which run."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils import timezone

from memory.models import Note, Principal, StageRun
from memory.querysets import OwnerQuerySet

KINDS = ("note", "hub", "index")
ACTIONS = ("written", "renamed", "removed", "retired", "conflict")


class ExportedFile(models.Model):
    """One thing that happened to one file of the vault. Frozen.

    Written before the file is touched, so that whatever bytes of ours are ever found in a vault
    are known by their hash, also after a crash in between.
    """

    run = models.ForeignKey(StageRun, on_delete=models.PROTECT, related_name="+")
    owner = models.ForeignKey(Principal, on_delete=models.PROTECT, related_name="+")
    # The note whose words the path holds. The foreign key cascades in the database (see
    # 0002_guards): what was purged leaves no title behind. Null for the index of a project.
    note = models.ForeignKey(
        Note, null=True, on_delete=models.DO_NOTHING, db_constraint=False, related_name="files"
    )
    kind = models.TextField()
    # What the page is of: a note's id, "hub:<id of its oldest member>", "index:<id of project>".
    key = models.TextField()
    # Relative to the vault, with slashes.
    path = models.TextField()
    action = models.TextField()
    # Of our own part of the file; what a person wrote below it is theirs and stands nowhere.
    sha256 = models.TextField()
    size = models.IntegerField()
    created_at = models.DateTimeField(default=timezone.now)

    objects = OwnerQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(kind__in=KINDS), name="exported_kind"),
            models.CheckConstraint(condition=Q(action__in=ACTIONS), name="exported_action"),
            models.CheckConstraint(
                condition=Q(kind="index") | Q(note__isnull=False), name="exported_of_a_note"
            ),
        ]
        indexes = [
            # Read by export: what was done last to each page, and the hashes of one.
            models.Index(fields=["owner", "key", "-id"], name="exported_last"),
        ]

    def __str__(self) -> str:
        return f"{self.action} {self.path}"
