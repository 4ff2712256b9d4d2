"""Words of a text: what a search index stores, what a query asks for, and how much there is to ask.

Reads prose, chat, code and scripts without spaces. An identifier gives itself, exactly, and its
parts. Knows nothing about any index, and stems nothing (`memory.text.stem` does).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

from memory.text.sentences import Span as Span
from memory.text.sentences import sentences as sentences
from memory.text.stopwords import ENGLISH, GERMAN, QUESTION_WORDS, STOP_WORDS, TWO_TONGUED

#: Characters of the longest term.
# Why: a lexeme of Postgres ends at 2 KB, and a base64 blob is not a word.
# Calibrate: the longest path or qualified name that people search for whole.
TERM_CHARS_MAX = 120

#: Parts of one identifier that count as meaningful.
# Why: a bare URL has ten parts and says less than a sentence of five words.
# Calibrate: prompts that are only a path or a link must stay below the substance gate of recall.
IDENTIFIER_PARTS_MAX = 3

#: Identifiers whose spellings are kept in memory.
# Why: taking one apart costs ten times what looking it up does, and a session repeats its own few.
# Calibrate: cache_info() over a session of real work should show more hits than misses.
IDENTIFIERS_CACHED_MAX = 8_192

# Scripts that write no spaces: kana, Han, Hangul, Thai, Lao, Myanmar, Khmer. Hangul has spaces, but
# endings stick.
_DENSE = (
    "\u3005\u3040-\u30fa\u30fc-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7a3\u0e00-\u0e3a"
    "\u0e40-\u0e4e\u0e80-\u0eff\u1000-\u109f\u1780-\u17d3\U00020000-\U0003134f"
)
# Letters, digits and underscore of every other script, vowel signs of Indic scripts among them.
_LETTER = f"(?:[^\\W{_DENSE}]|[\u0900-\u0dff])"
_TOKEN = re.compile(
    f"(?P<dense>[{_DENSE}]+)"
    f"|(?P<lead>(?<![\\w\\-])--?(?=[^\\W\\d])|(?<![\\w.])\\.(?=[^\\W\\d]))?"
    f"(?P<name>{_LETTER}+(?:(?:[./:\\-\\\\]{{1,3}}|['\u2019]){_LETTER}+)*)(?P<sharp>(?:\\+\\+|\\#)(?![\\w+\\#]))?"
)
_CAMEL = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z0-9]+|[A-Z]+[0-9]*")
_HUMP = re.compile(r"[a-z0-9][A-Z]|[A-Z][A-Z][a-z]")
_COMPOUND = re.compile(r"[./:\-_\\]")
_VERSION = re.compile(r"v(?=\d)")
_ENGLISH_ALONE, _GERMAN_ALONE = ENGLISH - GERMAN, GERMAN - ENGLISH - TWO_TONGUED
# Why whole: "kind" and "many" alone are matter, and so is the type of a column.
_ASKED_FOR = re.compile(
    r"\b(?:(?:what|which)\s(?:kinds?|types?|sorts?)\sof|how\s(?:many|much)|wie\s?viele?[nr]?"
    r"|welche[rn]?\sart(?:en)?\svon)\b", re.IGNORECASE,
)  # fmt: skip
# Why: "I'd" is no id, and "we'll" no well.
_CLITIC = re.compile(r"'(?:s|d|m|ll|re|ve)$", re.IGNORECASE)
_MARKS = re.compile("[\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0670]+")
_TWINS = re.compile(r"(.)\1+")
_LATIN = str.maketrans(
    {"ß": "ss", "ẞ": "SS", "æ": "ae", "Æ": "AE", "œ": "oe", "Œ": "OE", "ø": "o", "Ø": "O",
     "ł": "l", "Ł": "L", "đ": "d", "Đ": "D", "ı": "i", "þ": "th", "Þ": "Th", "ð": "d", "Ð": "D",
     "’": "'"}
)  # fmt: skip


def words(text: str) -> list[str]:
    """Return the lexical terms of the text in order, repeats included: lower case, accents folded.

    `foo_bar.baz()` gives foo_bar.baz, foo_bar, foo, bar, baz; `getUserName` gives getusername, get,
    user, name; `--dry-run` gives --dry-run, dry-run, dry, run; a run of Han, kana, Hangul or Thai
    gives its pairs of characters. No term holds whitespace or NUL or is longer than TERM_CHARS_MAX.
    """
    found: list[str] = []
    for match in _TOKEN.finditer(_fold(text)):
        run, lead, name, sharp = match.groups()
        if run:
            found.extend(_pairs(run))
        elif not lead and not sharp and name.isalnum() and name.islower():
            found.append(name[:TERM_CHARS_MAX])
        else:
            found.extend(_forms(lead or "", name, sharp or ""))
    return found


def spellings(text: str) -> list[tuple[str, ...]]:
    """Return the words of the text grouped by what they spell, the whole of each first."""
    groups: list[tuple[str, ...]] = []
    for match in _TOKEN.finditer(_fold(text)):
        run, lead, name, sharp = match.groups()
        if run:
            groups.extend((pair,) for pair in _pairs(run))
        elif group := _forms(lead or "", name, sharp or ""):
            groups.append(group)
    return groups


def terms(text: str) -> list[str]:
    """Return the distinct words of a query in order, without stop words and question words."""
    said = dict.fromkeys(words(_ASKED_FOR.sub(" ", text)))
    silent = STOP_WORDS | QUESTION_WORDS
    if not TWO_TONGUED.isdisjoint(said):
        every = set(words(text))
        if len(every & _GERMAN_ALONE) <= len(every & _ENGLISH_ALONE):
            silent -= TWO_TONGUED
    return [word for word in said if word not in silent]


def meaningful(text: str) -> int:
    """Return how many distinct meaningful tokens the text has.

    Scripts without spaces count by characters (a repeated one once); stop words, single letters and
    single digits do not count; an identifier counts for at most IDENTIFIER_PARTS_MAX.
    """
    dense = 0
    seen: set[str] = set()
    for match in _TOKEN.finditer(_fold(text)):
        run = match.group("dense")
        if run:
            dense += len(_TWINS.sub(r"\1", run))
            continue
        atoms = _atoms(match.group("name"))
        said = [atom for atom in atoms if len(atom) > 1 and atom not in STOP_WORDS]
        seen.update(said[:IDENTIFIER_PARTS_MAX])
    return dense + len(seen)


def _fold(text: str) -> str:
    """Return the text in compatibility form without accents, in the case it came in."""
    if text.isascii():
        return text
    apart = unicodedata.normalize("NFKD", text).translate(_LATIN)
    return unicodedata.normalize("NFC", _MARKS.sub("", apart))


def _pairs(run: str) -> list[str]:
    return [run] if len(run) == 1 else [run[index : index + 2] for index in range(len(run) - 1)]


@lru_cache(maxsize=IDENTIFIERS_CACHED_MAX)
def _forms(lead: str, name: str, sharp: str) -> tuple[str, ...]:
    """Return the spellings under which one identifier is found, the exact one first."""
    name = _unquote(name)
    whole = name.lower()
    forms = [lead + whole + sharp, whole]
    if _VERSION.match(whole):
        forms.append(whole[1:])
    forms.extend(_parts(name))
    single_ok = len(whole) == 1
    kept = [form for form in dict.fromkeys(forms) if len(form) > 1 or (form and single_ok)]
    return tuple(form[:TERM_CHARS_MAX] for form in kept)


def _unquote(name: str) -> str:
    """Take the apostrophe out: user's -> user, I'd -> I, don't -> dont."""
    if "'" not in name:
        return name
    return _CLITIC.sub("", name).replace("'", "")


