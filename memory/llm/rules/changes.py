"""Statements that tell of a change themselves: from X to Y, X replaced by Y, Y instead of X,
dropped X, use Y.

Pure. The older statement must say X, in the place of a value, about the same thing and nothing
else.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from memory.llm.rules.frames import Frame
from memory.llm.rules.lexemes import Token
from memory.llm.rules.values import governed, value_kind
from memory.llm.rules.verbs import CHANGE_FILLERS, CHANGE_VERBS, DROP_VERBS, REPLACE_VERBS, VERBS
from memory.llm.rules.vocabulary import ENVIRONMENTS, KIND_OF, LIMITS, PREPOSITIONS, UNITS

#: Words of a value that a change names.
# Why: names are short; more words are a clause.
VALUE_WORDS_MAX = 3

Tokens = tuple[Token, ...]
_DATES = frozenset(value for value, kind in KIND_OF.items() if kind in {"weekday", "month"})


# Why: other verbs are nouns as well, and a build timeout is not a test timeout.
_BARE_VERBS = frozenset(["use", "be", "live", "have", "need", "的"])


@dataclass(frozen=True)
class Change:
    """What a statement says was there before and is there now; `topic` is all else it says."""

    before: Tokens
    after: Tokens
    topic: Tokens


def told_change(new: Frame, old: Frame) -> str | None:
    """Return why the new statement itself tells that the old one is over, else None."""
    if any(token.key in LIMITS for token in old.tokens):
        return None
    for change in _changes(new.tokens):
        if not change.after or any(
            token.key in ENVIRONMENTS for token in change.before + change.after
        ):
            continue
        place = _place(change, old)
        if place is None:
            continue
        start, end, kind = place
        value, head, tail = old.tokens[start:end], old.tokens[:start], old.tokens[end:]
        said = head + (tail[1:] if tail and tail[0].key in UNITS else tail)
        if not _same_topic(change.topic, said, value):
            continue
        if governed(head, value, tail, kind, old):
            told = f"'{_said(value)}' became '{_said(change.after)}'"
            return f"the new statement tells the change itself: {told}"
    return None


def _changes(tokens: Tokens) -> Iterator[Change]:
    keys = [token.key for token in tokens]
    for index, key in enumerate(keys):
        if key in CHANGE_VERBS:
            yield from _moved(tokens, index)
        elif key in REPLACE_VERBS:
            yield from _replacement(tokens, index)
        elif key in DROP_VERBS or (key == "not" and keys[index + 1 : index + 2] == ["use"]):
            yield from _dropped(tokens, index + 1 if key in DROP_VERBS else index + 2)
        elif key == "instead":
            yield from _preferred(tokens, index)


def _moved(tokens: Tokens, verb: int) -> Iterator[Change]:
    """Yield `T moved from X to Y`, `moved T from X to Y`, `T was raised to Y`."""
    keys = [token.key for token in tokens]
    goals = [index for index, key in enumerate(keys) if key in {"to", "on", "auf"} and index > 0]
    sources = [index for index, key in enumerate(keys) if key == "from"]
    if sources:
        source = sources[0]
        goal = next((index for index in goals if index > source + 1), None)
        if goal is None and verb > source + 1:
            goal = verb
        if goal is None:
            return
        before = _without_verbs(tokens[source + 1 : goal])
        after, rest = _value(tokens, goal + 1)
        yield Change(before, after, tokens[:source] + rest)
        return
    goal = next(
        (index for index in goals if index > verb), verb if keys[verb] in {"改", "换"} else None
    )
    if goal is not None:
        after, rest = _value(tokens, goal + 1)
        yield Change((), after, tokens[:goal] + rest)


def _replacement(tokens: Tokens, verb: int) -> Iterator[Change]:
    """Yield `replace X with Y`, `X was replaced by Y`, `Y replaces X`."""
    ways = [index for index in range(verb + 1, len(tokens)) if tokens[index].key in {"with", "by"}]
    if ways:
        way = ways[0]
        after, rest = _value(tokens, way + 1)
        lead = _without_verbs(tokens[:verb])
        if way > verb + 1:
            yield Change(tokens[verb + 1 : way], after, lead + rest)
        else:
            yield Change(lead[:VALUE_WORDS_MAX], after, rest)
        return
    before, rest = _value(tokens, verb + 1)
    yield Change(before, _without_verbs(tokens[:verb]), rest)


def _dropped(tokens: Tokens, start: int) -> Iterator[Change]:
    """Yield `dropped X, use Y`, `dropped X to Y`, `no longer use X, use Y for T`."""
    before, rest = _value(tokens, start)
    for index, token in enumerate(rest):
        if token.key in {"use", "to", "on"}:
            after, more = _value(rest, index + 1)
            yield Change(before, after, tokens[: start - 1] + rest[:index] + more)
            return
    lead = tokens[: start - 1]
    if lead and lead[0].key == "use" and tokens[start - 1].key in {"not", "use"}:
        after, more = _value(tokens, 1)
        yield Change(
            before,
            after,
            rest + tuple(token for token in more if token not in before and token.key != "not"),
        )


def _preferred(tokens: Tokens, word: int) -> Iterator[Change]:
    """Yield `use Y instead of X for T`."""
    before, rest = _value(tokens, word + 1)
    if not before:
        return
    for width in (1, 2):
        after, lead = tokens[max(0, word - width) : word], tokens[: max(0, word - width)]
        if after and lead and lead[-1].key in VERBS:
            yield Change(before, after, lead + rest)


def _value(tokens: Tokens, start: int) -> tuple[Tokens, Tokens]:
    """Return the value that starts here, and the rest."""
    start += start < len(tokens) and tokens[start].key == "be"  # the Chinese "change to" ends in it
    end = start
    while end < len(tokens) and end - start < VALUE_WORDS_MAX:
        token = tokens[end]
        if end > start and (
            token.apart
            or token.key in PREPOSITIONS
            or token.key in {"and", "use", "but", "instead"}
        ):
            break
        if end > start and token.kind != "number" and token.key not in UNITS and not token.proper:
            break
        end += 1
    return tokens[start:end], tokens[end:]


def _place(change: Change, old: Frame) -> tuple[int, int, str] | None:
    """Return where the old statement holds the value that the change ends."""
    keys = list(old.keys)
    if change.before:
        wanted = [token.key for token in change.before]
        starts = [
            start for start in range(len(keys)) if keys[start : start + len(wanted)] == wanted
        ]
        if len(starts) != 1 or wanted == [token.key for token in change.after]:
            return None
        return (
            starts[0],
            starts[0] + len(wanted),
            "number" if change.before[-1].kind == "number" else "told",
        )
    found: list[tuple[int, int, str]] = []
    for start in range(len(keys)):
        for width in (2, 1):
            kind = (
                value_kind(old.tokens[start : start + width], change.after)
                if start + width <= len(keys)
                else None
            )
            if kind and keys[start : start + width] != [token.key for token in change.after]:
                found.append((start, start + width, kind))
                break
    typed = [place for place in found if place[2] != "proper"]
    return typed[0] if len(typed) == 1 else None


def _without_verbs(tokens: Tokens) -> Tokens:
    return tuple(
        token
        for token in tokens
        if token.key not in CHANGE_VERBS and token.key not in CHANGE_FILLERS
    )


def _same_topic(told: Tokens, said: Tokens, value: Tokens) -> bool:
    """Return whether both speak of the same thing, kinds, dates and verbs set aside."""
    kind_words = set(KIND_OF.get(value[0].key, "").split())
    left, right = _topic(told, kind_words), _topic(said, kind_words)
    if not left and not right:
        return value[0].key in KIND_OF or value[0].kind == "name" or value[0].proper
    return left == right


def _topic(tokens: Tokens, kind_words: set[str]) -> list[str]:
    return sorted(
        token.key
        for token in tokens
        if token.key
        not in CHANGE_VERBS | DROP_VERBS | CHANGE_FILLERS | REPLACE_VERBS | _DATES | kind_words
        and token.key not in PREPOSITIONS
        and token.key not in _BARE_VERBS
    )


def _said(tokens: Tokens) -> str:
    return " ".join(token.raw for token in tokens)
