"""The last answer of a turn, kept until its row shows up in the file, and posted when none does.

A client writes its transcript behind time: at Stop the answer's row may be missing, and stdin has
its words. They are posted once the session is over and a later look at the file brought no row of
the same words. A row that comes later still is known by its words and left out. All texts here are
redacted before. Knows nothing about files.
"""

from __future__ import annotations

import hashlib
from typing import Any

from argus.hook.sessions import Session

#: Seconds of quiet after which a session that never ended counts as over.
# Why: after a kill no end comes; a turn of half an hour is rare.
IDLE_SECONDS = 30 * 60

#: Answers that are remembered by their words, and rows in a row that may make one answer.
# Why: one answer is one row for each of its blocks, the client's last message may be all of them.
SAID_MAX = 40
ROWS_JOINED_MAX = 4

#: Answers that wait at the same time.
INSURED_MAX = 20


def fingerprint(text: str) -> str:
    """A name of the words of a text, white space aside."""
    bare = "".join(text.split())
    return hashlib.sha256(bare.encode("utf-8", "replace")).hexdigest()[:32]


class Heard:
    """The answers that were read from the file of a session, by their words."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.rows: list[str] = []

    def repeats(self, body: str, row: str) -> bool:
        """Take in one answer and the id of its row; whether it was posted in place of the row."""
        session = self.session
        if row in session.covered:
            return True
        self.rows = [*self.rows, body][-ROWS_JOINED_MAX:]
        joined = [fingerprint("".join(self.rows[at:])) for at in range(len(self.rows))]
        session.said = [*session.said, *joined][-SAID_MAX:]
        session.insured = [one for one in session.insured if _print(one) not in joined]
        own = joined[-1]
        if own in session.replaced:
            # From now on by its row: the same words may be said again.
            session.replaced.remove(own)
            session.covered = [*session.covered, row][-INSURED_MAX:]
            return True
        return False


def _print(insured: Any) -> str:
    return str(insured.get("print", "")) if isinstance(insured, dict) else ""


def heard(session: Session, text: str) -> bool:
    """Whether a row with these words was read lately."""
    return fingerprint(text) in session.said


def keep(session: Session, text: str, at: str, item: dict[str, Any]) -> None:
    """Remember an answer without a row: `at` when it was given, `item` as it would be posted."""
    name = fingerprint(text)
    if any(_print(one) == name for one in session.insured):
        return
    kept = {"print": name, "at": at, "item": item, "looked": False}
    session.insured = [*session.insured, kept][-INSURED_MAX:]


def due(session: Session, idle_seconds: float) -> list[dict[str, Any]]:
    """The items to post now, after the file was read to its end once more.

    An answer is due when the session is over and a look before this one, after its end, found
    no row, too.
    """
    ready: list[dict[str, Any]] = []
    if not session.ended and idle_seconds < IDLE_SECONDS:
        return ready
    for one in session.insured:
        if isinstance(one, dict) and isinstance(one.get("item"), dict):
            if one.get("looked"):
                ready.append(one["item"])
            one["looked"] = True
    return ready


def posted(session: Session, items: list[dict[str, Any]]) -> None:
    """These were posted: a row of theirs that comes later is the second copy."""
    names = {fingerprint(str(item.get("body", ""))) for item in items}
    session.insured = [one for one in session.insured if _print(one) not in names]
    session.replaced = [*session.replaced, *sorted(names)][-INSURED_MAX:]
