"""Reads JSON out of whatever a model wraps it in: prose, fences, thoughts, several objects.

An answer is taken whole or not at all: what does not decode is never mended. Pure; knows nothing
about the gate, which refuses candidates for what they say (also those without evidence).
"""

from __future__ import annotations

import json
import logging
import math
import re
from collections.abc import Iterator
from typing import Any, get_args

from memory.errors import ContentError
from memory.llm.ports import Candidate, MemoryKind
from memory.text.clean import clean

logger = logging.getLogger(__name__)

#: Longest reply that is read at all, in characters.
# Why: the whole reply is scanned; a run-away answer of megabytes is no answer.
# Calibrate: above the longest whole reply of a model at its token limit.
REPLY_CHARS_MAX = 400_000

#: Opening braces tried in one reply.
# Why: prose about code is full of them, and each costs an attempt.
# Calibrate: above the braces of any real preamble.
STARTS_MAX = 500

#: Candidates of one unit.
# Why: a model that lists everything has understood nothing; a person reads what is kept.
# Calibrate: notes per unit that survive the gate and are wanted; the median is far below.
CANDIDATES_MAX = 20

#: Characters, blanks taken together, of a reply that may still say that there is nothing.
# Why: "there are no notes" and a reason is a sentence; what is longer says something.
# Calibrate: above the longest such reply of a model in use.
NOTHING_CHARS_MAX = 240

#: Words (keywords, tags) on one note, and characters of one.
WORDS_MAX = 12
WORD_CHARS_MAX = 60

KINDS: tuple[str, ...] = get_args(MemoryKind)

# strict=False: models write tabs and line breaks into strings without escaping them.
_DECODER = json.JSONDecoder(strict=False)
_THOUGHT = re.compile(r"(?<!\s)\s*<(think|thinking|thought|reasoning)>", re.IGNORECASE)
_THOUGHT_END = re.compile(r"</(?:think|thinking|thought|reasoning)>", re.IGNORECASE)
#: Ways in which models say that there is nothing; a refusal to answer is none of them.
_NOTHING = re.compile(
    r"(?:json)?[ `\"'(]{0,8}(?:null|none|n/a|\{ ?\}|\[ ?\]"
    r"|(?:there (?:is|are|was|were) )?no (?:\w+ ){0,3}"
    r"(?:notes?|observations?|memor(?:y|ies)|facts?|candidates?|insights?)\b[^{\[]{0,120}"
    r"|(?:there (?:is|was) )?nothing (?:new|to|worth|durable|of note|notable)\b[^{\[]{0,120}"
    r")?[ `\"').!]{0,8}",
    re.IGNORECASE,
)
#: What may stand around it: fences, quotation marks, the stop of a sentence.
_AROUND = " `\"'()."


def read_object(reply: str, key: str, kind: type | tuple[type, ...] = object) -> dict[str, Any]:
    """The first object in the reply that has the key with a value of this kind.

    Raises ContentError with the raw reply when there is none.
    """
    for found in _values(reply):
        if isinstance(found, dict) and key in found and isinstance(found[key], kind):
            value: dict[str, Any] = clean(found)[0]
            return value
    raise ContentError(f'No object with "{key}" can be read from the reply', reply)


def read_notes(reply: str) -> list[object]:
    """The entries of `notes`, as the model wrote them; [] for every way of saying that it has none.

    Raises ContentError with the raw reply for one that is neither.
    """
    _refuse_endless(reply)
    spoken = _spoken(reply)
    if spoken is not None and _says_nothing(spoken):
        return []
    for found in _values(reply):
        notes = found
        if isinstance(found, dict):
            if "notes" not in found:
                continue
            notes = [] if found["notes"] is None else found["notes"]
        if isinstance(notes, list):
            entries: list[object] = clean(notes)[0]
            return entries
    raise ContentError('No object with "notes" can be read from the reply', reply)


def read_candidates(reply: str) -> list[Candidate]:
    """The candidates of a distiller's reply, at most CANDIDATES_MAX, each cleaned by itself.

    An entry that is no note becomes a candidate without evidence, so that the gate refuses it with
    a row instead of it vanishing here.
    """
    entries = read_notes(reply)
    if len(entries) > CANDIDATES_MAX:
        logger.warning("%d of %d candidates are over the limit", *_over(entries))
    return [_candidate(entry) for entry in entries[:CANDIDATES_MAX]]


