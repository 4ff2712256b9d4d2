"""Whether one place of a sentence holds a value, and whether two values exclude one another there.

A value stands behind the verb, is typed (number, name, one of a known kind, proper noun), and its
verb takes one at a time. Pure; knows nothing about verdicts.
"""

from __future__ import annotations

from memory.llm.rules.frames import Frame, clause_inside, verb_of
from memory.llm.rules.lexemes import Token
from memory.llm.rules.verbs import VERBS
from memory.llm.rules.vocabulary import (
    CONNECTORS,
    ENVIRONMENTS,
    KIND_OF,
    LIMITS,
    MANY,
    NAME_LABELS,
    PREPOSITIONS,
    SIDE_BY_SIDE,
    STATE_OPPOSITES,
    UNITS,
    VERB_OPPOSITES,
    row,
)

#: Words between the verb and the value.
# Why: "store the sessions of the billing service in Redis" has five; longer ones hide a second
# clause.
GAP_WORDS_MAX = 5

#: Words before the verb.
# Why: a longer start is a clause with a verb of its own.
SUBJECT_WORDS_MAX = 8

Tokens = tuple[Token, ...]
_FACTORS = {
    "millisecond": 0.001, "second": 1.0, "minute": 60.0, "hour": 3600.0, "day": 86_400.0,
    "week": 604_800.0,
    "kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12,
}  # fmt: skip
# Why: a mode is named by its value, as in "dark mode".
_HEADS = frozenset(["mode", "theme", "branch"])
#: Past forms without an ending of their own.
_PAST = row(
    "met went came saw left took began ran fell broke got was were made gave sent found had lost"
)
_FINITE = row("be have need was were will did fails must should can could may might")


def value_kind(old: Tokens, new: Tokens) -> str | None:
    """Return the kind that both values are of, None when nothing says that they exclude one
    another.
    """
    if not old or not new or any(token.key in ENVIRONMENTS for token in old + new):
        return None
    if _measure(old) and _measure(new):
        return (
            "number" if _dimension(old) == _dimension(new) and not _same_amount(old, new) else None
        )
    if old[0].kind == new[0].kind == "time" and len(old) == len(new) == 1:
        return "number"
    left, right = KIND_OF.get(old[0].key), KIND_OF.get(new[0].key)
    if left or right:
        if not _versioned(old) or not _versioned(new):
            return None
        if left == right:
            return left
        return (
            "proper"
            if (left is None and _named(old[0])) or (right is None and _named(new[0]))
            else None
        )
    if len(old) != 1 or len(new) != 1:
        return None
    if {old[0].key, new[0].key} == {"before", "after"}:
        return "order"
    if frozenset((old[0].key, new[0].key)) in STATE_OPPOSITES:
        return "state"
    if old[0].kind == new[0].kind == "name":
        return None if _same_name(old[0].key.lower(), new[0].key.lower()) else "name"
    if _named(old[0]) and _named(new[0]):
        return "proper"
    return None


def governed(before: Tokens, value: Tokens, after: Tokens, kind: str, frame: Frame) -> bool:
    """Return whether the place between `before` and `after` is the one value of its verb.

    `kind` comes from value_kind, or is "told" when the new statement itself says what the old
    value was.
    """
    if kind == "state":
        return _stated(before, after)
    if kind == "order":
        return _ordered(before, after)
    if (
        _named_label(before, value)
        or (kind != "number" and not _ends_here(after))
        or _clause_goes_on(after)
    ):
        return False
    for index in range(len(before) - 1, -1, -1):
        name = verb_of(before[index], before[:index])
        verb = VERBS.get(name or "")
        if verb is None or name is None:
            continue
        subject, gap = before[:index], before[index + 1 :]
        if before[index].raw == "=" and after and not after[0].apart:
            return False
        if not _subject_fits(subject, name, kind, frame):
            return False
        if _leads(gap, name, kind, after):
            return True
    return kind in {"number", "weekday"} and _bare_value(before, value[0])


def opposite_verbs(old: Tokens, new: Tokens, before: Tokens) -> bool:
    """Return whether the two are opposite main verbs at this place of the sentence."""
    if len(old) != 1 or len(new) != 1 or frozenset((old[0].key, new[0].key)) not in VERB_OPPOSITES:
        return False
    if (
        clause_inside(before)
        or len(before) > 4
        or any(token.key in PREPOSITIONS for token in before)
    ):
        return False
    return not any(verb_of(token, ()) in VERBS for token in before)


def _measure(value: Tokens) -> bool:
    if not value or value[0].kind != "number" or value[0].raw.startswith("#"):
        return False
    return len(value) == 1 or (len(value) == 2 and value[1].key in UNITS)


def _dimension(value: Tokens) -> str:
    return UNITS[value[1].key] if len(value) == 2 else ""


def _same_amount(old: Tokens, new: Tokens) -> bool:
    """Return whether the numbers may be one amount: 60 s and 1 min, 3.11 and 3.11.4, 5 and 5.0."""
    left, right = old[0].key + ".", new[0].key + "."
    if old[1:] == new[1:] or (old[1:] and new[1:] and old[1].key == new[1].key):
        return left.startswith(right) or right.startswith(left)
    if len(old) == len(new) == 2 and UNITS[old[1].key] in {"time", "size"}:
        ratio = _amount(old) / _amount(new) if _amount(new) else 0.0
        return 0.9 < ratio < 1.1
    return False


def _amount(value: Tokens) -> float:
    digits = value[0].key
    return (
        float(digits) * _FACTORS.get(value[1].key, 1.0)
        if digits.replace(".", "", 1).isdigit()
        else 0.0
    )


