"""What people do, on one list: every verb by which a person changes something writes its act.

Writes: act, in the transaction of the effect. Knows nothing about what was done.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime
from typing import Any

from memory.errors import RefusedError
from memory.models import AccessKey, Act, Principal
from memory.text.clean import clean_text
from memory.text.private import strip_private
from memory.text.secrets import redact

#: Characters of a reason.
# Why: a sentence or two; what is longer is a statement and belongs in the record.
REASON_CHARACTERS_MAX = 1_000

#: Rows written by one statement.
ACTS_AT_ONCE = 1_000

#: By which door the current call came, and by which key. The door says so, no verb in between.
_door: ContextVar[tuple[str, AccessKey | None]] = ContextVar("door", default=("api", None))


@contextmanager
def through(door: str, key: AccessKey | None = None) -> Iterator[None]:
    """Whatever is done inside came by this door: page, command or api."""
    token = _door.set((door, key))
    try:
        yield
    finally:
        _door.reset(token)


def record_act(
    by: Principal,
    verb: str,
    kind: str,
    reference: object = "",
    *,
    now: datetime,
    reason: str = "",
    detail: Mapping[str, Any] | None = None,
) -> None:
    """Write that `by` did `verb` to the thing of this kind and id, and why.

    The reason is kept as `tidy_reason` has it, which may raise RefusedError. `detail` holds ids,
    numbers and names, never a text of somebody's: a purge finds those where they belong, and not
    here.
    """
    record_acts(by, verb, kind, [reference], now=now, reason=reason, detail=detail)


def record_acts(
    by: Principal, verb: str, kind: str, references: Iterable[object], *, now: datetime,
    reason: str = "", detail: Mapping[str, Any] | None = None,
) -> None:  # fmt: skip
    """`record_act` for each of these ids, in their order."""
    door, key = _door.get()
    said = tidy_reason(reason)
    Act.objects.bulk_create(
        (
            Act(
                principal=by, verb=verb, kind=kind, reference=str(reference), reason=said,
                detail=dict(detail or {}), door=door, key=key, created_at=now,
            )
            for reference in references
        ),
        batch_size=ACTS_AT_ONCE,
    )  # fmt: skip


def tidy_reason(reason: str) -> str:
    """Why somebody did something, as it is kept, in an act or in a row of the verb's own: without
    what is private or secret. Idempotent. Raises RefusedError for one that is too long."""
    lines = clean_text(reason)[0].replace("\r\n", "\n").replace("\r", "\n")
    said = redact(strip_private(lines)[0]).text.strip()
    if len(said) > REASON_CHARACTERS_MAX:
        raise RefusedError(f"a reason has {REASON_CHARACTERS_MAX} characters at most")
    return said