def _parts(name: str) -> Iterator[str]:
    """Yield the parts of an identifier from coarse to fine: steps, dotted names, words, humps."""
    if ":" in name and not name.replace(":", "").isalnum():
        # Why: src/app.py:42 is found by its path, and a link without its scheme.
        for place in re.split(r":[/\\]*", name):
            yield place.lower()
    for step in re.split(r"[/:\\]+", name):
        yield step.lower()
        for dotted in step.split("."):
            yield dotted.lower()
            for word in re.split(r"[_\-]+", dotted):
                yield word.lower()
                if _HUMP.search(word):
                    for hump in _CAMEL.findall(word):
                        yield hump.lower()


def _atoms(name: str) -> list[str]:
    if name.isalnum() and not _HUMP.search(name):
        return [name.lower()]
    name = _unquote(name)
    pieces = [piece for piece in _COMPOUND.split(name) if piece]
    humps = [_CAMEL.findall(piece) if _HUMP.search(piece) else [piece] for piece in pieces]
    return [hump.lower() for group in humps for hump in group]


# Sentence marks of scripts that put no space after them; a space says the same.
_SPACED = str.maketrans(dict.fromkeys("。，、！；：「」『』（）《》【】〈〉“”„«»…\u3000", " "))
_SPACED.update(str.maketrans({"’": "'", "‘": "'", "？": "? "}))
# Why: `?` stays, a question is not the statement; `!` and `.` stay in front, they are code there
# (!x, .env).
_EDGE_LEFT = ",;:\"'()[]{}*`"
_EDGE_RIGHT = _EDGE_LEFT + ".!"
# Tokens of nothing but these say nothing; `[]`, `{}` or `*` alone do.
_SILENT = ".,;:!\"'`"
_BULLETS = frozenset(["-", "*", "•", "–", "—", "+"])
_ORDINAL = re.compile(r"\d{1,2}[.)]$")

#: Rounds of folding until nothing changes.
# Why: case folding can undo NFKC and the other way round; two rounds settle all but a handful of
# characters.
# Calibrate: the property test of idempotence finds the character that needs more.
FOLD_ROUNDS_MAX = 4


def normalise(text: str) -> str:
    """Return the text as it is compared for duplicates: case, spacing, bullets and sentence
    punctuation made one.

    What carries meaning stays: signs inside words (v1.2, a-b, C++), comparison signs, question
    marks, accents. Idempotent.
    """
    text = text.lower() if text.isascii() else _casefold(text)
    kept: list[str] = []
    for line in text.splitlines():
        leading = True
        for raw in line.split():
            token = raw.rstrip(_EDGE_RIGHT).lstrip(_EDGE_LEFT)
            if not token:
                token = raw.strip(_SILENT) and raw
            if leading and (not token or token in _BULLETS or _ORDINAL.match(raw)):
                continue
            leading = False
            if token:
                kept.append(token)
    return " ".join(kept)


def _casefold(text: str) -> str:
    for _ in range(FOLD_ROUNDS_MAX):
        folded = unicodedata.normalize("NFKC", text.translate(_SPACED)).casefold()
        folded = unicodedata.normalize("NFKC", folded)
        if folded == text:
            break
        text = folded
    return text
