"""One session told on: each cue of each turn either opens a task or happens to one.

Pure but for its own memory of the tasks. Says which; writing it down is the stage's. Knows nothing
about rows: tasks have numbers, those opened here negative ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from memory.tracking.cues import Cue
from memory.tracking.match import Open, by_words, followed
from memory.tracking.status import AGAINST, SHOWN, status

#: Kinds of cues that may be about a task of another session: they name what they are about.
NAMES_ITS_TASK = frozenset({"claim_done", "commit"})

#: Words of its own from which a claim that shares none with a task must stand in the same step.
# Why: "Done." is about what was asked for last; "Updated the changelog." may be about anything.
OWN_WORDS_MIN = 2

Elsewhere = Callable[[Sequence[str], datetime], Open | None]


@dataclass(frozen=True)
class Told:
    """What a cue came to: `opens` a task, or happens to the task of number `task`; neither when it
    is about none or was said before."""

    task: int | None = None
    opens: bool = False


class Story:
    """The tasks of a session as far as it was told."""

    def __init__(
        self,
        tasks: Sequence[tuple[Open, Sequence[str]]],
        user_turns: Sequence[datetime],
        *,
        elsewhere: Elsewhere,
        bare: bool = True,
    ) -> None:
        self._tasks = {task.key: task for task, _ in tasks}
        self._happened = {task.key: list(happened) for task, happened in tasks}
        self._user_turns = list(user_turns)
        self._elsewhere = elsewhere
        self._bare = bare
        self.counts: Counter[str] = Counter()

    def turn(self, role: str, at: datetime) -> None:
        """A turn begins."""
        if role == "user":
            self._user_turns.append(at)

    def hear(self, cue: Cue, at: datetime, *, again: bool = False) -> Told:
        """What this cue of the current turn comes to. `again`: the turn may have been told before,
        and what came of it is in the tasks already."""
        here = [task for task in self._tasks.values() if task.opened_at <= at]
        if cue.opens:
            return self._open(cue, at, here, again=again)
        task = self._about(cue, at, here)
        if task is None:
            self.counts["unmatched"] += 1
            return Told()
        self._note(task, cue.kind, at)
        return Told(task=task.key)

    def _open(self, cue: Cue, at: datetime, here: Sequence[Open], *, again: bool) -> Told:
        # What was verified only after this was said was open when it was said: a promise that is
        # read a second time finds the task that its own session has proved meanwhile.
        unsettled = [
            task
            for task in here
            if task.status != "verified" or task.spoken_at > at or (again and task.spoken_at == at)
        ]
        same = by_words(cue.words, unsettled)
        if same is not None:
            # Asked again, or taken on by who was asked: the task is spoken of, and open as it was.
            self._tasks[same.key] = replace(same, spoken_at=max(at, same.spoken_at))
            self.counts["restated"] += 1
            return Told()
        key = -1 - len(self._tasks)
        self._tasks[key] = Open(key, cue.kind, frozenset(cue.words), "open", at, at)
        self._happened[key] = []
        return Told(task=key, opens=True)

    def _about(self, cue: Cue, at: datetime, here: Sequence[Open]) -> Open | None:
        found = by_words(cue.words, here)
        if found is None and cue.words and cue.kind in NAMES_ITS_TASK:
            found = self._elsewhere(cue.words, at)
        if found is not None or not self._bare:
            return found
        own = cue.kind == "claim_done" and len(cue.words) >= OWN_WORDS_MIN
        return followed(cue.kind, at, here, self._user_turns, alone=own)

    def _note(self, task: Open, kind: str, at: datetime) -> None:
        if task.key not in self._tasks:
            return  # Of another session: this one does not tell on it.
        happened = self._happened[task.key]
        happened.append(kind)
        claimed = kind == "claim_done" or (kind in SHOWN and task.claimed_at is not None)
        settled = kind == "confirmed" or kind in AGAINST
        self._tasks[task.key] = replace(
            task,
            status=status(task.opening, happened),
            spoken_at=max(at, task.spoken_at),
            claimed_at=at if claimed else None if settled else task.claimed_at,
        )
