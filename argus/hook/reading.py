"""A stretch of a transcript as batches that may leave the machine.

Opt-outs, private spans and secrets are settled here, before anything is on a disk of ours or on the
wire, and what was left out is counted by reason. Memory is bounded by the window, whatever the file
holds. Knows nothing about the server or about what was read before.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterator
from typing import Any, BinaryIO

from argus.hook import optout, repository, trouble
from argus.hook.cleanse import cleanse, said_nothing_else
from argus.hook.counts import Counts
from argus.hook.forks import Ancestors
from argus.hook.insurance import Heard
from argus.hook.limits import fit, shallow
from argus.hook.locate import SOURCES
from argus.hook.sessions import Session
from argus.hook.window import Window
from memory.transcripts import read_open
from memory.transcripts.turns import BadLine, Item, Reading, Turn, text_hash

#: Items and bytes of one batch; the server takes 500 and 8 MB.
BATCH_ITEMS_MAX = 200
BATCH_BYTES_MAX = 2_000_000

#: Bytes of one body that the server takes.
ITEM_BYTES_MAX = 1024 * 1024

#: Bytes of a file that are judged together.
# Why: an adapter looks ahead from the offset to the end and remembers every row of it: memory would
# grow with the file, and a first run may meet 600 MB.
# Calibrate: what a prompt that was withdrawn and its successor lie apart is far below.
WINDOW_BYTES = 16 * 1024 * 1024
#: The same for Codex, whose adapter remembers turns only and reads every window from the beginning.
CODEX_WINDOW_BYTES = 256 * 1024 * 1024

#: Bytes that a mark looks at before an offset, and at each of so many places spread before it.
MARK_BYTES = 256
SAMPLE_BYTES, SAMPLES = 64, 16

#: Bad lines of one batch that are told with their numbers.
BAD_LINES_MAX = 20


class Unreadable(Exception):
    """Our code failed at a file; says at what and where in the code, and no word of the file."""

    def __init__(self, error: BaseException) -> None:
        at, where = error.__traceback__, "?"
        while at is not None:
            where = f"{os.path.basename(at.tb_frame.f_code.co_filename)}:{at.tb_lineno}"
            at = at.tb_next
        super().__init__(f"{type(error).__name__} in {where}")


class Batch:
    """Items as JSON, the counts of their range, and where the next batch begins."""

    def __init__(self, start: int, counts: Counts | None = None) -> None:
        self.items: list[str] = []
        self.bytes = 0
        self.start = self.end = start
        self.mark = ""
        self.counts = counts or Counts()
        self.bad: list[str] = []
        #: What the server said of its items, once it did.
        self.answer: dict[str, int] = {}

    def add(self, text: str, size: int) -> None:
        self.items.append(text)
        self.bytes += size
        self.counts.seen += 1
        self.counts.posted += 1


class Gate:
    """Which turns may pass, and what is added to them: by the session, the folder and a command.

    `since`: an ISO instant before which turns are left out; `project`: a name that holds whatever
    the folders say; `live`: it is said now, on the branch that is checked out.
    """

    def __init__(
        self, session: Session, since: str = "", project: str = "", live: bool = True
    ) -> None:
        self.session, self.since, self.project, self.live = session, since, project, live
        self.heard = Heard(session)
        self.ancestors = Ancestors(session)
        #: What was told of rules that cannot be read.
        self._told: set[str] = set()
        #: Whether a turn was left out because of `since`.
        self.early = False

    def judge(self, turn: Turn, counts: Counts) -> str:
        """The turn as the JSON of an item; "" when it was left out and counted."""
        when = turn.occurred_at
        cwd = turn.cwd or self.session.cwd
        # Before anything is left out: where a session began, holds for its later turns.
        self.session.root = self.session.root or cwd
        if self.since and when is not None and when.isoformat() < self.since:
            self.early = True
            return self._out("before", counts)
        rules = self.rules(cwd)
        if rules is None or self.ancestors.forbid(turn):
            return self._out("opted_out", counts)
        if len(turn.body) > ITEM_BYTES_MAX // 4 and len(turn.body.encode()) > ITEM_BYTES_MAX:
            return self._out("oversized", counts)
        redacted: dict[str, int] = {}
        item = cleanse(self._item(turn, cwd, rules), redacted)
        if redacted.get("private") and said_nothing_else(item["body"]):
            return self._out("private", counts)
        if item["body"] != turn.body:
            # Why: the hash of the words with a short secret in them would give the secret away.
            spoken, kept = text_hash(turn.body), text_hash(item["body"])
            item["record_id"] = item["record_id"].replace(spoken, kept)
        item = fit(item)
        at = when.timestamp() if when is not None else 0.0
        if turn.role == "assistant" and self.heard.repeats(item["body"], item["record_id"], at):
            return self._out("insured", counts)
        for name, count in redacted.items():
            counts.redacted[name] = counts.redacted.get(name, 0) + count
        self.session.named = item["session"]
        return json.dumps(item, ensure_ascii=False)

    def rules(self, cwd: str) -> optout.Rules | None:
        """What holds for a turn in this folder; None when it may not be captured.

        A session that began where the person said no stays out, wherever it goes.
        """
        found = optout.rules(cwd)
        for rules in (found, optout.rules(self.session.root or cwd)):
            if rules.why and rules.why not in self._told:
                self._told.add(rules.why)
                trouble.pass_on("rules", rules.why)
            if not (rules.enabled and rules.capture):
                return None
        return found

    def unwelcome(self) -> bool:
        """Whether the server is to hear nothing of this session, not even that there is one.

        So it is where the person said no, and while nobody knows where it was.
        """
        session = self.session
        where = session.root or session.cwd
        if self.rules(where) is None:
            return True
        return not session.named and (not where or self.rules(session.cwd) is None)

    def _out(self, reason: str, counts: Counts) -> str:
        counts.leave_out(reason)
        return ""

    def _git(self, cwd: str) -> dict[str, str]:
        found = facts(cwd)
        if self.live:
            return found
        # Today's branch says nothing of a turn of last year.
        return {name: value for name, value in found.items() if name != "branch"}

    def _item(self, turn: Turn, cwd: str, rules: optout.Rules) -> dict[str, Any]:
        metadata: dict[str, Any] = {**self._git(cwd), **turn.metadata, **self.session.agent}
        return {
            "source": turn.source,
            "kind": turn.kind,
            "role": turn.role,
            "body": turn.body,
            "session": turn.session,
            "cwd": cwd,
            "project": self.project or turn.project or rules.project,
            "record_id": turn.record_id or "",
            "original_timestamp": turn.occurred_at.isoformat() if turn.occurred_at else None,
            "metadata": shallow(metadata),
            "locator": shallow(turn.locator),
        }


_known: dict[str, dict[str, str]] = {}


def facts(cwd: str) -> dict[str, str]:
    """What git knows of a folder, without what it does not know; looked at once."""
    if cwd and cwd not in _known:
        _known[cwd] = {name: value for name, value in repository.facts(cwd).items() if value}
    return _known.get(cwd, {})


def begin(handle: BinaryIO, session: Session) -> int:
    """Where the reading of this open file begins; a file that is not the one read before, from 0.

    It is another one when it is shorter, when it has another inode, or other bytes where the mark
    of the last reading looks.
    """
    status = os.fstat(handle.fileno())
    if session.spooled and (
        status.st_size < session.spooled
        or status.st_ino != session.inode
        or mark(handle, session.spooled) != session.spooled_mark
    ):
        session.restart()
    session.inode = status.st_ino
    return session.spooled


def mark(handle: BinaryIO, offset: int) -> str:
    """A hash of bytes before this offset: of the last ones, and of samples of all of them."""
    found = hashlib.sha256()
    for place in range(SAMPLES):
        at = offset * place // SAMPLES
        found.update(os.pread(handle.fileno(), min(SAMPLE_BYTES, offset - at), at))
    start = max(0, offset - MARK_BYTES)
    found.update(os.pread(handle.fileno(), offset - start, start))
    return found.hexdigest()[:32]


def batches(
    handle: BinaryIO, name: str, start: int, gate: Gate, deadline: float = float("inf")
) -> Iterator[Batch]:
    """The file from `start` to its end, or to where the deadline (monotonic) stops it.

    The last batch may have no items; its `end` says how far the range was read. Raises Unreadable
    when our own code fails at a row: one file must not cost what is done for others.
    """
    try:
        yield from _batches(handle, name, start, gate, deadline)
    except OSError:
        raise
    except Exception as error:
        raise Unreadable(error) from error


def _batches(
    handle: BinaryIO, name: str, start: int, gate: Gate, deadline: float
) -> Iterator[Batch]:
    session = gate.session
    size = CODEX_WINDOW_BYTES if session.client == "codex" else WINDOW_BYTES
    batch = Batch(start, Counts(session.carried))
    position, over = start, False
    while not over:
        found = Reading()
        window = Window(handle, position + size, bool(session.agent))
        source = SOURCES[session.client]
        # A window is a file in all that an adapter asks of one.
        drawn = read_open(window, name, source, position, found)  # type: ignore[arg-type]
        for item in drawn:
            # Until the next item is asked for, the offset is the start of this one's line.
            over = time.monotonic() > deadline
            if over:
                break
            text = _entry(item, gate, batch)
            grown = len(text.encode("utf-8", "replace")) if text else 0
            full = len(batch.items) >= BATCH_ITEMS_MAX or batch.bytes + grown > BATCH_BYTES_MAX
            if text and batch.items and full:
                yield _close(batch, found.offset, handle)
                batch = Batch(found.offset)
            if text:
                batch.add(text, grown)
        over = over or found.offset == position or not window.more
        position = found.offset
    yield _close(batch, position, handle)


def _entry(item: Item, gate: Gate, batch: Batch) -> str:
    """The item as JSON when it is to be posted, else "" and counted."""
    if isinstance(item, Turn):
        return gate.judge(item, batch.counts)
    if isinstance(item, BadLine):
        batch.counts.leave_out("bad_line")
        if len(batch.bad) < BAD_LINES_MAX:
            batch.bad.append(f"line {item.line}: {item.reason}")
    else:
        batch.counts.leave_out(item.reason)
    return ""


def _close(batch: Batch, end: int, handle: BinaryIO) -> Batch:
    batch.end, batch.mark = end, mark(handle, end)
    return batch
