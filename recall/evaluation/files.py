"""Which data set a word on the command line means: a file in one of two formats, or the mixed set.

Knows nothing about what the formats say.
"""

from __future__ import annotations

import json
from pathlib import Path

from recall.evaluation import lines, locomo
from recall.evaluation.dataset import Dataset, DatasetProblem

#: The name of the set that comes with Argus: turns, documents, bookmarks and syntheses.
MIXED = "mixed"
MIXED_PATH = Path(__file__).parent / "mixed.jsonl"


def read(word: str) -> Dataset:
    """The data set of this name or path. Raises DatasetProblem with a sentence."""
    path = MIXED_PATH if word == MIXED else Path(word)
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise DatasetProblem(
            f"{word} cannot be read: {error.strerror}. Give LoCoMo's JSON, JSON lines of your own, "
            f'or "{MIXED}".'
        ) from None
    except UnicodeDecodeError:
        raise DatasetProblem(f"{word} is not UTF-8 text") from None
    # Why not by suffix: a file of one line is JSON, too.
    try:
        whole = json.loads(text)
    except ValueError:
        whole = None
    if locomo.looks_like(whole):
        return locomo.read(whole, path.name)
    if isinstance(whole, list):
        raise DatasetProblem(f"{word} is a JSON list, but not of LoCoMo's dialogues")
    return lines.read(text.split("\n"), path.name)
