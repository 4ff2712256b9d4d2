"""What a question names: identifiers of code, errors, issues, versions, quotes and people.

Pure. Each entity says under which exact terms an index holds it, and into which parts it falls.
Knows nothing about what is indexed; whether it means anything, only a search can tell.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from memory.text.stopwords import QUESTION_WORDS, STOP_WORDS
from memory.text.tongue import tongue
from memory.text.words import TERM_CHARS_MAX, spellings, terms
from recall.calendar import MONTHS, WEEKDAYS

#: What an entity can be.
KINDS = (
    "url", "package", "path", "branch", "flag", "variable", "issue", "code", "version", "dotted",
    "symbol", "quoted", "name",
)  # fmt: skip

#: Entities of one question.
# Why: what names more is pasted code, and each of its words weighs like any other.
# Calibrate: questions of people that name more than ten things.
ENTITIES_MAX = 24

#: How much an exact term weighs beside a plain word, and a part of an identifier.
# Why: `getUserName` asks for itself; "get", "user" and "name" are in half of all texts about code,
# and would outvote it three to one.
# Calibrate: questions about code with known answers. Those of dialogues do not tell: by recall@5 on
# half of LoCoMo 1.0, 1.25 and 1.5 lie within .003 of each other, and 2.0 loses .006.
EXACT_WEIGHT = 1.5
PART_WEIGHT = 0.5


@dataclass(frozen=True)
class Entity:
    """One thing that a question names, as `memory.text.words` spells it.

    `exact` are its terms whole, `parts` what an identifier falls into.
    """

    text: str
    kind: str
    exact: tuple[str, ...]
    parts: tuple[str, ...] = ()


_QUOTED = re.compile(
    r"`([^`\n]{1,200})`|\"([^\"\n]{2,120})\"|“([^”\n]{2,120})”|„([^“”\n]{2,120})[“”]"
    r"|«([^»\n]{2,120})»|「([^」\n]{1,120})」|(?<![\w'])'([^'\n]{2,80})'(?!\w)"
)
_NUMBERED = re.compile(
    r"\b(?:HTTP|status(?:\scode)?|exit\s(?:code|status)|error(?:\scode)?|errno|code|signal|port"
    r"|Fehler|Statuscode)\s\#?(\d{1,6})(?![\w.]\w)", re.IGNORECASE,
)  # fmt: skip
_ON_BRANCH = re.compile(r"\b(?:[Bb]ranch|checkout|merge(?!\sbranch))\s([\w][\w./-]{2,80})")
_TOKEN = re.compile(r"\S+")
_TRIM_LEFT, _TRIM_RIGHT = "([{<\"'“„«「,;!?", ")]}>\"'”“»」,;:!?.…"

# First hit wins.
_SHAPES: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (kind, re.compile(pattern))
    for kind, pattern in (
        ("url", r"(?:[a-z][a-z0-9+]{1,9}://|www\.|git@)\S+"),
        ("package", r"@?[A-Za-z][\w.-]*(?:/[\w.-]+)?(?:@|[=~<>!]=)v?\d[\w.+-]*"),
        ("flag", r"--?[A-Za-z][\w-]*(?:=\S*)?"),
        ("variable", r"\$\{?\w+\}?|%[A-Z_]+%|[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+"),
        ("issue", r"(?:[\w.-]+/[\w.-]+)?\#\d{1,7}"),
        ("code", r"0x[0-9A-Fa-f]+|(?:ORA|PLS|TNS|SQLSTATE|CVE-\d{4}|RFC)-\d+|[A-Z]{1,4}\d{3,6}"
                 r"|E[A-Z]{4,15}|SIG[A-Z]{3,6}"),
        ("issue", r"[A-Z][A-Z0-9]{1,9}-\d{1,6}"),
        ("version", r"v?\d{1,6}(?:\.(?:\d{1,6}|x)){1,4}"
                    r"(?:[-+.]?(?:rc|alpha|beta|a|b|dev|post)\.?\d*)?"
                    r"|v\d{1,4}"),
        ("branch", r"(?:feature|feat|fix|bugfix|hotfix|release|chore|refactor|origin|heads)"
                   r"/[\w.-]+(?:/[\w.-]+)*"),
        ("path", r"(?:~|\.{1,2})?/[\w.@-]+(?:/[\w.@-]*)*(?::\d+){0,2}|[A-Za-z]:\\\S+"
                 r"|[\w.-]+\\[\w.\\-]+"
                 r"|[\w.@-]+(?:/[\w.@-]+){2,}/?(?::\d+){0,2}"
                 r"|[\w.@-]+/(?:[\w@-]+\.\w+(?::\d+){0,2})?"
                 r"|(?:src|lib|test|tests|docs|bin|etc|app|pkg|cmd)/[\w.-]+"
                 r"|\.[a-z][\w-]*(?:\.\w+)*"),
        ("dotted", r"[^\W\d]\w*(?:\.[^\W\d]\w*)+(?:\(\S{0,80}\)?)?(?::\d+){0,2}"),
        ("symbol", r"[^\W\d]\w*(?:::~?\w+)+(?:[(<]\S{0,80})?|[^\W\d]\w*\(\S{0,80}\)?"
                   r"|_*[^\W_]+(?:_+[^\W_]+)+_*|__?\w+|[^\W\d_]\w*(?:\+\+|\#)"
                   r"|[A-Za-z]*(?:[a-z0-9][A-Z]|[A-Z]{2}[a-z])\w*"
                   r"|(?=[\w-]{0,40}\d)[A-Za-z][\w-]*"
                   r"|(?=\w{0,40}[a-f])(?=\w{0,40}\d)[0-9a-f]{7,40}"),
    )
)  # fmt: skip
# "e.g", "i.e", "z.B": no dotted names.
_SHORTENED = re.compile(r"\w(?:\.\w){1,3}")
# "PCs", "IDs", "McDonald": one capital hump is no symbol.
_PLURAL = re.compile(r"[A-Z]{2,6}s|Ma?c[A-Z][a-z]+")


def entities(question: str, known: Collection[str] = ()) -> tuple[Entity, ...]:
    """Return what the question names, in order and each once; at most ENTITIES_MAX.

    `known` are names in lower case (of speakers, say) that count however they are written. What
    has no term (a lone sign) is left out.
    """
    found: dict[tuple[str, ...], Entity] = {}
    read = sorted(_found(question, known), key=lambda one: (one[0], KINDS.index(one[2])))
    covered = 0
    for start, text, kind in read:
        if kind == "name" and start < covered:
            continue  # the HTTP of "HTTP 500"
        covered = max(covered, start + len(text))
        entity = _entity(text[: 2 * TERM_CHARS_MAX], kind)
        if entity.exact:
            found.setdefault(entity.exact, entity)
        if len(found) == ENTITIES_MAX:
            break
    return tuple(found.values())


def weights(question: str, known: Collection[str] = ()) -> dict[str, float]:
    """Return the terms to ask for, in order, and how much each weighs beside a plain word's 1.

    Exact terms of entities are asked for also where they are stop words: a person called Will.
    """
    named = entities(question, known)
    exact = {term for entity in named for term in entity.exact}
    parts = {term for entity in named for term in entity.parts} - exact
    # Why: a part that stands in the question as a word of its own is asked for as such.
    alone = {group[0] for group in spellings(question) if len(group) == 1}
    asked: dict[str, float] = {}
    for term in dict.fromkeys([*terms(question), *sorted(exact)]):
        weight = EXACT_WEIGHT if term in exact else 1.0
        asked[term] = PART_WEIGHT if term in parts - alone else weight
    return asked


def _found(question: str, known: Collection[str]) -> Iterator[tuple[int, str, str]]:
    """Yield where each begins, its text and its kind, out of order."""
    for match in _QUOTED.finditer(question):
        text = next(group for group in match.groups() if group)
        yield match.start(), text, _shape(text.strip()) or "quoted"
    for match in _NUMBERED.finditer(question):
        yield match.start(), match.group(), "code"
    for match in _ON_BRANCH.finditer(question):
        if not match.group(1).isalpha():
            yield match.start(1), match.group(1).rstrip("."), "branch"
    for match in _TOKEN.finditer(question):
        if match.end() - match.start() <= 2 * TERM_CHARS_MAX:
            text = _trimmed(match.group())
            if kind := _shape(text):
                yield match.start(), text, kind
    yield from _names(question, known)


def _trimmed(token: str) -> str:
    """Take sentence marks off; a bracket that closes one inside stays."""
    text = token.strip("`").lstrip(_TRIM_LEFT)
    while text and text[-1] in _TRIM_RIGHT and not (text[-1] == ")" and "(" in text):
        text = text[:-1]
    return text.strip("`*").removesuffix("'s").removesuffix("’s")


def _shape(text: str) -> str:
    """The kind of identifier that a text is, or ""."""
    if len(text) < 2 or (text.isalpha() and text[1:].islower()):
        return ""  # a plain word, as most are
    if _SHORTENED.fullmatch(text) or _PLURAL.fullmatch(text):
        return ""
    return next((kind for kind, shape in _SHAPES if shape.fullmatch(text)), "")


_WORD = re.compile(r"(?<![\w./\\$#@=%-])[^\W\d_]+(?:[-'’][^\W\d_]+)*(?![\w/\\@=(]|[._:-]\w)")
_BEGINS = re.compile(r"(?:\A|[.!?:;…。\n])[\s\"'“”„«»()\[\]*_`>+-]{0,8}$")
_SHOUTED = frozenset(
    "not no never always only must all any important note todo ok".split()  # noqa: SIM905
)
_NO_NAMES = STOP_WORDS | QUESTION_WORDS | _SHOUTED | MONTHS.keys() | WEEKDAYS.keys()
#: Function words with a capital inside sentences from which it is a headline and names nobody.
CAPITAL_STOP_WORDS_MAX = 1


def _names(question: str, known: Collection[str]) -> Iterator[tuple[int, str, str]]:
    """Yield proper names: capitals inside a sentence, in a tongue that gives those to names."""
    said = [
        (match.start(), match.end(), _begins(question, match.start()), _bare(match.group()))
        for match in _WORD.finditer(question)
    ]
    headline = sum(
        not first and word[0].isupper() and word != "I" and word.lower() in STOP_WORDS
        for _, _, first, word in said
    )
    readable = headline <= CAPITAL_STOP_WORDS_MAX and tongue(question) == "english"
    held: tuple[int, int] | None = None
    for start, end, first, word in said:
        named = word.lower() in known
        if readable and word[0].isupper() and len(word) > 1 and word.lower() not in _NO_NAMES:
            possessive = question[end - 2 : end] in ("'s", "’s")
            named = named or possessive or not first or bool(held)
        if named and held and question[held[1] : start] == " ":
            held = held[0], end
            continue
        if held:
            yield held[0], _bare(question[held[0] : held[1]]), "name"
        held = (start, end) if named else None
    if held:
        yield held[0], _bare(question[held[0] : held[1]]), "name"


def _begins(question: str, start: int) -> bool:
    """Say whether a sentence begins there."""
    return start == 0 or bool(_BEGINS.search(question, max(0, start - 9), start))


def _bare(word: str) -> str:
    return word.replace("’", "'").removesuffix("'s")


def _entity(text: str, kind: str) -> Entity:
    groups = spellings(text)
    if kind == "code" and " " in text:  # exit code 137: the number is what is meant
        groups = [group for group in groups if group[0].isdecimal()] or groups
    exact = [group[0] for group in groups]
    if kind == "version" and groups and len(groups[0]) > 1 and exact[0].startswith("v"):
        exact.append(exact[0][1:])
    if len(groups) > 1:
        exact = [term for term in exact if term not in STOP_WORDS]
    parts = [form for group in groups for form in group]
    return Entity(
        text,
        kind,
        tuple(dict.fromkeys(exact)),
        tuple(form for form in dict.fromkeys(parts) if form not in exact),
    )
