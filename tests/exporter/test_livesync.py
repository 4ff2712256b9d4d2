"""What syncs the vault to devices can rely on: livesync-bridge beside CouchDB, and its like.

The bridge's storage peer watches the folder, whole: it tells a changed file by its size and
milliseconds, leaves out no hidden folder, and writes what devices changed into the file in place,
with the device's time. CouchDB knows a file by its path in small letters, and one with a colon in
it not at all. Each test is one thing that it needs; how the bridge writes is done here by hand.
"""

from __future__ import annotations

import os
import threading
import unicodedata
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from exporter.export import export
from exporter.folder import KEPT
from exporter.place import Place, around_vault
from memory import verdicts
from memory.access import principal
from memory.models import Note, Principal
from memory.text import region
from tests import factories as make

TITLES = (
    "C#: a language", "Deploy plan", "deploy Plan", "DEPLOY PLAN.", "a/b\\c", "10:30 is the time",
    ".hidden", "_index", "CON", "e\u0301clair", "\u00e9clair", "\u00c9CLAIR", "\u1e9e and \u00df",
)  # fmt: skip


@pytest.fixture
def alice(db: None) -> Principal:
    return principal("alice")


@pytest.fixture
def vault(tmp_path: Path, alice: Principal) -> Iterator[Path]:
    with around_vault(Place(tmp_path / "Vault", alice.name)):
        yield tmp_path / "Vault"


def titled(owner: Principal, *titles: str) -> list[Note]:
    return [
        make.note(owner, f"What was said of it, number {n}.", title=title)
        for n, title in enumerate(titles)
    ]


def seen(vault: Path) -> dict[str, tuple[int, int, int, int]]:
    """Everything in the folder as a watcher sees it, hidden or not: what it is, and its times."""
    stats = {one: one.lstat() for one in [vault, *vault.rglob("*")]}
    return {
        str(one.relative_to(vault)): (stat.st_mode, stat.st_ino, stat.st_mtime_ns, stat.st_ctime_ns)
        for one, stat in stats.items()
    }


def names(vault: Path) -> list[str]:
    paths = (one.relative_to(vault).as_posix() for one in vault.rglob("*.md"))
    return sorted(one for one in paths if not one.startswith(f"{region.OURS}/"))


def file_of(vault: Path, note: Note) -> Path:
    paths = [vault / name for name in names(vault)]
    (found,) = [one for one in paths if region.identity(one.read_bytes()) == str(note.pk)]
    return found


def supersede(new: Note, old: Note, *, days: float) -> None:
    """The new note takes the place of the old one."""
    verdicts.apply(make.verdict(new, old, status="applied"), now=make.at(days=days))


def test_an_export_that_changes_nothing_moves_nothing_that_a_watcher_sees(
    vault: Path, alice: Principal
) -> None:
    titled(alice, *TITLES)
    export()
    before = seen(vault)
    assert export().written == 0
    assert seen(vault) == before


def test_only_our_own_folder_is_hidden_and_nothing_is_left_in_it(
    vault: Path, alice: Principal
) -> None:
    titled(alice, *TITLES)
    export()
    hidden = [one for one in seen(vault) if any(part.startswith(".") for part in Path(one).parts)]
    assert {Path(one).parts[0] for one in hidden} == {region.OURS}
    drafts = [one for one in hidden if (vault / one).is_file()]
    assert sorted(Path(one).name for one in drafts) == [KEPT, "lock", region.SIGN]


@pytest.mark.parametrize("lowercase", [False, True])
def test_no_two_paths_are_one_to_a_database_that_knows_no_case(
    tmp_path: Path, alice: Principal, lowercase: bool
) -> None:
    titled(alice, *TITLES)
    with around_vault(Place(tmp_path / "Vault", alice.name, lowercase=lowercase)):
        report = export()
    paths = names(tmp_path / "Vault")
    assert len(paths) == report.written >= len(TITLES)
    for fold in (str.lower, str.upper, str.casefold):
        assert len({fold(unicodedata.normalize("NFC", one)) for one in paths}) == len(paths)
    assert all(unicodedata.is_normalized("NFC", one) for one in paths)
    assert not any(":" in one for one in paths)
    if lowercase:
        assert all(one == one.lower() for one in paths)


