"""What later turns of a unit do to earlier ones: names that were removed, plans that were refused.

The last word on a thing wins. It works on names and openings, never on meaning, and knows nothing
about points: it answers whether a range of a turn has been overturned.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from memory.llm.extractive import cues
from memory.llm.extractive.lasting import CONSTRAINT, OFFERS
from memory.llm.extractive.pieces import Piece, plain
from memory.llm.extractive.turns import CONCEDES, HEAD_CHARS_MAX
from memory.llm.ports import Passage

#: Turns within which an agent gives right to a person who refused.
# Why: it often reads a file first, and says "you're right" after it.
CONCEDED_TURNS_MAX = 2
#: Letters that two words share at the start to be the same word.
STEM_CHARS = 5

#: An exact name. Every part is bounded, so that no body is slow to read.
NAME = (
    r"(?:`[^`\n]{2,60}`|\b\w{0,60}?(?:[a-z][A-Z]|\w_[a-z]|\b_[a-z])\w{0,60}(?:\(\))?"
    r"|\b[A-Z][A-Z0-9_]{2,40}\b|\b[\w-]{1,60}\.[a-z]{2,4}\b|(?<![\w./@-])[\w.@-]{0,60}/[\w./@-]{1,200})"
)
NAMES = re.compile(NAME)
#: Something goes away; the name of it stands next.
REMOVAL = re.compile(
    r"(?i:\b(?:remov(?:e|es|ed|ing)|drop(?:s|ped|ping)?|delet(?:e|es|ed|ing)|get(?:ting)? rid of"
    r"|got rid of|kill(?:s|ed)?|ditch(?:ed)?|no longer (?:use|need|call|have)s?|stop(?:ped)? using"
    r"|instead of|rather than|in place of|replac(?:e|es|ed|ing)|renam(?:e|es|ed|ing)(?: from)?"
    r"|(?:don't|do not|won't|not) (?:need|use|call)|that (?:still )?use|mv|nicht mehr|entfern\w*)"
    r"|删除|移除|不再使用)\s{0,3}(?i:(?:the|all|both|old|any|our|that|this|its|method|function|from"
    rf"|class|file|using|calling)\s{{1,3}})*(?P<names>{NAME}(?:\s?(?:,|\band\b|\bor\b|&"
    rf"|\+)\s?{NAME})*)"
)
#: "the places that use A to use B": only then does using A mean that A goes away.
USED_INSTEAD = re.compile(rf"(?i:that (?:still )?use)\s+{NAME} to (?:use|call)\b")
#: What is removed with these words around it was a copy or an import of the thing, not the thing.
NOT_THE_THING = re.compile(
    r"\b(?:unused|imports?|duplicate[sd]?|cop(?:y|ies)|casts?|comments?|local|line|field)\b",
    re.IGNORECASE,
)
#: A thing is about to be another: what an agent said before of how it works is out of date.
ALTERED = re.compile(
    r"(?i:\b(?:chang|switch|rewrit|refactor|rework|updat|fix|convert|simplif|adapt|patch|redesign)"
    r"\w{0,4}\s(?:the |our |its |how )?)"
    rf"(?P<names>{NAME})"
)
#: A person has what an agent found put right.
FIX_IT = re.compile(
    r"^(?:(?:ok(?:ay)?|yes|yep|sure|good|great|nice|then|please|alright|cool|ja|bitte)[,.! ]+)*"
    r"(?:(?:can|could) you )?(?:fix|address|tackle|repair|clean up|correct|solve)\b",
    re.IGNORECASE,
)
PUSHBACK = re.compile(
    r"^(?:\w+[,!.]? )?(?:wait|no|nope|nah|hm+|wtf|actually|so+,? why|but why|why|nein|warum|moment)"
    r"(?![\w'])|doesn't look right|\bi thought (?:you|we)\b|\bnot what (?:we|i)\b|\bmakes no sense"
    r"|\bwhy (?:would|are|is|do|does|did) (?:we|you|it|they|the)\b|\bi would (?:think|expect"
    r"|assume)"
    r"|^不|为什么",
    re.IGNORECASE,
)
REVERT = re.compile(
    r"\b(?:revert|undo|roll ?back|take back) (?:that|this|it|everything|all|the last)\b"
    r"|\bforget (?:that|it|what i)\b|\bscratch that\b|\b(?:mach|nimm) das (?:rückgängig|zurück)\b"
    r"|撤销|还原|撤回",
    re.IGNORECASE,
)
#: Names that two lists of steps share when they describe the same thing.
LIST_NAMES_MIN = 2
PARTS = re.compile(r"[A-Z]?[a-z]{3,}|[A-Z]{3,}")


@dataclass(frozen=True)
class Refused:
    """A person refused something before `turn` and was given right; `stems` says about what."""

    turn: int
    stems: frozenset[str]


@dataclass(frozen=True)
class Later:
    """What a unit says against its own earlier turns."""

    gone: dict[str, tuple[int, int]]
    altered: dict[str, tuple[int, int]]
    refused: tuple[Refused, ...] = ()
    reverted: tuple[tuple[int, int], ...] = ()
    mended: tuple[tuple[int, int], ...] = ()

    def overturns(self, turn: int, piece: Piece, *, human: bool) -> bool:
        """Return whether a piece of a turn no longer holds at the end of the unit."""
        if any(first <= turn < last for first, last in self.reverted):
            return True
        if any(self.gone.get(name, (-1, 0)) >= (turn, piece.end) for name in names(piece.text)):
            return True
        if human or CONSTRAINT.search(piece.text):
            return False
        if any(first < turn < last for first, last in self.mended) and not cues.REASON.search(
            piece.text
        ):
            return True
        subject = NAMES.search(piece.text)
        if subject and self.altered.get(_bare(subject.group()), (-1, 0)) >= (turn, piece.end):
            return True
        if not _plans(piece):
            return False
        known = stems(piece.text)
        return any(turn < one.turn and not known.isdisjoint(one.stems) for one in self.refused)


def later(passages: Sequence[Passage], pieces: Sequence[Sequence[Piece]]) -> Later:
    """Read a unit for what it takes back."""
    gone: dict[str, tuple[int, int]] = {}
    altered: dict[str, tuple[int, int]] = {}
    refused, reverted, mended = [], [], []
    for turn, passage in enumerate(passages):
        for piece in pieces[turn]:
            if piece.kind != "block":
                at = (turn, piece.start)
                gone.update((name, at) for name in _removed(piece.text))
                found = ALTERED.finditer(piece.text)
                altered.update((_bare(change["names"]), at) for change in found)
        if passage.role == "assistant":
            continue
        head = passage.body.lstrip()[:HEAD_CHARS_MAX]
        if REVERT.search(head):
            reverted.append((_request_before(passages, turn), turn))
        if FIX_IT.match(head):
            mended.append((_request_before(passages, turn), turn))
        if PUSHBACK.search(head) and _conceded(passages, turn):
            refused.append(Refused(turn, stems(head)))
    return Later(gone, altered, tuple(refused), tuple(reverted), tuple(mended))


def says_otherwise(earlier: Piece, latter: Piece) -> bool:
    """Return whether of two pieces about one thing the latter takes the place of the earlier.

    It does when each has a value that the other lacks, or when both are lists of the same things.
    """
    before, after = (set(cues.EXACT.findall(piece.text)) for piece in (earlier, latter))
    if earlier.kind == latter.kind == "block":
        return len(names(earlier.text) & names(latter.text)) >= LIST_NAMES_MIN
    return bool(before - after) and bool(after - before)


def names(text: str) -> frozenset[str]:
    """Return the exact names of a text, in lower case, a call by its last part."""
    return frozenset(_bare(found.group()) for found in NAMES.finditer(text))


def stems(text: str) -> frozenset[str]:
    """Return the beginnings of the words that the names of a text are made of."""
    return frozenset(
        part.lower()[:STEM_CHARS]
        for found in NAMES.finditer(text)
        for part in PARTS.findall(found.group())
    )


def _bare(name: str) -> str:
    name = name.strip("`").lower()
    head, call, _ = name.partition("(")
    return head.rpartition(".")[2] if call else head


def _removed(text: str) -> Iterator[str]:
    for found in REMOVAL.finditer(text):
        verb = found.group().lower()
        if verb.startswith("that") and not USED_INSTEAD.match(text, found.start()):
            continue
        if not NOT_THE_THING.search(text[max(0, found.start() - 12) : found.end() + 20]):
            yield from names(found["names"])


def _plans(piece: Piece) -> bool:
    """Return whether a piece of an agent is a plan, a proposal or a list of steps."""
    if piece.kind == "block":
        return True
    text = plain(piece.text)
    return piece.numbered or bool(
        OFFERS.search(cues.OPENER.sub("", text))
        or cues.TO_DO.match(text)
        or cues.CLASSES["fix"].search(text)
        or cues.CLASSES["decision"].search(text)
    )


def _request_before(passages: Sequence[Passage], turn: int) -> int:
    """Return the turn in which a person asked for what `turn` takes back."""
    return next((at for at in range(turn - 1, -1, -1) if passages[at].role != "assistant"), 0)


def _conceded(passages: Sequence[Passage], turn: int) -> bool:
    following = passages[turn + 1 : turn + 1 + CONCEDED_TURNS_MAX]
    return any(
        p.role == "assistant" and CONCEDES.match(p.body.lstrip()[:HEAD_CHARS_MAX])
        for p in following
    )
