"""Where each page of the vault is, and what becomes of every other file of ours.

Pure: from the pages that are wanted, what the log says and what lies on the disk. A file is *clean*
when our part of it has a hash that we wrote for this very page: only such files are ever replaced,
moved or removed. Knows nothing about what a page says, about databases or files.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter

from exporter import names
from exporter.found import Found, Scan, sha256
from exporter.moves import Heir, Last, Layout, Log, Move, Page
from exporter.names import Named

# What a key looks like: a person's own property of this name may be anything.
_OURS = re.compile(r"(?:hub:)?[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|index:(?:[0-9]{1,18}|-)")

#: Where files of retired notes lie that hold words of a person.
RETIRED = "_retired"


def doubtful(scan: Scan, last: Mapping[str, Last]) -> set[str]:
    """Keys on the disk of which more must be known than the last that was done to them."""
    keys: set[str] = set()
    for one in scan.files.values():
        if one.key is None:
            continue
        known = last.get(one.key)
        if known is None or (known.path, known.sha256) != (one.path, one.managed):
            keys.add(one.key)
    return keys


def settle(
    pages: Sequence[Page],
    log: Log,
    scan: Scan,
    heirs: Mapping[str, Heir],
    *,
    keep_retired: bool = False,
    lowercase: bool = False,
) -> Layout:
    """Where each page is, and what becomes of the files of all others; `heirs` by the key of what
    is gone.

    In this order, each on what the ones before it left: which files are whose; which pages are left
    alone; what heirs get; what leaves; names for pages, then for what leaves; who goes first.
    """
    wanted = {page.key: page for page in pages}
    homes, extras, foreign = _sort_out(scan, log, wanted)
    taken = set(foreign)
    moves = {key: Move(key, home=homes.get(key), adds=extras.get(key, [])) for key in wanted}
    for key, move in moves.items():
        _trouble(wanted[key], move, log, scan, foreign)
        if move.trouble:
            taken.update(one.path for one in move.files)
            if move.trouble != "barred":
                taken.add(move.path)
    leaving = _inherit(moves, homes, extras, log, heirs)
    for move in leaving:
        _leave(move, log, keep=keep_retired)
        if move.path and move.home is not None:
            taken.add(move.home.path)
    everything = [*moves.values(), *leaving]
    apart: dict[str, str] = {}
    while True:
        _allot(pages, moves, log, taken, apart, lowercase=lowercase)
        _lay_to_rest(leaving, log, taken, lowercase=lowercase)
        ring = _waves(everything) or _in_vain(everything, scan)
        if not ring:
            paths = {key: move.path for key, move in moves.items()}
            return Layout(paths, everything, _strangers(scan, log, wanted, foreign))
        free = sorted((one.path, one.key) for one in ring if not _fixed(one, wanted))
        if free:
            # Names that change places: one of them gets a name that is free instead. Nobody else
            # does: this is to come out the same when a part of it is done already.
            path, key = free[0]
            if key in apart or key not in wanted:
                taken.add(path)
            else:
                apart |= names.allot([wanted[key]], kept={}, taken=[path], lowercase=lowercase)
            continue
        for move in ring:
            move.trouble = "taken"
            taken.update(one.path for one in move.files)


def _fixed(move: Move, wanted: Mapping[str, Page]) -> bool:
    return move.key in wanted and bool(wanted[move.key].fixed)


def _in_vain(moves: Sequence[Move], scan: Scan) -> list[Move]:
    """A move to where a file lies that stays."""
    staying = {names.fold(path) for path in scan.files}
    staying -= {names.fold(one.path) for move in moves for one in move.gone}
    for move in moves:
        if move.path and not move.trouble and not move.there and names.fold(move.path) in staying:
            return [move]
    return []


def _sort_out(
    scan: Scan, log: Log, wanted: Collection[str]
) -> tuple[dict[str, Found], dict[str, list[Found]], set[str]]:
    """The files of ours: the home of each page, and what else of it we left; and the paths of all
    that is somebody else's, copies of ours among it."""
    by_key: dict[str, list[Found]] = defaultdict(list)
    foreign: set[str] = set(scan.others)
    for one in scan.files.values():
        if one.key is not None and (one.key in wanted or log.knows(one.key)):
            by_key[one.key].append(one)
        else:
            foreign.add(one.path)
    homes: dict[str, Found] = {}
    extras: dict[str, list[Found]] = {}
    for key, files in by_key.items():
        left = [one for one in files if log.was_at(one) and log.clean(one)]
        home = _home(key, files, left, log, wanted)
        if home is not None:
            homes[key] = home
        if more := sorted((one for one in left if one is not home), key=lambda one: one.path):
            extras[key] = more
        foreign.update(one.path for one in files if one is not home and one not in more)
    return homes, extras, foreign


