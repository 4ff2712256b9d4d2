"""A finding of the doctor, and the patience that it has: no question may hang.

Knows nothing about what is asked.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal, TypeVar

from django.db import Error, OperationalError, connection, transaction

from memory.errors import ArgusError, InfraError

#: How long the database may take to let us in, and for one question.
# Why: a person waits for the doctor, and what takes longer than this is itself a finding.
CONNECT_SECONDS = 5
ANSWER_SECONDS = 10

#: How long a file system may take.
# Why: a mount whose server is gone answers nothing, not even no.
DISK_SECONDS = 5

State = Literal["ok", "warn", "fail"]
T = TypeVar("T")


@dataclass(frozen=True)
class Row:
    """One finding. `fix` says what to do when it is not ok; `away`: trying later may help."""

    name: str
    state: State
    what: str
    fix: str = ""
    away: bool = False


def few(names: Sequence[object], most: int) -> str:
    """The first of these, `most` of them, and how many there are more."""
    told = ", ".join(map(str, names[:most]))
    return f"{told} and {len(names) - most} more" if len(names) > most else told


Part = Callable[[], Iterable[Row]]


class Hangs(InfraError):
    """It does not answer."""


def careful(name: str, part: Part) -> list[Row]:
    """The rows of one part; what goes wrong in it is a finding and hides no other."""
    try:
        return list(part())
    except (InfraError, OperationalError) as error:
        told = str(error).strip().partition("\n")[0]
        return [Row(name, "fail", told, "See that it answers, and ask again.", away=True)]
    except (ArgusError, Error, OSError) as error:
        told = str(error).strip().partition("\n")[0] or type(error).__name__
        return [Row(name, "fail", told, "The doctor could not look: mend this first.")]


@contextmanager
def impatient() -> Iterator[None]:
    """Inside, this thread's connection is made within CONNECT_SECONDS or not at all."""
    before = connection.settings_dict
    options = {"connect_timeout": CONNECT_SECONDS, **before.get("OPTIONS", {})}
    # Why a new dict: Django shares one among threads, and this is ours alone.
    connection.settings_dict = {**before, "OPTIONS": options}
    try:
        yield
    finally:
        connection.settings_dict = before


@contextmanager
def bounded() -> Iterator[None]:
    """Inside, no statement takes longer than ANSWER_SECONDS."""
    with transaction.atomic():
        with connection.cursor() as cursor:
            # Local to the transaction: the connection may be another's afterwards.
            cursor.execute(f"SET LOCAL statement_timeout = '{ANSWER_SECONDS}s'")
        yield


def within(seconds: float, work: Callable[[], T]) -> T:
    """What `work` gives, or Hangs: a thread that never ends is left behind. Not for the database:
    a thread has a connection of its own."""
    answers: queue.Queue[tuple[T | None, OSError | None]] = queue.Queue()

    def run() -> None:
        try:
            answers.put((work(), None))
        except OSError as error:
            answers.put((None, error))

    threading.Thread(target=run, daemon=True).start()
    try:
        answer, error = answers.get(timeout=seconds)
    except queue.Empty:
        raise Hangs(f"It does not answer within {seconds:g} s.") from None
    if error is not None:
        raise error
    # Here the thread ended without an error, so that there is an answer.
    return answer  # type: ignore[return-value]
