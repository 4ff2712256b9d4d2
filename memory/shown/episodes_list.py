"""Episodes as a list: what it can be narrowed by, its order, and what an export holds of a row.

Reads what `memory.shown.episodes` reads of each. Knows nothing about who may see them.
"""

from __future__ import annotations

from django.http import HttpRequest

from memory.querysets import OwnerQuerySet
from memory.shown.episodes import in_state, named, saying, told
from memory.web.listing import Choice, Column, Day, Listed, Words, list_rows
from memory.web.places import project_choice

#: Why an episode ended: as segment says it, and in words.
ENDS = {
    "session_end": "the end of its session",
    "gap": "a pause",
    "size": "its length",
    "topic": "another topic",
}

STATES = (
    ("pending", "waits for distilling"),
    ("parked", "parked"),
    ("distilled", "distilled"),
    ("barren", "distilled without a note"),
    ("late", "came late"),
)

COLUMNS = (
    Column("id", lambda one: one.pk),
    Column("unit", lambda one: one.unit_key),
    Column("owner", lambda one: one.owner.name),
    Column("project", lambda one: one.project.name if one.project else ""),
    Column("source", lambda one: one.source),
    Column("session", lambda one: one.session),
    Column("folder", lambda one: one.cwd),
    Column("started_at", lambda one: one.started_at),
    Column("ended_at", lambda one: one.ended_at),
    Column("turns", lambda one: one.turn_count),
    Column("ended_by", lambda one: one.boundary_reason),
    Column("score", lambda one: one.boundary_score),
    Column("late", lambda one: one.late),
    Column("distilled_at", lambda one: one.distilled_at),
    Column("parked", lambda one: one.parked),
    Column("notes_made", lambda one: one.notes_made),
    Column("notes_retired", lambda one: one.notes_gone),
)


def list_episodes(request: HttpRequest, rows: OwnerQuerySet) -> Listed:
    """A page of these episodes, latest first."""
    return list_rows(
        request,
        told(rows.select_related("project", "owner")),
        order=("-started_at", "-pk"),
        filters=[
            Words("q", "Session, folder or project", named),
            Words("said", "Words said in it", saying),
            project_choice(),
            Words("source", "Source", lambda rows, name: rows.filter(source=name)),
            Words("session", "Session, whole", lambda rows, key: rows.filter(session=key)),
            Choice("boundary_reason", "Ended by", list(ENDS.items())),
            Choice("state", "State", STATES, in_state),
            Day("since", "Since", "started_at__gte"),
            Day("until", "Until", "started_at__lt"),
        ],
        columns=COLUMNS,
        title="episodes",
    )
