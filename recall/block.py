"""The text that goes before an agent: whole notes, as facts, inside a fence, under a cap. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memory.text.fence import wrap

#: Characters of a block, and bytes of it in UTF-8.
# Why: Claude Code cuts at 10,000 characters, Codex in the middle of 10,000 bytes; both count ours
# and whatever stands around it.
BLOCK_CHARACTERS_MAX = 8_000
BLOCK_BYTES_MAX = 9_500

#: Whose words a note is, as a reader is told.
SPEAKERS = {"user": "the user said", "assistant": "the assistant said", "document": "a document"}


@dataclass(frozen=True)
class Block:
    """The text, the notes that are in it (positions of what was given), and how many are not."""

    text: str
    included: tuple[int, ...]
    omitted: int


def render(notes: Sequence[Mapping[str, Any]]) -> Block:
    """As many whole notes as fit, in order; a note that does not fit is left out, not cut."""
    lines: list[str] = []
    included: list[int] = []
    for position, note in enumerate(notes):
        text = wrap([*lines, line(note)])
        if len(text) > BLOCK_CHARACTERS_MAX or len(text.encode()) > BLOCK_BYTES_MAX:
            continue
        lines.append(line(note))
        included.append(position)
    text = wrap(lines) if lines else ""
    return Block(text, tuple(included), len(notes) - len(included))


def line(note: Mapping[str, Any]) -> str:
    """One note as one line: where, when and from whom, then what was said, on one line."""
    speaker = SPEAKERS.get(note["said_by"], note["said_by"] or "recorded")
    told = [
        note["project__name"] or "no project",
        f"{note['valid_from']:%Y-%m-%d}",
        # Somebody else's note never reads as the user's own words.
        f"shared by {note['shared_by']}, {speaker}" if note.get("shared_by") else speaker,
    ]
    if note.get("disputed"):
        told.append("disputed: a newer statement waits for a decision")
    context = f" ({note['context']})" if note["context"] else ""
    # Every part came from a client: a line break in one would start a line of its own.
    return " ".join(f"- [{', '.join(told)}] {note['content']}{context}".split())
