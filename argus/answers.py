"""Is it working? Answered in words, by pure functions of what the apps' health says.

Reads and writes nothing. Knows nothing about pages or about how the facts were found.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal

from exporter.health import Exported
from memory.audit import RUN_LOST_MINUTES
from memory.health import Runs, Waiting
from memory.posted import Captured
from memory.templatetags.argus import age
from recall.health import Recalled

State = Literal["ok", "idle", "warn", "bad"]

#: From best to worst; of several answers the worst one counts.
WORSE: tuple[State, ...] = ("ok", "idle", "warn", "bad")

#: Passes of the schedule that may be missed before the worker counts as away, and minutes at least.
# Why: one long pass is no fault, and a schedule of one minute must not cry at the third.
PASSES_MISSED_MAX = 3
AWAY_MINUTES_MIN = 15

#: Hours that the oldest unit may wait while the stage runs, before it counts as falling behind.
# Why: a large import takes its time; what nobody comes to for half a day is news.
BEHIND_HOURS = 12

#: Days without a captured item, while hooks ask for recall, before capture counts as broken.
SILENT_DAYS = 3

#: Share of what was posted in a day that was there already, or was refused, above which somebody
#: should look, and how much must have been posted for a share to mean something.
# Why: clients post the end of a transcript twice on purpose; nine of ten is no such thing.
DUPLICATES_SHARE_MAX = 0.9
REFUSED_SHARE_MAX = 0.5
POSTED_MIN = 50

#: Share of a day's recalls that clients gave up, above which somebody should look.
SKIPPED_SHARE_MAX = 0.05

#: Milliseconds of half the recalls above which a person feels them.
# Why: a hook waits for two seconds at most, and starts a process beside.
RECALL_MILLISECONDS_MAX = 500

#: Characters of an error that are told.
ERROR_CHARACTERS_MAX = 200

#: What to do about what a page shows to its owner alone.
PARKED_FIX = "Look at why under Parked; what is not there is another's."
FINDINGS_FIX = "See Findings; what is not there is another's."

#: What to do when nobody works. Not "Run now", which puts work into the queue of a worker.
WORKER_FIX = "Start one: `make up`, or `manage.py qcluster`."

#: What to do when a worker is there and one stage of it never comes.
SCHEDULE_FIX = "Its schedule is missing or stuck: `manage.py schedules`."


@dataclass(frozen=True)
class Answer:
    """Whether something works, a sentence about it, and what to do where it does not."""

    state: State
    sentence: str
    fix: str = ""

    @property
    def tag(self) -> str:
        """The colour of the state, by its class."""
        return "off" if self.state == "idle" else self.state

    @property
    def word(self) -> str:
        """The state in a word, for who sees no colour."""
        return {"ok": "works", "idle": "idle", "warn": "look", "bad": "broken"}[self.state]


@dataclass(frozen=True)
class Facts:
    """What is known of one stage. `every` is the time between two of its passes, none where it only
    runs when it is told to; a worker was seen last at `worker_at`; `resting` are (provider, until,
    reason). `counted`: somebody counts what waits for it; else nobody knows. `found`: what its last
    looks found, for a stage that looks for what is wrong."""

    stage: str
    now: datetime
    runs: Runs
    waiting: Waiting
    parked: int = 0
    resting: tuple[tuple[str, datetime, str], ...] = ()
    tokens_spent: bool = False
    every: timedelta = timedelta(minutes=5)
    worker_at: datetime | None = None
    counted: bool = True
    found: int = 0

    @property
    def away_after(self) -> timedelta:
        return away_after(self.every or timedelta(days=1))

    @property
    def worker_away(self) -> bool:
        return self.worker_at is None or self.now - self.worker_at > self.away_after

    @property
    def just_begun(self) -> bool:
        """No worker was seen yet, and nothing waited for longer than one may take to come by."""
        since = self.waiting.since
        return self.worker_at is None and since is not None and self.now - since <= self.away_after


def away_after(every: timedelta) -> timedelta:
    """How long a worker that has a pass so often may be silent before it counts as away. Pure."""
    return max(PASSES_MISSED_MAX * every, timedelta(minutes=AWAY_MINUTES_MIN))


def answer(facts: Facts) -> Answer:
    """Whether a stage works: what is broken comes before what is away, what waits, what is well."""
    return _broken(facts) or _away(facts) or _late(facts) or _left(facts) or _well(facts)


def _broken(facts: Facts) -> Answer | None:
    last, name = facts.runs.last, facts.stage.capitalize()
    if last is None:
        return None
    silence = timedelta(minutes=RUN_LOST_MINUTES)
    if last.status == "running" and facts.now - last.heartbeat_at > silence:
        told = f"{name} runs since {_since(last.started_at, facts.now)} and gives no sign of life"
        return Answer("bad", f"{told}: its worker is gone.", "The next run closes it as lost.")
    if last.status in ("failed", "lost"):
        times = _times(facts.runs.day_failures)
        told = f"{name} failed {times} in 24 h" if times else f"{name} failed at its last run"
        error = _line(last.error) or "its worker ended"
        when = f"last {_since(last.started_at, facts.now)} ago"
        return Answer("bad", f"{told}, {when}: {error}", "The log of the worker says more.")
    return None


def _away(facts: Facts) -> Answer | None:
    """A model, the day's tokens, or the worker is away, and that is why units wait."""
    last, name = facts.runs.last, facts.stage.capitalize()
    put_off = bool(last and last.report.get("transient_failures"))
    if put_off and facts.tokens_spent:
        fix = "It goes on at midnight UTC, or after `manage.py budget --lift TOKENS`."
        return Answer("warn", f"The model tokens of today are spent; {name.lower()} waits.", fix)
    if put_off and last is not None:
        since = f"since {_since(last.started_at, facts.now)}"
        rest = max(facts.resting, key=lambda one: one[1], default=None)
        again = f", tried again in {age((rest[1] - facts.now).total_seconds())}" if rest else ""
        why = f" ({rest[0]}: {_line(rest[2])})" if rest and rest[2] else ""
        told = f"A model that {facts.stage} needs is away {since}{again}{why}."
        return Answer("warn", told, "Nothing is lost. See that it answers: `manage.py doctor`.")
    if facts.waiting.units and facts.worker_away and not facts.just_begun:
        since = f" since {_since(facts.waiting.since, facts.now)}" if facts.waiting.since else ""
        told = f"The worker is away: {_units(facts.waiting)} {_wait(facts.waiting)}{since}."
        return Answer("bad", told, WORKER_FIX)
    return None


