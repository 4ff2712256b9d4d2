"""What an export leaves in the vault for the next one: by what that knows that there is nothing to
do, and what it has to tell of again.

It lies in the vault, as `.argus/known`: it is about this folder alone, goes where that goes, and
may name files, which no row may that outlives a purge.
Reads and writes: that file. Knows nothing about notes or pages.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import TypeAdapter, ValidationError

from exporter.disk import Astray
from exporter.folder import BARRED, Folder
from exporter.found import Scan
from exporter.moves import Last
from exporter.plan import Step
from exporter.report import Trouble


@dataclass(frozen=True)
class Known:
    """`mark`: of all that pages are made of, and of the log. `counts`, `troubles`: of the report,
    as far as it stays the same. `keys`: pages that were left alone, or wait for one that was;
    `watched`: what lies where they would be settled, by path."""

    mark: str
    counts: dict[str, int]
    troubles: list[Trouble]
    keys: list[str]
    watched: dict[str, str]


KNOWN = TypeAdapter(Known)


def recall(folder: Folder) -> Known | None:
    """What the last export left here; None where none did, or nobody can read it."""
    try:
        return KNOWN.validate_json(folder.kept() or b"")
    except ValidationError:
        return None


def same(known: Known, folder: Folder) -> bool:
    """Whether nothing was done about what was left alone."""
    try:
        return all(folder.lies(path) == lay for path, lay in known.watched.items())
    except Astray:
        # Somebody wrote into the file.
        return False


def stuck(steps: Sequence[Step]) -> list[str]:
    """The pages that are left alone, or wait until somebody settles another one."""
    return sorted({step.key for step in steps if step.action in ("conflict", "pending")})


def watched(
    steps: Sequence[Step], last: Mapping[str, Last], scan: Scan, folder: Folder
) -> dict[str, str] | None:
    """What lies where these steps would be settled. None when somebody is at it just now: what was
    decided was decided by what lay there before."""
    paths = {step.path for step in steps if step.action == "conflict"}
    paths |= {step.path for step in steps if step.action == "pending" and step.path in scan.files}
    keys = {step.key for step in steps if step.action == "conflict"}
    paths |= {last[key].path for key in keys if key in last and last[key].path}
    lay: dict[str, str] = {}
    for path in sorted(paths):
        lay[path] = folder.lies(path)
        one = scan.files.get(path)
        there = one is not None or path in scan.folders or path in scan.others
        if there != (lay[path] not in ("", BARRED)):
            return None
        if one is not None and one.whole not in ("", lay[path]):
            return None
    return lay


def dumped(known: Known) -> bytes:
    """The file's bytes, always the same for the same."""
    return json.dumps(KNOWN.dump_python(known, mode="json"), sort_keys=True, indent=1).encode()
