"""A statement as the rule judge reads it: tokens with one spelling each, its sentences, what it
leans on.

Pure. Says what a text consists of, decides nothing about pairs of texts.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache

from memory.llm.rules.lexemes import Token, heavy, lex, spell
from memory.llm.rules.verbs import PARTICIPLES
from memory.llm.rules.vocabulary import CLAUSES, KIND_OF, REASONS, row
from memory.text.words import sentences

#: Readings kept for the next pair.
# Why: one statement is compared with ten, and a batch holds near neighbours.
READINGS_MAX = 1_024

# Why: `also`, `of` and `that` change what a pair of statements proves, yet not what one of them
# says.
_SILENT = frozenset(["be", "also", "that", "of", "auch", "dass", "的"])
#: Openings that announce a statement and are no part of it.
_FILLER = re.compile(
    r"(?:[-*•>#]{1,20}\s+|"
    r"(?:(?:please |also |side )?note(?: (?:to self|well|also))?|(?:please |just )?remember|"
    r"(?:just a |a )?(?:quick |friendly )?reminder|just a (?:quick )?note|please be aware|"
    r"heads[ -]up|"
    r"fyi|nb|ps|tl;dr|important|correction|update|edit|decision|fact|one more thing|"
    r"for (?:your information|(?:future )?reference|the future|later|completeness)|"
    r"(?:bitte )?(?:beachte|beachten|merken|merk dir|denk daran)|zur info|"
    r"hinweis|请注意|"
    r"merke?|notiz|achtung|wichtig|korrektur|entscheidung|注意|备注|记住|更正|提示|"
    r"决定)\s*[:：]\s*|"
    r"(?:please |just |also )?(?:do )?(?:remember|note|keep in mind|bear in mind|be aware|"
    r"be advised|don't forget|do not forget)(?:(?: also)? that|"
    r",)\s+|"
    r"(?:for (?:your information|(?:future )?reference|the future|later|completeness)|fyi|"
    r"heads[ -]up|one more thing|zur info)\s*,\s*|"
    r"(?:bitte )?(?:beachte|beachten sie|merk dir|denk daran)(?: bitte)?, dass\s+|"
    r"(?:as (?:i|we) (?:said|mentioned|discussed|agreed)(?: before| earlier)?|as (?:mentioned|"
    r"discussed|agreed|noted)"
    r"(?: before| earlier| above)?|like i said|just to be clear|to be clear|for the record|"
    r"by the way|btw|just so you know|"
    r"from now on|as of (?:now|today)|going forward|wie gesagt|wie besprochen|übrigens|ab jetzt|"
    r"ab sofort|"
    r"如前所述|顺便说一下|从现在起|再说一遍|我说过)\s*[,:，：]?\s+|"
    r"(?:如前所述|顺便说一下|从现在起|再说一遍|我说过|记住|请注意|请记住)[,:，：]?|"
    r"(?:ok(?:ay)?,? so|ok(?:ay)? also|ok also|alright,? so)[,:]?\s+|"
    r"(?:ok(?:ay)?|so|well|right|yes|yeah|yep|no|nope|now|again|actually|in fact|alright|sorry|ja|"
    r"nein|gut|"
    r"好的|对|不对|不)\s*[,，]\s*|"
    r"(?:actually|okay|ok)\s+)",
    re.I,
)
_LEANING = row(
    "it that this they those these he she yes no yep ok okay es dies sie er dieser diese dieses"
    " ja nein 它 这 那 他 她"
    " 他们 它们 same both there here ditto"
)
_STANDING = row("project repository team app codebase workspace package 项目 仓库 projekt")
# Why: in code every sign counts; words alone prove nothing there.
_CODE = re.compile(
    r"[{};]\s{0,20}$|=>|&&|\|\||[=!]==?\s|\w\([^)\n]*[\"'({]|"
    r"^[^\S\n]{0,80}(?://|/\*|\#include|import\s|const\s|"
    r"let\s+\w{1,60}\s*=|def\s|return\b)"
    r"|[│┃━─]|\w\.\w+\([^)]{0,200}$|\+\s{0,20}$",
    re.M,
)
# A question mark in code or in an address asks nothing.
_ASKS_NOTHING = re.compile(r"`[^`]*`|(?<!\S)\S*?://\S+|[a-z]{1,20}://\S+")
_QUOTED_CODE = re.compile(r"`[^`\n]*`")
_INDEFINITE = row("a an one some another ein eine einer there")
_FIRST_PERSON = re.compile(r"\b(?:i|me|my|mine|myself|ich|mir|mich|meine?[nrms]?)\b|我(?!们)", re.I)
_GERMAN = re.compile(
    r"\b(?:der|die|das|ist|sind|wir|nicht|und|mit|für|auf|ein|eine|wird|werden|im|von|statt)\b",
    re.I,
)


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
            token.key
            for token in self.tokens
            if token.kind == "name" or token.proper or token.key in KIND_OF
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
    """Return the reading of a statement; fillers at its start are gone, every word has one
    spelling.
    """
    plain = unicodedata.normalize("NFKC", text.replace("’", "'")).strip()
    plain = _strip_filler(plain)
    spans = [span.text for span in sentences(plain)] or [plain]
    german = len(_GERMAN.findall(plain)) >= 2
    parts = tuple(
        frame for frame in (_frame(_strip_filler(span), german) for span in spans) if frame.tokens
    )
    whole = Frame(
        tuple(token for frame in parts for token in frame.tokens),
        bool(parts) and parts[0].indefinite,
    )
    return Reading(
        whole=whole,
        parts=parts,
        question="?" in _ASKS_NOTHING.sub("", plain),
        leans=_leans(plain, whole),
        first_person=bool(_FIRST_PERSON.search(plain)),
        code=bool(_CODE.search(_QUOTED_CODE.sub("", plain))),
    )


def _strip_filler(text: str) -> str:
    while (match := _FILLER.match(text)) and match.end() < len(text):
        text = text[match.end() :]
    return text


def _leans(text: str, whole: Frame) -> bool:
    """Return whether the statement needs its neighbours to be understood."""
    start = [token.key for token in lex(text, german=False)][:2]
    if not start or len(whole.tokens) < 2:
        return True
    if start[0] not in _LEANING:
        return False
    return len(start) < 2 or start[1] not in _STANDING


def _frame(text: str, german: bool) -> Frame:
    tokens = list(lex(text, german))
    kept = list(heavy(iter(tokens)))
    while kept and kept[-1].kind == "sign":
        kept.pop()
    return Frame(tuple(kept), bool(tokens) and tokens[0].key in _INDEFINITE)


def claims(frame: Frame) -> tuple[str, ...]:
    """Return what is compared of whole statements: all words, quoted code as its words."""
    words: list[str] = []
    for token in frame.tokens:
        if " " in token.key:
            words.extend(spell(word) for word in token.key.split())
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
