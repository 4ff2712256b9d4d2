"""The real files that some tests measure on, and a database that remembers them; the files are no
part of this repository."""

from __future__ import annotations

from pathlib import Path

import pytest

from memory.access import principal
from memory.files import FileTally, capture_files
from memory.pipeline import process
from tests import cluster

SHARED = Path(__file__).resolve().parents[2] / "shared"
CORPUS = SHARED / "corpus"

#: For tests that read those files.
needs_corpus = pytest.mark.skipif(
    not CORPUS.is_dir(), reason="the corpus is not beside the checkout"
)

#: What of it is captured: everything that is not there for evaluation alone.
CAPTURED = ("claude-code", "codex", "pi", "obsidian", "telegram", "bookmarks", "skills")


def capture() -> FileTally:
    """Take the corpus into the memory in use."""
    paths = [str(CORPUS / name) for name in CAPTURED]
    return capture_files(paths, owner=principal(), progress=False)


def database() -> str:
    """The name of a database that remembers the corpus and has made notes of it; to be cloned."""

    def fill() -> None:
        capture()
        process()

    return cluster.made("corpus", fill)
