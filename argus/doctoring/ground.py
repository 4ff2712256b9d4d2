"""The doctor on the machine: settings, disks, the vault.

Asks, changes nothing but a file in the vault that is gone at once. Knows nothing about databases.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from django.conf import settings

from argus import environment, postgres
from argus.doctoring.row import DISK_SECONDS, Hangs, Row, within

#: Free bytes of a disk below which Argus is about to stop, and below which somebody should look.
# Why: PostgreSQL stops when it cannot write its log; a day of agents is some tens of megabytes.
# Calibrate: `argus_database_bytes`, the growth of a week on the busiest house.
FREE_BYTES_MIN = 200_000_000
FREE_BYTES_FEW = 2_000_000_000

assert FREE_BYTES_MIN < FREE_BYTES_FEW


def of_settings() -> Iterator[Row]:
    """Whether what is set is known."""
    strange = environment.unknown()
    for name, nearest in strange:
        fix = f"Did you mean {nearest}?" if nearest else "Remove it, or see the README's table."
        yield Row("settings", "warn", f"{name} is no setting of Argus.", fix)
    if not strange:
        yield Row("settings", "ok", f"home {settings.ARGUS.home}, serves {settings.ARGUS.url}")


def disks() -> Iterator[Row]:
    """Whether there is room where Argus writes: its home, the embedded database, the vault."""
    argus = settings.ARGUS
    places = [("home", argus.home)]
    if argus.embedded:
        places.append(("database", postgres.folder(argus.home)))
    if argus.vault is not None:
        places.append(("vault", argus.vault))
    seen: set[int] = set()
    for name, place in places:
        try:
            disk, free = within(DISK_SECONDS, partial(_free, place))
        except (Hangs, OSError) as error:
            told = f"The disk of the {name} ({place}) does not answer: {error}"
            yield Row("disk", "fail", told, "See the mount.", away=True)
            continue
        if disk not in seen:
            seen.add(disk)
            yield judge_free(name, place, free)


def judge_free(name: str, place: Path, free: int) -> Row:
    """What so many free bytes mean. Pure."""
    told = f"{free / 1e9:,.1f} GB are free for the {name} ({place})"
    fix = "Make room: PostgreSQL stops when it cannot write its log."
    if free < FREE_BYTES_MIN:
        return Row("disk", "fail", f"{told}.", fix)
    return (
        Row("disk", "warn", f"{told}.", fix) if free < FREE_BYTES_FEW else Row("disk", "ok", told)
    )


def _free(place: Path) -> tuple[int, int]:
    """The disk of what exists at or above this place, and its free bytes."""
    there = _existing(place)
    return there.stat().st_dev, shutil.disk_usage(there).free


def _existing(place: Path) -> Path:
    # What may not be looked into is none for us; a link that leads nowhere is there.
    return next(one for one in (place, *place.parents) if os.path.lexists(one))


def vault() -> Iterator[Row]:
    """Whether the vault can be written, asked by writing: a mount, a quota or a link may say no
    where the permissions say yes."""
    folder = settings.ARGUS.vault
    if folder is None:
        return
    fix = f"Make {folder} a folder that this user may write, or set ARGUS_VAULT to one."
    try:
        above = within(DISK_SECONDS, partial(_existing, folder))
        if not above.is_dir():
            yield Row("vault", "fail", f"{above} is no folder.", fix)
            return
        within(DISK_SECONDS, partial(_write, above))
    except Hangs as error:
        yield Row("vault", "fail", f"{folder}: {error}", "See the mount.", away=True)
        return
    except OSError as error:
        yield Row("vault", "fail", f"{folder} cannot be written: {error.strerror}.", fix)
        return
    made = "" if above == folder else ", made with the first export"
    yield Row("vault", "ok", f"{folder} can be written{made}")


def _write(folder: Path) -> None:
    with tempfile.NamedTemporaryFile(dir=folder, prefix=".argus-"):
        pass
