"""Who stands in the place of a page that is gone: the note that replaced its note, or took it in.
Which of them may not be told any more.

Reads: dedup_verdict, note, project. Knows nothing about files.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from uuid import UUID

from exporter.moves import Heir
from exporter.place import Place
from exporter.wanted import Wanted, holdable, index_key
from memory.heirs import Heir as Kept
from memory.heirs import lines
from memory.models import Note, Principal


def heirs(
    wanted: Wanted, gone: Collection[str], members: Mapping[str, Collection[str]]
) -> dict[str, Heir]:
    """The heirs of these pages among those that are wanted, by key. `members`: the notes that each
    hub held."""
    pages = {page.key for page in wanted.pages}
    # What stood on a page stands in these notes now: its own, and those that a hub held.
    notes = {key: [key.rpartition(":")[2], *members.get(key, ())] for key in gone}
    asked = {note for some in notes.values() for one in some if (note := _id(one))}
    walked = lines(asked) if asked else {}
    hub_of = {str(wanted.notes[row].id): hub.key for hub in wanted.hubs for row, _ in hub.members}
    found: dict[str, Heir] = {}
    for key in gone:
        kind, _, anchor = key.rpartition(":")
        if kind == "index":
            heir = _merged(wanted, anchor)
        elif kind == "hub":
            # The same cluster with another oldest note, or the one that most of it is in now.
            ends = (_end(note, walked, pages) for note in notes[key])
            votes = Counter(hub_of[end.key] for end in ends if end and end.key in hub_of)
            heir = Heir(votes.most_common(1)[0][0], True) if votes else None
        else:
            heir = _follow(key, walked, pages)
        if heir is not None and heir.key in pages:
            found[key] = heir
    return found


def unseen(place: Place, owner: Principal, notes: Mapping[str, UUID | None]) -> frozenset[str]:
    """Of these pages those whose note there is, but may not lie in this vault any more: it is not
    the owner's to see, or too confidential. `notes`: the note of each, by key."""
    ids = {note for note in notes.values() if note is not None}
    there = Note.objects.as_pipeline().filter(pk__in=ids)
    told = holdable(place, owner).filter(pk__in=ids)
    away = set(there.values_list("pk", flat=True)) - set(told.values_list("pk", flat=True))
    return frozenset(key for key, note in notes.items() if note in away)


def _id(text: str) -> UUID | None:
    """The id that a key of a note is; None for what is no such key."""
    try:
        found = UUID(text)
    except ValueError:
        return None
    return found if str(found) == text else None


Lines = Mapping[UUID, Sequence[Kept]]


def _end(key: str, walked: Lines, pages: Collection[str]) -> Heir | None:
    return Heir(key, True, 0) if key in pages else _follow(key, walked, pages)


def _follow(key: str, walked: Lines, pages: Collection[str]) -> Heir | None:
    """The first page on the way from this note that is wanted; it takes the file of one whose place
    it took, not of one that it took in."""
    takes, note = True, _id(key)
    for far, step in enumerate(walked.get(note, ()) if note else (), start=1):
        takes = takes and step.verdict.verdict != "duplicate"
        if str(step.kept.pk) in pages:
            return Heir(str(step.kept.pk), takes, far)
    return None


def _merged(wanted: Wanted, project: str) -> Heir | None:
    """The index of the project that this one was merged into."""
    root = wanted.projects.root.get(int(project)) if project.isdigit() else None
    return Heir(index_key(root), takes=False) if root is not None else None