def _over(entries: list[object]) -> tuple[int, int]:
    return len(entries) - CANDIDATES_MAX, len(entries)


def _values(reply: str) -> Iterator[object]:
    """Decoded values in the order in which they deserve belief."""
    _refuse_endless(reply)
    whole = _decode(reply.strip())
    if isinstance(whole, dict) or _is_notes(whole):
        yield whole
    spoken = _spoken(reply)
    if spoken is not None:
        yield from _scan(spoken)
    elif (last := _last(reply)) is not None:
        # A thought that was never closed: only an object that ends the reply is an answer.
        yield last


def _refuse_endless(reply: str) -> None:
    if len(reply) > REPLY_CHARS_MAX:
        raise ContentError(f"The reply is over {REPLY_CHARS_MAX} characters", reply)


def _says_nothing(spoken: str) -> bool:
    said = " ".join(spoken.split()).strip(_AROUND)
    return len(said) <= NOTHING_CHARS_MAX and _NOTHING.fullmatch(said) is not None


def _spoken(reply: str) -> str | None:
    """The reply without the thoughts it starts with; None when the last of them never ends."""
    opened = _THOUGHT.match(reply)
    if not opened:
        end = next((m.end() for m in reversed(list(_THOUGHT_END.finditer(reply)))), 0)
        # The opening tag was part of the prompt. Inside a value the rest would not decode.
        return reply[end:] if end and any(True for _ in _scan(reply[end:])) else reply
    place = 0
    while opened:
        closed = _THOUGHT_END.search(reply, opened.end())
        if closed is None:
            return None
        place = closed.end()
        opened = _THOUGHT.match(reply, place)
    return reply[place:]


def _scan(text: str) -> Iterator[object]:
    """Every object that decodes, from each opening brace on; and a bare list of objects."""
    for count, match in enumerate(re.finditer(r"\{|\[(?=\s*\{)", text)):
        if count >= STARTS_MAX:
            return
        value = _decode_at(text, match.start())
        if isinstance(value, dict) or _is_notes(value):
            yield value


def _last(text: str) -> object:
    """The object that ends the text (but for a closing fence), or None."""
    body = text.rstrip().rstrip("`").rstrip()
    for count, match in enumerate(re.finditer(r"\{", body)):
        if count >= STARTS_MAX:
            return None
        try:
            value, end = _DECODER.raw_decode(body, match.start())
        except (ValueError, RecursionError):
            continue
        if end == len(body):
            return value
    return None


def _is_notes(value: object) -> bool:
    """Whether a bare list is a list of notes: every entry names its evidence."""
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(entry, dict) and "source_ref" in entry for entry in value)
    )


def _decode(text: str) -> object:
    try:
        return _DECODER.decode(text)
    except (ValueError, RecursionError):
        return None


def _decode_at(text: str, start: int) -> object:
    try:
        return _DECODER.raw_decode(text, start)[0]
    except (ValueError, RecursionError):
        return None


def _candidate(entry: object) -> Candidate:
    if not isinstance(entry, dict):
        return Candidate("", entry if isinstance(entry, str) else json.dumps(entry), "")
    content = _text(entry.get("content"))
    title = " ".join(_text(entry.get("title")).split())
    return Candidate(
        title=title or " ".join(content.split())[:80],
        content=content,
        source_ref=_text(entry.get("source_ref")),
        importance=_importance(entry.get("importance")),
        keywords=_words(entry.get("keywords")),
        tags=_words(entry.get("tags")),
        context=_text(entry.get("context")),
        memory_kind=kind if (kind := entry.get("memory_kind")) in KINDS else "semantic",
    )


def _text(value: object) -> str:
    return value.strip() if isinstance(value, str) else ""


def _importance(value: object) -> float:
    """A number between 0 and 1; 0.5 for what is none."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return 0.5
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return 0.5
    return min(1.0, max(0.0, number)) if math.isfinite(number) else 0.5


def _words(value: object) -> tuple[str, ...]:
    """Distinct words of a list, or of a text with commas."""
    if isinstance(value, str):
        value = value.split(",")
    if not isinstance(value, list):
        return ()
    cleaned = (" ".join(w.split())[:WORD_CHARS_MAX] for w in value if isinstance(w, str))
    return tuple(dict.fromkeys(word for word in cleaned if word))[:WORDS_MAX]
