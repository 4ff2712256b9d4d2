"""What an export did, as it is told, and the files that it left alone.

Knows nothing about how any of it came about.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from memory.audit import TOLD_ALONE

#: Files that were left alone, told by name; `conflicts` counts all of them.
TROUBLES_TOLD_MAX = 50


@dataclass(frozen=True)
class Trouble:
    """A file that was left alone: why, and what settles it."""

    path: str
    why: str
    fix: str


@dataclass(frozen=True)
class ExportReport:
    """Files by what became of them; links between notes, hubs, members of the largest one.

    `refused`: clusters that were too large for a page. `pending`: files that wait for the next
    export: beyond the limit, changed while they were looked at, or behind something in the way.
    `place`: the mark of the vault.
    """

    written: int = 0
    unchanged: int = 0
    removed: int = 0
    renamed: int = 0
    conflicts: int = 0
    linked: int = 0
    clusters: int = 0
    largest: int = 0
    retired: int = 0
    refused: int = 0
    pending: int = 0
    troubles: tuple[Trouble, ...] = field(default=(), metadata=TOLD_ALONE)
    commit: str = ""
    place: str = ""
