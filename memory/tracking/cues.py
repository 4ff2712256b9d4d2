"""What in the words of one turn opens a task, claims that one is done, or shows it.

Pure: text and role in, spans out; body[start:end] is the quote of each. Precision goes before
recall: conditions, questions, offers, quotations and narration ("let me", "now I'll", what ends in
a colon) are nobody's promise; a doubt anywhere before a claim takes it back. Knows nothing about
which task a cue is about (`memory.tracking.match` does).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from memory.text.poison import instruction
from memory.text.sentences import Span, sentences
from memory.text.stem import stem
from memory.text.words import terms
from memory.tracking import phrases
from memory.tracking.results import results

#: Characters of one turn that are read: as many of its beginning as of its end.
# Why: people ask at the beginning or the end of what they paste, agents report at the end; what
# lies between is somebody else's text. A turn may have a million characters.
# Calibrate: cues found in the left-out middle of real turns; few of them should be real.
USER_EDGE_CHARACTERS = 2_000
ASSISTANT_EDGE_CHARACTERS = 8_000

#: Cues of one turn; what comes later is left out, and counted.
OPENINGS_A_TURN_MAX = 5
EVENTS_A_TURN_MAX = 20

#: Characters of a sentence that is looked at; a longer one is a dump without stops.
SENTENCE_CHARACTERS_MAX = 600

#: Characters of what is taken for a person's yes or no.
# Why: "it works" says so at once; in a long sentence "works" is about something else.
ANSWER_CHARACTERS_MAX = 240

#: Characters of the line above that are looked at for who speaks.
LINE_ABOVE_CHARACTERS = 200

#: Words by which a claim finds its task.
WORDS_MAX = 24

OPENS = frozenset({"promise", "request"})

_NUMBER = re.compile(
    r"(?:\b(?P<named>issues?|tickets?|bugs?|prs?|pull requests?|steps?|phases?|parts?|pages?|cases?"
    r"|chapters?|sections?|points?|items?|numbers?|no\.?|nr\.?|version|line|port|task)\s+)?"
    r"(?<![\w.,:/-])(?P<mark>\#)?(?P<number>\d{1,9})(?![\w/:-]|[.,]\w)",
    re.IGNORECASE,
)
#: What follows a number that says how many.
_COUNTED = re.compile(
    r"\s+(?!(?:is|was|has|does|as|its|this|us)\b)"
    r"(?:[a-z]+s|seconds?|min|ms|h|mb|gb|kb|more|other|new|old|of|times|percent)\b|\s*%"
)
_BOX = re.compile(r"\[ \][ \t]+$")
_QUOTED = re.compile(r"^[ \t]*[>|]")
_STARTS_QUOTED = ("'", '"', "\u201c", "\u2018", "\u201e", "`", "|", "```", "~~~", "<")
_ROLES = frozenset({"user", "assistant"})

_SAID_OF_ALL = """
todo next step now new work works working thing things stuff way need needs want everything file
files code test tests error errors problem issue bug use using get got like good great still
actually correctly properly successfully also back pass passes passing done yet not no never ready
start started continue time ill well lets sure right looks look line lines see show one two first
second current existing same implementation wow btw jesus please thanks
"""

#: Stems that stand in every task and tell none from another.
_COMMON = frozenset(
    stem(word)
    for word in (
        *re.findall(
            r"[a-z]+", f"{phrases.CHANGE} {phrases.CHECK} {phrases.PAST} make made".lower()
        ),
        *_SAID_OF_ALL.split(),
    )
)


@dataclass(frozen=True)
class Cue:
    """One find. `kind`: promise, request, or a happening of a task event; `words` are stems that
    tell what it is about; `commit` is the id that a commit has."""

    kind: str
    start: int
    end: int
    quote: str
    words: tuple[str, ...] = ()
    commit: str = ""

    @property
    def opens(self) -> bool:
        return self.kind in OPENS


@dataclass(frozen=True)
class Read:
    """The cues of a turn in the order of its text, and how many were above the bounds. `poisoned`:
    it holds an order to an agent, and nothing was read of it."""

    cues: tuple[Cue, ...] = ()
    left_out: int = 0
    poisoned: bool = False


def read(body: str, role: str) -> Read:
    """What the turn holds, at most OPENINGS_A_TURN_MAX and EVENTS_A_TURN_MAX of it."""
    if role not in _ROLES:
        return Read()
    parts = _edges(body, role)
    found = sorted(_found(body, parts, role), key=lambda cue: (cue.start, cue.kind))
    if found and any(instruction(part) for _, part in parts):
        return Read(poisoned=True)
    kept: list[Cue] = []
    room = {True: OPENINGS_A_TURN_MAX, False: EVENTS_A_TURN_MAX}
    for cue in found:
        if room[cue.opens] > 0:
            room[cue.opens] -= 1
            kept.append(cue)
    return Read(tuple(kept), len(found) - len(kept))


@lru_cache(maxsize=1_024)
def about(text: str) -> tuple[str, ...]:
    """The stems that tell what a text is about, in order, without those that every task has."""
    told = (stem(word) for word in terms(text) if not word.isdigit())
    words = [w for w in told if w not in _COMMON and len(w) > 1]
    numbers = list(_numbers(text, alone=not words))
    return tuple(dict.fromkeys([*numbers, *words]))[:WORDS_MAX]


def _numbers(text: str, *, alone: bool) -> Iterator[str]:
    """The numbers that name something, as "#12": those of issues and parts, not of how many there
    are. `alone`: no word besides says what it is about, so that a number must be plainly a name."""
    for found in _NUMBER.finditer(text):
        plain = found["mark"] or found["named"]
        counts = _COUNTED.match(text, found.end()) is not None
        if plain or not (alone or counts):
            yield f"#{found['number'].lstrip('0') or '0'}"


def title(quote: str) -> str:
    """The first line of what opened a task, short enough for a list."""
    line = next((line for line in quote.strip().splitlines() if line.strip()), "")
    line = " ".join(line.split())
    return line if len(line) <= TITLE_CHARACTERS_MAX else f"{line[: TITLE_CHARACTERS_MAX - 1]}…"


#: Characters of a title.
TITLE_CHARACTERS_MAX = 140


def _found(body: str, parts: list[tuple[int, str]], role: str) -> Iterator[Cue]:
    for offset, part in parts:
        for span in sentences(part):
            cue = _told(part, span, role)
            if cue is not None:
                kind, words = cue
                start, end = offset + span.start, offset + span.end
                yield Cue(kind, start, end, body[start:end], words)
        for kind, start, end, commit in results(part):
            quote = part[start:end].strip()
            first = offset + part.index(quote, start)
            words = about(_line(part, start, end)) if kind == "commit" else ()
            # The id that came of it is none that it is about.
            words = tuple(word for word in words if word != commit)
            yield Cue(kind, first, first + len(quote), quote, words, commit)


def _edges(body: str, role: str) -> list[tuple[int, str]]:
    """The parts of the body that are read, with where they begin; cut at ends of lines."""
    edge = USER_EDGE_CHARACTERS if role == "user" else ASSISTANT_EDGE_CHARACTERS
    if len(body) <= 2 * edge:
        return [(0, body)]
    first = body.rfind("\n", 0, edge)
    head = first if first > 0 else edge
    last = body.find("\n", len(body) - edge)
    tail = last + 1 if last > 0 else len(body) - edge
    return [(0, body[:head]), (tail, body[tail:])]


def _line(text: str, start: int, end: int) -> str:
    """The whole line (or lines) around a span."""
    stop = text.find("\n", end)
    return text[text.rfind("\n", 0, start) + 1 : stop if stop >= 0 else len(text)]


def _told(part: str, span: Span, role: str) -> tuple[str, tuple[str, ...]] | None:
    """What one sentence is, and what it is about."""
    text = span.text
    if len(text) > SENTENCE_CHARACTERS_MAX or text.startswith(_STARTS_QUOTED):
        return None
    before = part[part.rfind("\n", 0, span.start) + 1 : span.start]
    if _QUOTED.match(before):
        return None
    words = about(text)
    if _told_on(part, span.start):
        return None
    if _BOX.search(before):
        return (_opening(role), words) if words else None
    happened = _answer(text) if role == "user" else None
    happened = happened or _claim(text, role)
    if happened:
        return happened, words
    return (_opening(role), words) if words and _opens(text, role) else None


def _told_on(part: str, start: int) -> bool:
    """Whether the line above hands the word to somebody: "Bob wrote:"."""
    above = part[:start].rstrip(" \t-*+\"'\u201c\u201e")
    if not above.endswith("\n"):
        return False
    line = above.rstrip()[-LINE_ABOVE_CHARACTERS:].rpartition("\n")[2]
    return line.endswith(":") and phrases.TOLD_ON.search(line) is not None


def _opening(role: str) -> str:
    return "request" if role == "user" else "promise"


def _ends(text: str) -> str:
    """The last character that is no markup: `**Completed:**` ends in a colon."""
    return text.rstrip(" *_`)\"'")[-1:]


def _opens(text: str, role: str) -> bool:
    if phrases.CONDITION.search(text):
        return False
    if role == "user":
        asked = phrases.REQUEST.search(text)
        if asked:
            return not _nothing(text, asked) and not phrases.TOLD_ON.search(text[: asked.start()])
        return phrases.ORDER.match(text) is not None and _ends(text) != "?"
    if _ends(text) in (":", "?") or phrases.PROMISED_NOW.search(text):
        return False
    promised = phrases.PROMISE.search(text)
    return promised is not None and not _nothing(text, promised)


def _answer(text: str) -> str | None:
    """What a person says of something that was done: confirmed, denied, or nothing of the kind."""
    if len(text) > ANSWER_CHARACTERS_MAX or _ends(text) == "?":
        return None
    denied = phrases.DENIED.search(text)
    if denied and not re.search(r"\b(?:if|whether|when|wenn)\b", text[: denied.start()], re.I):
        return "denied"
    confirmed = phrases.CONFIRMED.search(text)
    if confirmed is None or phrases.HALF.search(text) or _doubted(text, confirmed):
        return None
    if phrases.UNPRAISED.search(text, confirmed.end()):
        return None
    return "confirmed" if phrases.PRAISED.match(text, confirmed.end()) else None


def _claim(text: str, role: str) -> str | None:
    if _ends(text) in (":", "?"):
        return None
    if role == "assistant" and phrases.FAILED.search(text):
        return "claim_failed"
    done = phrases.DONE.search(text)
    if done is None and role == "assistant":
        done = phrases.DONE_BARE.match(text)
    if done is None or phrases.HALF.search(text) or _doubted(text, done):
        return None
    if _nothing(text, done) or phrases.UNDONE_BEHIND.search(text, done.end()):
        return None
    return "claim_done"


def _nothing(text: str, found: re.Match[str]) -> bool:
    """Whether what was found says right after that it is about nothing."""
    return phrases.NOTHING.match(text, found.end()) is not None


def _doubted(text: str, found: re.Match[str]) -> bool:
    """Whether a word before the find, or within it, makes it no statement of what is."""
    return phrases.DOUBT.search(text, 0, found.end()) is not None
