"""What can be proved about a new and an older statement from their words alone.

Each proof takes two readings and answers one sentence that names it, or None. Nothing here
guesses: a pair that no proof fits is two statements. Pure.
"""

from __future__ import annotations

from memory.llm.rules.changes import told_change
from memory.llm.rules.frames import Frame, Reading, claims, clause_inside, verb_of
from memory.llm.rules.lexemes import Token
from memory.llm.rules.values import governed, opposite_verbs, value_kind
from memory.llm.rules.verbs import CHANGE_VERBS, PLAIN_VERBS, VERBS
from memory.llm.rules.vocabulary import (
    ADDITIVE,
    CLAUSES,
    CONNECTORS,
    ENVIRONMENTS,
    EXCEPTIONS,
    KIND_OF,
    LIMITS,
    NARROWING,
    PREPOSITIONS,
    REASONS,
    REVERSALS,
    row,
)

#: Words of a statement below which containing it proves nothing.
# Why: "use Redis" stands in many sentences that say something else.
CONTAINED_WORDS_MIN = 2

#: Words that may stand between the verb and what it had before, as a description.
# Why: "Postgres" -> "a managed Postgres 16" describes; longer insertions change the sentence.
INSERTED_WORDS_MAX = 2

#: Words of a statement without a known verb, from which containing it proves something.
# Why: shorter ones are headlines ("Interactive mode"), and a headline is in many statements.
FRAGMENT_WORDS_MIN = 4

_PARTIAL = row(
    "all every always only just yet sure necessarily because alle immer nur enough 都 only"
)
_STRENGTH = row("always ever")


def duplicate(new: Reading, old: Reading) -> str | None:
    """Return why the new statement says what the old one says, or less."""
    if claims(new.whole) == claims(old.whole):
        return "both say the same words once case, punctuation and filler words are set aside"
    if new.question or old.question:
        return None
    if _moved_front(new.whole.tokens, old.whole.tokens) or _moved_front(
        old.whole.tokens, new.whole.tokens
    ):
        return "both say the same words, with one phrase moved to the front"
    if len(new.parts) == 1 and len(old.parts) > 1 and _follows_from_sentence(new, old):
        return "the new statement is one sentence of the old one"
    if len(new.parts) == len(old.parts) == 1:
        extra = _additions(short=new.whole, long=old.whole)
        if extra is not None and not any(_narrows(piece) for piece in extra):
            return f"the old statement contains the new one and adds '{_said(extra)}'"
    return None


def refine(new: Reading, old: Reading) -> str | None:
    """Return why the new statement is the old one with something added."""
    if new.question or old.question or len(old.parts) > len(new.parts):
        return None
    if len(old.parts) == 1 and len(new.parts) > 1 and _whole(old.whole):
        rests = [part for part in new.parts if claims(part) != claims(old.whole)]
        if len(rests) == len(new.parts) - 1 and all(_harmless(rest.tokens) for rest in rests):
            added = _said([rest.tokens for rest in rests])
            return f"the new statement repeats the old one and adds '{added}'"
        return None
    if len(old.parts) != len(new.parts):
        return None
    extra = _additions(short=old.whole, long=new.whole)
    if extra is None:
        return None
    return f"the new statement contains the old one and adds '{_said(extra)}'"


def supersede(new: Reading, old: Reading) -> str | None:
    """Return why the new statement puts another value, or the opposite, where the old one stood."""
    if new.question or old.question or not new.parts or len(old.parts) != 1:
        return None
    for index, part in enumerate(new.parts):
        rest = [
            token
            for other, frame in enumerate(new.parts)
            if other != index
            for token in frame.tokens
        ]
        if rest and not _harmless(tuple(rest)):
            continue
        if proof := _replaced(part, old.whole):
            return proof
    change = told_change(new.whole.core(), old.whole.core())
    if change is None and len(new.parts) > 1:
        change = told_change(new.whole, old.whole.core())
    return change