def _late(facts: Facts) -> Answer | None:
    """Nobody counts what waits for it, and it did not come when it should have: other stages of the
    same worker say nothing of it, each has a schedule of its own."""
    last = facts.runs.last
    if facts.counted or not facts.every or last is None or last.status == "running":
        return None
    if facts.now - last.started_at <= facts.away_after:
        return None
    told = f"{facts.stage.capitalize()} ran {_since(last.started_at, facts.now)} ago"
    fix = WORKER_FIX if facts.worker_away else SCHEDULE_FIX
    return Answer("warn", f"{told}; it should every {age(facts.every.total_seconds())}.", fix)


def _left(facts: Facts) -> Answer | None:
    """It works, and something needs a look all the same."""
    waiting, since = facts.waiting, facts.waiting.since
    if since is not None and facts.now - since > timedelta(hours=BEHIND_HOURS):
        told = f"{facts.stage.capitalize()} falls behind: {_units(waiting)} {_wait(waiting)}"
        fix = "See what it is busy with, or start more workers (ARGUS_WORKERS)."
        return Answer("warn", f"{told}, the oldest since {_since(since, facts.now)}.", fix)
    if facts.parked:
        told = f"{facts.parked:,} {'unit is' if facts.parked == 1 else 'units are'} parked"
        return Answer("warn", f"{told} after failing again and again.", PARKED_FIX)
    if facts.runs.day_failures:
        told = f"Works again; failed {_times(facts.runs.day_failures)} in 24 h"
        when = (
            f", last {_since(facts.runs.failed_at, facts.now)} ago" if facts.runs.failed_at else ""
        )
        return Answer("warn", f"{told}{when}: {_line(facts.runs.error)}")
    return None


