"""The plan, against a model of a vault: whatever people and crashes do, nothing of theirs is lost,
nothing is written twice, and the end is the same."""

from __future__ import annotations

import copy
import random
from collections import defaultdict
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

import pytest

from exporter import names
from exporter.found import Scan, found, parts, sha256
from exporter.layout import doubtful, settle
from exporter.moves import Heir, Last, Log, Page
from exporter.plan import Row, Step, steps
from memory.text.region import MARKER

TITLES = ("Plan", "plan", "Deploy")
FOLDERS = ("shop", "blog")

#: Stories told, and what happens in each.
SEEDS, ACTS = 30, 60

Crash = Callable[[int], bool]


@dataclass
class World:
    """Notes and who replaced whom, the log, and the disk."""

    alive: dict[str, tuple[str, str, int]] = field(default_factory=dict)
    heirs: dict[str, tuple[str, bool]] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)
    disk: dict[str, bytes] = field(default_factory=dict)
    keep: bool = False
    gone: dict[str, int] = field(default_factory=dict)

    def pages(self) -> list[Page]:
        made = [
            Page(key, folder, title, sha256(key.encode()))
            for key, (folder, title, _) in self.alive.items()
        ]
        for folder in {folder for folder, _, _ in self.alive.values()}:
            made.append(Page(f"index:{folder}", folder, "", "0", fixed="_index.md"))
        return made

    def heir(self, key: str) -> Heir | None:
        here, takes = key, True
        for far in range(1, 50):
            if here not in self.heirs:
                return None
            here, whole = self.heirs[here]
            takes = takes and whole
            if here in self.alive:
                return Heir(here, takes, far)
        return None

    def scan(self) -> Scan:
        return Scan({path: found(path, data) for path, data in self.disk.items()})

    def log(self, scan: Scan) -> Log:
        last: dict[str, Last] = {}
        clashes: dict[str, tuple[str, str]] = {}
        for row in self.rows:
            if row.action == "conflict":
                clashes[row.key] = (row.path, row.sha256)
            else:
                last[row.key] = Last(row.path, row.action, row.sha256)
        hashes: dict[str, set[str]] = defaultdict(set)
        paths: dict[str, set[str]] = defaultdict(set)
        keys = doubtful(scan, last)
        for row in self.rows:
            if row.key in keys and row.action != "conflict":
                hashes[row.key].add(row.sha256)
                paths[row.key].add(row.path)
        return Log(
            last,
            {key: frozenset(some) for key, some in hashes.items()},
            {key: frozenset(some) for key, some in paths.items()},
            clashes=clashes,
        )

    def plan(self) -> list[Step]:
        scan = self.scan()
        log, pages = self.log(scan), self.pages()
        gone = {one.key for one in scan.files.values() if one.key} - {page.key for page in pages}
        heirs = {key: heir for key in gone if (heir := self.heir(key)) is not None}
        layout = settle(pages, log, scan, heirs, keep_retired=self.keep)
        stuck = {move.key for move in layout.moves if move.trouble}
        folded = [names.fold(path) for key, path in layout.paths.items() if key not in stuck]
        assert len(set(folded)) == len(folded), layout.paths
        # Where a person put a file that we leave alone nothing of ours comes.
        left = {names.fold(path) for key, path in layout.paths.items() if key in stuck}
        assert not left & {*folded}
        links = sorted(layout.paths.values())
        made = {
            page.key: self.page(page, links[index % len(links)])
            for index, page in enumerate(sorted(pages, key=lambda one: one.key))
        }
        made |= {move.key: self.rest(move.key) for move in layout.moves if move.fate == "retired"}
        return steps(layout, made, log)

    def rest(self, key: str) -> bytes:
        """A page that is gone, as its rows say it is by now."""
        said = f"its version {self.gone.get(key, 0)}"
        return f"---\nargus_id: {key}\n---\n# at rest\n{said}\n## Notes\n{MARKER}\n".encode()

    def page(self, page: Page, link: str) -> bytes:
        version = self.alive.get(page.key, ("", "", 0))[2]
        return (
            f"---\nargus_id: {page.key}\n---\n# {page.title}\nversion {version}, see [[{link}]]\n"
            f"## Notes\n{MARKER}\n"
        ).encode()

    def export(self, batch: int = 3, crash: Crash = lambda _: False) -> list[Step]:
        """Carry a plan out as `exporter.export` does; ends where `crash` says so."""
        tick = 0

        def dies() -> bool:
            nonlocal tick
            tick += 1
            return crash(tick)

        planned = self.plan()
        waves: dict[int, list[Step]] = defaultdict(list)
        for step in planned:
            waves[step.wave].append(step)
        for _, wave in sorted(waves.items()):
            for at in range(0, len(wave), batch):
                some = wave[at : at + batch]
                if dies():
                    return planned
                self.rows += [row for step in some for row in step.rows]
                for step in some:
                    if step.data is None:
                        continue
                    if dies():
                        return planned
                    there = self.disk.get(step.path)
                    assert (sha256(there) if there is not None else None) == step.expect, step
                    self.disk[step.path] = step.data
                for step in some:
                    for path, whole in step.unlink:
                        if dies():
                            return planned
                        if path in self.disk:
                            assert sha256(self.disk[path]) == whole
                            del self.disk[path]
        return planned


