"""The distiller that needs no network and no key: it quotes the sentences worth keeping.

Every note is one contiguous verbatim range of one passage, chosen by what the sentence shows
(`memory.llm.worth`), made to stand alone by reaching back one sentence or by quoting its neighbour
as context. It knows nothing about gates, storage or models.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from memory.llm import cues
from memory.llm.pieces import BLOCK_CHARS_MAX, Piece, cut, plain
from memory.llm.ports import Candidate, Draft, Origin, Passage, Usage
from memory.llm.worth import Moment, Unit, Worth, weigh
from memory.text.poison import harness, poison
from memory.text.words import meaningful, terms

#: Lowest worth of a note, in points of `memory.llm.worth`.
# Why: narration, greetings and mere progress must yield no note at all.
# Calibrate: `python -m tests.bench.distill_locomo` for people, notes of real sessions by eye for agents.
WORTH_MIN = 3.0

#: Notes per turn of the unit, at most; and in all, whatever its length.
# Why: of real dialogues 39 % of the turns hold a durable fact; a unit has at most 20 turns.
# Calibrate: the same two ways as WORTH_MIN.
NOTES_PER_TURN_MAX = 0.4
NOTES_MAX = 8
#: A short unit may still give this many: one long answer can hold a cause, its fix and a rule.
NOTES_SHORT_UNIT_MAX = 3

#: Notes from one turn among people, and from one turn of a talk with an agent.
# Why: a chat turn says one thing; an agent's answer is an essay.
# Calibrate: share of second notes from one turn that a reader wants.
NOTES_CHAT_TURN_MAX = 1
NOTES_AGENT_TURN_MAX = 2

#: Longest quoted range.
# Why: a note is read in a list; with the sentence before it, it must stay a few lines.
# Calibrate: by eye; the p99 of single sentences in real sessions is about 350.
SPAN_CHARS_MAX = 600

#: Meaningful words below which an answer is quoted with its question.
STANDS_ALONE_MIN = 6

TITLE_CHARS_MAX = 80
CONTEXT_CHARS_MAX = 240
KEYWORDS_MAX = 6
#: A title is not cut at a clause border before this many characters.
TITLE_CLAUSE_CHARS_MIN = 24

#: Share of the words of the shorter one from which two pieces of a unit say the same.
# Why: a summary repeats what was said; one of the two is enough.
# Calibrate: pairs of notes of one unit by eye.
SAME_SHARE_MIN = 0.7

#: A document up to this long is one note (a bookmark: title and description).
DOCUMENT_WHOLE_CHARS_MAX = 400

CLAUSE = re.compile(r"[;:,，；：。]\s?|\s[–—-]\s|\s\(|\s(?:because|since|so that|but|which|weil|damit|aber)\s|因为|所以|但")
DANGLING = re.compile(
    r"(?:[\s,;:，；：(\[–—-]|\b(?:a|an|the|of|to|and|or|after|before|into|based|if|when|with|that|which|for|in|on|is|are|by|as|from|so|but|der|die|das|und|mit|zu)\s*$)+$",
    re.IGNORECASE,
)
LABEL_ONLY = re.compile(r"^[^\w`]*$")


@dataclass(frozen=True)
class Choice:
    """A piece that may become a note, with where it stands and what it is worth."""

    turn: int
    piece: Piece
    worth: Worth
    words: frozenset[str]
    context: str = ""
    title: str = ""


@dataclass(frozen=True)
class Around:
    """What was said before a turn: the question it may answer, what a person last asked for."""

    question: str = ""
    asked: str = ""


class Extractive:
    """Distiller of quoted sentences. Deterministic, pure; the same unit gives the same notes."""

    name = "extractive-1"
    prompt_version = "1"

    def distill(self, passages: Sequence[Passage], *, origin: Origin) -> Draft:
        """Return at most NOTES_MAX candidates in text order, each a verbatim span of one passage.

        `content` equals `source_ref`. An empty draft is a normal answer: the unit held mere talk.
        """
        usage = Usage(self.name, self.name, self.prompt_version)
        kept = [p for p in passages if not poison(p.body, p.role) and not harness(p.body)]
        if not kept:
            return Draft((), usage)
        pieces = [cut(passage.body) for passage in kept]
        unit = _unit(kept, pieces)
        if not unit.turns:
            whole = _whole_documents(kept)
            if whole:
                return Draft(whole, usage)
        chosen = choose(_choices(kept, pieces, unit), unit)
        return Draft(tuple(_candidate(c, kept[c.turn], unit) for c in chosen), usage)


def choose(choices: Sequence[Choice], unit: Unit) -> list[Choice]:
    """Return the choices worth most that neither overlap nor repeat each other, in text order."""
    limit = min(NOTES_MAX, max(NOTES_SHORT_UNIT_MAX, round(NOTES_PER_TURN_MAX * unit.size)))
    per_turn = NOTES_CHAT_TURN_MAX if unit.chat else NOTES_AGENT_TURN_MAX
    if not unit.turns:
        per_turn = limit = NOTES_MAX
    taken: list[Choice] = []
    in_turn: Counter[int] = Counter()
    for choice in sorted(choices, key=lambda c: (-c.worth.points, c.turn, c.piece.start)):
        if choice.worth.points < WORTH_MIN or len(taken) >= limit:
            break
        if in_turn[choice.turn] >= per_turn or any(_clashes(choice, other) for other in taken):
            continue
        taken.append(choice)
        in_turn[choice.turn] += 1
    return sorted(taken, key=lambda c: (c.turn, c.piece.start))


def _clashes(one: Choice, other: Choice) -> bool:
    if one.turn == other.turn and one.piece.start < other.piece.end and other.piece.start < one.piece.end:
        return True
    small, large = sorted((one.words, other.words), key=len)
    return bool(small) and len(small & large) >= SAME_SHARE_MIN * len(small)


def _unit(passages: Sequence[Passage], pieces: Sequence[Sequence[Piece]]) -> Unit:
    """Gather what the worth of a sentence depends on beyond itself."""
    spread: Counter[str] = Counter()
    for found in pieces:
        spread.update({term for piece in found for term in terms(piece.text)})
    roles = {passage.role for passage in passages}
    turns = all(passage.kind == "turn" for passage in passages)
    return Unit(size=len(passages), spread=spread, chat=turns and "assistant" not in roles, turns=turns)


def _choices(passages: Sequence[Passage], pieces: Sequence[Sequence[Piece]], unit: Unit) -> list[Choice]:
    choices: list[Choice] = []
    for turn, (passage, found) in enumerate(zip(passages, pieces, strict=True)):
        question = _question_before(passages, pieces, turn)
        answer = _answer(passage, turn, found, question) if question and not unit.chat else None
        if answer is not None:
            choices.append(answer)
        moment = _moment(passages, pieces, turn, unit)
        for index, piece in enumerate(found):
            words = frozenset(terms(piece.text))
            worth = weigh(plain(piece.text), piece, words, moment, unit)
            if worth.points < WORTH_MIN:
                continue
            around = Around(question, _asked(passages, pieces, turn) if passage.role == "assistant" else "")
            piece, context, lost = _grounded(passage.body, found, index, around)
            if not lost or unit.chat:
                choices.append(Choice(turn, piece, worth, words, context))
    return choices


def _moment(
    passages: Sequence[Passage], pieces: Sequence[Sequence[Piece]], turn: int, unit: Unit
) -> Moment:
    """Return what the turn and its neighbours say about each sentence in it."""
    human = passages[turn].role != "assistant"
    if not unit.chat:
        return Moment(turn, human, corrected=_taken_back(passages, turn))
    told = [plain(piece.text) for piece in pieces[turn] if piece.kind != "block"]
    told = [text for text in told if not cues.is_question(text)]
    said = sum(len(text.split()) for text in told)
    own = sum(len(text.split()) for text in told if cues.SELF.search(text))
    talk = sum(1 for text in told if cues.EXCLAIM.match(text) or cues.PLEASANTRY.search(text))
    before = passages[turn - 1].body.rstrip() if turn else ""
    after = passages[turn + 1].body if turn + 1 < len(passages) else ""
    return Moment(
        turn,
        human,
        said=said,
        own=own / max(1, said),
        talk=talk / max(1, len(told)),
        new=sum(1 for term in set(terms(passages[turn].body)) if unit.spread[term] == 1),
        timed=any(cues.TIME.search(text) for text in told),
        answers=before.endswith(("?", "？")),
        welcomed=bool(cues.EXCLAIM.match(after.lstrip())),
    )


def _taken_back(passages: Sequence[Passage], turn: int) -> bool:
    """Return whether the next person to speak refuses what was said in this turn."""
    following = next((p for p in passages[turn + 1 :] if p.role != "assistant"), None)
    if following is None:
        return False
    pattern = cues.TAKEN_BACK if passages[turn].role == "assistant" else cues.CHANGED_MIND
    return bool(pattern.search(following.body[:200]))


def _question_before(passages: Sequence[Passage], pieces: Sequence[Sequence[Piece]], turn: int) -> str:
    """Return the last question of the turn before, when another speaker asked it."""
    if turn == 0 or passages[turn - 1].role == passages[turn].role == "assistant":
        return ""
    for piece in reversed(pieces[turn - 1][-3:]):
        if piece.text.rstrip().endswith(("?", "？")):
            return plain(piece.text)
    return ""


def _asked(passages: Sequence[Passage], pieces: Sequence[Sequence[Piece]], turn: int) -> str:
    """Return the sentence of the last person before a turn that says most of what it is about."""
    for at in range(turn - 1, -1, -1):
        if passages[at].role != "assistant":
            told = [plain(piece.text) for piece in pieces[at][:12] if piece.kind != "block"]
            told = [text for text in told if len(text) <= CONTEXT_CHARS_MAX]
            told = [t for t in told if meaningful(t) >= STANDS_ALONE_MIN and not cues.TRACE.search(t)]
            if told:
                return max(told, key=meaningful)
    return ""


def _answer(passage: Passage, turn: int, found: Sequence[Piece], question: str) -> Choice | None:
    """Return a short answer to a question of substance as a choice of its own, or None."""
    if passage.role == "assistant" or not found or not cues.ELLIPTIC.match(plain(found[0].text)):
        return None
    if cues.GO_ON.search(question) or not cues.CHOICE.search(question):
        return None
    if meaningful(question) < 3:
        return None
    last = found[0]
    for piece in found[1:3]:
        if piece.end - found[0].start <= CONTEXT_CHARS_MAX and not cues.is_question(piece.text):
            last = piece
    body = passage.body
    piece = Piece(found[0].start, last.end, body[found[0].start : last.end])
    worth = Worth(WORTH_MIN + 1, "decision")
    title = clip(f"{plain(piece.text)}: {question}", TITLE_CHARS_MAX)
    return Choice(turn, piece, worth, frozenset(terms(question)), _quoted("Answers", question), title)


def _grounded(body: str, found: Sequence[Piece], index: int, around: Around) -> tuple[Piece, str, bool]:
    """Return the piece, reaching over what it points at, its context, and whether that is lost."""
    piece = _with_next(body, found, index)
    text = cues.OPENER.sub("", plain(piece.text))
    under = _quoted("Under", piece.lead)
    if piece.kind != "sentence" or not cues.POINTING.match(text):
        if index == 0 and around.question and meaningful(text) < STANDS_ALONE_MIN:
            return piece, _quoted("Answers", around.question), False
        return piece, under or (_quoted("About", around.asked) if cues.GENERIC.match(text) else ""), False
    before = next((p for p in reversed(found[:index]) if p.kind != "block" and p.end <= piece.start), None)
    if before is None:
        return piece, _quoted("Answers", around.question), not around.question
    joined = body[before.start : piece.end]
    if len(joined) <= SPAN_CHARS_MAX and before.kind == "sentence" and before.group == piece.group:
        return Piece(before.start, piece.end, joined, "sentence", piece.lead, piece.group), under, False
    return piece, _quoted("After", plain(before.text)), False


def _with_next(body: str, found: Sequence[Piece], index: int) -> Piece:
    """Return the piece with the sentence after it, when that one goes on about the same thing."""
    piece = found[index]
    after = found[index + 1] if index + 1 < len(found) else None
    if after is None or piece.kind != "sentence" or after.kind != "sentence" or after.group != piece.group:
        return piece
    text = plain(after.text)
    joined = body[piece.start : after.end]
    goes_on = cues.POINTING.match(text) and not cues.is_question(text) and not text.endswith(("!", ":", "！", "："))
    if not goes_on or len(joined) > BLOCK_CHARS_MAX or meaningful(text) < 3:
        return piece
    return Piece(piece.start, after.end, joined, "sentence", piece.lead, piece.group)


def _quoted(how: str, text: str) -> str:
    text = text.rstrip(" :：")
    if how == "Under" and cues.OPENER.match(text):
        return ""
    return f"{how}: “{clip(text, CONTEXT_CHARS_MAX)}”" if text else ""


def _candidate(choice: Choice, passage: Passage, unit: Unit) -> Candidate:
    text = choice.piece.text
    return Candidate(
        title=choice.title or title_of(text),
        content=text,
        source_ref=text,
        importance=choice.worth.importance,
        keywords=keywords_of(text, unit.spread),
        tags=(choice.worth.tag,),
        context=choice.context,
        memory_kind=choice.worth.memory_kind,
    )


def title_of(text: str) -> str:
    """Return a title of at most TITLE_CHARS_MAX characters: the first clause that says enough."""
    head, _, rest = text.partition("\n")
    if rest and meaningful(head) < STANDS_ALONE_MIN - 2 and head.rstrip().endswith((":", "：")):
        head = "; ".join(plain(line).rstrip(".;") for line in rest.split("\n") if line.strip())
    elif rest and not head.rstrip().endswith((":", "：")):
        head = text
    line = cues.OPENER.sub("", plain(head)) or plain(head)
    if line.split(" ", 1)[0].isalpha() and line[0].islower():
        line = line[0].upper() + line[1:]
    if len(line) > TITLE_CHARS_MAX:
        ends = [m.start() for m in CLAUSE.finditer(line, TITLE_CLAUSE_CHARS_MIN, TITLE_CHARS_MAX)]
        ends = [end for end in ends if line.count("(", 0, end) == line.count(")", 0, end)]
        if ends:
            line = line[: ends[-1]]
    return clip(line, TITLE_CHARS_MAX)


def clip(text: str, limit: int) -> str:
    """Cut on a word border, without a dangling article, conjunction or sign at the end."""
    text = " ".join(text.split())
    if len(text) > limit:
        cutoff = text[: limit + 1]
        border = cutoff.rfind(" ")
        text = DANGLING.sub("", cutoff[:border] if border > limit // 3 else text[:limit])
    return text.rstrip(" .:;,，。；：").strip()


def keywords_of(text: str, spread: Counter[str]) -> tuple[str, ...]:
    """Return names that can be searched for exactly first, then the rarest words of the unit."""
    exact = [m.group().strip("`.,") for m in cues.EXACT.finditer(text)]
    rare = sorted((t for t in terms(text) if len(t) > 3 or not t.isascii()), key=lambda t: spread[t])
    found: dict[str, str] = {}
    for word in [*exact, *rare]:
        if 1 < len(word) <= 60 and not any(word.lower() in seen for seen in found):
            found[word.lower()] = word
    return tuple(list(found.values())[:KEYWORDS_MAX])


def _whole_documents(passages: Sequence[Passage]) -> tuple[Candidate, ...]:
    """Return one note per document that is short enough to be one (a bookmark, a task, an event)."""
    if any(len(p.body.strip()) > DOCUMENT_WHOLE_CHARS_MAX for p in passages):
        return ()
    notes = []
    for passage in passages:
        text = passage.body.strip()
        if meaningful(text) < 2:
            continue
        first = text.split("\n", 1)[0]
        notes.append(Candidate(title_of(first), text, text, 0.4, keywords_of(text, Counter()), ("fact",)))
    return tuple(notes[:NOTES_MAX])
