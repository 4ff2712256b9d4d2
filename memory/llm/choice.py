"""Which adapter answers for a port: by the settings, and by what may leave this machine.

Imports an adapter only when it is chosen: a worker that does not embed loads no model, a default
installation loads no HTTP client. Knows nothing about what the adapters do.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
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

_around: ContextVar[Callable[[Distiller], Distiller]] = ContextVar("around", default=lambda d: d)


def distiller(confidentiality: str = "public") -> Distiller:
    """The distiller for a unit of this confidentiality: the local one where it may not leave."""
    return _around.get()(_distiller(confidentiality))


def _distiller(confidentiality: str) -> Distiller:
    if not settings.ARGUS.model_url or not may_leave(confidentiality):
        return _local_distiller()
    from memory.llm.remote.distill import OpenAIDistiller

    return OpenAIDistiller(chat_endpoint())


@contextmanager
def around_distiller(wrap: Callable[[Distiller], Distiller]) -> Iterator[None]:
    """Inside, in this thread alone, a wrapper of the caller's stands around every distiller.

    For whoever replays replies that a model gave elsewhere (the demo's script): the gate, the
    parking and the books behind it are the real ones.
    """
    token = _around.set(wrap)
    try:
        yield
    finally:
        _around.reset(token)


def judge(confidentiality: str = "public") -> Judge:
    """The judge for statements of this confidentiality: the rules where they may not leave."""
    if not settings.ARGUS.model_url or not may_leave(confidentiality):
        return _local_judge()
    from memory.llm.remote.judge import OpenAIJudge

    return OpenAIJudge(chat_endpoint(settings.ARGUS.judge_model))


def verifier(confidentiality: str = "public") -> Verifier | None:
    """The verifier, or None when none is configured or the text may not leave."""
    env = settings.ARGUS
    if not env.verify or not env.model_url or not may_leave(confidentiality):
        return None
    from memory.llm.remote.verify import OpenAIVerifier

    return OpenAIVerifier(chat_endpoint())


def embedder() -> Embedder:
    """The one embedder of this installation; vectors of two cannot be compared.

    With an embedder behind a URL, texts that may not leave stay without a vector (Confidential).
    """
    if settings.ARGUS.embedder != "url":
        from memory.llm.minilm import shared

        return shared()
    from memory.llm.remote.embed import shared as shared_url

    return shared_url(embed_endpoint())


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
def _local_distiller() -> Distiller:
    from memory.llm.extractive.distiller import Extractive

    return RecordedDistiller(Extractive())


@lru_cache(maxsize=1)
def _local_judge() -> Judge:
    from memory.llm.rules.judge import Rules

    return RecordedJudge(Rules())
