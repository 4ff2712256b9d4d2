"""Where the real files lie that some tests measure on; they are no part of this repository."""

from __future__ import annotations

from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parents[2] / "shared"
CORPUS = SHARED / "corpus"

#: For tests that read those files.
needs_corpus = pytest.mark.skipif(
    not CORPUS.is_dir(), reason="the corpus is not beside the checkout"
)
