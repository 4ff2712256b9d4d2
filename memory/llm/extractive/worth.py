"""How much a sentence is worth keeping: points from what it shows, and what speaks against it.

Pure arithmetic over `cues`. It knows nothing about spans, titles or how many are kept.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass, field

from memory.llm.extractive import cues
from memory.llm.extractive.lasting import CONTRACT, HOW_TO, binds
from memory.llm.extractive.pieces import Piece, plain
from memory.llm.extractive.turns import Moment
from memory.text.words import meaningful

#: Points for the strongest class a sentence shows: (from a person, from an agent).
# Why: what a person decides, forbids or prefers binds; an agent mostly describes.
# Calibrate: read thirty notes of real sessions: each class should be wanted four times of five.
CLASS_POINTS = {
    "decision": (3.0, 2.0),
    "root-cause": (3.0, 3.0),
    "instruction": (3.0, 1.2),
    "preference": (3.0, 0.5),
    "correction": (2.0, 1.0),
    "fix": (2.0, 2.0),
    "plan": (0.5, 0.2),
}
#: Points for what a person tells an agent of themselves, their people and their ways.
OWN_POINTS = 3.0
#: A class with fewer points than this raises a sentence but does not name it.
# Why: when an agent says "always" it mostly describes; when a person does, it is a rule.
CLASS_NAMES_POINTS_MIN = 2.0
#: Points for each further class, at most two of them.
CLASS_MORE_POINTS = 0.5

#: Points in a talk with an agent for a rule or a demand of the world, for what a named thing does,
#: and for a fact that a person tells.
# Why: what passes `lasting` is short of talk; these three are what a later session asks for.
# Calibrate: statements of other trades by hand; thirty notes of a real session must not get worse.
BINDS_POINTS = 1.0
CONTRACT_POINTS = 0.8
TOLD_POINTS = 1.0

#: Points among people. The base puts WORTH_MIN where a turn is as likely as not worth a note.
# Why: a logistic fit, on three dialogues, of which turns hold a durable fact, rounded. It shows by
# how much is told, in the first person, by a time, by new words, by a question before it and
# surprise after it.
# Calibrate: `python -m tests.bench.distill_locomo`: tuned on three dialogues, checked on two.
CHAT_BASE_POINTS = 0.3
CHAT_SAID_POINTS = 0.8  # a turn that tells CHAT_SAID_WORDS_MAX words or more
CHAT_LENGTH_POINTS = 0.7  # per power of ten of words in the sentence
CHAT_OWN_POINTS = 0.9  # all that the turn tells is in the first person
CHAT_TIME_POINTS = 1.1
CHAT_KIN_POINTS = 0.3
CHAT_NEW_POINTS = 1.0  # ten terms of the turn that stand nowhere else in the unit
CHAT_NAME_POINTS = 0.4
CHAT_ANSWER_POINTS = 0.9
CHAT_WELCOMED_POINTS = 0.4
CHAT_CENTRAL_POINTS = 0.6
CHAT_SHOWN_POINTS = 0.3
CHAT_SAID_WORDS_MAX = 40

IMPORTANCE = {
    "decision": 0.8,
    "root-cause": 0.8,
    "instruction": 0.8,
    "preference": 0.7,
    "correction": 0.7,
    "fix": 0.7,
    "plan": 0.5,
    "fact": 0.5,
}
PROCEDURAL = frozenset({"instruction", "fix"})

#: Meaningful words below which a sentence cannot stand alone.
MEANINGFUL_MIN = 3
#: Distinct terms from which a sentence is not short, so that counting them costs nothing.
TERMS_PLENTY = 10
#: Words beyond which a sentence is an enumeration.
WORDS_MAX = 70

#: Share of brackets, quotes and operators from which a piece counts as data.
# Why: pasted JSON and logs are full of them, prose is not.
# Calibrate: below the share in a one-line JSON record (about 0.15).
SIGNS_SHARE_MAX = 0.08

#: What a list item only says by the way: brackets, and a clause that qualifies its first noun.
ASIDE = re.compile(r"\([^()]*\)?|(?<=\w) (?:that|which) .*")
BRACKETS = re.compile(r"\([^()]*\)")
DEFINES = re.compile(r"\S (?:[-–—]|->|→|=) \S|\w: \S")
WORD = re.compile(r"[^\W\d_]{2,}")


@dataclass(frozen=True)
class Unit:
    """What a sentence is weighed against: how many turns hold each term, and who talks."""

    size: int
    spread: Counter[str] = field(default_factory=Counter)
    chat: bool = False
    turns: bool = True


@dataclass(frozen=True)
class Worth:
    """Points and the class they come from."""

    points: float
    tag: str = "fact"
    memory_kind: str = "semantic"

    @property
    def importance(self) -> float:
        """0..1: by class, raised a little by the points."""
        return round(min(0.95, IMPORTANCE.get(self.tag, 0.5) + 0.02 * max(0.0, self.points - 3)), 2)


NOTHING = Worth(-math.inf)


def weigh(text: str, piece: Piece, words: frozenset[str], moment: Moment, unit: Unit) -> Worth:
    """Return the worth of one piece; `text` is it without marks, `words` are its terms."""
    if cues.is_question(text) or (_narrates(text, piece, moment) and unit.turns):
        return NOTHING
    if _mere_data(text, piece) or (len(words) < TERMS_PLENTY and meaningful(text) < MEANINGFUL_MIN):
        return NOTHING
    if unit.chat:
        return _among_people(text, words, moment, unit)
    worth = _with_agent(text, piece, words, moment, unit)
    return worth if worth is NOTHING or _says_something(text, piece) else NOTHING


def _narrates(text: str, piece: Piece, moment: Moment) -> bool:
    return not moment.human and cues.is_narration(text) and not HOW_TO.match(piece.text)


def _with_agent(
    text: str, piece: Piece, words: frozenset[str], moment: Moment, unit: Unit
) -> Worth:
    shown = cues.classes(BRACKETS.sub("", text))
    stated = cues.FACT.search(text)
    exact = len(set(cues.EXACT.findall(piece.text))) if shown or stated else 0
    fact = stated and (exact > 0 or not unit.turns)
    own = moment.human and cues.OWN.search(text) and not cues.ERRAND.search(text)
    if not shown and not fact and not own:
        return NOTHING
    told = not shown and not cues.TIME.search(text)
    column = 0 if moment.human else 1
    points = max((CLASS_POINTS[name][column] for name in shown), default=0.0)
    points += CLASS_MORE_POINTS * min(2, max(0, len(shown) - 1))
    points = max(points, OWN_POINTS + (0.5 if cues.KIN.search(text) else 0.0)) if own else points
    points += 1.5 if fact else 0.0
    points += BINDS_POINTS if unit.turns and binds(text) else 0.0
    points += CONTRACT_POINTS if unit.turns and fact and CONTRACT.search(text) else 0.0
    points += TOLD_POINTS if unit.turns and moment.human and fact and told else 0.0
    points += 0.5 if own and cues.TIME.search(text) else 0.0
    points += 0.8 if moment.answers or moment.conceding else 0.0
    points += 1.0 if not unit.turns else 0.0
    points += 0.5 * min(3, exact)
    points += 1.0 if cues.REASON.search(text) else 0.0
    points += 0.5 if cues.CONTRAST.search(text) else 0.0
    points += _central(words, unit) + 0.5 * moment.turn / max(1, unit.size)
    points -= _against(text, piece, moment, exact)
    strong = [name for name in shown if CLASS_POINTS[name][column] >= CLASS_NAMES_POINTS_MIN]
    tag = max(strong, key=lambda name: CLASS_POINTS[name][column]) if strong else "fact"
    return Worth(points, tag, "procedural" if tag in PROCEDURAL else "semantic")


def _among_people(text: str, words: frozenset[str], moment: Moment, unit: Unit) -> Worth:
    shown = [name for name in cues.classes(text) if name != "plan"]
    count = max(len(text.split()), 0 if text.isascii() else meaningful(text) // 2)
    points = CHAT_BASE_POINTS
    points += CHAT_SAID_POINTS * min(1.0, moment.said / CHAT_SAID_WORDS_MAX)
    points += CHAT_LENGTH_POINTS * math.log10(1 + min(count, 40))
    points += CHAT_OWN_POINTS * moment.own
    points += CHAT_TIME_POINTS if moment.timed else 0.0
    points += CHAT_KIN_POINTS if cues.KIN.search(text) else 0.0
    points += CHAT_NEW_POINTS * min(1.5, moment.new / 10)
    points += CHAT_NAME_POINTS if cues.NAME.search(text) else 0.0
    points += CHAT_ANSWER_POINTS if moment.answers else 0.0
    points += CHAT_WELCOMED_POINTS if moment.welcomed else 0.0
    points += CHAT_CENTRAL_POINTS * _central(words, unit)
    points += CHAT_SHOWN_POINTS * min(2, len(shown))
    points -= 0.6 * moment.talk
    points -= 0.5 if cues.PLEASANTRY.search(text) else 0.0
    points -= 0.4 if cues.EXCLAIM.match(text) or cues.SECOND.match(text) else 0.0
    points -= 0.2 if text.endswith(("!", "！")) else 0.0
    points -= 0.5 if cues.PROPOSAL.search(text) else 0.0
    points -= 0.4 if moment.turn >= unit.size - 2 and unit.size > 6 else 0.0
    own = bool(cues.SELF.search(text))
    tag = next((name for name in shown if name != "instruction"), "fact")
    return Worth(points, tag, "episodic" if own and cues.TIME.search(text) else "semantic")


def _central(words: frozenset[str], unit: Unit) -> float:
    """0..1: how much of the sentence the rest of the unit talks about, too."""
    if not words or unit.size < 2:
        return 0.0
    shared = sum(1 for word in words if unit.spread[word] > 1)
    return shared / len(words)


def _against(text: str, piece: Piece, moment: Moment, exact: int) -> float:
    count = len(text.split())
    start = cues.OPENER.sub("", text)
    points = 0.0
    points += 2.0 if text.endswith((":", "：")) and piece.kind != "block" else 0.0
    points += 2.0 if cues.PROGRESS.search(text) or cues.PROGRESS.search(piece.lead) else 0.0
    points += 1.5 if cues.PROPOSAL.search(text) or cues.PROPOSAL.search(piece.lead) else 0.0
    points += 2.0 if cues.PLEASANTRY.search(text) else 0.0
    points += 1.0 if cues.EXCLAIM.match(text) else 0.0
    points += 2.5 if moment.human and cues.ERRAND.search(start) else 0.0
    points += 2.5 if not moment.human and _to_do(piece) else 0.0
    points += 0.7 if not moment.human and cues.REPORT.match(start) else 0.0
    points += 1.0 if not moment.human and not exact else 0.0
    points += 2.0 if not moment.human and _fragments(text, piece) else 0.0
    points += 2.0 if moment.corrected else 0.0
    points += 1.0 if not exact and cues.UNNAMED.search(text) else 0.0
    points += 1.0 if count > WORDS_MAX else 0.0
    points += 1.0 if count < 6 and text.isascii() and not moment.human else 0.0
    return points


def _fragments(text: str, piece: Piece) -> bool:
    """Return whether list items (most of a block) name things and say nothing of them."""
    if piece.kind == "sentence":
        return False
    if piece.kind == "block" and meaningful(piece.text.split("\n", 1)[0]) >= 2 * MEANINGFUL_MIN - 1:
        return False
    items = (
        [plain(line) for line in piece.text.split("\n")[1:] if line]
        if piece.kind == "block"
        else [text]
    )
    mere = [
        item
        for item in items
        if not cues.FACT.search(ASIDE.sub("", item)) and not DEFINES.search(item)
    ]
    return 2 * len(mere) > len(items)


def _to_do(piece: Piece) -> bool:
    """Return whether most lines of a list tell what is still to be done."""
    if piece.kind == "sentence":
        return False
    lines = piece.text.split("\n")[1:] if piece.kind == "block" else [piece.text]
    todo = sum(1 for line in lines if cues.TO_DO.match(plain(line)))
    return 2 * todo >= len(lines)


def _mere_data(text: str, piece: Piece) -> bool:
    """Return whether a piece is a log, a trace or JSON rather than a statement."""
    signs = sum(map(text.count, '{}[]"<>|=\\'))
    if signs > 4 and signs > SIGNS_SHARE_MAX * len(text):
        return True
    if (
        '":"' in text
        or '{"' in text
        or "\\n" in text
        or text.count(")") > text.count("(")
        or text.endswith((";", "{", "}"))
    ):
        return True
    return bool(cues.TRACE.search(piece.text))


def _says_something(text: str, piece: Piece) -> bool:
    """Return whether more than a listing of names is left beside the names themselves."""
    if not text.isascii() or cues.MAPPING.search(text):
        return True
    rest = set(WORD.findall(cues.EXACT.sub(" ", piece.text).lower()))
    return len(rest) >= (2 * (1 + piece.text.count("\n")) if piece.kind == "block" else 3)
