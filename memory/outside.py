"""Files outside the database: those that hold a note, and the folders where any may lie, as
whichever app writes such files tells of them.

Memory and its neighbours see none of these apps: each offers, in the `ready` of its AppConfig, the
verbs that know its own files. Reads nothing itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from uuid import UUID

from django.conf import settings

from memory.models import Principal


@dataclass(frozen=True)
class HeldFile:
    """A file of somebody that holds a note now: its path there, what page it is ("note", "hub"),
    and since when it has the words that it has."""

    path: str
    kind: str
    written_at: datetime


#: The files of this owner, and of nobody else, that hold this note.
Lying = Callable[[UUID, Principal], Sequence[HeldFile]]

#: The folders of an app where its files lie, if any does.
Places = Callable[[], Sequence[Path]]

_offered: dict[str, Lying] = {}
_places: dict[str, Places] = {}


def offer_files(lying: Lying) -> None:
    """Files that this verb knows are told of as well."""
    _offered[f"{lying.__module__}.{lying.__qualname__}"] = lying


def files_of(note: UUID, owner: Principal) -> list[HeldFile]:
    """The owner's own files that hold this note, whoever's it is."""
    return [one for lying in _offered.values() for one in lying(note, owner)]


def offer_folders(places: Places) -> None:
    """What lies in these folders is looked through as well, wherever the words of a purge are
    looked for."""
    _places[f"{places.__module__}.{places.__qualname__}"] = places


def folders() -> tuple[Path, ...]:
    """Where files of ours may lie on this machine: what apps offered, and what Argus keeps beside
    the database: the demo's vault, and what hooks have not sent yet."""
    home = Path(settings.ARGUS.home)
    offered = [one for places in _places.values() for one in places()]
    return (*offered, *([home] if home.is_dir() else []))
