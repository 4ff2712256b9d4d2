"""The lexical half of finding things: what is indexed of a text, what a query asks for, and BM25.

Terms come from `memory.text`, because Postgres cannot segment CJK and splits identifiers; they are
kept as 64-bit hashes. Pure but for numpy; shared by the index, the tracks, and whoever scores.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from memory.text.irregular import base
from memory.text.stem import stem
from memory.text.words import terms, words

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: How fast a repeated term stops counting, and how much a long text pays for its length.
# Why: the values of Lucene and of the engines that are built on it.
# Calibrate: recall@5 of `manage.py eval`, leaving one dialogue out.
BM25_K1 = 1.2
BM25_B = 0.75

#: Distinct terms kept of one text, the most frequent first.
# Why: a document of a megabyte has a hundred thousand; what it says once in passing is not what
# it is found by, and each term is a row.
# Calibrate: recall of questions about the ends of long documents.
TERMS_A_TEXT_MAX = 4_000

#: Terms of one query; the rarest are kept when there are more.
# Why: each costs a look-up in the postings. A question of a sentence or two has fewer; what has
# more is pasted, and common terms are the ones that it loses.
# Calibrate: recall@5 of long prompts with the bound halved and doubled, and p50.
QUERY_TERMS_MAX = 24

#: Hashes kept in memory.
# Why: a vocabulary of everyday use, some megabytes; a term that is not among them is hashed again.
HASHES_CACHED_MAX = 65_536

#: The largest count that is stored: two bytes.
COUNT_MAX = 65_535

# Why words of its own, beside the grammar of time that reads questions: that one says which days
# are meant, this one only whether a text speaks of a time at all. The ranker was trained on exactly
# these; whoever changes them indexes anew and trains again.
_TIME = re.compile(
    r"\b(?:yesterday|today|tonight|tomorrow|ago|last|next|week|month|year|weekend|morning|evening"
    r"|(?:mon|tues|wednes|thurs|fri|satur|sun)day|january|february|march|april|june|july|august"
    r"|september|october|november|december|since|recently|gestern|heute|morgen|woche|monat|jahr)\b"
    r"|\d{1,2}:\d\d|\b(?:19|20)\d\d\b",
    re.IGNORECASE,
)
_FIRST_PERSON = re.compile(
    r"\b(?:i|i'm|i've|my|me|we|our|ich|wir|mein\w*|unser\w*)\b", re.IGNORECASE
)
_DIGIT = re.compile(r"\d")
_PROPER = re.compile(r"(?<=[a-z0-9] )[A-Z][a-z]+")


@dataclass(frozen=True)
class Packed:
    """A text as the index keeps it: sorted distinct term hashes (int64), how often each stands in
    the body and in the header (uint16), and how many terms the body has in all."""

    terms: bytes
    counts: bytes
    heads: bytes
    length: int


@dataclass(frozen=True)
class Statistics:
    """A collection as BM25 sees it: texts, their mean length, and how many hold each asked term;
    `weights` is what each term counts beside a plain word's 1 (none: all alike)."""

    texts: int
    mean_length: float
    holding: tuple[int, ...]
    weights: tuple[float, ...] = ()

    def idf(self) -> Floats:
        """Lucene's inverse document frequency of each asked term times its weight, in their order;
        above 0."""
        holding = np.asarray(self.holding, dtype=np.float64)
        texts = max(float(self.texts), float(holding.max(initial=0.0)))
        rarity = idf(texts, holding)
        return np.asarray(rarity * self.weights if self.weights else rarity)


def idf(texts: float, holding: Floats) -> Floats:
    """What a term weighs that so many of the texts hold, as Lucene has it; never below 0."""
    return np.asarray(np.log1p((texts - holding + 0.5) / (holding + 0.5)))


def lexeme(word: str) -> str:
    """The form under which a word is kept: irregular ones by their base, then stemmed."""
    return stem(base(word))


