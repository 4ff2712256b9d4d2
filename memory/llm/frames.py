"""A statement as the rule judge reads it: tokens with one spelling each, its sentences, what it leans on.

Pure. Says what a text consists of, decides nothing about pairs of texts.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from memory.llm.vocabulary import (
    CLAUSES,
    COMPOUNDS,
    KIND_OF,
    LEMMAS,
    LIGHT,
    PARTICIPLES,
    PHRASES,
    REASONS,
    SAME,
    SHORT_UNITS,
    UNITS,
)
from memory.text.words import sentences

#: Readings kept for the next pair.
# Why: one statement is compared with ten, and a batch holds near neighbours.
READINGS_MAX = 1_024

_DENSE = r"\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_LETTER = rf"[^\W{_DENSE}]"
_TOKEN = re.compile(
    r"(?P<code>`[^`\n]+`)"
    r"|(?P<url>[a-z][a-z+.\-]*://[^\s,;)\]>\"']+|[\w.+\-]+@[\w\-]+\.[\w.\-]+)"
    r"|(?P<tag>[a-z][\w.\-/]*(?::\d[\w.\-]*)+)"
    r"|(?P<path>(?:~|\.{1,2}|[A-Za-z]:)?[/\\][\w.@\-/\\]*\w/?|[\w.@\-]+(?:/[\w.@\-]+)+/?|\.?\w[\w\-]*\.[a-z]{1,4}(?:\.[a-z]+)?\b(?![\w.]))"
    r"|(?P<time>\d{1,2}:\d{2}(?::\d{2})?|\d{4}-\d{2}-\d{2})"
    r"|(?P<number>[v#]?\d+(?:[.,]\d+)*(?![\w\-]*[a-z]{3})(?:\.x)?)"
    r"|(?P<flag>(?<!\w)--?[a-zA-Z][\w\-]*)"
    rf"|(?P<cjk>[{_DENSE}]+)"
    rf"|(?P<word>{_LETTER}+(?:[.\-']{_LETTER}+)*(?:\+\+|\#)?(?:\(\))?)"
    r"|(?P<joint>(?<=[\x21-\x7e]):(?=[\x21-\x7e]))"
    r"|(?P<sign><=|>=|!=|==|[<>=:%&|≤≥≠→])"
    r"|(?P<other>\S)"
)
_CJK_NUMBER = re.compile(r"[二两三四五六七八九十百千万]+")
_IDENTIFIER = re.compile(r"_|\(\)|[a-z0-9][A-Z]|\w\.\w|-\w*\d|[a-zA-Z]\d\w*$|^[a-f0-9]{7,40}$")
_BRANDED = re.compile(r"^[A-Z]?[a-z]+[A-Z]\w*$|^[A-Z]{2,}\w*$")
_CONTRACTIONS = (
    (re.compile(r"\bcan(?:'t|not)\b", re.I), "can not"),
    (re.compile(r"\bwon't\b", re.I), "will not"),
    (re.compile(r"\b(\w+)n't\b", re.I), r"\1 not"),
    (re.compile(r"\b(it|that|there|here|what|he|she)'s\b", re.I), r"\1 is"),
    (re.compile(r"\b(\w+)'re\b", re.I), r"\1 are"),
    (re.compile(r"\b(\w+)'ll\b", re.I), r"\1 will"),
    (re.compile(r"\b(\w+)'ve\b", re.I), r"\1 have"),
    (re.compile(r"\bI'm\b", re.I), "I am"),
)
#: Openings that announce a statement and are no part of it.
_FILLER = re.compile(
    r"\s*(?:[-*•>#]+\s+|"
    r"(?:note(?: to self)?|remember|reminder|fyi|nb|ps|tl;dr|important|correction|update|edit|decision|fact|hinweis|"
    r"merke?|notiz|achtung|wichtig|korrektur|entscheidung|注意|备注|记住|更正|提示|决定)\s*[:：]\s*|"
    r"(?:remember|note|keep in mind|bear in mind|please note|please remember|be aware)(?: that|,)\s+|"
    r"(?:as (?:i|we) (?:said|mentioned|discussed|agreed)(?: before| earlier)?|as (?:mentioned|discussed|agreed|noted)"
    r"(?: before| earlier| above)?|like i said|just to be clear|to be clear|for the record|by the way|btw|just so you know|"
    r"from now on|as of (?:now|today)|going forward|wie gesagt|wie besprochen|übrigens|ab jetzt|ab sofort|"
    r"如前所述|顺便说一下|从现在起|再说一遍|我说过)\s*[,:，：]?\s+|"
    r"(?:如前所述|顺便说一下|从现在起|再说一遍|我说过|记住|请注意|请记住)[,:，：]?|"
    r"(?:ok(?:ay)?,? so|ok(?:ay)? also|ok also|alright,? so)[,:]?\s+|"
    r"(?:ok(?:ay)?|so|well|right|yes|yeah|yep|no|nope|now|again|actually|in fact|alright|sorry|ja|nein|gut|also|"
    r"好的|对|不对|不)\s*[,，]\s*|"
    r"(?:actually|okay|ok)\s+)",
    re.I,
)
_LEANING = frozenset(
    "it that this they those these he she yes no yep ok okay es dies sie er dieser diese dieses ja nein 它 这 那 他 她"
    " 他们 它们 same both there here ditto".split()
)
_STANDING = frozenset("project repository team app codebase workspace package 项目 仓库 projekt".split())
# Why: in code every sign counts; words alone prove nothing there.
_CODE = re.compile(
    r"[{};]\s*$|=>|&&|\|\||[=!]==?\s|\w\([^)\n]*[\"'({]|^\s*(?://|/\*|\#include|import\s|const\s|let\s+\w+\s*=|def\s|return\b)"
    r"|[│┃━─]|\w\.\w+\([^)]*$|\+\s*$",
    re.M,
)
_FIRST_PERSON = re.compile(r"\b(?:i|me|my|mine|myself|ich|mir|mich|meine?[nrms]?)\b|我(?!们)", re.I)
_GERMAN = re.compile(r"\b(?:der|die|das|ist|sind|wir|nicht|und|mit|für|auf|ein|eine|wird|werden|im|von|statt)\b", re.I)


@dataclass(frozen=True)
class Token:
    """`key` is what is compared; `kind` is number, name, sign or word; `apart`: punctuation stands before it."""

    key: str
    kind: str
    raw: str
    apart: bool = False
    proper: bool = False


@dataclass(frozen=True)
class Frame:
    """One sentence, or one whole statement: its tokens without the light ones."""

    tokens: tuple[Token, ...]
    indefinite: bool = False

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(token.key for token in self.tokens)

    def names(self) -> frozenset[str]:
        """Return what the frame calls by name: identifiers, paths, products, proper nouns."""
        return frozenset(
            token.key for token in self.tokens if token.kind == "name" or token.proper or token.key in KIND_OF
        )

    def core(self) -> Frame:
        """Return the frame without the clause that says why."""
        for index, token in enumerate(self.tokens):
            if token.key in REASONS and index > 1:
                return Frame(self.tokens[:index], self.indefinite)
        return self


@dataclass(frozen=True)
class Reading:
    """A whole statement: everything it says, and each sentence alone."""

    whole: Frame
    parts: tuple[Frame, ...]
    question: bool
    leans: bool
    first_person: bool
    code: bool


@lru_cache(maxsize=READINGS_MAX)
def read(text: str) -> Reading:
    """Return the reading of a statement; fillers at its start are gone, every word has one spelling."""
    plain = unicodedata.normalize("NFKC", text.replace("’", "'")).strip()
    plain = _strip_filler(plain)
    spans = [span.text for span in sentences(plain)] or [plain]
    german = len(_GERMAN.findall(plain)) >= 2
    parts = tuple(frame for frame in (_frame(_strip_filler(span), german) for span in spans) if frame.tokens)
    whole = Frame(tuple(token for frame in parts for token in frame.tokens), bool(parts) and parts[0].indefinite)
    return Reading(
        whole=whole,
        parts=parts,
        question="?" in re.sub(r"`[^`]*`|\S+://\S+", "", plain),
        leans=_leans(plain, whole),
        first_person=bool(_FIRST_PERSON.search(plain)),
        code=bool(_CODE.search(re.sub(r"`[^`\n]*`", "", plain))),
    )


def _strip_filler(text: str) -> str:
    while (match := _FILLER.match(text)) and match.end() < len(text):
        text = text[match.end() :]
    return text


def _leans(text: str, whole: Frame) -> bool:
    """Return whether the statement needs its neighbours to be understood."""
    start = [token.key for token in _tokens(text, german=False)][:2]
    if not start or len(whole.tokens) < 2:
        return True
    if start[0] not in _LEANING:
        return False
    return len(start) < 2 or start[1] not in _STANDING


def _frame(text: str, german: bool) -> Frame:
    tokens = _phrased(list(_tokens(text, german)))
    first = tokens[0].key if tokens else ""
    kept = list(_heavy(tokens))
    while kept and kept[-1].kind == "sign":
        kept.pop()
    return Frame(tuple(_united(kept)), first in {"a", "an", "one", "some", "another", "ein", "eine", "einer", "there"})


def _heavy(tokens: list[Token]) -> Iterator[Token]:
    """Yield the tokens that claim something; a pause before a light one is kept for the next."""
    apart = False
    for token in tokens:
        if token.key in LIGHT:
            apart = apart or token.apart
            continue
        yield replace(token, apart=True) if apart and not token.apart else token
        apart = False


def _tokens(text: str, german: bool) -> Iterator[Token]:
    for pattern, spelled in _CONTRACTIONS:
        text = pattern.sub(spelled, text)
    apart, first = False, True
    for match in _TOKEN.finditer(text):
        group, raw = str(match.lastgroup), match.group()
        if group == "other":
            if unicodedata.category(raw) == "So":
                yield Token(raw, "sign", raw, apart)
            apart = apart or raw not in "\"'*_“”„"
            continue
        if group == "cjk":
            for piece in _split(raw):
                number = bool(_CJK_NUMBER.fullmatch(piece))
                yield Token(_spell(piece), "number" if number else "word", piece, apart)
                apart = first = False
            continue
        yield _token(group, raw, apart, proper=not first and not german)
        apart, first = False, False


def _split(run: str) -> Iterator[str]:
    """Yield known compounds and numbers of a run without spaces, else single characters."""
    place = 0
    while place < len(run):
        number = _CJK_NUMBER.match(run, place)
        piece = next((word for word in COMPOUNDS if run.startswith(word, place)), None)
        piece = piece or (number.group() if number else run[place])
        yield piece
        place += len(piece)


def _token(group: str, raw: str, apart: bool, proper: bool) -> Token:
    if group == "code":
        raw = raw.strip("`").strip()
        lower = raw.lower()
        return Token(lower if lower in KIND_OF else raw.removesuffix("()"), "name", raw, apart)
    if group in ("url", "tag", "path", "flag"):
        if raw.lower() in KIND_OF or raw.lower() in SAME:
            return Token(_spell(raw), "word", raw, apart, proper)
        return Token(raw.rstrip("/.") or raw, "name", raw, apart)
    if group == "time":
        return Token(raw.zfill(5), "time", raw, apart)
    if group == "number":
        whole = raw.replace(",", "") if _THOUSANDS.fullmatch(raw) else raw.replace(",", ".")
        return Token(whole.lstrip("v#"), "number", raw, apart)
    if group == "joint":
        return Token(raw, "sign", raw, apart)
    if group == "sign":
        return Token(_spell(raw), "word" if _spell(raw) != raw else "sign", raw, apart or raw == ":")
    if _IDENTIFIER.search(raw) and raw.lower() not in KIND_OF and not _BRANDED.match(raw):
        return Token(raw.removesuffix("()"), "name", raw, apart)
    branded = bool(_BRANDED.match(raw)) and raw.lower() not in LIGHT
    return Token(_spell(raw), "word", raw, apart, branded or (proper and raw[0].isupper() and raw != "I"))


def _spell(raw: str) -> str:
    key = raw.lower()
    key = LEMMAS.get(key, key)
    return SAME.get(key, key)


def _phrased(tokens: list[Token]) -> list[Token]:
    """Return the tokens with the known phrases said in their one spelling."""
    for phrase, spelled in _PHRASES:
        width = len(phrase)
        index = 0
        while index + width <= len(tokens):
            here = tokens[index : index + width]
            if tuple(token.raw.lower() for token in here) == phrase:
                new = [Token(_spell(word), "word", here[0].raw, here[0].apart) for word in spelled]
                tokens[index : index + width] = new
            index += 1
    return tokens


_PHRASES = sorted(
    ((tuple(phrase.split()), tuple(spelled.split())) for phrase, spelled in PHRASES),
    key=lambda pair: -len(pair[0]),
)
# Why: `also`, `of` and `that` change what a pair of statements proves, yet not what one of them says.
_SILENT = frozenset(["be", "also", "that", "of", "auch", "dass", "的"])
_NUMBER_WORDS = {
    word: str(value)
    for value, words in enumerate(
        "zwei/two/二/两 drei/three/三 vier/four/四 fünf/five/五 sechs/six/六 sieben/seven/七 acht/eight/八 neun/nine/九"
        " zehn/ten/十 elf/eleven/十一 zwölf/twelve/十二".split(),
        start=2,
    )
    for word in words.split("/")
}
_NUMBER_WORDS.update({"twenty": "20", "thirty": "30", "forty": "40", "fifty": "50", "sixty": "60", "ninety": "90"})
_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+")
_MEASURE = re.compile(r"(\d+(?:\.\d+)*)([a-zA-Z%]{1,7})")


def _united(tokens: list[Token]) -> Iterator[Token]:
    """Yield the tokens with numbers in digits and short units read as units."""
    previous: Token | None = None
    for token in tokens:
        measure = _MEASURE.fullmatch(token.key)
        unit = _unit(measure.group(2)) if measure else ""
        if measure and unit:
            yield Token(measure.group(1), "number", token.raw, token.apart)
            token = Token(unit, "word", token.raw)
        elif token.key in _NUMBER_WORDS:
            token = Token(_NUMBER_WORDS[token.key], "number", token.raw, token.apart)
        elif previous and previous.kind == "number" and token.key in SHORT_UNITS:
            token = Token(SHORT_UNITS[token.key], "word", token.raw)
        yield token
        previous = token


def _unit(text: str) -> str:
    unit = _spell(SHORT_UNITS.get(text.lower(), text))
    return unit if unit in UNITS else ""


def claims(frame: Frame) -> tuple[str, ...]:
    """Return the words by which two statements are compared as wholes: quoted code as its words, `be` left out."""
    words: list[str] = []
    for token in frame.tokens:
        if " " in token.key:
            words.extend(_spell(word) for word in token.key.split())
        elif token.key not in _SILENT:
            words.append(token.key)
    return tuple(words)


def clause_inside(tokens: tuple[Token, ...]) -> bool:
    """Return whether another clause begins among the tokens."""
    return any(token.key in CLAUSES for token in tokens)


def verb_of(token: Token, before: tuple[Token, ...]) -> str | None:
    """Return the verb a token stands for; a participle is one only behind `be`."""
    if token.key in PARTICIPLES:
        return PARTICIPLES[token.key] if any(word.key == "be" for word in before) else None
    return token.key
