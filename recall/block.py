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

#: Characters of a name or a role before a line.
# Why: longer than names are; what a source says about who spoke can be anything.
NAME_CHARACTERS_MAX = 60

_BRACKETS = str.maketrans("[]", "()")


@dataclass(frozen=True)
class Block:
    """The text, the notes that are in it (positions of what was given), and how many are not."""

    text: str
    included: tuple[int, ...]
    omitted: int


def render(notes: Sequence[Mapping[str, Any]], *, characters: int = BLOCK_CHARACTERS_MAX) -> Block:
    """As many whole notes and turns as fit, in order; what does not fit is left out, not cut."""
    lines: list[str] = []
    included: list[int] = []
    most = min(characters, BLOCK_CHARACTERS_MAX)
    for position, note in enumerate(notes):
        text = wrap([*lines, line(note)])
        if len(text) > most or len(text.encode()) > BLOCK_BYTES_MAX:
            continue
        lines.append(line(note))
        included.append(position)
    text = wrap(lines) if lines else ""
    return Block(text, tuple(included), len(notes) - len(included))


def line(note: Mapping[str, Any]) -> str:
    """One note, or one turn, as one line: where, when and from whom, then what was said."""
    if "excerpt" in note:
        return _turn_line(note)
    speaker = SPEAKERS.get(note["said_by"], _named(note["said_by"]))
    told = [
        _named(note["project__name"] or "no project"),
        f"{note['valid_from']:%Y-%m-%d}",
        # Somebody else's note never reads as the user's own words.
        f"shared by {_named(note['shared_by'])}, {speaker}" if note.get("shared_by") else speaker,
    ]
    if note.get("disputed"):
        told.append("disputed: a person decides whether this or another statement holds")
    if note.get("state", "live") != "live":
        heir = note.get("replaced_by")
        told.append(f"{note['state']} since" + (f" by note {heir['id']}" if heir else ""))
    context = f" ({note['context']})" if note["context"] else ""
    # Every part came from a client: a line break in one would start a line of its own.
    return " ".join(f"- [{', '.join(told)}] {note['content']}{context}".split())


def _turn_line(turn: Mapping[str, Any]) -> str:
    """Raw words of a session, which nobody distilled: told as such, with where to read on."""
    role = turn["role"] or turn["kind"]
    speaker = _named(turn["speaker"] or SPEAKERS.get(role, role))
    told = [
        _named(turn["project__name"] or "no project"),
        f"{turn['at']:%Y-%m-%d}",
        f"shared by {_named(turn['shared_by'])}, {speaker}" if turn.get("shared_by") else speaker,
        f"verbatim, turn {turn['id']}",
    ]
    return " ".join(f"- [{', '.join(told)}] {turn['excerpt']}".split())


def _named(name: str) -> str:
    """A name that a client gave, as a part of the brackets before a line: without any of its own,
    by which capture would not know the line again."""
    return name.translate(_BRACKETS)[:NAME_CHARACTERS_MAX] or "recorded"
