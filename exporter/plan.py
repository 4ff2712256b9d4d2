"""What an export does, once the pages are made: which files are written, moved, removed, and which
rows say so before.

Pure. Knows nothing about notes, databases or files.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from exporter.found import Found, sha256
from exporter.moves import Layout, Log, Move
from memory.text.region import MARKER

Action = Literal["written", "renamed", "removed", "retired", "conflict", "unchanged", "pending"]

#: What settles it where another page stands in the place of the one that is gone.
MOVE_TO_HEIR = "move your words, those below ## Notes too, to {heir}; then delete this file"

#: Why a file is left alone, and what settles it.
TROUBLES: dict[str, tuple[str, str]] = {
    "changed": (
        "it was changed outside ## Notes, or written by another database",
        "move your words below ## Notes and undo the rest, or copy them, those below ## Notes too,"
        " and delete the file; then export again",
    ),
    "unmarked": (
        "the line below ## Notes that ends our part is missing",
        f"put it back above your words: {MARKER} (or copy them and delete the file);"
        " then export again",
    ),
    "taken": (
        "something else lies where this page belongs",
        "move it away, or give it another name; then export again",
    ),
    "gone": (
        "its note is gone, and it was changed outside ## Notes",
        "copy your words, those below ## Notes too, and delete the file; or take its first lines,"
        " from --- to ---, out to keep it as your own",
    ),
    "waits": (
        "its note was replaced, and the page that takes its words is left alone",
        "settle what is told of {heir}; then export again",
    ),
    "stranger": (
        "it calls itself a page of Argus, but its note was purged, may not lie here any more, or is"
        " of another database",
        "copy your words and delete the file; or take its first lines, from --- to ---, out to keep"
        " it as your own",
    ),
    "barred": (
        "a link or a file stands where a folder of the vault belongs",
        "move it away; then export again",
    ),
}


@dataclass(frozen=True)
class Row:
    """A row for the log."""

    key: str
    path: str
    action: str
    sha256: str
    size: int


@dataclass(frozen=True)
class Step:
    """One thing to do. `data` comes to `path`, where `expect` is the hash of what is there (None:
    nothing is); then what is in `unlink` (path, hash) goes. `rows` are logged before all that.

    `words`: the files whose words of a person are in `data`, none where there are none.
    `left`: how many other pages' files go by it. Steps of one wave do not touch each other's files.
    """

    action: Action
    key: str
    path: str
    data: bytes | None = None
    expect: str | None = None
    unlink: tuple[tuple[str, str], ...] = ()
    rows: tuple[Row, ...] = ()
    was: str = ""
    words: tuple[str, ...] = ()
    left: int = 0
    why: str = ""
    fix: str = ""
    wave: int = 0


def steps(layout: Layout, made: Mapping[str, bytes], log: Log) -> list[Step]:
    """What is to be done, in order; `made` are the pages, our part of each, by key: those that are
    wanted, and those that rest."""
    done = [
        _page(move, made[move.key], log)
        if move.fate == "page" or (move.key in made and move.fate == "retired" and not move.trouble)
        else _leaving(move, log, layout.paths.get(move.heir, ""))
        for move in layout.moves
    ]
    done += _bars(layout.moves, log)
    done += [_stranger(one) for one in layout.strangers]
    return sorted(done, key=lambda step: (step.wave, step.path, step.key))


def _page(move: Move, ours: bytes, log: Log) -> Step:
    """What becomes of the file of a page that is wanted, or that rests."""
    home, managed, last = move.home, sha256(ours), log.last.get(move.key)
    rests = move.fate == "retired"
    moved = home is not None and home.path != move.path
    action: Action = "retired" if rests else "renamed" if moved else "written"
    standing = last is not None and (last.path, last.sha256) == (move.path, managed)
    standing = standing and last is not None and (last.rests if rests else last.stands)
    # What lies there already as we would write it: the log is to know of it all the same.
    adopted = () if standing else (Row(move.key, move.path, action, managed, len(ours)),)
    same = home is not None and home.path == move.path and home.managed == managed
    same = same and home is not None and not home.aimed
    if move.trouble == "barred":
        why, fix = TROUBLES[move.trouble]
        return Step("pending", move.key, move.path, why=why, fix=fix)
    if move.trouble and not (same and move.trouble in ("changed", "unmarked")):
        return _conflict(move, log)
    region = _joined(move.files[: 1 if move.trouble else None])
    unlink = tuple((one.path, one.whole) for one in move.gone)
    others = _others(move)
    rows = tuple(_removed(one) for one in others if one.key not in log.purged)
    left = sum(1 for one in others if one is not home)
    if same and home is not None and home.region == region:
        return Step(
            "unchanged", move.key, move.path, unlink=unlink, rows=adopted + rows, left=left,
            wave=move.wave,
        )  # fmt: skip
    return Step(
        action,
        move.key,
        move.path,
        data=ours + region,
        expect=move.there.whole if move.there is not None else None,
        unlink=unlink,
        rows=(
            *_strayed(home, move, log),
            Row(move.key, move.path, action, managed, len(ours)),
            *rows,
        ),
        was=home.path if moved and home is not None else "",
        words=_spoken(move),
        left=left,
        wave=move.wave,
    )


def _spoken(move: Move) -> tuple[str, ...]:
    """The files of a page in which a person wrote something."""
    return tuple(one.path for one in move.files if one.region.strip())


def _others(move: Move) -> list[Found]:
    """Of each other page whose files go into this one the first file."""
    first: dict[str, Found] = {}
    for one in move.files:
        if one.key is not None and one.key != move.key and not move.trouble:
            first.setdefault(one.key, one)
    return list(first.values())


def _strayed(home: Found | None, move: Move, log: Log) -> tuple[Row, ...]:
    """A row for where a person had moved the page's own file to: should this export be killed half
    way, the next one knows that what lies there is no copy of theirs."""
    if home is None or home.key != move.key or home.path == move.path or log.was_at(home):
        return ()
    return (_removed(home),)


def _removed(one: Found) -> Row:
    assert one.key is not None
    return Row(one.key, one.path, "removed", one.managed, one.size)


def _leaving(move: Move, log: Log, heir: str) -> Step:
    """What becomes of the file of a page that is gone, and that no page is made of; `heir`: where
    the page is that stands in its place."""
    home, purged = move.home, move.key in log.purged
    assert home is not None
    if move.trouble == "waits":
        why, fix = TROUBLES[move.trouble]
        return Step("pending", move.key, move.path, why=why, fix=fix.format(heir=heir))
    if move.trouble:
        told = _conflict(move, log)
        return replace(told, fix=MOVE_TO_HEIR.format(heir=heir)) if heir else told
    unlink = tuple((one.path, one.whole) for one in move.gone)
    bare = move.fate == "retired"
    if bare and not log.bare(move.key):
        # Its note was purged since the log was read: nobody knows what it may be called.
        return Step("pending", move.key, home.path)
    # Of what may not be told any more only a person's words stay: a file of their own.
    return Step(
        "retired" if bare else "removed",
        move.key,
        move.path if bare else home.path,
        data=_joined(move.files) if bare else None,
        expect=move.there.whole if move.there is not None else None,
        unlink=unlink,
        rows=() if purged else (_removed(home),),
        was=home.path if bare and home.path != move.path else "",
        words=_spoken(move) if bare else (),
        wave=move.wave,
    )


def _conflict(move: Move, log: Log) -> Step:
    """The file is left as it is; one row for the same bytes."""
    home = move.home if move.home is not None and move.home.path == move.path else None
    managed = home.managed if home else ""
    told = log.clashes.get(move.key) == (move.path, managed) or move.key in log.purged
    row = Row(move.key, move.path, "conflict", managed, home.size if home else 0)
    why, fix = TROUBLES[move.trouble]
    return Step("conflict", move.key, move.path, rows=() if told else (row,), why=why, fix=fix)


def _stranger(one: Found) -> Step:
    """A conflict that the log cannot hold: it knows no such note, or may not."""
    why, fix = TROUBLES["stranger"]
    return Step("conflict", one.key or "", one.path, why=why, fix=fix)


def _bars(moves: Iterable[Move], log: Log) -> list[Step]:
    """One conflict for each thing that stands where a folder belongs, told of one of its pages."""
    first: dict[str, Move] = {}
    for move in sorted(moves, key=lambda one: (not one.key.startswith("index:"), one.key)):
        if move.bar and move.trouble == "barred":
            first.setdefault(move.bar, move)
    return [
        _conflict(Move(move.key, path=bar, trouble="barred"), log) for bar, move in first.items()
    ]


def _joined(files: Iterable[Found]) -> bytes:
    """What a person wrote into these files, each once: by whole lines, since a word of theirs may
    well stand within another one's sentence."""
    whole = b""
    for one in files:
        words = one.region
        if not words.strip():
            whole = whole or words
        elif not whole.strip():
            whole = words
        elif _holds(words, whole):
            # They grew after they were joined the last time.
            whole = words
        elif not _holds(whole, words):
            whole = whole + (b"" if whole.endswith(b"\n") else b"\n") + words
    return whole


def _holds(whole: bytes, words: bytes) -> bool:
    """Whether the lines of these words stand there one after the other."""
    there, lines = _lines(whole), _lines(words)
    return any(there[at : at + len(lines)] == lines for at in range(len(there) - len(lines) + 1))


def _lines(words: bytes) -> list[bytes]:
    return [line.rstrip() for line in words.strip(b"\r\n").split(b"\n")]
