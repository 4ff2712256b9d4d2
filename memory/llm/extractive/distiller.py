"""The distiller that needs no network and no key: it quotes the sentences worth keeping.

Every note is one contiguous verbatim range of one passage, chosen by what the sentence shows
(`worth`), that outlives the work (`lasting`) and was not taken back (`overturned`), made to stand
alone by reaching back one sentence or by quoting its neighbour as context. It knows nothing about
gates, storage or models.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from memory.llm.extractive import cues
from memory.llm.extractive.lasting import lasts
from memory.llm.extractive.overturned import Later, later, says_otherwise
from memory.llm.extractive.pieces import BLOCK_CHARS_MAX, Piece, cut, plain
from memory.llm.extractive.titles import TITLE_CHARS_MAX, clip, keywords_of, title_of
from memory.llm.extractive.turns import (
    CONTEXT_CHARS_MAX,
    STANDS_ALONE_MIN,
    Around,
    Moment,
    among_people,
    asked_before,
    question_before,
    with_agent,
)
from memory.llm.extractive.worth import NOTHING, Unit, Worth, weigh
from memory.llm.ports import Candidate, Draft, Origin, Passage, Usage
from memory.text.poison import harness, poison
from memory.text.words import meaningful, terms

#: Lowest worth of a note, in points of `memory.llm.extractive.worth`.
# Why: narration, greetings and mere progress must yield no note at all.
# Calibrate: `python -m tests.bench.distill_locomo` for people, by eye on real sessions for agents.
WORTH_MIN = 3.0

#: Notes per turn of the unit, at most; and in all, whatever its length.
# Why: of real dialogues 39 % of the turns hold a durable fact; a unit has at most 20 turns.
# Calibrate: the same two ways as WORTH_MIN.
NOTES_PER_TURN_MAX = 0.4
NOTES_MAX = 8
#: A short unit may still give this many: one long answer can hold a cause, its fix and a rule.
NOTES_SHORT_UNIT_MAX = 3

#: How every mark of a redacted secret begins.
REDACTED = "[redacted:"

#: Turns from which on a unit without an assistant is a talk among people.
# Why: one or two prompts whose answer was not captured are still said to an agent.
# Calibrate: as WORTH_MIN; chats are longer than that.
CHAT_TURNS_MIN = 3

#: Notes from one turn among people, and from one turn of a talk with an agent.
# Why: a chat turn says one thing; an agent's answer is an essay.
# Calibrate: share of second notes from one turn that a reader wants.
NOTES_CHAT_TURN_MAX = 1
NOTES_AGENT_TURN_MAX = 2

#: Longest quoted range.
# Why: a note is read in a list; with the sentence before it, it must stay a few lines.
# Calibrate: by eye; the p99 of single sentences in real sessions is about 350.
SPAN_CHARS_MAX = 600

#: Share of the words of the shorter one from which two pieces of a unit say the same.
# Why: a summary repeats what was said; one of the two is enough.
# Calibrate: pairs of notes of one unit by eye.
SAME_SHARE_MIN = 0.7

#: Choices of one unit that are compared with each other; five times as many as are ever kept.
# Why: comparing is quadratic, and what comes after these is not kept anyway.
COMPARED_MAX = 40

#: A document up to this long is one note (a bookmark: title and description).
DOCUMENT_WHOLE_CHARS_MAX = 400


NOTHING_LATER = Later({}, {})


@dataclass(frozen=True)
class Choice:
    """A piece that may become a note, with where it stands and what it is worth."""

    turn: int
    piece: Piece
    worth: Worth
    words: frozenset[str]
    context: str = ""
    title: str = ""
    human: bool = True


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
        pieces = [[p for p in cut(k.body) if len(p.text) <= SPAN_CHARS_MAX] for k in kept]
        words = [[frozenset(terms(piece.text)) for piece in found] for found in pieces]
        unit = _unit(kept, words)
        if not unit.turns:
            whole = _whole_documents(kept)
            if whole:
                return Draft(whole, usage)
        chosen = choose(_choices(kept, pieces, words, unit), unit)
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
    if (
        one.turn == other.turn
        and one.piece.start < other.piece.end
        and other.piece.start < one.piece.end
    ):
        return True
    return _same(one, other)


def _same(one: Choice, other: Choice) -> bool:
    small, large = sorted((one.words, other.words), key=len)
    return bool(small) and len(small & large) >= SAME_SHARE_MIN * len(small)


def _unit(passages: Sequence[Passage], words: Sequence[Sequence[frozenset[str]]]) -> Unit:
    """Gather what the worth of a sentence depends on beyond itself."""
    spread: Counter[str] = Counter()
    for found in words:
        spread.update(frozenset[str]().union(*found))
    roles = {passage.role for passage in passages}
    turns = all(passage.kind == "turn" for passage in passages)
    chat = turns and "assistant" not in roles and len(passages) >= CHAT_TURNS_MIN
    return Unit(size=len(passages), spread=spread, chat=chat, turns=turns)


def _choices(
    passages: Sequence[Passage],
    pieces: Sequence[Sequence[Piece]],
    words: Sequence[Sequence[frozenset[str]]],
    unit: Unit,
) -> list[Choice]:
    choices: list[Choice] = []
    taken_back = NOTHING_LATER if unit.chat or not unit.turns else later(passages, pieces)
    moments = [] if unit.chat else with_agent(passages, pieces)
    for turn, (passage, found) in enumerate(zip(passages, pieces, strict=True)):
        question = question_before(passages, pieces, turn)
        answer = _answer(passage, turn, found, question) if question and not unit.chat else None
        if answer is not None:
            choices.append(answer)
        moment = moments[turn] if moments else _among(passages, pieces, words, unit, turn)
        worths = [
            _weighed(piece, words[turn][index], moment, unit) for index, piece in enumerate(found)
        ]
        if all(worth.points < WORTH_MIN for worth in worths):
            continue
        around = Around(
            question, asked_before(passages, pieces, turn) if passage.role == "assistant" else ""
        )
        for index, worth in enumerate(worths):
            if worth.points < WORTH_MIN:
                continue
            piece, context, lost = _grounded(passage.body, found, index, around)
            piece = piece if unit.chat else _without_assent(piece)
            lost = lost or taken_back.overturns(turn, piece, human=moment.human)
            if not lost or unit.chat:
                choices.append(
                    Choice(turn, piece, worth, words[turn][index], context, human=moment.human)
                )
    return choices if unit.chat or not unit.turns else _last_words(choices)


def _weighed(piece: Piece, words: frozenset[str], moment: Moment, unit: Unit) -> Worth:
    """Return the worth of a piece, nothing when it is worth a note and will not last."""
    if REDACTED in piece.text:
        return NOTHING  # What was worth saying there was the secret.
    text = plain(piece.text)
    worth = weigh(text, piece, words, moment, unit)
    if worth.points < WORTH_MIN or unit.chat or not unit.turns:
        return worth
    return worth if lasts(text, piece, moment) else NOTHING


def _among(
    passages: Sequence[Passage],
    pieces: Sequence[Sequence[Piece]],
    words: Sequence[Sequence[frozenset[str]]],
    unit: Unit,
    turn: int,
) -> Moment:
    new = sum(1 for term in frozenset[str]().union(*words[turn]) if unit.spread[term] == 1)
    return among_people(passages, pieces, turn, new)


def _last_words(choices: Sequence[Choice]) -> list[Choice]:
    """Drop what a later choice says otherwise; an agent never overrules a person."""
    best = sorted(choices, key=lambda c: -c.worth.points)[:COMPARED_MAX]
    return [
        choice
        for choice in best
        if not any(
            choice.turn < other.turn
            and (other.human or not choice.human)
            and (_same(choice, other) or choice.piece.kind == other.piece.kind == "block")
            and says_otherwise(choice.piece, other.piece)
            for other in best
        )
    ]


def _answer(passage: Passage, turn: int, found: Sequence[Piece], question: str) -> Choice | None:
    """Return a short answer to a question of substance as a choice of its own, or None."""
    if passage.role == "assistant" or not found or meaningful(question) < STANDS_ALONE_MIN // 2:
        return None
    if cues.GO_ON.search(question) or not cues.CHOICE.search(question):
        return None
    first = plain(found[0].text)
    asked = frozenset(terms(question))
    names_one = meaningful(first) < STANDS_ALONE_MIN // 2 and not asked.isdisjoint(terms(first))
    if cues.is_question(first) or not (names_one or cues.ELLIPTIC.match(first)):
        return None
    last = found[0]
    for piece in found[1:3]:
        if piece.end - found[0].start <= CONTEXT_CHARS_MAX and not cues.is_question(piece.text):
            last = piece
    piece = Piece(found[0].start, last.end, passage.body[found[0].start : last.end])
    said = clip(plain(piece.text), TITLE_CHARS_MAX // 2)
    title = f"{clip(question, TITLE_CHARS_MAX - len(said) - 3)}? {said}"
    worth = Worth(WORTH_MIN + 1, "decision")
    return Choice(turn, piece, worth, asked, _quoted("Answers", question), title)


def _grounded(
    body: str, found: Sequence[Piece], index: int, around: Around
) -> tuple[Piece, str, bool]:
    """Return the piece, reaching over what it points at, its context, and whether that is lost."""
    piece = _with_next(body, found, index)
    text = cues.OPENER.sub("", plain(piece.text))
    under = _quoted("Under", piece.lead)
    if piece.kind != "sentence" or not cues.POINTING.match(text):
        elliptic = meaningful(text) < STANDS_ALONE_MIN or cues.UNNAMED_OBJECT.search(text)
        if index == 0 and around.question and elliptic:
            return piece, _quoted("Answers", around.question), False
        return (
            piece,
            under or (_quoted("About", around.asked) if cues.GENERIC.match(text) else ""),
            False,
        )
    before = next(
        (p for p in reversed(found[:index]) if p.kind != "block" and p.end <= piece.start), None
    )
    if before is None:
        return piece, _quoted("Answers", around.question), not around.question
    joined = body[before.start : piece.end]
    if len(joined) <= SPAN_CHARS_MAX and before.kind == "sentence" and before.group == piece.group:
        return (
            Piece(before.start, piece.end, joined, "sentence", piece.lead, piece.group),
            under,
            False,
        )
    return piece, _quoted("After", plain(before.text)), False


def _without_assent(piece: Piece) -> Piece:
    """Return the piece without a "yes," or "good catch." before what it says."""
    assent = cues.ASSENT.match(piece.text)
    if assent is None or piece.kind == "block" or meaningful(piece.text[assent.end() :]) < 3:
        return piece
    start = piece.start + assent.end()
    return replace(piece, start=start, text=piece.text[assent.end() :])


def _with_next(body: str, found: Sequence[Piece], index: int) -> Piece:
    """Return the piece with the sentence after it, when that one goes on about the same thing."""
    piece = found[index]
    after = found[index + 1] if index + 1 < len(found) else None
    if (
        after is None
        or piece.kind != "sentence"
        or after.kind != "sentence"
        or after.group != piece.group
    ):
        return piece
    text = plain(after.text)
    joined = body[piece.start : after.end]
    goes_on = (
        cues.POINTING.match(text)
        and not cues.is_question(text)
        and not text.endswith(("!", ":", "！", "："))
    )
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
        keywords=keywords_of(f"{text} {choice.context}" if choice.title else text, unit.spread),
        tags=(choice.worth.tag,),
        context=choice.context,
        memory_kind=choice.worth.memory_kind,
    )


def _whole_documents(passages: Sequence[Passage]) -> tuple[Candidate, ...]:
    """Return one note per document short enough to be one (a bookmark, a task, an event)."""
    if any(len(p.body.strip()) > DOCUMENT_WHOLE_CHARS_MAX for p in passages):
        return ()
    notes = []
    for passage in passages:
        text = passage.body.strip()
        if meaningful(text) < 2:
            continue
        # A line that is drawn, or a row of signs, is no title.
        lines = text.split("\n")
        first = next((line for line in lines if any(map(str.isalnum, line))), lines[0])
        notes.append(
            Candidate(title_of(first), text, text, 0.4, keywords_of(text, Counter()), ("fact",))
        )
    return tuple(notes[:NOTES_MAX])
