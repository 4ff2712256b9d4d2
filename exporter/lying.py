"""What of a note lies in somebody's vault now, by the export log.

Reads: exported_file. Knows nothing about files: what somebody deleted since is told all the same,
until the next export finds it gone.
"""

from __future__ import annotations

from uuid import UUID

from exporter.models import ExportedFile
from memory.models import Principal
from memory.outside import HeldFile

#: Pages in the order in which they are told.
KINDS = ("note", "hub")


def lying(note: UUID, owner: Principal) -> list[HeldFile]:
    """The pages of this owner's vault that hold the note: its own, and the hub that has its name.
    However often each was written, it is one file."""
    keys = [str(note), f"hub:{note}"]
    rows = (
        ExportedFile.objects.as_pipeline()
        .filter(owner=owner, key__in=keys)
        .exclude(action="conflict")
        .order_by("key", "-id")
        .distinct("key")
    )
    found = [
        HeldFile(path, kind, at)
        for path, kind, action, at in rows.values_list("path", "kind", "action", "created_at")
        if action != "removed"
    ]
    return sorted(found, key=lambda one: KINDS.index(one.kind))
