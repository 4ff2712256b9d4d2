"""Cuts a body into the pieces that may become a note: sentences, list items, small blocks.

It knows Markdown as agents and people write it (fences, headings, lists with their lead-in, tables,
quotes) and nothing about worth: every piece is a contiguous range of the body, and what is left out
(code, tables, quotes, headings) can still serve as the `lead` of what follows it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from memory.llm.extractive import cues
from memory.text.words import sentences

Kind = Literal["sentence", "item", "block"]

#: Longest block (a lead-in with its list, lines that map one thing to another) kept as one.
# Why: a short list is read as one statement; of a long one, single items are quoted.
# Calibrate: by eye, on notes of real sessions: above this a note is skimmed, not read.
BLOCK_CHARS_MAX = 420

#: Pieces looked at in one body.
# Why: a pasted log of a megabyte must not cost more than a long answer.
# Calibrate: above the longest real answer; the rest of such a body is code or data.
PIECES_MAX = 400

FENCE = re.compile(r"^\s*(```|~~~)")
HEADING = re.compile(r"^\s{0,3}#{1,6}\s+(\S.*)$|^\s*\*\*([^*]{2,80})\*\*:?\s*$")
ITEM = re.compile(r"^(\s*)(?:[-*+•‣]|\d{1,3}[.)])[ \t]+(?:\[[ xX]\][ \t]+)?(?=\S)")
SKIPPED = re.compile(r"^\s*(?:\||>|[│├└┌]|={3,}|-{3,}|\*{3,})")
#: A sentence that ends with code or a bracket, before a next one that begins like one.
CODE_END = re.compile(r"[`)*]\.\s+(?=[A-Z`\"'*])")
MARKED = frozenset("*`#_")
MARKS = re.compile(r"[*`#]+|(?<!\w)_+(?=[A-Za-z ][^_]*_+(?!\w))|(?<=[A-Za-z.!?])_+(?!\w)")


@dataclass(frozen=True)
class Piece:
    """A range of the body. `lead` is the heading or lead-in above it; `group` its paragraph.

    `numbered`: an item of a list that counts, so most likely a step of something.
    """

    start: int
    end: int
    text: str
    kind: Kind = "sentence"
    lead: str = ""
    group: int = 0
    numbered: bool = False


@dataclass(frozen=True)
class Line:
    """A line of the body with its offset, without the line break."""

    start: int
    text: str

    @property
    def end(self) -> int:
        return self.start + len(self.text)


def cut(body: str) -> list[Piece]:
    """Return the pieces of a body in text order; `body[p.start:p.end] == p.text` for each.

    A block overlaps the items that it is made of; who chooses takes one or the other.
    """
    pieces: list[Piece] = []
    heading = lead = ""
    bold = False
    for group, run in enumerate(_runs(body)):
        if len(pieces) >= PIECES_MAX:
            break
        first = run[0]
        title = HEADING.match(first.text)
        if title:
            heading = plain(title.group(1) or title.group(2) or "")
            bold, lead = title.group(1) is None, ""
        elif ITEM.match(first.text):
            pieces.extend(_items(body, run, lead or heading, group))
            block = _block(body, pieces, run, lead, group)
            if block is not None:
                pieces.append(block)
            if bold:
                heading = ""
        else:
            found = list(_prose(body, run, heading, group))
            pieces.extend(found)
            lead = plain(found[-1].text) if found and found[-1].text.endswith((":", "：")) else ""
    return pieces[:PIECES_MAX]


def plain(text: str) -> str:
    """Return the text on one line without Markdown's marks, for titles and context."""
    text = ITEM.sub("", text)
    if not MARKED.isdisjoint(text):
        text = MARKS.sub("", text)
    return " ".join(text.split())


def _lines(body: str) -> Iterator[Line]:
    at = 0
    for text in body.split("\n"):
        yield Line(at, text)
        at += len(text) + 1


def _runs(body: str) -> Iterator[list[Line]]:
    """Yield headings, lists and paragraphs as runs of lines; code, tables and quotes end a run."""
    run: list[Line] = []
    fence = ""
    blank = False
    for line in _lines(body):
        mark = FENCE.match(line.text)
        if mark and (not fence or mark.group(1) == fence):
            fence = "" if fence else mark.group(1)
        if fence or mark or SKIPPED.match(line.text) or HEADING.match(line.text):
            if run:
                yield run
            run = []
            if not fence and not mark and HEADING.match(line.text):
                yield [line]
            continue
        if not line.text.strip():
            blank = True
            continue
        is_item, in_list = bool(ITEM.match(line.text)), bool(run and ITEM.match(run[0].text))
        indented = line.text[:1] in " \t"
        if run and (is_item != in_list or blank) and not (in_list and (is_item or indented)):
            yield run
            run = []
        run.append(line)
        blank = False
    if run:
        yield run


def _items(body: str, run: list[Line], lead: str, group: int) -> Iterator[Piece]:
    """Yield one piece per list item, continuation lines included, the marker left out."""
    heads = [at for at, line in enumerate(run) if ITEM.match(line.text)]
    for this, after in zip(heads, [*heads[1:], len(run)], strict=True):
        match = ITEM.match(run[this].text)
        assert match is not None
        piece = _piece(body, run[this].start + match.end(), run[after - 1].end, group)
        if piece is None:
            continue
        if len(piece.text) <= BLOCK_CHARS_MAX:
            numbered = run[this].text.lstrip()[:1].isdigit()
            yield Piece(piece.start, piece.end, piece.text, "item", lead, group, numbered)
        else:
            yield from _split(body, piece.start, piece.end, lead, group)


def _block(body: str, pieces: list[Piece], run: list[Line], lead: str, group: int) -> Piece | None:
    """Return lead-in and list as one piece, when there is a lead-in and both are short."""
    if not lead:
        return None
    head = next((p for p in reversed(pieces) if p.group < group), None)
    if head is None or not head.text.endswith((":", "：")) or body[head.end : run[0].start].strip():
        return None
    piece = _piece(body, head.start, run[-1].end, group)
    if piece is None or len(piece.text) > BLOCK_CHARS_MAX:
        return None
    return Piece(piece.start, piece.end, piece.text, "block", head.lead, group)


def _prose(body: str, run: list[Line], lead: str, group: int) -> Iterator[Piece]:
    """Yield the sentences of a paragraph; lines that map (`a -> b`) stay together as a block."""
    mapped = [line for line in run if cues.MAPPING.search(line.text)]
    if len(mapped) >= 2 and len(mapped) >= len(run) - 1:
        piece = _piece(body, run[0].start, run[-1].end, group)
        if piece is not None and len(piece.text) <= BLOCK_CHARS_MAX:
            yield Piece(piece.start, piece.end, piece.text, "block", lead, group)
            return
    yield from _split(body, run[0].start, run[-1].end, lead, group)


def _split(body: str, start: int, end: int, lead: str, group: int) -> Iterator[Piece]:
    for span in sentences(body[start:end]):
        borders = [m.end() for m in CODE_END.finditer(span.text)]
        for left, right in pairwise([0, *borders, len(span.text)]):
            piece = _piece(body, start + span.start + left, start + span.start + right, group)
            if piece is not None:
                yield Piece(piece.start, piece.end, piece.text, "sentence", lead, group)


def _piece(body: str, start: int, end: int, group: int) -> Piece | None:
    """Return the range without white space at its ends, or None when nothing is left."""
    text = body[start:end]
    start += len(text) - len(text.lstrip())
    text = text.strip()
    return Piece(start, start + len(text), text, group=group) if text else None
