"""Files into the record: what `manage.py capture` and the demo do with paths.

Reads: files. Writes: by capture, in batches; a second pass over the same files stores nothing.
Knows nothing about formats (`memory.transcripts` does).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from django.utils import timezone
from tqdm import tqdm

from memory.borders import TIME_GAP_MINUTES
from memory.envelope import SessionEnd
from memory.identities import Known
from memory.intake import Incoming
from memory.models import Principal
from memory.stages.capture import CaptureReport, capture
from memory.transcripts import BadLine, Reading, Skip, Turn, read, walk

#: Items posted at once from files.
ITEMS_A_BATCH = 200

#: Characters of bodies posted at once.
CHARACTERS_A_BATCH = 2_000_000

#: What a turn is counted as that a person kept out of the record.
OPTED_OUT = "opted_out"

#: What adapters leave out that a person would ask about; told with the refusals.
TOLD = frozenset(
    {"poison", "harness", "sidechain", "empty", "oversized", "derived", "others_vault", OPTED_OUT}
)

#: What a person's rules make of a turn: the turn (under another project, perhaps), or None where
#: it is none of ours.
Rule = Callable[[Turn], Turn | None]


def no_rule(turn: Turn) -> Turn | None:
    """Where nobody wrote rules, every turn is captured."""
    return turn


@dataclass
class FileTally:
    """Counts over many files; `refused` holds what was filtered, `skipped` what is no turn."""

    stored: int = 0
    duplicates: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    redacted: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    sources: Counter[str] = field(default_factory=Counter)
    bad_lines: list[dict[str, Any]] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)
    files: int = 0

    def as_json(self) -> dict[str, Any]:
        return {
            "stored": self.stored,
            "duplicates": self.duplicates,
            "refused": dict(self.refused),
            "redacted": dict(self.redacted),
            "skipped": dict(self.skipped),
            "sources": dict(self.sources),
            "bad_lines": self.bad_lines,
            "unreadable": self.unreadable,
            "files": self.files,
        }

    def add(self, report: CaptureReport) -> None:
        self.stored += report.stored
        self.duplicates += report.duplicates
        self.refused.update(report.refused)
        self.redacted.update(report.redacted)


def capture_files(
    paths: Sequence[str | Path],
    *,
    owner: Principal,
    source: str | None = None,
    project: str = "",
    dry_run: bool = False,
    progress: bool = False,
    rule: Rule = no_rule,
) -> FileTally:
    """Capture every readable file under `paths`. Raises FileNotFoundError for a missing path.

    A session whose file ends long ago is over: its tail may close. `rule`: what the people of this
    machine keep out.
    """
    tally = FileTally()
    known = Known() if dry_run else None
    files: list[Path] = []
    for found in walk(paths):
        if isinstance(found, Skip) and found.reason == "unreadable":
            tally.unreadable.append(found.path)
        elif isinstance(found, Skip):
            _count(tally, found)
        else:
            files.append(found)
    # `disable=None`: a bar on a terminal only.
    for path in tqdm(files, unit="file", disable=None if progress else True, leave=False):
        try:
            turns = _turns(path, source, tally, rule, Reading(owner=owner.name))
            _capture_file(turns, tally, owner=owner, project=project, dry=known)
            tally.files += 1
        except OSError as error:
            tally.unreadable.append(f"{path}: {error.strerror}")
    return tally


def _capture_file(
    turns: Iterable[Turn],
    tally: FileTally,
    *,
    owner: Principal,
    project: str,
    dry: Known | None,
) -> None:
    """Capture the turns of one file; `dry` holds what a dry run would have stored so far."""
    latest: dict[str, datetime] = {}
    for batch in _batches(turns):
        now = timezone.now()
        tally.sources.update(turn.source for turn in batch)
        items = [_incoming(turn, project) for turn in batch]
        tally.add(capture(items, owner=owner, now=now, dry_run=dry is not None, known=dry))
        for turn in batch:
            if turn.kind == "turn" and turn.occurred_at:
                at = latest.get(turn.session, turn.occurred_at)
                latest[turn.session] = max(at, turn.occurred_at)
    if dry is not None:
        return
    now = timezone.now()
    for session, at in latest.items():
        if session and now - at > timedelta(minutes=TIME_GAP_MINUTES):
            capture([], owner=owner, now=now, session_end=SessionEnd(session, "end of file"))


def _turns(
    path: Path, source: str | None, tally: FileTally, rule: Rule, reading: Reading
) -> Iterator[Turn]:
    for found in read(path, source, reading=reading):
        if isinstance(found, Turn):
            ruled = rule(found)
            if ruled is None:
                tally.refused[OPTED_OUT] += 1
            else:
                yield ruled
        elif isinstance(found, BadLine):
            bad = {"path": found.path or str(path), "line": found.line, "reason": found.reason}
            tally.bad_lines.append(bad)
        else:
            _count(tally, found)


def _count(tally: FileTally, skip: Skip) -> None:
    told = tally.refused if skip.reason in TOLD else tally.skipped
    told[skip.reason] += 1


def _batches(turns: Iterable[Turn]) -> Iterator[list[Turn]]:
    """Batches bounded by count and size, so that a file of any length needs little memory."""
    batch: list[Turn] = []
    characters = 0
    for turn in turns:
        batch.append(turn)
        characters += len(turn.body)
        if len(batch) >= ITEMS_A_BATCH or characters >= CHARACTERS_A_BATCH:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch


def _incoming(turn: Turn, project: str) -> Incoming:
    return Incoming(
        source=turn.source,
        body=turn.body,
        kind=turn.kind,
        role=turn.role,
        session=turn.session,
        cwd=turn.cwd,
        project=project or turn.project or "",
        record_id=turn.record_id or "",
        original_timestamp=turn.occurred_at,
        metadata=turn.metadata,
        locator=turn.locator,
    )