def lexemes(text: str) -> list[str]:
    """Terms of a text as they are kept, in order, repeats included."""
    return [lexeme(word) for word in words(text)]


@lru_cache(maxsize=HASHES_CACHED_MAX)
def hashed(lexeme: str) -> int:
    """The 64-bit name of a term, signed: two terms share one about never."""
    digest = blake2b(lexeme.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


def pack(body: str, head: str = "") -> Packed:
    """What the index keeps of a text. `head` is what stands over it: who spoke, when."""
    in_body, in_head = Counter(lexemes(body)), Counter(lexemes(head))
    length = sum(in_body.values())
    kept = [term for term, _ in in_body.most_common(TERMS_A_TEXT_MAX)]
    rows = sorted(
        (hashed(term), min(in_body[term], COUNT_MAX), min(in_head[term], COUNT_MAX))
        for term in {*kept, *in_head}
    )
    names, counts, heads = zip(*rows, strict=True) if rows else ((), (), ())
    return Packed(
        np.array(names, dtype="<i8").tobytes(),
        np.array(counts, dtype="<u2").tobytes(),
        np.array(heads, dtype="<u2").tobytes(),
        length,
    )


def dated(at: datetime) -> str:
    """A date in the words in which people ask for it, for a header."""
    return f"{at.day} {at:%B} {at.year}"


#: What the ranker asks of a text beside its terms, a bit each in this order.
TRAITS = ("asks", "time", "digit", "first_person", "proper")


def traits(body: str) -> int:
    """Bits of TRAITS: ends as a question, names a time, holds a digit, speaks of the speaker,
    has a name inside a sentence."""
    found = (
        body.rstrip(" \"')*_`").endswith(("?", "？")),
        _TIME.search(body),
        _DIGIT.search(body),
        _FIRST_PERSON.search(body),
        _PROPER.search(body),
    )
    return sum(1 << bit for bit, yes in enumerate(found) if yes)


def query_terms(text: str) -> list[str]:
    """Distinct terms of a query, as they are kept, without stop and question words, in order."""
    return list(dict.fromkeys(lexeme(term) for term in terms(text)))


def saturate(
    counts: Floats, lengths: Floats, mean_length: float, *, k1: float = BM25_K1, b: float = BM25_B
) -> Floats:
    """BM25 of each count but for idf: `counts` is [texts, terms] or [n], lengths one a row."""
    norm = k1 * (1 - b + b * lengths / max(mean_length, 1e-9))
    return np.asarray(counts / (counts + (norm[:, None] if counts.ndim == 2 else norm)))


def bm25(counts: Floats, lengths: Floats, known: Statistics) -> Floats:
    """BM25 of each text (Lucene's form, without the constant k1 + 1): [texts]."""
    return np.asarray(saturate(counts, lengths, known.mean_length) @ known.idf())


def weights(packed: Packed, mean_length: float) -> list[tuple[int, float]]:
    """(term, BM25 but for idf) of every term of the body: what postings are ordered by."""
    counts = np.frombuffer(packed.counts, dtype="<u2").astype(np.float64)
    names = np.frombuffer(packed.terms, dtype="<i8")
    there = counts > 0
    lengths = np.full(int(there.sum()), float(packed.length))
    shares = saturate(counts[there], lengths, mean_length)
    return list(zip(names[there].tolist(), shares.tolist(), strict=True))


def rarest(asked: Sequence[int], known: Statistics) -> list[int]:
    """Positions of the terms that a query is answered by, in order; the rarest when too many, and
    those that no text holds last: they find nothing."""
    by_rarity = sorted(
        range(len(asked)), key=lambda at: (not known.holding[at], known.holding[at], at)
    )
    return sorted(by_rarity[:QUERY_TERMS_MAX])


def ceiling(known: Statistics) -> float:
    """The BM25 that no text can reach: every asked term, often. Scores over it lie in 0..1."""
    return float(math.fsum(known.idf().tolist())) or 1.0
