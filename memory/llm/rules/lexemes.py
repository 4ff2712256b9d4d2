"""Tokens of a statement: prose, identifiers, paths, measures, code spans, Chinese by dictionary.

Each token has one spelling by which statements are compared. Pure; knows no sentences.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, replace

from memory.llm.rules.verbs import CHANGE_VERBS, LEMMAS
from memory.llm.rules.vocabulary import (
    ADDITIVE,
    CLAUSES,
    KIND_OF,
    LIGHT,
    LIMITS,
    PHRASES,
    SAME,
    SHORT_UNITS,
    UNITS,
    row,
)

_DENSE = r"\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_LETTER = rf"[^\W{_DENSE}]"
# Every repetition before a sign that may be missing is bounded: a run without it costs its length.
_TOKEN = re.compile(
    r"(?P<code>`[^`\n]+`)"
    r"|(?P<url>[a-z][a-z+.\-]{0,40}://[^\s,;)\]>\"']+|[\w.+\-]{1,64}@[\w\-]{1,64}\.[\w.\-]+)"
    r"|(?P<tag>[a-z][\w.\-/]{0,120}(?::\d[\w.\-]*)+)"
    r"|(?P<path>(?:~|\.{1,2}|[A-Za-z]:)?[/\\][\w.@\-/\\]{0,240}\w/?|"
    r"[\w.@\-]{1,120}(?:/[\w.@\-]{1,120}){1,40}/?|"
    r"\.?\w[\w\-]{0,120}\.[a-z]{1,4}(?:\.[a-z]+)?\b(?![\w.]))"
    r"|(?P<time>\d{1,2}:\d{2}(?::\d{2})?|\d{4}-\d{2}-\d{2})"
    r"|(?P<number>[v#]?\d{1,40}(?:[.,]\d{1,40})*(?![\w\-]{0,40}[a-z]{3})(?:\.x)?)"
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
#: Chinese compounds, longest first when a run of characters is split.
_COMPOUNDS = sorted(
    {
        word
        for table in (SAME, LEMMAS, KIND_OF, LIGHT, CLAUSES, LIMITS, ADDITIVE, CHANGE_VERBS)
        for word in table
        if len(word) > 1 and "\u4e00" <= word[0] <= "\u9fff"
    }
    | row(
        "端口 数据库 生产环境 测试环境 超时 版本 启用 禁用 讨厌 打开 关闭 允许 公开 私有 手动 自动"
        " 替换 取代 代替 因为 所以 配置 日志 服务 缓存"
    ),
    key=len,
    reverse=True,
)


@dataclass(frozen=True)
class Token:
    """`key` is what is compared; `kind` is number, name, sign or word; `apart`: punctuation stands
    before it.
    """

    key: str
    kind: str
    raw: str
    apart: bool = False
    proper: bool = False


def lex(text: str, german: bool) -> Iterator[Token]:
    """Yield the tokens of one sentence, phrases in one spelling, numbers in digits.

    `german`: capitals mark every noun, so they mark no name. Light words are still there.
    """
    yield from _united(_phrased(list(_tokens(text, german))))


def heavy(tokens: Iterator[Token]) -> Iterator[Token]:
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
                yield Token(spell(piece), "number" if number else "word", piece, apart)
                apart = first = False
            continue
        yield _token(group, raw, apart, proper=not first and not german)
        apart, first = False, False


def _split(run: str) -> Iterator[str]:
    """Yield known compounds and numbers of a run without spaces, else single characters."""
    place = 0
    while place < len(run):
        number = _CJK_NUMBER.match(run, place)
        piece = next((word for word in _COMPOUNDS if run.startswith(word, place)), None)
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
            return Token(spell(raw), "word", raw, apart, proper)
        return Token(raw.rstrip("/.") or raw, "name", raw, apart)
    if group == "time":
        return Token(raw.zfill(5), "time", raw, apart)
    if group == "number":
        whole = raw.replace(",", "") if _THOUSANDS.fullmatch(raw) else raw.replace(",", ".")
        return Token(whole.lstrip("v#"), "number", raw, apart)
    if group == "joint":
        return Token(raw, "sign", raw, apart)
    if group == "sign":
        return Token(spell(raw), "word" if spell(raw) != raw else "sign", raw, apart or raw == ":")
    if _IDENTIFIER.search(raw) and raw.lower() not in KIND_OF and not _BRANDED.match(raw):
        return Token(raw.removesuffix("()"), "name", raw, apart)
    branded = bool(_BRANDED.match(raw)) and raw.lower() not in LIGHT
    return Token(
        spell(raw), "word", raw, apart, branded or (proper and raw[0].isupper() and raw != "I")
    )


def spell(raw: str) -> str:
    """Return the one spelling of a word: lower case, present tense, known synonym."""
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
                new = [Token(spell(word), "word", here[0].raw, here[0].apart) for word in spelled]
                tokens[index : index + width] = new
            index += 1
    return tokens


_PHRASES = sorted(
    ((tuple(phrase.split()), tuple(spelled.split())) for phrase, spelled in PHRASES),
    key=lambda pair: -len(pair[0]),
)
_NUMBER_WORDS = {
    word: str(value)
    for value, words in enumerate(
        [
            "zwei/two/二/两",
            "drei/three/三",
            "vier/four/四",
            "fünf/five/五",
            "sechs/six/六",
            "sieben/seven/七",
            "acht/eight/八",
            "neun/nine/九",
            "zehn/ten/十",
            "elf/eleven/十一",
            "zwölf/twelve/十二",
        ],
        start=2,
    )
    for word in words.split("/")
}
_NUMBER_WORDS.update(
    {"twenty": "20", "thirty": "30", "forty": "40", "fifty": "50", "sixty": "60", "ninety": "90"}
)
_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+")
_MEASURE = re.compile(r"\A(\d+(?:\.\d+)*)([a-zA-Z%]{1,7})")


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
    unit = spell(SHORT_UNITS.get(text.lower(), text))
    return unit if unit in UNITS else ""