def touching(planned: list[Step]) -> list[Step]:
    return [step for step in planned if step.data is not None or step.unlink or step.rows]


class Vault:
    """People write, move, copy, delete; notes come and go; exports end or are killed."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.world = World(keep=bool(seed % 2))
        self.numbers = 0
        self.words: set[str] = set()
        self.own: dict[str, bytes] = {}
        self.did: list[str] = []

    def act(self) -> None:
        """One thing that happens; what must hold then holds."""
        (what,) = self.chance.choices(list(self.ACTS), weights=list(self.ACTS.values()))
        self.did.append(what)
        getattr(self, what)()
        self.look()

    ACTS = {
        "tell": 6, "change": 2, "retire": 2, "supersede": 3, "merge": 3, "revive": 1,
        "tell_anew": 2, "exchange": 1, "forget": 2, "write": 5, "spoil": 1, "move": 1, "swap": 1,
        "delete": 1, "jot": 1, "crash": 4, "export": 5,
    }  # fmt: skip

    def number(self) -> int:
        self.numbers += 1
        return self.numbers

    def some(self, things: Collection[str]) -> str:
        return self.chance.choice(sorted(things))

    def tell(self) -> None:
        told = (self.some(FOLDERS), self.some(TITLES), 0)
        self.world.alive[f"n{self.number():03}"] = told

    def change(self) -> None:
        if self.world.alive:
            key = self.some(self.world.alive)
            folder, title, version = self.world.alive[key]
            self.world.alive[key] = (folder, title, version + 1)

    def retire(self) -> None:
        if self.world.alive:
            del self.world.alive[self.some(self.world.alive)]

    def tell_anew(self) -> None:
        """Another note of the same title, which is no heir of the one that goes."""
        if self.world.alive:
            folder, title, _ = self.world.alive.pop(self.some(self.world.alive))
            self.world.alive[f"n{self.number():03}"] = (folder, title, 0)

    def exchange(self) -> None:
        """Two notes give their titles to the heirs of each other."""
        if len(self.world.alive) < 2:
            return
        one, two = self.chance.sample(sorted(self.world.alive), 2)
        first, second = self.world.alive.pop(one), self.world.alive.pop(two)
        for old, told in ((one, second), (two, first)):
            key = f"n{self.number():03}"
            self.world.alive[key] = told
            self.world.heirs[old] = (key, True)

    def supersede(self) -> None:
        if self.world.alive:
            old, new = self.some(self.world.alive), f"n{self.number():03}"
            folder, _, _ = self.world.alive.pop(old)
            self.world.alive[new] = (folder, self.some(TITLES), 0)
            self.world.heirs[old] = (new, True)

    def merge(self) -> None:
        if len(self.world.alive) > 1:
            old, kept = self.chance.sample(sorted(self.world.alive), 2)
            del self.world.alive[old]
            self.world.heirs[old] = (kept, self.chance.random() < 0.4)

    def revive(self) -> None:
        gone = {row.key for row in self.world.rows if row.key.startswith("n")}
        if gone := gone - self.world.alive.keys():
            key = self.some(gone)
            self.world.alive[key] = (FOLDERS[0], TITLES[0], 0)
            self.world.heirs.pop(key, None)

    def forget(self) -> None:
        """A part of what bore the notes out is purged: pages that rest say something else."""
        for key in {row.key for row in self.world.rows}:
            self.world.gone[key] = self.world.gone.get(key, 0) + 1

    def ours(self) -> list[str]:
        return [path for path in self.world.disk if path not in self.own]

    def write(self) -> None:
        if self.ours():
            word = f"word{self.number()}."
            self.words.add(word)
            self.world.disk[self.some(self.ours())] += word.encode() + b"\n"

    def spoil(self) -> None:
        if self.ours():
            path = self.some(self.ours())
            self.world.disk[path] = self.world.disk[path].replace(b"# ", b"# my own ", 1)

    def move(self) -> None:
        to = f"{self.some(FOLDERS)}/{self.some(('Plan.md', 'mine.md', 'sub/Plan.md'))}"
        if self.ours() and to not in self.world.disk:
            self.world.disk[to] = self.world.disk.pop(self.some(self.ours()))

    def swap(self) -> None:
        if len(self.ours()) > 1:
            one, two = self.chance.sample(sorted(self.ours()), 2)
            disk = self.world.disk
            disk[one], disk[two] = disk[two], disk[one]

    def delete(self) -> None:
        if self.ours():
            gone = self.world.disk.pop(self.some(self.ours()))
            self.words -= {word for word in self.words if word.encode() in gone}

    def jot(self) -> None:
        path = f"{self.some(FOLDERS)}/{names.stem(self.some(TITLES))}.md"
        if path not in self.world.disk:
            self.own[path] = self.world.disk[path] = f"my own, {self.number()}\n".encode()

    def crash(self) -> None:
        """Killed, then finished: the same end as without."""
        at, batch = self.chance.randint(1, 20), self.chance.randint(1, 4)
        other = copy.deepcopy(self.world)
        other.export(batch)
        self.world.export(batch, crash=lambda tick: tick >= at)
        self.look()
        self.world.export(batch)
        assert self.world.disk == other.disk

    def export(self) -> None:
        before = dict(self.world.disk)
        planned = self.world.export()
        for step in planned:
            if step.action in ("conflict", "unchanged", "pending") and not step.unlink:
                assert self.world.disk.get(step.path) == before.get(step.path)
        again = self.world.plan()
        assert touching(again) == []
        stuck = {step.key for step in planned if step.action in ("conflict", "pending")}
        # A conflict is told of every time, and stands on the log once.
        told = {step.key for step in again if step.action in ("conflict", "pending")}
        assert told == stuck
        for path, data in self.world.disk.items():
            key = found(path, data).key
            # What was laid to rest, and moved from there, is the person's.
            rested = any(row.key == key and row.action == "retired" for row in self.world.rows)
            if key and key not in stuck and not rested:
                assert key in self.world.alive or key.startswith("index:"), path
        for page in self.world.pages():
            if page.key not in stuck:
                mark = f"argus_id: {page.key}\n".encode()
                assert any(mark in data for data in self.world.disk.values()), page
        if not stuck and not self.own:
            self.rebuild()

    def rebuild(self) -> None:
        """From an empty folder: the same names, the same bytes."""
        fresh = copy.deepcopy(self.world)
        fresh.disk = {}
        for step in fresh.export():
            if step.data is not None:
                assert parts(self.world.disk[step.path])[0] == step.data

    def look(self) -> None:
        """Nothing of a person's is lost or changed, not even in the middle of an export."""
        whole = b"\n".join(self.world.disk.values())
        for word in self.words:
            assert word.encode() in whole, f"{word} is lost"
        for path, data in self.own.items():
            assert self.world.disk[path] == data


@pytest.mark.parametrize("seed", range(SEEDS))
def test_whatever_happens_nothing_is_lost_and_nothing_written_twice(seed: int) -> None:
    vault = Vault(seed)
    try:
        for _ in range(ACTS):
            vault.act()
    except AssertionError as error:
        raise AssertionError(f"after {', '.join(vault.did)}") from error
