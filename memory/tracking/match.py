"""Which task a claim or a proof is about.

Pure: decides from the words of both and from how far apart they stand. What shares words with a
task is about it, wherever in the session or the project; what shares none is about the one task
that it directly follows, or about nothing. Knows nothing about rows.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from memory.tracking.status import Status

#: Words that a claim and a task must share; one is enough when it is a name, as of a file.
WORDS_SHARED_MIN = 2

#: Share of the words of the shorter of both that must agree.
# Why: long sentences share two words with anything in the same project.
# Calibrate: claims of the corpus read by eye; none should stand at somebody else's task.
WORDS_SHARE_MIN = 0.34

#: User turns between a task's last mention and what follows it "directly".
# Why: a person asks, the agent answers in many turns, the person says whether it works: that is
# one step. After two, people talk about something else.
STEPS_MAX = 1

_TICKET = re.compile(r"[a-z]+-\d+")
_HEX = re.compile(
    r"(?=[0-9a-f]*[a-f])(?=[0-9a-f]*\d)[0-9a-f]{7,40}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}.*"
)
_NAME = re.compile(r"[\w/-]*[._/\d-][\w./-]*")


@dataclass(frozen=True)
class Open:
    """A task as a claim finds it: what it is about, where it stands, when it was last spoken of and
    when work on it was last claimed. `here`: it was opened in the session that is read."""

    key: int
    opening: str
    words: frozenset[str]
    status: Status
    opened_at: datetime
    spoken_at: datetime
    claimed_at: datetime | None = None
    here: bool = True


def apart(words: Collection[str], task: Collection[str]) -> bool:
    """Whether both name things of one kind by numbers or ids, and not the same ones: issue 12 and
    issue 13, v2 and v3, two commits. What names more than the other is not apart from it."""
    ours, theirs = _named(words), _named(task)
    return any(
        not (ours[kind] <= theirs[kind] or theirs[kind] <= ours[kind])
        for kind in ours.keys() & theirs.keys()
    )


def _named(words: Collection[str]) -> dict[str, set[str]]:
    """The words with digits by what they look like."""
    found: dict[str, set[str]] = {}
    for word in words:
        if not any(mark.isdigit() for mark in word):
            continue
        if _HEX.fullmatch(word):
            kind = "hex"
        else:
            kind = "ticket" if _TICKET.fullmatch(word) else re.sub(r"\d+", "0", word)
        found.setdefault(kind, set()).add(word)
    return found


def akin(words: Collection[str], task: Collection[str]) -> int:
    """How many words a text shares with a task; 0 when too few to mean it, or when a number or an
    id tells them apart."""
    shared = set(words) & set(task)
    if not shared or apart(words, task):
        return 0
    named = any(_NAME.fullmatch(word) for word in shared)
    if len(shared) < WORDS_SHARED_MIN and not named and len(_matter(task)) > 1:
        return 0
    least = min(len(_matter(words)), len(_matter(task)))
    return len(shared) if len(shared) >= WORDS_SHARE_MIN * least else 0


def _matter(words: Collection[str]) -> set[str]:
    """The words without the numbers: those tell apart, and say nothing of what it is."""
    return {word for word in words if not word.startswith("#")}


def by_words(words: Collection[str], tasks: Sequence[Open]) -> Open | None:
    """The task that shares the most words; of equals the latest."""
    scored = [(akin(words, task.words), task.opened_at, task.key, task) for task in tasks]
    best = max(scored, default=None, key=lambda one: one[:3])
    return best[3] if best and best[0] else None


def steps(since: datetime, until: datetime, user_turns: Sequence[datetime]) -> int:
    """User turns after one moment, up to and with another."""
    return sum(since < at <= until for at in user_turns)


def followed(
    kind: str,
    at: datetime,
    tasks: Sequence[Open],
    user_turns: Sequence[datetime],
    *,
    alone: bool = False,
) -> Open | None:
    """The one task that something which shares no words with any is about.

    A claim: the only task that is not settled and was spoken of a step ago. An answer or a proof:
    the only one that was claimed a step ago; with no claim at all, as a claim. `alone`: what names
    something of its own is about the session's only unsettled task, in the same step, or none.
    """
    here = [task for task in tasks if task.here]
    if not kind.startswith("claim"):
        claimed = [
            task
            for task in here
            if task.claimed_at and steps(task.claimed_at, at, user_turns) <= STEPS_MAX
        ]
        if claimed:
            return claimed[0] if len(claimed) == 1 else None
    unsettled = [task for task in here if task.status != "verified"]
    most = 0 if alone else STEPS_MAX
    near = [task for task in unsettled if steps(task.spoken_at, at, user_turns) <= most]
    if len(near) != 1 or (alone and len(unsettled) != 1):
        return None
    return near[0]
