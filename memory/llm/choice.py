"""Which adapter answers for a port: by the settings, and by what may leave this machine.

Imports an adapter only when it is chosen: a worker that does not embed loads no model, a default
installation loads no HTTP client. Knows nothing about what the adapters do.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache

from django.conf import settings

from memory.llm.calls import may_leave, record_local, since
from memory.llm.ports import (
    Distiller,
    Draft,
    Embedder,
    Judge,
    Judgement,
    Opener,
    Origin,
    Passage,
    Reranker,
    Statement,
    Usage,
    Verifier,
)
from memory.llm.remote.endpoints import chat_endpoint, embed_endpoint, rerank_endpoint


class Configured:
    """Who answers for each port by the settings. Whoever plays replies back that were given before
    puts another in its place (`answering`)."""

    def distiller(self, confidentiality: str) -> Distiller:
        if not settings.ARGUS.model_url or not may_leave(confidentiality):
            return local_distiller()
        from memory.llm.remote.distill import OpenAIDistiller

        return OpenAIDistiller(chat_endpoint())

    def judge(self, confidentiality: str) -> Judge:
        if not settings.ARGUS.model_url or not may_leave(confidentiality):
            return local_judge()
        from memory.llm.remote.judge import OpenAIJudge

        return OpenAIJudge(chat_endpoint(settings.ARGUS.judge_model))

    def verifier(self, confidentiality: str) -> Verifier | None:
        env = settings.ARGUS
        if not env.verify or not env.model_url or not may_leave(confidentiality):
            return None
        from memory.llm.remote.verify import OpenAIVerifier

        return OpenAIVerifier(chat_endpoint())

    def embedder(self) -> Embedder:
        if settings.ARGUS.embedder != "url":
            from memory.llm.minilm import shared

            return shared()
        from memory.llm.remote.embed import shared as shared_url

        return shared_url(embed_endpoint())


# A default of no state: one for everybody is as good as many.
_ports: ContextVar[Configured] = ContextVar("ports", default=Configured())  # noqa: B039


@contextmanager
def answering(ports: Configured) -> Iterator[None]:
    """Inside, in this thread alone, these answer for all ports: the gate, the parking and the books
    behind them are the real ones."""
    token = _ports.set(ports)
    try:
        yield
    finally:
        _ports.reset(token)


def distiller(confidentiality: str = "public") -> Distiller:
    """The distiller for a unit of this confidentiality: the local one where it may not leave."""
    return _ports.get().distiller(confidentiality)


def judge(confidentiality: str = "public") -> Judge:
    """The judge for statements of this confidentiality: the rules where they may not leave."""
    return _ports.get().judge(confidentiality)


def verifier(confidentiality: str = "public") -> Verifier | None:
    """The verifier, or None when none is configured or the text may not leave."""
    return _ports.get().verifier(confidentiality)


def embedder() -> Embedder:
    """The one embedder of this installation; vectors of two cannot be compared.

    With an embedder behind a URL, texts that may not leave stay without a vector (Confidential).
    """
    return _ports.get().embedder()


def embedder_name() -> str:
    """Whose vectors the settings ask for."""
    if settings.ARGUS.embedder != "url":
        from memory.llm.minilm import NAME

        return NAME
    return embed_endpoint().model


def reranker() -> Reranker | None:
    """The reranker, or None when none is configured: the order of the engine stands."""
    if not settings.ARGUS.rerank_url:
        return None
    from memory.llm.remote.rerank import shared as shared_reranker

    return shared_reranker(rerank_endpoint())


def opener(confidentiality: str = "public") -> Opener | None:
    """A model that shows how it would begin, or None where there is none or nothing may leave."""
    if not settings.ARGUS.model_url or not may_leave(confidentiality):
        return None
    from memory.llm.remote.openings import OpenAIOpener

    return OpenAIOpener(chat_endpoint())


def warm() -> None:
    """Load the local embedder now, so that the first prompt does not wait for it."""
    if settings.ARGUS.embedder != "url":
        from memory.llm.minilm import shared

        shared().encode("warm")


class RecordedDistiller:
    """A local distiller with a ledger row for each call."""

    def __init__(self, inner: Distiller) -> None:
        self.inner = inner
        self.name = inner.name
        self.prompt_version = inner.prompt_version

    def distill(self, passages: Sequence[Passage], *, origin: Origin) -> Draft:
        """What the inner one proposes."""
        started = time.monotonic()
        draft = self.inner.distill(passages, origin=origin)
        record_local("distill", draft.usage, origin, milliseconds=since(started))
        return draft


class RecordedJudge:
    """A local judge with a ledger row for each call."""

    def __init__(self, inner: Judge) -> None:
        self.inner = inner
        self.name = inner.name
        self.prompt_version = inner.prompt_version
        self.candidates_max = inner.candidates_max

    def judge(
        self, new: Statement, older: Sequence[Statement], *, origin: Origin
    ) -> tuple[Judgement, Usage]:
        """What the inner one decides."""
        started = time.monotonic()
        judgement, usage = self.inner.judge(new, older, origin=origin)
        record_local("judge", usage, origin, milliseconds=since(started))
        return judgement, usage


@lru_cache(maxsize=1)
def local_distiller() -> Distiller:
    """The one that only quotes."""
    from memory.llm.extractive.distiller import Extractive

    return RecordedDistiller(Extractive())


@lru_cache(maxsize=1)
def local_judge() -> Judge:
    """The one that goes by rules."""
    from memory.llm.rules.judge import Rules

    return RecordedJudge(Rules())
