"""`export-data`: everything that a person owns into one file of JSON lines.

Reads: by `argus.portable.kinds`. Writes: the file. Audits: act.
One moment, bounded memory, whole or not at all. Verify: the last line counts the ones before it.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from django.db import connection, transaction
from tqdm import tqdm

from argus.portable.kinds import everything
from argus.whole import whole
from memory.acts import record_act
from memory.models import Principal

#: The form of the lines; a file of a later one is refused.
FORMAT = 1

#: How a file is named in a folder.
NAME = "argus-{name}-{at:%Y%m%dT%H%M%SZ}.jsonl"


@dataclass(frozen=True)
class LeaveReport:
    """Where the file lies, and how many objects of each kind it holds."""

    file: str
    bytes: int
    sha256: str
    counts: dict[str, int]


def leave(
    path: Path, *, me: Principal, now: datetime, force: bool = False, progress: bool = False
) -> LeaveReport:
    """Write everything that `me` owns; into a new file where `path` is a folder.

    Raises RefusedError when the file is there and not `force`, or cannot be written.
    """
    if path.is_dir():
        path = path / NAME.format(name=me.name, at=now)
    counts: Counter[str] = Counter()
    digest = hashlib.sha256()
    with whole(path, force=force) as out, transaction.atomic():
        _one_moment()

        def write(told: dict[str, Any]) -> None:
            line = json.dumps(told, ensure_ascii=False, default=str) + "\n"
            block = line.encode("utf-8", "surrogatepass")
            digest.update(block)
            out.write(block)

        write({"kind": "argus", "format": FORMAT, "owner": me.name, "made_at": now.isoformat()})
        lines = everything(me)
        for told in tqdm(lines, unit="line", disable=None if progress else True, leave=False):
            counts[told["kind"]] += 1
            write(told)
        write({"kind": "end", "counts": dict(counts)})
    detail = {"sha256": digest.hexdigest(), "counts": dict(counts)}
    record_act(me, "export", "data", now=now, detail=detail)
    return LeaveReport(str(path), path.stat().st_size, digest.hexdigest(), dict(counts))


def _one_moment() -> None:
    """What is written meanwhile is not seen. Where a transaction is open already, it decides."""
    if len(connection.atomic_blocks) > 1:
        return
    with connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")


def lines(report: LeaveReport) -> str:
    """The report for people."""
    counts = ", ".join(f"{n:,} {kind}" for kind, n in report.counts.items()) or "nothing"
    return f"wrote {report.file}: {report.bytes:,} bytes\n{counts}"
