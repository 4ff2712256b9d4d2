"""The doctor at the models: the embedder, the chat models, the reranker, the budget.

Each call that it makes leaves its row, as every call does; changes nothing else.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Literal

from django.conf import settings
from django.db import Error
from django.utils import timezone

from argus.doctoring.row import Row, bounded
from memory.errors import ArgusError, BudgetExhausted, InfraError
from memory.llm import choice
from memory.llm.budget import standing
from memory.llm.ports import VECTOR_SIZE, Origin
from memory.llm.remote.endpoints import chat_endpoint
from memory.models import Note

#: What the doctor's calls are for, in the ledger.
ORIGIN = Origin(stage="doctor", confidentiality="public")

#: Tokens below which a day's budget has no room for one large unit.
# Why: a call reserves what it may answer (4,000) beside what it is told (5,000 at most).
# Calibrate: DISTILL_TOKENS_MAX and ANSWER_TOKENS_MAX of the distiller.
BUDGET_TOKENS_FEW = 10_000

#: Share of a day's budget above which it is told that it runs out.
BUDGET_SHARE_MUCH = 0.8


def embedder() -> Iterator[Row]:
    """Whether texts get vectors, of the size that is stored and of one model."""
    # Why only with a database: each call of a model leaves its row.
    try:
        model = choice.embedder()
        vector = model.embed_query("Is it working?", origin=ORIGIN)
    except InfraError as error:
        fix = "Start it, or unset ARGUS_EMBEDDER. Until then recall goes by words alone."
        yield Row("embedder", "fail", str(error), fix, away=True)
        return
    except (ArgusError, Error, ImportError, OSError) as error:
        yield Row("embedder", "fail", str(error), "See the README's table of settings.")
        return
    state: Literal["ok", "fail"] = "ok" if len(vector) == VECTOR_SIZE else "fail"
    fix = "" if state == "ok" else f"{VECTOR_SIZE} are stored: choose another embedder."
    yield Row("embedder", state, f"{model.name}, {len(vector)} numbers", fix)
    if others := _outdated(model.name):
        what = f"{others} live notes have vectors of another model; recall finds them by words."
        yield Row("embedder", "warn", what, "Run manage.py reembed.")


def _outdated(model: str) -> int:
    """Live notes whose vector cannot be compared with those of this model."""
    with bounded():
        live = Note.objects.as_pipeline().live(timezone.now())
        return live.exclude(embedding=None).exclude(embedding_model=model).count()


def configured() -> Iterator[Row]:
    """Which models are set, where nobody can be asked for want of a ledger."""
    if settings.ARGUS.model_url:
        yield Row("model", "ok", f"{settings.ARGUS.model} at {settings.ARGUS.model_url}, not asked")
    else:
        yield _none()


def _none() -> Row:
    what = "none is set: the extractive distiller and the rule judge work alone"
    return Row("model", "ok", what)


def chat() -> Iterator[Row]:
    """Whether the chat models answer, and which ones did."""
    argus = settings.ARGUS
    if not argus.model_url:
        yield _none()
        return
    for model in dict.fromkeys((argus.model, argus.judge_model or argus.model)):
        yield _greeted(str(model))


def _greeted(model: str) -> Row:
    from memory.llm.remote.greeting import greet

    where = f"{model} at {settings.ARGUS.model_url}"
    started = time.monotonic()
    try:
        usage = greet(chat_endpoint(model), origin=ORIGIN)
    except BudgetExhausted as error:
        return Row("model", "warn", f"{where} was not asked: {error}.", "See the row `budget`.")
    except InfraError as error:
        fix = (
            "Start it, or mend ARGUS_MODEL_URL, ARGUS_MODEL and ARGUS_MODEL_KEY. Units wait for it."
        )
        return Row("model", "fail", f"{where} does not answer: {error}", fix, away=True)
    except ArgusError as error:
        fix = "See that ARGUS_MODEL is a chat model of that server."
        return Row("model", "fail", f"{where} cannot be asked: {error}", fix)
    took = time.monotonic() - started
    answered = usage.model_real or "a model without a name"
    return Row("model", "ok", f"{where}: {answered} answered in {took:.1f} s")


def reranker() -> Iterator[Row]:
    """Whether the reranker answers, where one is set."""
    model = choice.reranker()
    if model is None:
        return
    try:
        model.rerank("Is it working?", ["It works."], origin=ORIGIN)
    except ArgusError as error:
        fix = "Start it, or unset ARGUS_RERANK_URL. Recall keeps the engine's own order meanwhile."
        yield Row("reranker", "warn", f"{settings.ARGUS.rerank_url}: {error}", fix)
    else:
        yield Row("reranker", "ok", f"{model.name} at {settings.ARGUS.rerank_url} answered")


def budget() -> Iterator[Row]:
    """Whether background work has tokens left today."""
    with bounded():
        books = standing(timezone.now())
    away = bool(settings.ARGUS.model_url or settings.ARGUS.embedder == "url")
    spent = f"{books.tokens:,} of {books.allowed:,} tokens spent today"
    if not away:
        yield Row("budget", "ok", "no model costs tokens")
    elif not books.limit:
        yield Row("budget", "warn", books.sentence, "Set ARGUS_TOKENS_PER_DAY, or no model.")
    elif books.stopped:
        fix = "Wait for midnight UTC, or run manage.py budget --lift TOKENS --reason WHY."
        yield Row("budget", "warn", f"Background work is stopped: {spent}.", fix)
    elif books.limit < BUDGET_TOKENS_FEW and settings.ARGUS.model_url:
        what = f"{books.limit:,} tokens a day have no room for one large unit."
        yield Row("budget", "warn", what, f"Set ARGUS_TOKENS_PER_DAY to {BUDGET_TOKENS_FEW:,}.")
    elif (books.share or 0) > BUDGET_SHARE_MUCH:
        yield Row("budget", "warn", f"{spent}.", "See who spends them: manage.py budget.")
    else:
        yield Row("budget", "ok", spent)
