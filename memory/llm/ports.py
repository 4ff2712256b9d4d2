"""The ports to the outside world: what the pipeline asks of a model, in values and protocols.

Each port has a real adapter (any OpenAI-compatible URL) and a local default that needs no network
and no key. `memory.llm.choice` decides which one runs. This module knows nothing about HTTP,
databases or prompts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, Protocol

from memory.errors import ContentError

Verdict = Literal["duplicate", "refine", "supersede", "distinct"]
MemoryKind = Literal["semantic", "episodic", "procedural"]

#: Numbers in each stored vector.
# Why: the first operator's embedder (nomic-embed-text) has 768; smaller ones are zero-padded,
# which leaves every cosine as it is.
VECTOR_SIZE = 768


@dataclass(frozen=True)
class Passage:
    """One raw item as a port sees it; `body` is the text that spans are offsets of."""

    item_id: int
    role: str
    body: str
    occurred_at: datetime
    kind: str = "turn"


@dataclass(frozen=True)
class Candidate:
    """A note that a distiller proposes, before the gate. `source_ref` is the quoted evidence."""

    title: str
    content: str
    source_ref: str
    importance: float = 0.5
    keywords: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    context: str = ""
    memory_kind: str = "semantic"


@dataclass(frozen=True)
class Statement:
    """A note as the judge sees it."""

    id: str
    content: str
    title: str = ""
    context: str = ""
    said_by: str = ""
    valid_from: datetime | None = None


@dataclass(frozen=True)
class Judgement:
    """What a judge decided about one new statement. `target` is None for distinct."""

    verdict: Verdict
    target: str | None
    reasoning: str


@dataclass(frozen=True)
class Usage:
    """Which model ran and what it cost. Local adapters answer with zero tokens."""

    model_asked: str
    model_real: str
    prompt_version: str = ""
    tokens_in: int = 0
    tokens_out: int = 0


@dataclass(frozen=True)
class Draft:
    """The candidates of one unit, with the raw reply they were read from (empty when local)."""

    candidates: tuple[Candidate, ...]
    usage: Usage
    reply: str = ""


@dataclass(frozen=True)
class Check:
    """The answer of the self-questioning step: was the question answered from the raw text?"""

    supported: bool
    question: str
    answer: str
    usage: Usage


def _nothing() -> None:
    """Nobody waits for a sign of life."""


@dataclass(frozen=True)
class Origin:
    """Where a model call comes from, for the ledger and for what may leave the machine."""

    stage: str
    unit: str = ""
    confidentiality: str = "internal"
    run_id: int | None = None
    # Called before each call of a unit that takes several: a worker shows that it lives, or stops.
    pulse: Callable[[], None] = field(default=_nothing, repr=False, compare=False)


class Distiller(Protocol):
    """Proposes candidates for one unit (the turns of an episode, or one document)."""

    name: str
    prompt_version: str

    def distill(self, passages: Sequence[Passage], *, origin: Origin) -> Draft: ...


class Judge(Protocol):
    """Decides what a new statement is to older ones; looks at `candidates_max` of them."""

    name: str
    prompt_version: str
    candidates_max: int

    def judge(
        self, new: Statement, older: Sequence[Statement], *, origin: Origin
    ) -> tuple[Judgement, Usage]: ...


class Verifier(Protocol):
    """Makes a question from a candidate and answers it from the raw text alone."""

    name: str
    prompt_version: str

    def verify(self, candidate: Candidate, evidence: str, *, origin: Origin) -> Check: ...


class Embedder(Protocol):
    """Texts -> unit-length vectors of VECTOR_SIZE floats. Query and passage may differ."""

    name: str

    def embed(self, texts: Sequence[str], *, origin: Origin) -> list[list[float]]: ...

    def embed_query(self, text: str, *, origin: Origin) -> list[float]: ...


class Reranker(Protocol):
    """A query and texts -> one score a text, in order; the higher the better, on no fixed scale."""

    name: str

    def rerank(self, query: str, texts: Sequence[str], *, origin: Origin) -> list[float]: ...


class NoLogProbabilities(ContentError):
    """The model showed no log-probabilities."""


class Opener(Protocol):
    """How a model would begin its answer: for each of its first tokens the likeliest ones, with
    their natural log-probabilities. Raises NoLogProbabilities where a model shows none."""

    name: str
    prompt_version: str

    def open(
        self, system: str, user: str, *, origin: Origin
    ) -> tuple[tuple[dict[str, float], ...], Usage]: ...
