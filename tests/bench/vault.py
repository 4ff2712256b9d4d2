"""Exports of 10,000 notes, against writing and reading the same bytes with plain Python.

`python -m tests.bench.vault [N]`. One owner's notes in twenty projects, each with evidence, vectors
that lie in clusters, and titles as people and models write them; one throwaway database, one folder
beside it. The floors handle the very files that the export left, one after the other, in the same
process: open and write; write, fsync and rename (what a file that must survive a crash costs); open
and read. Everything is read from the page cache. Rounds are interleaved.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

from tests.bench.ground import database, milliseconds, table
from tests.bench.load import Writing, add_notes, add_turns, analyze, index, without

NOTES = 10_000
PROJECTS = 20
ROUNDS = 3

#: Clusters of the notes' meanings, and how wide they are: some notes have neighbours, some hubs.
CLUSTERS, NOISE = 400, 0.02

#: What stands first in every fifth title.
TITLES = (
    "C#:", "[[x]]", "a|b/c", "CON", "#tag", "- list", "Über ", "東京の", "`code`", "x^2", "v1.2.md",
    "<b>bold</b>", "🙂", "null", "%%hidden%%", "..", "{{t}}", "\u202eflip", "Fwd: a #b", "|", "'",
)  # fmt: skip

#: What is measured: three floors, and exports.
WRITE, SAFE, READ = "write", "write, fsync, rename", "read"
FIRST, AGAIN, ONE, UNCHANGED = (
    "first export", "into an emptied folder", "one new note", "unchanged",
)  # fmt: skip
EXPORTS = (FIRST, AGAIN, ONE)

#: What the product promises: the time of an export over that of the floor.
FIRST_RATIO_MAX, UNCHANGED_RATIO_MAX = 4.0, 3.0

EVIDENCE_SQL = """
INSERT INTO memory_evidence
    (note_id, raw_item_id, start, "end", quote, sha256, origin, created_at)
SELECT n.id, r.id, 0, least(length(r.body), 160), left(r.body, 160), md5(r.body),
    'distill', n.created_at
