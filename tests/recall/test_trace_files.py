"""Which files hold a note: of the vault of who looks, each once, and none that went."""

from __future__ import annotations

import pytest

from exporter.models import ExportedFile
from memory.models import Note, Principal, StageRun
from tests.recall.making import note, people
from tests.web import staff

pytestmark = pytest.mark.django_db

PATH = "shop/The port is 5432.md"


def wrote(who: Principal, one: Note, action: str = "written", path: str = PATH) -> None:
    kind = "hub" if path.startswith("Hubs/") else "note"
    ExportedFile.objects.create(
        run=StageRun.objects.create(stage="export", status="done"), owner=who, note=one, kind=kind,
        key=f"hub:{one.pk}" if kind == "hub" else str(one.pk), path=path, action=action,
        sha256="0", size=1,
    )  # fmt: skip


def traced(who: Principal, one: Note) -> str:
    got = staff("reader", who=who).get(f"/ui/notes/{one.pk}/", {"part": "trace"})
    assert got.status_code == 200, got.content[:500]
    return got.content.decode()


def counts(text: str, many: int) -> bool:
    return f"<dt>Files in your vault</dt><dd>{many}</dd>" in text


def test_it_tells_the_files_of_who_looks_and_not_those_of_the_note_s_owner() -> None:
    cast = people()
    one = note(cast.bob, "The port is 5432.", visibility="team", embedding=None)
    wrote(cast.alice, one)
    text = traced(cast.alice, one)
    assert counts(text, 1) and PATH in text, "the note is of another, the file is hers"
    text = traced(cast.bob, one)
    assert counts(text, 0) and PATH not in text, "it is no file of his"


def test_a_file_that_was_written_often_is_one_and_one_that_was_removed_is_none() -> None:
    alice = people().alice
    one = note(alice, "The port is 5432.", embedding=None)
    for _ in range(3):
        wrote(alice, one)
    wrote(alice, one, "renamed", "shop/Port.md")
    wrote(alice, one, "conflict", "shop/Port.md")
    wrote(alice, one, path="Hubs/Ports.md")
    text = traced(alice, one)
    assert counts(text, 2) and "shop/Port.md" in text and "Hubs/Ports.md" in text
    assert PATH not in text
    wrote(alice, one, "retired", "_retired/Port.md")
    assert counts(traced(alice, one), 2) and "_retired/Port.md" in traced(alice, one)
    wrote(alice, one, "removed", "_retired/Port.md")
    assert counts(traced(alice, one), 1) and "Hubs/Ports.md" in traced(alice, one)
