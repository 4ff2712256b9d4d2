"""What share of a question each of its words is: what coverage adds up. Pure.

A rare word weighs more than a common one; an identifier counts once, however many parts it has;
the name of a project counts nothing, because in a project's own memory it says nothing. Knows
nothing about texts: whether one holds a word is for the caller to say.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

import numpy as np

from memory.lexical import idf, lexeme
from memory.text.words import terms

#: Texts that a memory is taken to have at least when words are weighed.
# Why: in a memory of ten notes what all of them hold weighs nothing, and a word that none holds
# would be the whole question. From 100 to 2,000 the prompts of the tests come out alike.
# Calibrate: right answers and false injections of `manage.py calibrate` on a memory of ten notes.
TEXTS_MIN = 100

_POSSESSIVE = re.compile(r"['’]s?$")


def shares(
    question: str, idf: Mapping[str, float], names: Collection[str] = ()
) -> dict[str, float]:
    """The share of every stemmed term, 1 in all; empty when nothing is left that weighs.

    `idf` has what a term weighs in the collection; terms that it lacks were not asked and count
    nothing. `names` are the stemmed names of projects.
    """
    weights: dict[str, float] = {}
    for parts in groups(question):
        known = [part for part in parts if part in idf]
        if not known or parts[0] in names or parts[0] in weights:
            continue
        whole = sum(idf[part] for part in known)
        most = max(idf[part] for part in known)
        for part in known:
            weights.setdefault(part, most * idf[part] / whole if whole else 0.0)
    total = sum(weights.values())
    return {part: weight / total for part, weight in weights.items()} if total else {}


def rarity(texts: int, holding: Sequence[int]) -> list[float]:
    """What words weigh that so many of the texts hold: idf, but for a memory of TEXTS_MIN at
    least."""
    many = max(texts, TEXTS_MIN, *holding, 0)
    return [float(one) for one in idf(many, np.array(holding, dtype=np.float64))]


def groups(question: str) -> list[tuple[str, ...]]:
    """The terms of each word of a question, the whole of it first: `utcRange.ts` is one word. A run
    of a script without spaces is many."""
    found: list[tuple[str, ...]] = []
    for piece in question.split():
        parts = tuple(dict.fromkeys(lexeme(term) for term in terms(_POSSESSIVE.sub("", piece))))
        if piece.isascii():
            found += [parts] if parts else []
        else:
            found += [(part,) for part in parts]
    return found


def names_of(projects: Collection[str]) -> frozenset[str]:
    """The stems of project names, as `shares` takes them."""
    return frozenset(parts[0] for name in projects for parts in groups(name)[:1])