def _same_name(old: str, new: str) -> bool:
    """Return whether the names may be one thing: equal, or one path is the end of the other."""
    return (
        old == new or old.endswith("/" + new.lstrip("~./")) or new.endswith("/" + old.lstrip("~./"))
    )


def _versioned(value: Tokens) -> bool:
    """Return whether the value is a name alone, or a name and its version."""
    return len(value) == 1 or (len(value) == 2 and value[1].kind == "number")


def _named(token: Token) -> bool:
    return token.kind == "name" or token.proper


def _named_label(before: Tokens, value: Tokens) -> bool:
    """Return whether the value only names which thing is meant: issue 12, in version 3, step 2."""
    if not before:
        return True
    last = before[-1].key
    if (
        last == "version"
        and len(before) > 1
        and before[-2].key in {"in", "since", "from", "until", "with"}
    ):
        return True
    return last in NAME_LABELS and last != "version"


def _ends_here(after: Tokens) -> bool:
    """Return whether the value is complete: no noun follows that it would only describe."""
    return (
        not after
        or after[0].apart
        or after[0].key in CONNECTORS | _HEADS
        or after[0].kind == "number"
    )


def _clause_goes_on(after: Tokens) -> bool:
    """Return whether a verb follows, so that the value was part of the subject."""
    for index, token in enumerate(after):
        if token.apart or token.key in {"and", "but", "because", "since", "which", "und"}:
            return False
        if token.key in _FINITE and (index == 0 or after[index - 1].key != "to"):
            return True
    return False


def _subject_fits(subject: Tokens, name: str, kind: str, frame: Frame) -> bool:
    if clause_inside(subject) or len(subject) > SUBJECT_WORDS_MAX:
        return False
    if any(
        token.key in LIMITS and token.key not in {"will", "all", "every", "not"}
        for token in subject
    ):
        return False
    if name == "be" and (not subject or subject[-1].key in PREPOSITIONS):
        return not subject and kind == "number"
    if _head(subject) in MANY or (kind != "number" and frame.indefinite):
        return False
    return not (kind == "proper" and name == "be" and len(subject) == 1 and subject[0].proper)


def _head(subject: Tokens) -> str:
    """Return the last noun before the first preposition: what the sentence is about."""
    head = ""
    for token in subject:
        if token.key in PREPOSITIONS:
            break
        head = token.raw.lower() if token.key != "be" else head
    return head


def _leads(gap: Tokens, name: str, kind: str, after: Tokens) -> bool:
    """Return whether the words between the verb and the value lead to its one value."""
    verb = VERBS[name]
    if (
        len(gap) > GAP_WORDS_MAX
        or clause_inside(gap)
        or any(token.key in {"and", "or", "und"} for token in gap)
    ):
        return False
    places = [index for index, token in enumerate(gap) if token.key in PREPOSITIONS]
    if not places:
        return len(gap) <= 2 and _takes(name, kind, gap, after)
    place = places[-1]
    lead, label = gap[:place], gap[place + 1 :]
    if gap[place].key not in verb.prepositions or len(label) > 2:
        return False
    if name == "run" and kind not in {"number", "rhythm", "weekday", "told"}:
        return False
    if name == "be" and gap[place].key == "for" and not lead:
        return False
    if (
        lead
        and not verb.noun_first
        and not (name == "be" and kind == "number" and _said_of(lead, gap[place]))
    ):
        return False
    return all(token.key not in PREPOSITIONS or token.key in {"of", "for"} for token in lead)


def _said_of(lead: Tokens, preposition: Token) -> bool:
    """Return whether this is `be valid for N`, `be retried after N`: one word, and no number that
    tells which one.
    """
    return (
        len(lead) == 1
        and lead[0].kind == "word"
        and preposition.key in {"for", "every", "after", "at", "until"}
    )


def _takes(name: str, kind: str, gap: Tokens, after: Tokens) -> bool:
    objects = VERBS[name].objects
    if kind == "told":
        return bool(objects)
    if kind in objects:
        return kind != "name" or len(gap) <= 1
    has_role = bool(after) and after[0].key in {"for", "to", "as"}
    if kind in {"name", "proper"}:
        return "role" in objects and has_role and not gap
    if kind == "number":
        return False
    if kind in SIDE_BY_SIDE and name != "be":
        return "role" in objects and has_role
    return "mate" in objects


def _stated(before: Tokens, after: Tokens) -> bool:
    """Return whether an opposite is said of the subject: last in its clause, behind `be`, `turn`
    or `set`.
    """
    if clause_inside(before) or not before:
        return False
    if before[0].key in {"turn", "switch"}:
        return len(before) == 1 or not after
    return before[-1].key in {"be", "set"} and len(before) > 1 and _ends_here(after)


def _ordered(before: Tokens, after: Tokens) -> bool:
    """Return whether this is `before` or `after` between two things that are to be done."""
    return (
        bool(after)
        and 1 < len(before) <= 4
        and before[0].kind == "word"
        and not clause_inside(before)
    )


def _bare_value(before: Tokens, value: Token) -> bool:
    """Return whether a number or a recurring day closes a sentence whose verb is not in the
    tables.
    """
    if clause_inside(before) or len(before) < 2 or len(before) > SUBJECT_WORDS_MAX:
        return False
    for token in before:
        raw = token.raw.lower()
        if (
            (token.key in LIMITS and token.key != "every")
            or raw in _PAST
            or raw.endswith(("ed", "te", "ten"))
        ):
            return False
    last = before[-1].key
    if value.kind == "time":
        return last in {"at", "every"}
    if value.kind != "number":
        return last == "every" or (last == "on" and value.key.endswith("s"))
    return last in {"every", "within", "at-least", "at-most", "timeout", "limit"}