def _well(facts: Facts) -> Answer:
    last = facts.runs.last
    if last is None:
        fix = "" if facts.waiting.units else "It comes with the next pass of the worker."
        return Answer("idle", "Has not run yet.", fix)
    if last.status == "running":
        return Answer("ok", f"Runs since {_since(last.started_at, facts.now)}.")
    waits = f"{_units(facts.waiting)} {_wait(facts.waiting)} for the next run"
    ran = f"Ran {_since(last.started_at, facts.now)} ago"
    if not facts.counted:
        told = "" if facts.every else "; it runs when it is told to"
        return Answer("ok", f"{ran}{told}.")
    if facts.worker_away:
        return Answer("idle", f"{ran}; nothing waits, and no worker was seen since.", WORKER_FIX)
    return Answer("ok", f"{ran}; {waits if facts.waiting.units else 'nothing waits'}.")


def capture_answer(captured: Captured, recalled: Recalled, now: datetime) -> Answer:
    """Whether what is said reaches the record."""
    if captured.last_at is None:
        asked = recalled.last_at is not None
        if asked:
            told = f"Hooks asked for recall {_since(recalled.last_at, now)} ago; none captured yet."
            return Answer("warn", told, "See `argus-hook doctor` on that machine.")
        return Answer("idle", "Nothing was captured yet.", "Install the hooks: see Keys.")
    silent = now - captured.last_at
    asked_since = recalled.last_at is not None and recalled.last_at > captured.last_at
    if silent > timedelta(days=SILENT_DAYS) and asked_since:
        told = f"Nothing was captured for {age(silent.total_seconds())}, although hooks asked for"
        when = f"recall {_since(recalled.last_at, now)} ago."
        return Answer("bad", f"{told} {when}", "Run `argus-hook doctor` on that machine.")
    if captured.misses:
        missed = sum(captured.misses.values())
        told = f"Hooks could not capture {missed:,} {'thing' if missed == 1 else 'things'} in 24 h"
        fix = "See `argus-hook doctor` on that machine."
        return Answer("warn", f"{told}: {_counts(captured.misses)}.", fix)
    refused = sum(captured.refused.values())
    if captured.seen >= POSTED_MIN and refused > REFUSED_SHARE_MAX * captured.seen:
        told = f"{refused / captured.seen:.0%} of what was posted in 24 h was refused"
        return Answer("warn", f"{told}: {_counts(captured.refused)}.")
    if captured.seen >= POSTED_MIN and captured.duplicates > DUPLICATES_SHARE_MAX * captured.seen:
        told = f"{captured.duplicates / captured.seen:.0%} of what was posted in 24 h was known"
        return Answer("warn", f"{told} already.", "A hook posts the same transcripts again.")
    if captured.posts:
        when = _since(captured.last_at, now)
        rows = f"{captured.stored:,} {'row' if captured.stored == 1 else 'rows'}"
        return Answer("ok", f"{rows} stored in 24 h, the last post {when} ago.")
    return Answer("idle", f"Nothing in 24 h; the last {_since(captured.last_at, now)} ago.")