def _strangers(
    scan: Scan, log: Log, wanted: Collection[str], foreign: Collection[str]
) -> list[Found]:
    """Of the files that are not ours those that say they are: of another database, or what a person
    changed of a page that nothing may be left of."""
    return [
        one
        for path, one in sorted(scan.files.items())
        if path in foreign and one.key is not None and one.key not in wanted
        if _OURS.fullmatch(one.key) and (log.bare(one.key) or not log.knows(one.key))
    ]


def _home(
    key: str, files: list[Found], left: list[Found], log: Log, wanted: Collection[str]
) -> Found | None:
    """The page's own file: where the log has it, else where a person moved it."""
    last = log.last.get(key)
    if last is not None:
        for one in files:
            if one.path == last.path:
                return one
        # What only calls itself so is a person's own: their words stand above, below, everywhere.
        files = [one for one in files if one.marked or log.clean(one) or log.was_at(one)]
        if key not in wanted and not last.stands:
            # It left before: what there is yet is a copy, or was not removed in time.
            files = left
    order = sorted(files, key=lambda one: (one not in left, not log.clean(one), one.path))
    return order[0] if order else None


def _inherit(
    moves: dict[str, Move],
    homes: Mapping[str, Found],
    extras: Mapping[str, list[Found]],
    log: Log,
    heirs: Mapping[str, Heir],
) -> list[Move]:
    """Give the files of pages that are gone to their heirs; the rest leaves."""
    leaving: list[Move] = []
    inherited: list[tuple[int, str, Heir]] = []
    for key in sorted(homes.keys() - moves.keys()):
        home, heir = homes[key], heirs.get(key)
        to = moves.get(heir.key) if heir else None
        free = to is not None and not to.trouble
        if heir is None or not free or not log.clean(home) or log.rests(home):
            move = Move(key, "removed", home=home, adds=extras.get(key, []))
            move.heir = heir.key if heir is not None and to is not None else ""
            leaving.append(move)
        else:
            inherited.append((heir.far, key, heir))
    for _, key, heir in sorted(inherited, key=lambda one: one[:2]):
        move = moves[heir.key]
        if heir.takes and move.home is None:
            move.home = homes[key]
        else:
            move.adds.append(homes[key])
        move.adds.extend(extras.get(key, []))
    return leaving


def _trouble(page: Page, move: Move, log: Log, scan: Scan, foreign: Collection[str]) -> None:
    """Whether the page's place is not ours to write, and why."""
    bar = next((one for one in _upwards(page.folder) if _bars(one, scan)), "")
    home, last = move.home, log.last.get(page.key)
    if home is not None and home.key == page.key and not log.clean(home):
        move.trouble = "changed" if home.marked else "unmarked"
        move.path = home.path
        return
    if bar:
        move.trouble, move.bar = "barred", bar
        move.path = home.path if home is not None else f"{page.folder}/{names.stem(page.title)}.md"
        return
    path = f"{page.folder}/{page.fixed}" if page.fixed else ""
    if not path and last is not None and last.stands and last.path.startswith(f"{page.folder}/"):
        path = last.path
    if path in foreign:
        move.trouble, move.path = "taken", path


