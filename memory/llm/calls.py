"""The one way out: every call of a model goes through `ask`, whatever came of it leaves a row.

Before a text leaves: its origin may go there (confidentiality), secrets are redacted, the provider
is not resting, the day's budget has room. Afterwards: the budget is corrected, the row is written,
and a provider in trouble rests for all workers. Knows nothing about HTTP or prompts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import TypeVar

from django.conf import settings
from django.db import connection
from django.utils import timezone

from memory.errors import BudgetExhausted, Confidential, ContentError, InfraError
from memory.llm.budget import correct, reserve
from memory.llm.ports import Origin, Usage
from memory.llm.remote.tokens import estimate
from memory.models import Cooldown, LlmCall
from memory.models.record import CONFIDENTIALITIES
from memory.text.clean import clean_text
from memory.text.secrets import redact

T = TypeVar("T")

#: How long a provider in trouble rests when it did not say for how long.
# Why: longer than a restart of a local server, shorter than a person's patience.
# Calibrate: count InfraError rows in an outage; they should not fill the ledger.
COOLDOWN_SECONDS = 30

#: Longest rest that a provider may ask for.
# Why: a wrong Retry-After of a year must not switch the memory off unseen.
# Calibrate: above the longest window of a real rate limit (an hour).
COOLDOWN_SECONDS_MAX = 3600

#: Most tokens that one call is taken to have cost, and characters of the answering model's name.
# Why: both are the server's word; the ledger's row is written whatever it says.
TOKENS_A_CALL_MAX = 10**9
MODEL_CHARS_MAX = 200


@dataclass(frozen=True)
class Question:
    """What is to be asked. `texts` is all that leaves the machine; `provider` is what rests."""

    port: str
    provider: str
    model: str
    texts: tuple[str, ...]
    prompt_version: str = ""
    structured_mode: str = ""
    tokens_out_max: int = 0


@dataclass(frozen=True)
class Reply:
    """What came back over the wire; `vectors` and `scores` by position of their text, for
    embeddings and rerankers; `openings` by token. No usage: estimated."""

    text: str = ""
    vectors: dict[int, object] = field(default_factory=dict)
    scores: dict[int, object] = field(default_factory=dict)
    openings: tuple[dict[str, float], ...] = ()
    refusal: str = ""
    finish_reason: str = ""
    model_real: str = ""
    tokens_in: int | None = None
    tokens_out: int | None = None


class Away(InfraError):
    """The provider did not answer; `outcome` is the word for the ledger."""

    outcome: str
    #: Whether it may have worked for us all the same (then all that was reserved stays spent).
    charged: bool
    #: Whether everyone should keep away for a while.
    rests: bool

    def __init__(
        self,
        message: str,
        outcome: str,
        retry_after: float | None = None,
        charged: bool = False,
        rests: bool = True,
    ) -> None:
        super().__init__(message, retry_after)
        self.outcome = outcome
        self.charged = charged
        self.rests = rests


class Oversized(ContentError):
    """The answer is longer than is read."""


@dataclass
class _Row:
    """What the ledger will say about the call in hand: of tokens, what it may have cost as long as
    nobody knows."""

    outcome: str = "bug"
    model_real: str = ""
    tokens_in: int = 0
    tokens_out: int = 0
    redacted: dict[str, int] = field(default_factory=dict)
    milliseconds: int = 0


def ask(
    question: Question,
    send: Callable[[tuple[str, ...]], Reply],
    read: Callable[[Reply], T],
    *,
    origin: Origin,
    clock: Callable[[], datetime] = timezone.now,
) -> tuple[T, Usage]:
    """Ask a remote model once: `send` gets the redacted texts, `read` makes the value.

    Raises Confidential when the texts may not leave, InfraError (BudgetExhausted among them, with
    `retry_after` in seconds) when nothing is counted against the unit, ContentError when the answer
    cannot be used. Never inside a transaction: raises RuntimeError there. Always one LlmCall row.
    """
    row = _Row()
    try:
        _check_confidentiality(question, origin, row)
        texts, row.redacted = _redact(question.texts)
        _check_cooldown(question.provider, clock(), row)
        ahead = sum(map(estimate, texts))
        # The budget stops background work; a prompt that waits for its vector is only counted,
        # unless the budget says that nothing may be asked.
        day = _reserve(ahead + question.tokens_out_max, clock(), origin, row)
        try:
            value = _exchange(texts, ahead, question.tokens_out_max, send, read, row)
        except Away as error:
            if error.rests:
                _rest(question.provider, error, clock())
            raise
        finally:
            correct(day, row.tokens_in + row.tokens_out - ahead - question.tokens_out_max)
    finally:
        _write(question, origin, row, clock())
    usage = Usage(
        question.model, row.model_real, question.prompt_version, row.tokens_in, row.tokens_out
    )
    return value, usage


def record_local(
    port: str, usage: Usage, origin: Origin, *, milliseconds: int = 0, outcome: str = "ok"
) -> None:
    """Write the ledger's row for a call of a local adapter: nothing left, nothing was spent."""
    question = Question(port, "local", usage.model_asked, (), usage.prompt_version)
    row = _Row(outcome, usage.model_real, milliseconds=milliseconds)
    _write(question, origin, row, timezone.now())