def recall_answer(recalled: Recalled, now: datetime) -> Answer:
    """Whether what is known reaches an agent, and fast enough."""
    if not recalled.recalls:
        if recalled.last_at is None:
            return Answer("idle", "Nobody asked yet.", "A prompt in a folder with hooks does.")
        return Answer("idle", f"Nobody asked in 24 h; last {_since(recalled.last_at, now)} ago.")
    skipped = recalled.outcomes.get("skipped", 0)
    if skipped > SKIPPED_SHARE_MAX * recalled.recalls:
        told = f"Clients gave up {skipped:,} of {recalled.recalls:,} recalls in 24 h"
        return Answer(
            "warn", f"{told}: {_counts(recalled.skipped)}.", "Is the server slow or away?"
        )
    if recalled.degraded:
        told = f"Some recalls in 24 h went without a track: {_counts(recalled.degraded)}."
        return Answer("warn", told, "See that the embedder answers: `manage.py doctor`.")
    p50 = recalled.milliseconds_p50
    if p50 is not None and p50 > RECALL_MILLISECONDS_MAX:
        return Answer("warn", f"Half of the recalls took longer than {p50:,.0f} ms.")
    rate = recalled.given_rate
    given = f"; {rate:.0%} of those that searched found something" if rate is not None else ""
    return Answer("ok", f"{recalled.recalls:,} recalls in 24 h{given}.")


def export_answer(ran: Answer, exported: Exported) -> Answer:
    """What the runs of the export say, and whether it left files alone that somebody changed."""
    count, large = exported.conflicts, exported.refused
    if ran.state == "bad" or not (count or large):
        return ran
    told = ran
    if count:
        files = "1 file of the vault was" if count == 1 else f"{count:,} files of the vault were"
        fix = "`manage.py export --dry-run` names them, and says what to do."
        sentence = f"{files} left alone: somebody changed the part that Argus writes."
        told = Answer("warn", sentence, fix)
    if large:
        # No trouble: the notes of such a cluster are in the vault all the same.
        clusters = "1 cluster of notes is" if large == 1 else f"{large:,} clusters of notes are"
        large_told = f"{clusters} too large for a page of its own."
        told = replace(told, sentence=f"{told.sentence} {large_told}")
    return told


def found_answer(ran: Answer, facts: Facts) -> Answer:
    """What its runs say of a stage that looks for what is wrong, and what the last ones found."""
    last = facts.runs.last
    found = last.report.get("findings") or 0 if last and last.status == "done" else 0
    found = max(found, facts.found)
    if not found or last is None or ran.state == "bad":
        return ran
    things = "1 thing" if found == 1 else f"{found:,} things"
    when = f"{_since(last.started_at, facts.now)} ago"
    if facts.stage == "verify":
        they = "is not as it" if found == 1 else "are not as they"
        told = f"{things} in the record {they} should be"
        return Answer("bad", f"{told}, by a look {when}.", FINDINGS_FIX)
    told = f"{things} {'differs' if found == 1 else 'differ'} when the record is replayed"
    return Answer("warn", f"{told}, {when}.", "See Findings: nothing changes before you say so.")


def together(answers: Sequence[tuple[str, Answer]]) -> Answer:
    """One answer for all, by the worst: (title, answer) each."""
    worst = max((one.state for _, one in answers), key=WORSE.index, default="idle")
    amiss = [title for title, one in answers if one.state == worst]
    if worst == "bad":
        return Answer("bad", f"No: look at {_listed(amiss)}.")
    if worst == "warn":
        return Answer("warn", f"Yes, but look at {_listed(amiss)}.")
    if all(one.state == "idle" for _, one in answers):
        return Answer("idle", "Nothing happened yet.")
    return Answer("ok", "Yes: every stage works.")


def _since(moment: datetime | None, now: datetime) -> str:
    return age(max((now - moment).total_seconds(), 0)) if moment else "never"


def _units(waiting: Waiting) -> str:
    return f"{waiting.told} {'unit' if waiting.units == 1 else 'units'}"


def _wait(waiting: Waiting) -> str:
    return "waits" if waiting.units == 1 else "wait"


def _times(count: int) -> str:
    return {0: "", 1: "once", 2: "twice"}.get(count, f"{count:,} times")


def _line(text: str) -> str:
    """The first line of an error, cut."""
    first = text.strip().partition("\n")[0]
    return first if len(first) <= ERROR_CHARACTERS_MAX else f"{first[:ERROR_CHARACTERS_MAX]}…"


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{word or 'no reason'} {count:,}" for word, count in list(counts.items())[:4])


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
