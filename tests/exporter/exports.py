"""What tests of the export share: run it, look at the vault, write into its files as a person."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

from django.db import transaction

from exporter.export import ExportReport, export
from exporter.folder import KEPT
from exporter.models import ExportedFile
from memory import verdicts
from memory.models import Note, Principal
from memory.retire import retire
from memory.text.region import MARKER, OURS
from tests import factories as make

#: When tests export: after all that their factories make.
LATER = make.at(days=30)


def run(now: datetime = LATER) -> ExportReport:
    return export(clock=make.clock(now))


def tree(vault: Path) -> dict[str, bytes]:
    """Every file of the vault but hidden ones, by path."""
    return {
        str(path.relative_to(vault)): path.read_bytes()
        for path in sorted(vault.rglob("*"))
        if path.is_file() and not path.relative_to(vault).parts[0].startswith(".")
    }


def times(vault: Path) -> dict[str, tuple[int, int, int]]:
    """What nobody touched has still: inode, size, time of its last change."""
    return {
        str(path.relative_to(vault)): (at.st_ino, at.st_mtime_ns, at.st_ctime_ns)
        for path in sorted(vault.rglob("*"))
        if OURS not in path.relative_to(vault).parts and (at := path.lstat())
    }


def where(vault: Path, note: Note) -> Path:
    """The note's file by the log; it need not be there."""
    rows = ExportedFile.objects.as_pipeline().filter(key=str(note.pk)).exclude(action="conflict")
    row = rows.order_by("-pk").first()
    assert row is not None, f"{note} was never exported"
    return vault / str(row.path)


def jot(path: Path, words: str) -> None:
    """A person writes below the line."""
    assert path.read_text().count(MARKER) == 1
    with path.open("a") as file:
        file.write(words)


def note(owner: Principal, title: str, content: str = "", **fields: Any) -> Note:
    """A note in the project `shop` unless said otherwise."""
    fields.setdefault("project", make.project())
    content = content or f"What is known of it is this: {title}."
    return make.note(owner, content, title=title, **fields)


def gone(one: Note) -> None:
    """A person retires a note."""
    retire([one.pk], reason="retired", now=make.at(days=19))


def look_anew(vault: Path) -> None:
    """Nobody knows any more how the last export left the vault: the next one looks at all of it."""
    (vault / OURS / KEPT).unlink(missing_ok=True)


def rows(**fields: str) -> list[tuple[str, str]]:
    """The log: what was done, and where."""
    found = ExportedFile.objects.as_pipeline().filter(**fields).order_by("pk")
    return list(found.values_list("action", "path"))


def replace(old: Note, new: Note, kind: str = "supersede") -> None:
    """A verdict about the two, carried out."""
    with transaction.atomic():
        row = make.verdict(new, old, kind, status="applied")
        verdicts.apply(row, now=make.at(days=20))
