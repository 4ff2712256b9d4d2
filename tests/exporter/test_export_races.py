"""Two exports at once, a folder that cannot be written, a disk that is full."""

from __future__ import annotations

import json
import os
import resource
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from exporter.carrying import Carrying
from exporter.folder import Folder, VaultAway
from exporter.health import health
from exporter.place import Place, around_vault
from exporter.report import ExportReport
from exporter.tasks import run_export
from memory.access import principal
from memory.models import StageRun
from memory.text.region import OURS
from tests import factories as make
from tests.exporter.exports import rows, run, tree
from tests.exporter.process import start
from tests.memory.books import purge

pytestmark = pytest.mark.usefixtures("clone_db", "vault", "local")

#: Longer than any page but one.
PAGE_BYTES = 6_000


def fill(count: int = 30) -> None:
    alice = principal("alice")
    for number in range(count):
        make.note(alice, f"What is known of thing {number}.", project=make.project())


@pytest.mark.slow
def test_two_at_once_do_not_interleave(vault: Path, clone_environment: dict[str, str]) -> None:
    fill()
    both = [start(vault, clone_environment) for _ in range(2)]
    ended = [process.communicate(timeout=120) for process in both]
    codes = [process.returncode for process in both]
    assert 0 in codes
    for code, (_, err) in zip(codes, ended, strict=True):
        assert code == 0 or "another export is running" in err
    # Each file was written once, by one of them.
    done = Counter(path for _, path in rows())
    assert set(done.values()) == {1} and set(done) == set(tree(vault))
    assert list((vault / OURS / "tmp").iterdir()) == []
    assert run().written == 0


def test_it_waits_a_moment_and_says_who_is_in_the_way(vault: Path) -> None:
    fill(1)
    with Folder.hold(vault):
        assert run_export() == {}
    assert tree(vault) == {}
    # That the schedule meets a long export is no failure.
    last = StageRun.objects.get(stage="export")
    assert (last.status, "another export is running" in last.error) == ("cancelled", True)
    assert run().written == 2


@contextmanager
def nobody() -> Iterator[None]:
    """Inside, this process is one that may not write everywhere: root may."""
    if os.geteuid():
        yield
        return
    os.seteuid(65_534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_folder_that_cannot_be_written_fails_plainly() -> None:
    fill(3)
    with tempfile.TemporaryDirectory() as name:
        vault = Path(name) / "Vault"
        os.chmod(name, 0o755)
        with around_vault(Place(vault, "alice")):
            run()
            before = tree(vault)
            fill(1)
            for path in (vault, vault / "shop", vault / OURS, vault / OURS / "tmp"):
                path.chmod(0o555)
            with nobody(), pytest.raises(VaultAway, match="cannot be written"):
                run()
            assert tree(vault) == before
            last = StageRun.objects.filter(stage="export").latest("pk")
            assert last.status == "failed" and "cannot be written" in last.error
            for path in (vault, vault / "shop", vault / OURS, vault / OURS / "tmp"):
                path.chmod(0o755)
            assert run().pending == 0
            assert len(tree(vault)) == 5


def test_one_folder_that_cannot_be_written_stops_nobody_else() -> None:
    alice = principal("alice")
    for project in ("blog", "shop", "zoo"):
        make.note(alice, f"Of the {project}.", title="One", project=make.project(project))
    with tempfile.TemporaryDirectory() as name, around_vault(Place(Path(name) / "V", "alice")):
        vault = Path(name) / "V"
        os.chmod(name, 0o755)
        run()
        before = tree(vault)
        for path in [vault, *vault.rglob("*")]:
            path.chmod(0o777 if path.is_dir() else 0o666)
        for project in ("blog", "shop", "zoo"):
            (vault / project / "One.md").unlink()
        (vault / "shop").chmod(0o555)
        with nobody(), pytest.raises(VaultAway, match="^1 file of the vault cannot be") as error:
            run()
        # What is kept, and read by others, names no file: those are called after notes.
        last = StageRun.objects.latest("pk")
        assert "One" not in str(error.value) + last.error + str(last.report)
        assert "shop/One.md" in error.value.told
        assert (last.status, last.report["written"], last.report["pending"]) == ("failed", 2, 1)
        assert (health().files, health().pending) == (5, 1)
        with nobody(), pytest.raises(CommandError, match="shop/One.md"):
            call_command("export", stdout=(said := StringIO()))
        assert "pending 1" in said.getvalue()
        with nobody(), pytest.raises(SystemExit, match="75"):
            call_command("export", "--json", stdout=(said := StringIO()))
        told = json.loads(said.getvalue())
        assert (told["pending"], told["exit"]) == (1, 75) and "shop/One.md" in told["error"]
        assert set(before) - set(tree(vault)) == {"shop/One.md"}
        assert list((vault / OURS / "tmp").iterdir()) == []
        (vault / "shop").chmod(0o777)
        assert (run().written, tree(vault)) == (1, before)


@contextmanager
def full_disk() -> Iterator[None]:
    """Inside, a file of more than so many bytes is refused, as a full disk does."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (PAGE_BYTES, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_fails_plainly_and_is_finished_later(vault: Path) -> None:
    fill(3)
    long = "This is what is known of it. " * (PAGE_BYTES // 20)
    make.note(principal("alice"), long, title="Long", project=make.project())
    with full_disk(), pytest.raises(VaultAway, match="disk is full"):
        run()
    last = StageRun.objects.get(stage="export")
    assert last.status == "failed" and "disk is full" in last.error
    assert last.report["pending"] == 5 and last.report["written"] == 0
    report = run()
    assert report.written + report.unchanged == 5
    assert len(tree(vault)) == 5
    assert list((vault / OURS / "tmp").iterdir()) == []
    assert run().written == 0


def test_a_note_that_is_purged_in_the_middle_waits_and_stops_nobody(
    vault: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(3)
    one = make.note(principal("alice"), "This is purged.", title="Gone", project=make.project())
    real = Carrying.out

    def late(self: Carrying) -> ExportReport:
        purge([edge.raw_item_id for edge in one.evidence.all() if edge.raw_item_id])
        return real(self)

    with monkeypatch.context() as patch:
        patch.setattr(Carrying, "out", late)
        report = run()
    assert (report.written, report.pending) == (4, 1)
    assert "shop/Gone.md" not in tree(vault) and len(rows()) == 4
    # The index was made before.
    assert (run().written, run().pending) == (1, 0)
    assert "Gone" not in str(tree(vault))
