"""The last answer of a turn, kept until its row shows up in the file, and posted when none does.

A client writes its transcript behind time: at Stop the answer's row may be missing, and stdin has
its words. They are posted once the session is over and a later look at the file brought no row of
the same words. A row that comes later still is known by its words and left out, also in a fork that
copied it. All texts here are redacted before. Knows nothing about transcripts.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from argus.hook import home, locate
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

#: Seconds by which the row of an answer may be older or younger than the stop that told of it.
# Why: the same words at another time are another answer, in another session, too.
SLOW_SECONDS, FAST_SECONDS = 120.0, 10.0

#: Folder in which all sessions see what was insured, a file for each answer, by its words.
_FOLDER = "insured"


def fingerprint(text: str) -> str:
    """A name of the words of a text, white space aside."""
    bare = "".join(text.split())
    return hashlib.sha256(bare.encode("utf-8", "replace")).hexdigest()[:32]


class Heard:
    """The answers that were read from the file of a session, by their words."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.rows: list[str] = []
        #: Whether others are told what was found here.
        self.noting = True
        #: Answers of all sessions that were ever insured.
        self.insured = frozenset(locate.names(home.place("hook", _FOLDER)))

    def repeats(self, body: str, row: str, at: float = 0.0) -> bool:
        """Take in one answer, the id of its row and when it was given, in seconds.

        Whether it was posted in place of the row: of this one, or of the one in the session that
        this session was forked from.
        """
        session = self.session
        if row in session.covered:
            return True
        self.rows = [*self.rows, body][-ROWS_JOINED_MAX:]
        joined = [fingerprint("".join(self.rows[one:])) for one in range(len(self.rows))]
        session.said = [*session.said, *joined][-SAID_MAX:]
        session.insured = [one for one in session.insured if _print(one) not in joined]
        own = joined[-1]
        posted = own in session.replaced
        if posted:
            # From now on by its row: the same words may be said again.
            session.replaced.remove(own)
        for name in self.insured.intersection(joined):
            kept = _recall(name)
            if -SLOW_SECONDS <= at - kept["at"] <= FAST_SECONDS:
                posted = posted or (name == own and kept["posted"] > 0)
                if not kept["posted"] and self.noting:
                    # Its own session need not post it any more.
                    _note(name, kept["at"], found=True)
        if posted:
            session.covered = [*session.covered, row][-INSURED_MAX:]
        return posted


def _note(name: str, at: float, found: bool = False, posted: bool = False) -> None:
    """Keep for all sessions what became of an insured answer."""
    home.private("hook", _FOLDER)
    kept = {"at": at, "found": found, "posted": posted}
    home.write(home.place("hook", _FOLDER, name), json.dumps(kept).encode())


def _recall(name: str) -> dict[str, float]:
    try:
        with open(home.place("hook", _FOLDER, name), encoding="utf-8") as handle:
            kept = json.load(handle)
        return {name: float(kept[name]) for name in ("at", "found", "posted")}
    except (OSError, ValueError, TypeError, KeyError):
        return {"at": 0.0, "found": 0.0, "posted": 0.0}


def _print(insured: Any) -> str:
    return str(insured.get("print", "")) if isinstance(insured, dict) else ""


def heard(session: Session, text: str) -> bool:
    """Whether a row with these words was read lately."""
    return fingerprint(text) in session.said


def keep(session: Session, text: str, at: float, item: dict[str, Any]) -> None:
    """Remember an answer without a row: `at` when it was given (in seconds), `item` to post.

    Raises OSError.
    """
    name = fingerprint(text)
    if any(_print(one) == name for one in session.insured):
        return
    kept = {"print": name, "at": at, "item": item, "looked": False}
    session.insured = [*session.insured, kept][-INSURED_MAX:]
    _note(name, at)


def due(session: Session, idle_seconds: float) -> list[dict[str, Any]]:
    """The items to post now, after the file was read to its end once more.

    An answer is due when the session is over and a look before this one, after its end, found
    no row, too.
    """
    ready: list[dict[str, Any]] = []
    if not session.ended and idle_seconds < IDLE_SECONDS:
        return ready
    # A fork of the session may have brought the row.
    session.insured = [one for one in session.insured if not _recall(_print(one))["found"]]
    for one in session.insured:
        if isinstance(one, dict) and isinstance(one.get("item"), dict):
            if one.get("looked"):
                ready.append(one["item"])
            one["looked"] = True
    return ready


def posted(session: Session, items: list[dict[str, Any]]) -> None:
    """These were posted: a row of theirs that comes later is the second copy. Raises OSError."""
    names = {fingerprint(str(item.get("body", ""))) for item in items}
    for one in session.insured:
        if _print(one) in names:
            at = one.get("at")
            _note(_print(one), at if isinstance(at, float) else 0.0, posted=True)
    session.insured = [one for one in session.insured if _print(one) not in names]
    session.replaced = [*session.replaced, *sorted(names)][-INSURED_MAX:]
