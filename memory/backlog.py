"""The one loop of every batch stage: claim what waits, work on it, settle what came of it.

A stage says what waits and what to do with a batch; when to stop, what counts and what each kind of
error means for the units in hand is decided here, alike for all stages.
Between two units it tells how far it came, and stops when somebody asked for it.
Reads and writes: claim, stage_run (heartbeat, progress). Knows nothing about what a unit is.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from django.db import IntegrityError
from psycopg.errors import ForeignKeyViolation
from tqdm import tqdm

from memory import claims
from memory.audit import Clock, beat
from memory.claims import Held
from memory.errors import ArgusError, Conflict, ContentError, InfraError
from memory.models import StageRun

log = logging.getLogger(__name__)


class OutOfTime(ArgusError):
    """This run is over, by the clock or by a person's word; the unit goes on in the next run, from
    what was kept."""


def singly(held: Sequence[Held]) -> list[list[Held]]:
    """Each unit is a batch of its own."""
    return [[one] for one in held]


class Backlog:
    """One run's way through the units that wait: each is tried once, until `limit` or `until`."""

    def __init__(
        self, run: StageRun, *, clock: Clock, limit: int | None, until: datetime | None = None
    ) -> None:
        self.run = run
        self.clock = clock
        self.limit = limit
        self.until = until
        self.counts: Counter[str] = Counter()
        self.taken = 0
        self.away = False
        self.cancelled = False
        self.tried = 0
        # What an earlier backlog of the same run did.
        self._before = Counter(run.progress)
        self._seen: set[str] = set()
        self._hand: list[Held] = []

    def work_off(
        self,
        waiting: Callable[[], Sequence[str]],
        work: Callable[[list[Held]], Mapping[str, int]],
        *,
        at_once: int,
        batches: Callable[[Sequence[Held]], list[list[Held]]] = singly,
    ) -> Counter[str]:
        """Do `work` on all that `waiting` names, so many claimed at once; the counts of the run.

        `work` gets units whose attempt was counted and says what it did, by word.
        """
        silent = None if self.run.trigger_source == "command" else True
        with tqdm(desc=self.run.stage, unit=" units", disable=silent, leave=False) as bar:
            while held := self._take(waiting, at_once):
                for batch in batches(held):
                    if self.over:
                        _put_back(batch)
                    else:
                        self._try(batch, work)
                        bar.update(len(batch))
        return self.counts

    @property
    def over(self) -> bool:
        """Whether nothing more is begun: what we need is away, the time is over, or a person said
        so."""
        return self.away or self.late or self.cancelled

    @property
    def late(self) -> bool:
        return self.until is not None and self.clock() >= self.until

    def pulse(self) -> None:
        """Before each call of a model: this worker lives, and what it has in hand is still its own.

        Raises OutOfTime when the run may take no longer, or shall not.
        """
        if self.late:
            raise OutOfTime
        self.renew()
        if self.cancelled:
            raise OutOfTime

    def renew(self) -> None:
        """As `pulse`, for work that loses what it did when it is cut short."""
        self.ask()
        claims.renew(self._hand, now=self.clock())

    def ask(self) -> bool:
        """Tell how far it came, and hear whether to go no further: `over`, asked of the books."""
        self.cancelled = beat(self.run, self.progress)
        return self.over

    @property
    def progress(self) -> Counter[str]:
        """What this run did so far, by word, and the units that it tried."""
        return self._before + self.counts + Counter(units=self.tried)

    def again(self, held: Held) -> None:
        """Let this run try the unit once more."""
        self._seen.discard(held.unit)

    def _take(self, waiting: Callable[[], Sequence[str]], at_once: int) -> list[Held]:
        room = at_once if self.limit is None else min(at_once, self.limit - self.taken)
        if room <= 0 or self.over:
            return []
        units = [unit for unit in waiting() if unit not in self._seen]
        held = claims.claim(self.run, units, now=self.clock(), limit=room)
        self.taken += len(held)
        self._seen.update(one.unit for one in held)
        return held

    def _try(self, batch: list[Held], work: Callable[[list[Held]], Mapping[str, int]]) -> None:
        self.ask()
        if self.cancelled:
            _put_back(batch)
            return
        self._hand = [one for one in batch if claims.begin(one, now=self.clock())]
        if not self._hand:
            return
        try:
            self.counts.update(work(self._hand))
        except ContentError as error:
            for one in self._hand:
                self.fail(one, error)
        except InfraError:
            _put_back(self._hand)
            self.counts["transient_failures"] += 1
            self.away = True
        except (Conflict, OutOfTime, claims.ClaimLost):
            # What another worker has is not ours to put back, and is left alone.
            _put_back(self._hand)
        except IntegrityError as error:
            if not isinstance(error.__cause__, ForeignKeyViolation):
                raise
            # What it stands on was purged between our reading and our writing: nothing was written,
            # and the next run finds what is left of it.
            log.warning("%s: %s", self.run.stage, error.__cause__.diag.constraint_name)
            _put_back(self._hand)
        except (KeyboardInterrupt, SystemExit) as end:
            # A kind of SystemExit is how the queue ends what took too long: that is the unit's.
            if type(end) in (KeyboardInterrupt, SystemExit):
                _put_back(self._hand)
            raise
        finally:
            self.tried += len(self._hand)
            self._hand = []
            # Told when the run closes: the last unit has no sign of life after it.
            self.run.progress = dict(self.progress)

    def fail(
        self, held: Held, error: ContentError, *, counted_as: str = "content_failures"
    ) -> bool:
        """Count a failure of the unit itself. True when it was parked by it."""
        parked = claims.fail(self.run, held, error, now=self.clock())
        self.counts.update({counted_as: 1, "parked": int(parked)})
        return parked


def _put_back(batch: Sequence[Held]) -> None:
    for one in batch:
        claims.put_back(one)
