"""Marks in text that a page shows: what two texts differ in, and where the evidence stands.

Pure. Gives pieces, (text, kind), which templates render and escape; knows nothing about HTML,
about requests, or about whose text it is.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from memory.text.seen import visible

#: Tokens of two texts together up to which they are compared word by word.
# Why: the comparison is quadratic at worst; a note has some dozens of words, a document thousands.
# Calibrate: milliseconds of `diff_words` on two different texts at the bound; below ten.
DIFF_TOKENS_MAX = 1_200

#: Lines of two texts together up to which they are compared line by line.
# Why: beyond, the page says that the whole changed, and costs nothing.
DIFF_LINES_MAX = 1_200

#: Share of equal tokens below which two texts are shown as two, not as a patchwork of small words.
# Why: two sentences about different things share "the" and "is"; marks between those only distract.
# Calibrate: by eye, on held verdicts.
DIFF_ALIKE_SHARE_MIN = 0.2

#: What stands where text was left out.
CUT = "\N{HORIZONTAL ELLIPSIS}"

#: Scripts without spaces between words: Thai, Lao, kana, ideographs.
UNSPACED = "\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"

#: A word (15.6, db-staging and a/b.py are one), a run of spaces, or one other character.
TOKEN = re.compile(rf"[^\W{UNSPACED}]+(?:[-./:_'@][^\W{UNSPACED}]+)*|\s+|.", re.DOTALL)


@dataclass(frozen=True)
class Piece:
    """A run of text of one kind: "" plain, del, ins, evidence, or cut where text was left out."""

    text: str
    kind: str = ""


def short(text: str, most: int) -> str:
    """The text, cut to so many characters: as `truncatechars`, which looks at each of them."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def diff_words(old: str, new: str) -> tuple[list[Piece], list[Piece]]:
    """What went from the old text ("del") and what came in the new one ("ins"), word by word.

    Long texts are compared by lines, very long ones not at all; nor are two that share hardly a
    word: then the whole of each is marked. Joined, the pieces of a side are `visible` of its text.
    """
    before, after = visible(old), visible(new)
    if before == after:
        return _pieces([(before, "")]), _pieces([(after, "")])
    for split, most in ((TOKEN.findall, DIFF_TOKENS_MAX), (_lines, DIFF_LINES_MAX)):
        left, right = split(before), split(after)
        if len(left) + len(right) <= most:
            return _compared(left, right)
    return _pieces([(before, "del")]), _pieces([(after, "ins")])


def _lines(text: str) -> list[str]:
    # Not splitlines: it cuts at characters that are no end of a line to whoever wrote them.
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def _compared(left: list[str], right: list[str]) -> tuple[list[Piece], list[Piece]]:
    whole = _pieces([("".join(left), "del")]), _pieces([("".join(right), "ins")])
    known, new = _words(left), _words(right)
    fewest = DIFF_ALIKE_SHARE_MIN * min(known.total(), new.total())
    # Before any comparing: no more can be equal in its place than both texts have at all.
    if (known & new).total() < fewest:
        return whole
    # Spaces are no place to begin a match at: every second token is one.
    matcher = SequenceMatcher(str.isspace, left, right, autojunk=False)
    steps = matcher.get_opcodes()
    same = sum(
        1
        for step, start, end, *_ in steps
        if step == "equal"
        for token in left[start:end]
        if not token.isspace()
    )
    if same < fewest:
        return whole
    before: list[tuple[str, str]] = []
    after: list[tuple[str, str]] = []
    for step, start, end, begin, stop in steps:
        equal = step == "equal"
        before.append(("".join(left[start:end]), "" if equal else "del"))
        after.append(("".join(right[begin:stop]), "" if equal else "ins"))
    return _pieces(_bridged(before)), _pieces(_bridged(after))


def _words(tokens: Iterable[str]) -> Counter[str]:
    return Counter(token for token in tokens if not token.isspace())


def _bridged(runs: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Two changed words with only a space between them are one change."""
    runs = [run for run in runs if run[0]]
    joined = []
    for place, (text, kind) in enumerate(runs):
        between = 0 < place < len(runs) - 1 and text.isspace() and not kind
        changed = runs[place - 1][1] if between else ""
        joined.append((text, changed if between and changed == runs[place + 1][1] else kind))
    return joined


def highlight(
    body: str, spans: Sequence[tuple[int, int]], around: int | None = None
) -> list[Piece]:
    """The body with these spans (start, end in characters) as pieces of kind "evidence".

    Overlapping and touching spans are one; what lies outside the body is cut to it. With `around`,
    only so many characters before and after each span are kept, with a piece of kind "cut" where
    text is left out; without spans that is the body's beginning.
    """
    merged = _merged(spans, len(body))
    windows = [(0, len(body))] if around is None else _windows(merged, len(body), around)
    found: list[tuple[str, str]] = []
    place = 0
    for start, end in windows:
        if start > place:
            found.append((CUT, "cut"))
        place = start
        for begin, stop in merged:
            if start <= begin and stop <= end:
                found += [(body[place:begin], ""), (body[begin:stop], "evidence")]
                place = stop
        found.append((body[place:end], ""))
        place = end
    if place < len(body):
        found.append((CUT, "cut"))
    return _pieces([(visible(text), kind) for text, kind in found])


def quoted(window: str, start: int, end: int, *, first: int, around: int) -> list[Piece]:
    """A span of a text as evidence, with so many characters before and after it.

    `window` is that part of the text, from its character `first` on, with one character more where
    there is more; `start` and `end` count from the beginning of the text.
    """
    whole = end + around - first
    before = [Piece(CUT, "cut")] if first else []
    after = [Piece(CUT, "cut")] if len(window) > whole else []
    return [*before, *highlight(window[:whole], [(start - first, end - first)]), *after]


def _merged(spans: Sequence[tuple[int, int]], length: int) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, end in sorted((max(0, start), min(end, length)) for start, end in spans):
        if start >= end:
            continue
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _windows(spans: list[tuple[int, int]], length: int, around: int) -> list[tuple[int, int]]:
    if not spans:
        return [(0, min(length, 2 * around))]
    wide = [(max(0, start - around), min(length, end + around)) for start, end in spans]
    return _merged(wide, length)


def _pieces(runs: Iterable[tuple[str, str]]) -> list[Piece]:
    """Neighbours of one kind joined, empty ones left out."""
    pieces: list[Piece] = []
    for text, kind in runs:
        if pieces and pieces[-1].kind == kind:
            text = pieces.pop().text + text
        if text:
            pieces.append(Piece(text, kind))
    return pieces