def _replaced(new: Frame, old: Frame) -> str | None:
    for left, right in ((old, new), (old.core(), new.core())):
        if proof := _other_value(left, right) or _other_polarity(left, right):
            return proof
    return None


def _other_value(old: Frame, new: Frame) -> str | None:
    head, left, right, tail = _difference(old.tokens, new.tokens)
    if not left or not right or any(token.key in ADDITIVE for token in new.tokens):
        return None
    if opposite_verbs(left, right, head):
        return f"same statement with the opposite verb: '{_said([left])}' became '{_said([right])}'"
    for shared in range(3):
        # Why: a name shared by both values ("Python 3.11", "Python 3.12") or a unit may belong to
        # the value.
        grown_left, grown_right, rest = left + tail[:shared], right + tail[:shared], tail[shared:]
        kind = value_kind(grown_left, grown_right) if len(tail) >= shared else None
        if (
            kind
            and governed(head, grown_right, rest, kind, new)
            and governed(head, grown_left, rest, kind, old)
        ):
            return (
                f"same statement with another {kind}: '{_said([left])}' became '{_said([right])}'"
            )
    return None


def _other_polarity(old: Frame, new: Frame) -> str | None:
    denied_old, denied_new = _denials(old), _denials(new)
    if denied_old + denied_new != 1:
        return None
    denied, plain = (old, new) if denied_old else (new, old)
    place = denied.keys.index("not")
    rest = denied.tokens[:place] + denied.tokens[place + 1 :]
    if (
        old.indefinite
        or _strengthless(rest) != _strengthless(plain.tokens)
        or not _denies_all(denied.tokens, place)
    ):
        return None
    return f"same statement, {'no longer denied' if denied_old else 'now denied'}"


def _denials(frame: Frame) -> int:
    return sum(token.key == "not" for token in frame.tokens)


def _strengthless(tokens: tuple[Token, ...]) -> tuple[str, ...]:
    keys = [token.key for token in tokens if token.key not in _STRENGTH]
    return tuple(keys)


def _denies_all(tokens: tuple[Token, ...], place: int) -> bool:
    """Return whether the denial is of the main verb, so that the rest is what is denied."""
    before, after = tokens[:place], tokens[place + 1 :]
    if clause_inside(before) or (after and after[0].key in _PARTIAL):
        return False
    if any(token.key in LIMITS and token.key not in _MODAL for token in before):
        return False
    if any(token.key == "的" for token in after):
        return False
    if any(token.key in PREPOSITIONS for token in before) and not (
        before and before[-1].key in _HELPING
    ):
        return before[-1:] != () and verb_of(before[-1], ()) in VERBS
    return not before or not after or len(before) <= 4


_MODAL = frozenset(["will", "would", "should", "may"])
_HELPING = row("be should must may can could shall has have need")


def _difference(
    old: tuple[Token, ...], new: tuple[Token, ...]
) -> tuple[tuple[Token, ...], tuple[Token, ...], tuple[Token, ...], tuple[Token, ...]]:
    """Return what both start with, the differing middle of each, and what both end with."""
    start = 0
    while start < min(len(old), len(new)) and old[start].key == new[start].key:
        start += 1
    end = 0
    while end < min(len(old), len(new)) - start and old[-1 - end].key == new[-1 - end].key:
        end += 1
    return (
        new[:start],
        old[start : len(old) - end],
        new[start : len(new) - end],
        new[len(new) - end :],
    )


def _moved_front(front: tuple[Token, ...], back: tuple[Token, ...]) -> bool:
    """Return whether `front` begins with the phrase of time, place or condition that ends
    `back`.
    """
    if len(front) != len(back) or not front or front[0].key not in PREPOSITIONS | CLAUSES:
        return False
    keys, other = [token.key for token in front], [token.key for token in back]
    for cut in range(1, len(keys) - 1):
        if keys[cut:] + keys[:cut] == other:
            verbs = sum(verb_of(token, ()) in VERBS for token in front[cut:])
            return verbs > 0 and (front[0].key in PREPOSITIONS or front[cut].apart)
    return False


