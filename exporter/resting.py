"""Pages that rest: of what is gone, made anew from the rows each time.

Nothing is taken over from the file that lies there. What was purged, or may not be told any more,
has left the rows, and so it leaves the page. A page that rests leads nowhere: nobody would bring
its links up to date.

Reads: note, evidence, raw_item. Knows nothing about files.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from uuid import UUID

from exporter import document, pages
from exporter.place import Place
from exporter.render import face
from exporter.wanted import Borne, Projects, borne, holdable, tell
from memory.models import Principal

#: Of what this module makes of the same rows; counted up when that changes.
VERSION = 1


def resting(
    place: Place,
    owner: Principal,
    projects: Projects,
    notes: Mapping[str, UUID | None],
    *,
    now: datetime,
) -> dict[str, bytes]:
    """Our part of each of these pages, by key. `notes`: the note of each, whose title a hub bears.

    A page whose note may not lie in this vault is left out.
    """
    rows = holdable(place, owner).filter(pk__in=[note for note in notes.values() if note])
    told = {one.id: one for one in tell(rows)}
    said = borne(place, owner, rows, now=now)
    made: dict[str, bytes] = {}
    for key, note in notes.items():
        kind, _, of = key.rpartition(":")
        if kind == "index":
            name = projects.names.get(int(of), "") if of.isdigit() else ""
            made[key] = pages.index_page(name, key, [], [])
        elif note in told and kind == "hub":
            one = told[note]
            named = projects.name(projects.of(one.project))
            made[key] = pages.hub_page(one.title, key, named, [])
        elif note in told:
            shown = face(told[note], said.get(note, Borne()), projects)
            made[key] = document.note_page(shown)
    return made
