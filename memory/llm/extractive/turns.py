"""What a turn's neighbours say about it: what was asked before, how it was received after.

It knows nothing about single sentences: `worth` weighs them, `lasting` filters them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from memory.llm.extractive import cues
from memory.llm.extractive.pieces import Piece, plain
from memory.llm.ports import Passage
from memory.text.words import meaningful

#: Longest quoted neighbour.
# Why: context explains a note and must not outweigh it.
# Calibrate: by eye; most questions are shorter.
CONTEXT_CHARS_MAX = 240
#: Meaningful words below which an answer is quoted with its question.
STANDS_ALONE_MIN = 6

#: Characters of a body that are read for its opening, and for what it asks for; pieces, likewise.
HEAD_CHARS_MAX = 300
ASKED_CHARS_MAX = 1000
ASKED_PIECES_MAX = 12

#: An agent gives a person right.
CONCEDES = re.compile(
    r"^(?:(?:ah|oh|ok(?:ay)?|yes|hm+|sorry)[,.! ]+)*(?:you(?:'re| are) (?:\w+ )?right"
    r"|you(?:'re| are) (?:\w+ )?correct|fair (?:point|enough)|good (?:point|catch|idea|call"
    r"|question"
    r"|thinking)|agreed|(?:that|this)(?: makes|'s| is) (?:a )?(?:\w+ )?(?:more sense|sense|better)"
    r"|my (?:mistake|bad|fault)|i (?:was wrong|overcomplicated|misread|misunderstood)"
    r"|(?:du hast|sie haben) recht|stimmt\b|你说得对|您说得对)",
    cues.FLAGS,
)
#: A person asks to judge or to change code, not how it is used.
CHANGE_ASKED = re.compile(
    r"\b(?:refactor\w*|untangl\w+|clean(?:ed|ing)? (?:\w+ )?up|restructur\w+|reorgani[sz]\w+"
    r"|rewrit\w+"
    r"|simplify|dedup\w*|de-dup\w*|duplication|(?:one|a) (?:big |huge )?mess|more concise"
    r"|split (?:it"
    r"|this|up)|get rid of|tidy|aufräumen|umbauen)\b|重构|整理|简化",
    cues.FLAGS,
)
#: The last words of a turn that ask for leave to do what was described.
OFFERING = re.compile(
    r"\b(?:want me to|should i|shall i|would you like|do you want|let me know|ready to|soll ich)\b",
    cues.FLAGS,
)
#: A list of what is still to be done.
TO_COME = re.compile(
    r"\b(?:changes|steps|work|things|tasks|files) (?:needed|required|necessary|to make|to change"
    r"|would be|i'?ll make)\b|\bnext steps\b|\bto-?dos?\b|\bimplementation plan\b|\bremaining\b",
    cues.FLAGS,
)
#: A fault is gone.
MENDED = re.compile(
    r"^(?:(?:all |it'?s |that'?s |now |the \w+ is )*(?:done|fixed|resolved|solved|gone|repaired)\b)"
    r"|\b(?:works|passes|compiles) (?:now|again)\b|\b(?:is|are) (?:gone|fixed|resolved)\b",
    cues.FLAGS,
)


@dataclass(frozen=True)
class Moment:
    """What is known of the turn that a sentence stands in."""

    turn: int
    human: bool
    said: int = 0  # words of the turn that are no question
    own: float = 0.0  # share of those words in first-person sentences
    talk: float = 0.0  # share of its sentences that are thanks, greetings, exclamations
    new: int = 0  # terms that stand in no other turn of the unit
    timed: bool = False
    answers: bool = False  # the turn before asked something
    welcomed: bool = False  # the turn after reacts
    corrected: bool = False  # the next words of a person take it back
    working: bool = False  # it ends with what the agent does next
    musing: bool = False  # and the turn before is the agent's, too: it looks around between tools
    conceding: bool = False  # it begins by giving the person right
    changing: bool = False  # a person has just asked to judge or change code
    offering: bool = False  # it asks for leave, or lists what is still to be done
    mended: bool = False  # a later turn says that the fault is gone


@dataclass(frozen=True)
class Around:
    """What was said before a turn: the question it may answer, what a person last asked for."""

    question: str = ""
    asked: str = ""


def with_agent(passages: Sequence[Passage], pieces: Sequence[Sequence[Piece]]) -> list[Moment]:
    """Return what a talk with an agent says about each of its turns."""
    moments: list[Moment] = []
    changing = False
    mended = max((at for at, p in enumerate(passages) if _mends(p)), default=-1)
    for turn, passage in enumerate(passages):
        corrected = _taken_back(passages, turn)
        if passage.role != "assistant":
            changing = bool(CHANGE_ASKED.search(passage.body[:ASKED_CHARS_MAX]))
            moments.append(Moment(turn, True, corrected=corrected))
            continue
        before = passages[turn - 1] if turn else None
        last = plain(pieces[turn][-1].text) if pieces[turn] else ""
        asks = last.endswith(("?", "？"))
        working = last.endswith((":", "：")) or cues.is_narration(last)
        leads = {piece.lead for piece in pieces[turn]} - {""}
        moment = Moment(
            turn,
            False,
            answers=before is not None
            and before.role != "assistant"
            and before.body.rstrip().endswith(("?", "？")),
            corrected=corrected,
            working=working,
            musing=working and (before is None or before.role == "assistant"),
            conceding=bool(CONCEDES.match(passage.body.lstrip())),
            changing=changing,
            offering=(asks and bool(OFFERING.search(last))) or any(map(TO_COME.search, leads)),
            mended=mended > turn,
        )
        moments.append(moment)
    return moments


def _mends(passage: Passage) -> bool:
    return passage.role == "assistant" and bool(MENDED.search(passage.body[:HEAD_CHARS_MAX]))


def among_people(
    passages: Sequence[Passage], pieces: Sequence[Sequence[Piece]], turn: int, new: int
) -> Moment:
    """Return what a talk among people says about a turn; `new` counts its new terms."""
    asked = turn > 0 and passages[turn - 1].body.rstrip().endswith(("?", "？"))
    told = [plain(piece.text) for piece in pieces[turn] if piece.kind != "block"]
    told = [text for text in told if not cues.is_question(text)]
    said = sum(len(text.split()) for text in told)
    own = sum(len(text.split()) for text in told if cues.SELF.search(text))
    talk = sum(1 for text in told if cues.EXCLAIM.match(text) or cues.PLEASANTRY.search(text))
    after = passages[turn + 1].body if turn + 1 < len(passages) else ""
    return Moment(
        turn,
        passages[turn].role != "assistant",
        said=said,
        own=own / max(1, said),
        talk=talk / max(1, len(told)),
        new=new,
        timed=any(cues.TIME.search(text) for text in told),
        answers=asked,
        welcomed=bool(cues.EXCLAIM.match(after.lstrip())),
    )


def question_before(
    passages: Sequence[Passage], pieces: Sequence[Sequence[Piece]], turn: int
) -> str:
    """Return the last question of the turn before, when another speaker asked it."""
    if turn == 0 or passages[turn - 1].role == passages[turn].role == "assistant":
        return ""
    for piece in reversed(pieces[turn - 1][-3:]):
        if piece.text.rstrip().endswith(("?", "？")):
            return plain(piece.text)
    return ""


def asked_before(passages: Sequence[Passage], pieces: Sequence[Sequence[Piece]], turn: int) -> str:
    """Return the sentence of the last person before a turn that says most of what it is about."""
    for at in range(turn - 1, -1, -1):
        if passages[at].role != "assistant":
            told = [
                plain(piece.text)
                for piece in pieces[at][:ASKED_PIECES_MAX]
                if piece.kind != "block"
            ]
            told = [text for text in told if len(text) <= CONTEXT_CHARS_MAX and _is_prose(text)]
            for text in sorted(told, key=len, reverse=True):
                if meaningful(text) >= STANDS_ALONE_MIN and not cues.TRACE.search(text):
                    return text
    return ""


def _taken_back(passages: Sequence[Passage], turn: int) -> bool:
    """Return whether the next person to speak refuses what was said in this turn."""
    following = next((p for p in passages[turn + 1 :] if p.role != "assistant"), None)
    if following is None:
        return False
    pattern = cues.TAKEN_BACK if passages[turn].role == "assistant" else cues.CHANGED_MIND
    return bool(pattern.search(following.body[:200]))


def _is_prose(text: str) -> bool:
    return not text.isascii() or len(text.split()) >= STANDS_ALONE_MIN