def _additions(short: Frame, long: Frame) -> list[tuple[Token, ...]] | None:
    """Return what the longer statement adds to the shorter one; None if it is not the same
    statement with more.
    """
    if len(short.tokens) < CONTAINED_WORDS_MIN or len(long.tokens) <= len(short.tokens):
        return None
    pieces: list[tuple[Token, ...]] = []
    place, seen_verb = 0, False
    for count, token in enumerate(short.tokens):
        start = place
        while place < len(long.tokens) and long.tokens[place].key != token.key:
            place += 1
        if place == len(long.tokens):
            return None
        if place > start:
            inserted = long.tokens[start:place]
            if not seen_verb or not _insertion_fits(inserted, last=count == len(short.tokens) - 1):
                return None
            pieces.append(inserted)
        seen_verb = seen_verb or verb_of(token, short.tokens[:count]) in VERBS
        place += 1
    rest = long.tokens[place:]
    if not _whole(short) and not (rest and rest[0].key in REASONS):
        return None
    if rest:
        if not (rest[0].apart or rest[0].key in CONNECTORS or rest[0].kind == "number"):
            return None
        pieces.append(rest)
    denied = any(
        token.key in {"not", "only", "all", "every", "each", "any"} for token in short.tokens
    )
    if denied and not all(piece[0].key in REASONS or piece[0].apart for piece in pieces):
        return None
    return pieces if pieces and all(_harmless(piece) for piece in pieces) else None


def _whole(frame: Frame) -> bool:
    """Return whether this is a statement and no headline."""
    if len(frame.tokens) >= FRAGMENT_WORDS_MIN:
        return True
    return any(_is_verb(token, frame.tokens[:index]) for index, token in enumerate(frame.tokens))


def _is_verb(token: Token, before: tuple[Token, ...]) -> bool:
    return verb_of(token, before) in VERBS or token.key in PLAIN_VERBS


def _insertion_fits(inserted: tuple[Token, ...], last: bool) -> bool:
    if inserted[0].kind == "number" and len(inserted) == 1:
        return True
    if inserted[0].key in CONNECTORS:
        return False
    return (
        last
        and len(inserted) <= INSERTED_WORDS_MAX
        and all(token.kind == "word" for token in inserted)
    )


def _harmless(tokens: tuple[Token, ...]) -> bool:
    """Return whether an addition takes nothing back: no denial, condition, other place or second
    value.
    """
    if tokens[0].apart and tokens[0].key in EXCEPTIONS:
        return not any(token.key in REVERSALS or token.key in CHANGE_VERBS for token in tokens)
    if tokens[0].apart and tokens[0].key == "not" and len(tokens) > 1 and tokens[1].key in KIND_OF:
        return _harmless(tokens[1:])
    pause = tokens[0].apart
    for index, token in enumerate(tokens):
        if token.key in REASONS:
            return True
        if pause and token.key in {"instead", "without"}:
            continue
        if token.key in LIMITS or token.key in ENVIRONMENTS or token.key in ADDITIVE:
            return False
        if index == 0 and token.kind in {"number", "name"} and token.raw.startswith("#"):
            return False
    return True


def _narrows(piece: tuple[Token, ...]) -> bool:
    """Return whether the shorter claim is wider than the longer one."""
    if piece[0].apart and piece[0].key in {"and", "und"}:
        return False
    if piece[0].key in {"and", "und"}:
        return True
    for token in piece:
        if token.key in REASONS:
            return False
        if token.key in NARROWING or token.key in EXCEPTIONS:
            return True
    return piece[0].kind != "number" and piece[0].key not in CONNECTORS and not piece[0].apart


def _follows_from_sentence(new: Reading, old: Reading) -> bool:
    rests = [part for part in old.parts if claims(part) != claims(new.whole)]
    return (
        _whole(new.whole)
        and len(rests) == len(old.parts) - 1
        and all(_harmless(rest.tokens) for rest in rests)
    )


def _said(pieces: list[tuple[Token, ...]]) -> str:
    return " ... ".join(" ".join(token.raw for token in piece) for piece in pieces)
