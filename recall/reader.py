"""Who reads, resolved once for a request: people who share a group, and what is silenced.

Reads: principal, feedback, evidence, dedup_verdict. Everything else about who may see what is
spelled in `memory.querysets`.
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from django.db import connection

from memory.models import Note, Principal, RawItem, SearchText
from memory.querysets import SILENCED, NoteQuerySet, OwnedQuerySet


@dataclass(frozen=True)
class Reader:
    """A principal, the ids of those who share a group with it, and the notes it asked never to see
    again (where it asks from), with the raw items that bear them out."""

    principal: Principal
    mates: tuple[int, ...] = ()
    notes_out: tuple[UUID, ...] = ()
    turns_out: tuple[int, ...] = ()

    def notes(self) -> NoteQuerySet:
        """The notes that may go to the reader's agent, whenever they hold."""
        pool: NoteQuerySet = Note.objects.visible_to(self.principal, mates=self.mates)
        return pool.exclude(pk__in=self.notes_out) if self.notes_out else pool

    def turns(self) -> OwnedQuerySet:
        """The search texts of raw items that may. What is not to be seen as a note is not to be
        seen as the turn that bears it out."""
        pool: OwnedQuerySet = SearchText.objects.visible_to(self.principal, mates=self.mates)
        pool = pool.filter(raw=True)
        return pool.exclude(raw_item__in=self.turns_out) if self.turns_out else pool

    def items(self) -> OwnedQuerySet:
        """The raw items themselves that may, for whoever knows their ids."""
        pool: OwnedQuerySet = RawItem.objects.visible_to(self.principal, mates=self.mates)
        return pool.exclude(pk__in=self.turns_out) if self.turns_out else pool


def reader(principal: Principal, project: int | None) -> Reader:
    """Resolve a principal that asks from this project."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"WITH out AS MATERIALIZED (SELECT ARRAY({SILENCED}) AS notes)"
            " SELECT ARRAY(SELECT DISTINCT theirs.principal_id FROM memory_principal_groups mine"
            "   JOIN memory_principal_groups theirs ON theirs.group_id = mine.group_id"
            "   WHERE mine.principal_id = %s AND theirs.principal_id <> %s), notes,"
            " ARRAY(SELECT raw_item_id FROM memory_evidence"
            "   WHERE note_id = ANY(notes) AND raw_item_id IS NOT NULL) FROM out",
            [project, principal.pk, principal.pk, principal.pk, principal.pk],
        )
        mates, notes, turns = cursor.fetchone()
    return Reader(principal, tuple(mates), tuple(notes), tuple(turns))