def test_a_title_that_changes_in_case_alone_renames_nothing(vault: Path, alice: Principal) -> None:
    old = make.note(alice, "The deploy plan is to ship on Fridays.", title="deploy plan")
    export()
    path = file_of(vault, old)
    new = make.note(
        alice, "The deploy plan is to ship on Mondays.", title="Deploy Plan", when=make.at(days=1)
    )
    supersede(new, old, days=2)
    report = export()
    assert (report.renamed, report.removed) == (0, 0)
    assert file_of(vault, new) == path
    assert names(vault).count(path.relative_to(vault).as_posix()) == 1


def test_a_reader_never_meets_half_a_file(vault: Path, alice: Principal) -> None:
    notes = [make.note(alice, "Number 0 says so. " + "It is so. " * 400, title="One")]
    export()
    path = file_of(vault, notes[0])
    met: set[bytes] = set()
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            met.add(path.read_bytes())

    reader = threading.Thread(target=read)
    reader.start()
    whole = {path.read_bytes()}
    try:
        for number in range(1, 6):
            newer = make.note(
                alice, f"Number {number} says so. " + "It is so. " * 400, title="One",
                when=make.at(days=number),
            )  # fmt: skip
            supersede(newer, notes[-1], days=number + 0.5)
            notes.append(newer)
            export()
            whole.add(path.read_bytes())
    finally:
        done.set()
        reader.join()
    assert len(whole) == 6
    assert met <= whole


def test_what_changed_has_another_time_or_size(vault: Path, alice: Principal) -> None:
    old = make.note(alice, "The port of staging is 5432.", title="Port")
    export()
    path = file_of(vault, old)
    before = path.stat()
    os.utime(path, (before.st_atime, before.st_mtime - 60))
    before = path.stat()
    new = make.note(alice, "The port of staging is 5433.", title="Port", when=make.at(days=1))
    supersede(new, old, days=2)
    export()
    after = path.stat()
    assert after.st_mtime_ns // 1_000_000 != before.st_mtime_ns // 1_000_000


def test_what_a_device_wrote_below_the_line_stays_in_the_devices_time(
    vault: Path, alice: Principal
) -> None:
    (note,) = titled(alice, "Port")
    export()
    path = file_of(vault, note)
    data = path.read_bytes()
    with path.open("r+b") as handle:
        handle.seek(0, os.SEEK_END)
        handle.write(b"\nWritten on a phone.\n")
    os.utime(path, (1_700_000_000, 1_700_000_000))
    before = seen(vault)
    report = export()
    assert (report.written, report.conflicts) == (0, 0)
    assert seen(vault) == before
    assert path.read_bytes() == data + b"\nWritten on a phone.\n"


def test_a_file_that_a_device_deleted_comes_back_as_it_was(vault: Path, alice: Principal) -> None:
    (note,) = titled(alice, "Port")
    export()
    path = file_of(vault, note)
    data = path.read_bytes()
    path.unlink()
    assert export().written == 1
    assert path.read_bytes() == data


def test_lower_case_asked_for_later_moves_files_once(tmp_path: Path, alice: Principal) -> None:
    """A switch of the option is a rename by case: on a disk that tells case apart, and in one go
    for each file, so that no device sees two."""
    (note,) = titled(alice, "Deploy Plan")
    place = Place(tmp_path / "Vault", alice.name)
    with around_vault(place):
        export()
    with around_vault(replace(place, lowercase=True)):
        export()
        assert export().written == 0
    assert len([n for n in names(place.folder) if "deploy" in n.lower()]) == 1
    assert file_of(place.folder, note).exists()
