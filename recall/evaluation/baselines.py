"""What any memory must beat: exact BM25, exact cosine, counting words, and keeping what is recent.

Brute force over every text of a pool; in memory, without the engine. Knows nothing about questions'
answers.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from memory.lexical import Statistics, saturate
from memory.text.stem import stem
from memory.text.stopwords import STOP_WORDS
from memory.text.words import terms, words

Scores = NDArray[np.float64]


@dataclass(frozen=True)
class Text:
    """One thing that can be found: what it says under a header of who and when, and its vector."""

    key: str
    text: str
    occurred_at: datetime
    sort: str
    vector: Sequence[float] = ()


@dataclass
class Shelf:
    """The texts of one pool, indexed for the four baselines."""

    texts: Sequence[Text]
    _postings: dict[str, tuple[list[int], list[int]]] = field(default_factory=dict)
    _forms: dict[str, list[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        postings: dict[str, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
        forms: dict[str, list[int]] = defaultdict(list)
        lengths = []
        for at, one in enumerate(self.texts):
            said = [word for word in words(one.text) if word not in STOP_WORDS]
            lengths.append(len(said))
            for term, count in Counter(map(stem, said)).items():
                postings[term][0].append(at)
                postings[term][1].append(count)
            for form in set(said):
                forms[form].append(at)
        self._postings, self._forms = dict(postings), dict(forms)
        self._lengths = np.array(lengths, dtype=np.float64)
        self._mean_length = float(self._lengths.mean()) if lengths else 0.0
        width = max((len(one.vector) for one in self.texts), default=0)
        self._vectors = np.zeros((len(self.texts), width))
        self._bare = np.array([not one.vector for one in self.texts], dtype=bool)
        for at, one in enumerate(self.texts):
            if one.vector:
                self._vectors[at] = one.vector
        self._age = np.array([one.occurred_at.timestamp() for one in self.texts])

    def bm25(self, question: str, vector: Sequence[float]) -> Scores:
        """Words weighed by how rare they are, over every text: the index's formula without its
        bounds, its header counts and its irregular forms."""
        scores = np.zeros(len(self.texts))
        asked = dict.fromkeys(map(stem, terms(question)))
        held = [self._postings[term] for term in asked if term in self._postings]
        holding = tuple(len(places) for places, _ in held)
        idf = Statistics(len(self.texts), self._mean_length, holding).idf()
        for rare, (places, counts) in zip(idf, held, strict=True):
            share = saturate(
                np.array(counts, dtype=np.float64), self._lengths[places], self._mean_length
            )
            scores[places] += rare * share
        return _matching(scores)

    def dense(self, question: str, vector: Sequence[float]) -> Scores:
        """Cosine of the question's vector and each text's, which are of unit length."""
        if not len(vector) or not self._vectors.shape[1]:
            return np.full(len(self.texts), -np.inf)
        return np.where(self._bare, -np.inf, self._vectors @ np.array(vector, dtype=np.float64))

    def grep(self, question: str, vector: Sequence[float]) -> Scores:
        """How many of the question's words a text has, all alike."""
        scores = np.zeros(len(self.texts))
        for form in terms(question):
            scores[self._forms.get(form, [])] += 1
        return _matching(scores)

    def keep_recent(self, question: str, vector: Sequence[float]) -> Scores:
        """The latest first, whatever was asked."""
        return self._age

    def rank(self, scores: Scores, depth: int) -> list[tuple[Text, float]]:
        """The best texts with their scores, the later one of equals first."""
        order = np.lexsort((-self._age, -scores))[:depth]
        return [(self.texts[at], float(scores[at])) for at in order if np.isfinite(scores[at])]


def _matching(scores: Scores) -> Scores:
    """A text without any of the words is not in the list."""
    return np.where(scores > 0, scores, -np.inf)


Baseline = Callable[[Shelf, str, Sequence[float]], Scores]

#: Name in the report -> how it scores.
BASELINES: dict[str, Baseline] = {
    "bm25": Shelf.bm25,
    "dense": Shelf.dense,
    "grep": Shelf.grep,
    "keep_recent": Shelf.keep_recent,
}
