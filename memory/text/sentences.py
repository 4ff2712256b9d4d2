"""Sentences of chat and Markdown, as spans of the text they stand in.

Lines, bullets, headings and table rows are borders; a code fence is one span; scripts with full
stops of their own are known. Knows nothing about which sentence matters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

#: Characters from which a line without a stop counts as wrapped by a margin, so that its sentence
# goes on below.
# Why: mails and commit messages wrap at 72; a short line without a stop is a line of its own in
# chat.
# Calibrate: read spans of wrapped and of chatty texts; below 50, list-like chat lines start to run
# together.
WRAP_CHARS_MIN = 55


@dataclass(frozen=True)
class Span:
    """A piece of a text: text[start:end] is `text`, in characters."""

    start: int
    end: int
    text: str


_LINE = re.compile(r"[^\n]*\n|[^\n]+$")
_FENCE = re.compile(r"[ \t>]{0,12}(?:[-*+][ \t]{1,4})?(`{3,}|~{3,})")
# Markers that start a line and are not part of what it says: quote, heading, bullet, number, check
# box.
_MARKER = re.compile(
    r"[ \t]*(?:(?:>[ \t]?)*[ \t]*"
    r"(?:\#{1,6}[ \t]+|[-*+•‣▪–—][ \t]+|\d{1,3}[.)][ \t]+)?(?:\[[ xX]\][ \t]+)?)"
)
_STRUCTURE = re.compile(r"[ \t]{0,80}(?:[>|]|\#{1,6}[ \t]|[-*+•‣▪–—][ \t]|\d{1,3}[.)][ \t])")
# Why the look behind: a run of stops is tried once, from its first, and not again from each.
_STOP = re.compile(r"(?:(?<![.!?…])[.!?…]+[\"'”’»)\]*_`]{0,4}(?=\s)|[。！？｡]+[」』”’）》】]{0,4})")
_CODE = re.compile(r"`[^`\n]+`")
_LAST_WORD = re.compile(r"([^\s(\[{\"'`“„*]{1,24})$")
_WORDY = re.compile(r"[^\W_]")
_NUMBER = re.compile(r"\d{1,2}$")

_SHORTENED = """
e.g i.e etc cf vs approx resp incl excl fig no nr vol sec ch p pp ed eds dr mr mrs ms prof st jr sr
inc ltd co dept est min max ca bzw d.h z.b u.a u.u ggf evtl usw vgl s.o s.u abs art bspw inkl zzgl
str tel op al a.m p.m u.s
"""
_ABBREVIATIONS = frozenset(_SHORTENED.split())
_MONTHS = frozenset(
    "jan feb mär mar apr mai may jun jul aug sep okt oct nov dez dec".split()  # noqa: SIM905
)


def sentences(text: str) -> list[Span]:
    """Return the sentences in order, without markers of bullets and headings."""
    return [span for start, end, whole in _blocks(text) for span in _split(text, start, end, whole)]


def _blocks(text: str) -> Iterator[tuple[int, int, bool]]:
    """Yield (start, end, whole) of lines that belong together; `whole` ones are not cut."""
    lines = [(match.start(), match.end()) for match in _LINE.finditer(text)]
    index = 0
    while index < len(lines):
        start, end = lines[index]
        fence = _FENCE.match(text, start, end)
        if fence:
            last = _closing(text, lines, index + 1, fence.group(1))
            yield start, lines[last][1], True
            index = last + 1
            continue
        while index + 1 < len(lines) and _goes_on(text, lines[index], lines[index + 1]):
            index += 1
            end = lines[index][1]
        yield start, end, False
        index += 1


def _closing(text: str, lines: list[tuple[int, int]], index: int, mark: str) -> int:
    """Return the index of the line that closes a fence, or of the last line when none does."""
    while index < len(lines):
        line = text[lines[index][0] : lines[index][1]].strip(" \t>\r\n")
        if line.startswith(mark) and not line.strip(mark[0]):
            return index
        index += 1
    return len(lines) - 1


def _goes_on(text: str, line: tuple[int, int], following: tuple[int, int]) -> bool:
    """Say whether a sentence runs from a line over a margin into the next one."""
    here = text[line[0] : line[1]].rstrip()
    if len(here) < WRAP_CHARS_MIN or here[-1] in ".!?:;…。！？|" or here.lstrip().startswith("#"):
        return False
    if _STRUCTURE.match(text, *following) or _FENCE.match(text, *following):
        return False
    first = text[following[0] : following[1]].lstrip()[:1]
    return first.islower()


def _split(text: str, start: int, end: int, whole: bool) -> Iterator[Span]:
    if whole:
        yield from _trim(text, start, end)
        return
    marker = _MARKER.match(text, start, end)
    begin = marker.end() if marker else start
    code = [(match.start(), match.end()) for match in _CODE.finditer(text, begin, end)]
    inside = 0
    for stop in _STOP.finditer(text, begin, end):
        while inside < len(code) and code[inside][1] <= stop.start():
            inside += 1
        if inside < len(code) and code[inside][0] < stop.start():
            continue
        if _ends(text, begin, stop, end):
            yield from _trim(text, begin, stop.end())
            begin = stop.end()
    yield from _trim(text, begin, end)


def _ends(text: str, begin: int, stop: re.Match[str], end: int) -> bool:
    """Say whether a stop ends the sentence: not after an abbreviation, an initial or a day."""
    if not stop.group().startswith(".") or stop.group().startswith(".."):
        return True
    last = _LAST_WORD.search(text, max(begin, stop.start() - 24), stop.start())
    if not last:
        # After code, a quote or a bracket there is no word that could be shortened.
        return stop.start() > begin
    word = last.group(1).lower()
    if word in _ABBREVIATIONS or (len(word) == 1 and word.isalpha()):
        return False
    following = text[stop.end() : min(end, stop.end() + 12)].split()
    return not (_NUMBER.match(word) and following and following[0][:3].lower() in _MONTHS)


def _trim(text: str, start: int, end: int) -> Iterator[Span]:
    piece = text[start:end]
    left = len(piece) - len(piece.lstrip())
    trimmed = piece.strip()
    if trimmed and _WORDY.search(trimmed):
        yield Span(start + left, start + left + len(trimmed), trimmed)