FROM memory_note n JOIN memory_rawitem r ON r.dedup_key = n.content_key
"""


def main() -> None:
    count = int(sys.argv[1]) if sys.argv[1:] else NOTES
    with database() as address, tempfile.TemporaryDirectory() as scratch:
        from memory.access import principal
        from memory.llm.minilm import shared
        from tests.cluster import owner_address

        started = time.perf_counter()
        owner = principal("bench")
        load(owner_address(address), owner.pk, shared().name, count)
        print(f"loaded {count:,} notes in {time.perf_counter() - started:.1f} s")
        measure(Path(scratch), owner)


def load(address: str, owner: int, model: str, count: int) -> None:
    """So many notes with evidence in a few projects, as distill and embed leave them."""
    from memory.models import Project

    writing = Writing(clusters=CLUSTERS)
    texts = writing.texts(count)
    for n in range(0, count, 5):
        texts[n] = [TITLES[n // 5 % len(TITLES)], *texts[n]]
    near = writing.centres[writing.chance.integers(CLUSTERS, size=count)]
    vectors = writing.around(near, NOISE)
    share = -(-count // PROJECTS)
    with without(address, "note_nearest", "turn_nearest"):
        for number, first in enumerate(range(0, count, share)):
            part = slice(first, first + share)
            project = Project.objects.create(name=f"Project {number}")
            add_notes(
                address, owner, model, texts[part], vectors[part], first=first, project=project.pk
            )
        add_turns(address, owner, model, texts, vectors)
    index()
    with psycopg.connect(address) as connection:
        connection.execute(EVIDENCE_SQL)
    analyze(address, "memory_note", "memory_rawitem", "memory_evidence", "memory_session")


def measure(scratch: Path, owner: Any) -> None:
    """Export and the floors in turn; the tables, and whether the aims hold."""
    from exporter.place import Place, around_vault
    from tests import factories as make

    vault = scratch / "vault"
    spent = Spent()
    with around_vault(Place(vault, owner.name)):
        spent(FIRST, exported)
        report = exported()
        files = {
            path.relative_to(vault): path.read_bytes()
            for path in sorted(vault.rglob("*"))
            if path.is_file() and path.suffix == ".md"
        }
        size = sum(map(len, files.values()))
        print(f"{len(files):,} files, {size / 1e6:.1f} MB; {report}")
        for number in range(ROUNDS):
            for name, floor in ((WRITE, plain), (SAFE, safe)):
                with emptied(scratch / "floor") as folder:
                    spent(name, floor, folder, files)
            spent(READ, read, vault, files)
            spent(UNCHANGED, exported)
            make.note(owner, f"Note number {number} came later.", embedded=False)
            spent(ONE, exported)
            shutil.rmtree(vault)
            spent(AGAIN, exported)
    spent.tell("exports that write, against writing that survives a crash", SAFE, WRITE, *EXPORTS)
    spent.tell("an export that changes nothing, against reading", READ, UNCHANGED)
    spent.judge(FIRST, WRITE, FIRST_RATIO_MAX)
    spent.judge(FIRST, SAFE)
    spent.judge(UNCHANGED, READ, UNCHANGED_RATIO_MAX)


class Spent:
    """Milliseconds by name: on the clock, and of this process's processor time."""

    def __init__(self) -> None:
        self.wall: dict[str, list[float]] = defaultdict(list)
        self.processor: dict[str, list[float]] = defaultdict(list)

    def __call__(self, name: str, work: Callable[..., object], *args: object) -> None:
        before = time.process_time()
        self.wall[name].append(milliseconds(work, *args))
        self.processor[name].append((time.process_time() - before) * 1000)

    def tell(self, title: str, floor: str, *names: str) -> None:
        """A table on the clock, and one of processor time, which a busy machine hardly changes."""
        for what, times in (("", self.wall), (", processor time", self.processor)):
            table(title + what, {name: times[name] for name in (floor, *names)}, floor=floor)

    def judge(self, name: str, floor: str, most: float = 0) -> None:
        """The best of one over the best of its floor, and the aim."""
        ratio = min(self.wall[name]) / min(self.wall[floor])
        aim = f" (aim: <= {most:g}){'' if ratio <= most else ' MISSED'}" if most else ""
        print(f"{name}, over {floor}: {ratio:.2f}{aim}")


def exported() -> dict[str, Any]:
    """One export; the counts of it that are not zero."""
    from exporter.export import export

    report = export(trigger="bench")
    assert not report.conflicts, report.troubles[:3]
    told = {name: getattr(report, name) for name in report.__dataclass_fields__}
    return {name: n for name, n in told.items() if isinstance(n, int) and n}


@contextmanager
def emptied(folder: Path) -> Iterator[Path]:
    """An empty folder, gone afterwards."""
    folder.mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


Files = dict[Path, bytes]


def plain(folder: Path, files: Files) -> None:
    """Open and write each file."""
    _folders(folder, files)
    for name, data in files.items():
        with open(folder / name, "wb") as handle:
            handle.write(data)


def safe(folder: Path, files: Files) -> None:
    """Each file beside its place, to the disk, then into its place."""
    _folders(folder, files)
    draft = folder / "draft"
    for name, data in files.items():
        with open(draft, "wb") as handle:
            handle.write(data)
            os.fsync(handle.fileno())
        os.replace(draft, folder / name)


def _folders(folder: Path, files: Files) -> None:
    for parent in {name.parent for name in files}:
        (folder / parent).mkdir(parents=True, exist_ok=True)


def read(folder: Path, files: Files) -> None:
    """Open and read each file."""
    for name in files:
        with open(folder / name, "rb") as handle:
            handle.read()


if __name__ == "__main__":
    main()