def _upwards(folder: str) -> Iterator[str]:
    """The folders on the way to this one, from the top."""
    steps = folder.split("/")
    return ("/".join(steps[: deep + 1]) for deep in range(len(steps)))


def _bars(folder: str, scan: Scan) -> bool:
    if folder in scan.others:
        return True
    there = scan.files.get(folder)
    return there is not None and there.kind != "folder"


def _leave(move: Move, log: Log, *, keep: bool) -> None:
    """What becomes of the file of a page that is gone, and that nobody takes over. `keep` is about
    notes: hubs and indexes are worth nothing without."""
    home = move.home
    assert home is not None
    words = any(one.region.strip() for one in (home, *move.adds))
    if move.heir and words and log.clean(home) and not (log.rests(home) or log.bare(move.key)):
        # Its heir is left alone: these words come to it when that is settled.
        move.trouble, move.path = "waits", home.path
    elif not log.clean(home):
        move.trouble, move.path = "gone", home.path
    elif log.rests(home):
        move.fate, move.path = "retired", home.path
    elif words or (keep and ":" not in move.key and not log.bare(move.key)):
        # Where to is said when all other names are given.
        move.fate = "retired"


def _allot(
    pages: Sequence[Page],
    moves: Mapping[str, Move],
    log: Log,
    taken: Collection[str],
    apart: Mapping[str, str],
    *,
    lowercase: bool,
) -> None:
    """Give every page its path whose file is not left alone; those in `apart` that one."""
    kept: dict[str, str] = {}
    asked: list[Named] = []
    fixed: set[str] = set()
    for page in pages:
        move, last = moves[page.key], log.last.get(page.key)
        if move.trouble:
            continue
        if page.fixed:
            move.path = f"{page.folder}/{page.fixed}"
            if move.home and names.fold(move.home.path) == names.fold(move.path):
                move.path = move.home.path
            fixed.add(move.path)
            continue
        asked.append(page)
        if page.key in apart:
            kept[page.key] = apart[page.key]
        elif last is not None and last.stands:
            kept[page.key] = last.path
            if move.home and names.fold(move.home.path) == names.fold(last.path):
                # A person changed the case alone. Nothing is ever renamed by case alone.
                kept[page.key] = move.home.path
        elif move.home is not None:
            kept[page.key] = move.home.path
    blocked = {*taken, *fixed}
    for key, path in names.allot(asked, kept=kept, taken=blocked, lowercase=lowercase).items():
        moves[key].path = path


def _lay_to_rest(
    leaving: Sequence[Move], log: Log, taken: Collection[str], *, lowercase: bool
) -> None:
    """Names in `_retired` for files that come there: theirs, but of what may not be told none."""
    coming = {
        move.key: move
        for move in leaving
        if move.fate == "retired" and not move.trouble and not log.rests(_its(move))
    }
    asked: list[Named] = []
    for key, move in coming.items():
        ident = sha256(key.encode())
        name = _its(move).path.rpartition("/")[2]
        asked.append(Named(key, RETIRED, ident[:12] if log.bare(key) else name, ident))
    for key, path in names.allot(asked, kept={}, taken=taken, lowercase=lowercase).items():
        coming[key].path = path


def _its(move: Move) -> Found:
    assert move.home is not None
    return move.home


def _waves(moves: Sequence[Move]) -> list[Move]:
    """Order the moves: who leaves a path goes before who comes to it. A ring of them, where there
    is one: none of those can go first."""
    leavers: dict[str, set[int]] = defaultdict(set)
    for index, move in enumerate(moves):
        for one in move.gone:
            leavers[names.fold(one.path)].add(index)
    order: TopologicalSorter[int] = TopologicalSorter()
    for index, move in enumerate(moves):
        coming = bool(move.path) and not move.trouble
        order.add(index, *(leavers.get(names.fold(move.path), set()) - {index} if coming else ()))
    try:
        order.prepare()
    except CycleError as error:
        return [moves[index] for index in error.args[1]]
    wave = 0
    while ready := order.get_ready():
        for index in ready:
            moves[index].wave = wave
        order.done(*ready)
        wave += 1
    return []