def since(started: float) -> int:
    """Whole milliseconds since this reading of `time.monotonic`."""
    return round((time.monotonic() - started) * 1000)


def may_leave(confidentiality: str) -> bool:
    """Whether a text of this confidentiality may go to a model at a URL."""
    ceiling = settings.ARGUS.model_confidentiality
    rank = CONFIDENTIALITIES.index
    # Why: an unknown word is the strictest one; nothing leaves by a typo.
    known = confidentiality in CONFIDENTIALITIES
    return known and rank(confidentiality) <= rank(ceiling)


def _check_confidentiality(question: Question, origin: Origin, row: _Row) -> None:
    if not may_leave(origin.confidentiality):
        row.outcome = "confidential"
        raise Confidential(
            f"{origin.stage} {origin.unit} is {origin.confidentiality}; at most "
            f"{settings.ARGUS.model_confidentiality} may leave for {question.provider}"
        )


def _redact(texts: Sequence[str]) -> tuple[tuple[str, ...], dict[str, int]]:
    counts: dict[str, int] = {}
    clean = []
    for text in texts:
        redacted = redact(text)
        clean.append(redacted.text)
        for name, count in redacted.counts.items():
            counts[name] = counts.get(name, 0) + count
    return tuple(clean), counts


def _check_cooldown(provider: str, now: datetime, row: _Row) -> None:
    rest = Cooldown.objects.filter(provider=provider, until__gt=now).first()
    if rest is not None:
        row.outcome = "cooldown"
        left = (rest.until - now).total_seconds()
        raise InfraError(f"{provider} rests for {left:.0f} s more ({rest.reason})", left)


def _exchange(
    texts: tuple[str, ...],
    ahead: int,
    behind: int,
    send: Callable[[tuple[str, ...]], Reply],
    read: Callable[[Reply], T],
    row: _Row,
) -> T:
    started = time.monotonic()
    answered = False
    # Whoever is cut off in here, by a signal or by a fault, may have been served all the same.
    row.tokens_in, row.tokens_out = ahead, behind
    try:
        reply = send(texts)
        answered = True
        row.model_real = clean_text(reply.model_real)[0][:MODEL_CHARS_MAX]
        row.tokens_in = _counted(reply.tokens_in, ahead)
        row.tokens_out = _counted(reply.tokens_out, estimate(reply.text) if reply.text else 0)
        value = read(reply)
    except Away as error:
        row.outcome = error.outcome
        if not (answered or error.charged):
            row.tokens_in = row.tokens_out = 0
        raise
    except Oversized:
        row.outcome = "oversized"
        raise
    except ContentError:
        row.outcome = "content"
        if not answered:  # Refused as it came: nothing was computed.
            row.tokens_in = row.tokens_out = 0
        raise
    finally:
        row.milliseconds = since(started)
    row.outcome = "ok"
    return value


def _counted(count: int | None, estimated: int) -> int:
    """A server's count as the ledger can hold it, or ours where it has none."""
    return estimated if count is None else min(max(0, count), TOKENS_A_CALL_MAX)


def _reserve(tokens: int, now: datetime, origin: Origin, row: _Row) -> date:
    try:
        return reserve(tokens, now, background=origin.stage != "recall")
    except BudgetExhausted:
        row.outcome = "budget"
        raise


def _rest(provider: str, error: Away, now: datetime) -> None:
    """Open the cool-down for everybody; a longer one that is already open stays."""
    asked = COOLDOWN_SECONDS if error.retry_after is None else error.retry_after
    until = now + timedelta(seconds=min(max(asked, 0), COOLDOWN_SECONDS_MAX))
    table = connection.ops.quote_name(Cooldown._meta.db_table)
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {table} AS resting (provider, until, reason) VALUES (%s, %s, %s) "
            "ON CONFLICT (provider) DO UPDATE SET until = excluded.until, "
            "reason = excluded.reason WHERE resting.until < excluded.until",
            [provider, until, error.outcome],
        )


def _write(question: Question, origin: Origin, row: _Row, now: datetime) -> None:
    LlmCall.objects.create(
        stage=origin.stage,
        port=question.port,
        unit=origin.unit,
        model_asked=question.model,
        model_real=row.model_real,
        prompt_version=question.prompt_version,
        structured_mode=question.structured_mode,
        tokens_in=row.tokens_in,
        tokens_out=row.tokens_out,
        milliseconds=row.milliseconds,
        outcome=row.outcome,
        redacted=row.redacted,
        run_id=origin.run_id,
        created_at=now,
    )
