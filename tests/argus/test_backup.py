"""A backup: one moment, one file, whole or not there, and it says so of itself."""

from __future__ import annotations

import errno
import json
import os
import resource
import signal
import stat
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from argus.backups import archive, backup, clients, inventory
from argus.owner import OwnerProblem
from argus.scratch import owner_of
from argus.whole import whole
from memory.access import principal
from memory.errors import RefusedError
from memory.models import Act, RawItem
from tests import factories


def words(path: Path) -> bytes:
    return path.read_bytes()


def test_it_writes_one_whole_file_that_its_owner_alone_may_read(
    clone_db: str, tmp_path: Path, settings
) -> None:
    alice = principal("alice")
    factories.turns(alice, factories.SAID)
    owner = {**settings.OWNER_DATABASE, "PASSWORD": "swordfish-of-the-owner"}
    settings.OWNER_DATABASE = owner
    path = tmp_path / "a.backup"
    report = backup.back_up(path, by=alice, now=factories.at())
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [one.name for one in tmp_path.iterdir()] == ["a.backup"], "no draft is left"
    assert b"swordfish" not in words(path)
    checked = archive.check(path)
    assert (
        checked.manifest["tables"]["memory_rawitem"]["rows"]
        == RawItem.objects.as_pipeline().count()
    )
    assert report.sha256 == checked.dump_sha256 and report.bytes == path.stat().st_size
    act = Act.objects.get(verb="back_up")
    assert (act.kind, act.detail["sha256"]) == ("database", report.sha256)
    # Anybody can check it, without Argus.
    with tarfile.open(path) as tar:
        tar.extractall(tmp_path, filter="data")
    sums = subprocess.run(["sha256sum", "-c", archive.SUMS], cwd=tmp_path, capture_output=True)
    assert sums.returncode == 0
    # What is there is not written over, but when one says so.
    before = words(path)
    with pytest.raises(RefusedError, match="is there already"):
        backup.back_up(path, by=alice, now=factories.at(1))
    assert words(path) == before
    assert backup.back_up(path, by=alice, now=factories.at(1), force=True).made_at > report.made_at


def test_it_holds_the_moment_at_which_it_began(
    clone_db: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is written while it is dumped is neither in the dump nor in its hashes."""
    alice = principal("alice")
    factories.turns(alice, factories.SAID)
    real = inventory.take

    def take(*args, **kwargs):
        factories.turns(alice, ["Said while the backup ran."], session="later")
        return real(*args, **kwargs)

    monkeypatch.setattr(inventory, "take", take)
    backup.back_up(tmp_path / "a.backup", by=alice, now=factories.at())
    tables = archive.check(tmp_path / "a.backup").manifest["tables"]
    assert tables["memory_rawitem"]["rows"] == len(factories.SAID)
    assert RawItem.objects.as_pipeline().count() == len(factories.SAID) + 1


def test_it_leaves_nothing_behind_when_it_fails(
    clone_db: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.backup"
    path.write_text("the backup of yesterday")
    monkeypatch.setattr(backup, "_dumped", lambda program, snapshot: _broken(program))
    with pytest.raises(clients.ProgramFailed, match="pg_dump failed"):
        backup.back_up(path, by=principal("alice"), now=factories.at(), force=True)
    assert path.read_text() == "the backup of yesterday"
    assert [one.name for one in tmp_path.iterdir()] == ["a.backup"]
    assert not Act.objects.exists()


def _broken(program: Path) -> Iterator[bytes]:
    at = {**connection.settings_dict, "NAME": "there is no such database"}
    with clients.running(program, at=at, reads=False) as dump:
        yield dump.read()


def test_it_puts_no_file_in_the_place_of_a_device(tmp_path: Path) -> None:
    pipe = tmp_path / "null"
    os.mkfifo(pipe)
    with pytest.raises(RefusedError, match="is no file"), whole(pipe, force=True):
        pass
    assert pipe.is_fifo()
    (tmp_path / "name").symlink_to(tmp_path / "nowhere")
    with pytest.raises(RefusedError, match="is no file"), whole(tmp_path / "name", force=True):
        pass


def test_it_needs_no_hard_links_and_still_writes_over_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stick or a share often has none."""

    def link(*names: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", link)
    path = tmp_path / "a"
    with whole(path, force=False) as out:
        out.write(b"first")
    with pytest.raises(RefusedError, match="is there already"), whole(path, force=False):
        pass
    with pytest.raises(RefusedError, match="is there already"), whole(tmp_path / "b", force=False):
        (tmp_path / "b").write_text("somebody else's, meanwhile")
    assert path.read_bytes() == b"first" and stat.S_IMODE(path.stat().st_mode) == 0o600
    assert sorted(one.name for one in tmp_path.iterdir()) == ["a", "b"]


def test_it_blames_the_file_for_what_its_own_disk_refuses_and_for_nothing_else(
    tmp_path: Path,
) -> None:
    with pytest.raises(FileNotFoundError), whole(tmp_path / "a", force=False) as out:
        out.write(b"some of it")
        (tmp_path / "elsewhere").read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, limits[1]))
        with (
            pytest.raises(RefusedError, match="a cannot be written: File too large"),
            whole(tmp_path / "a", force=False) as out,
        ):
            out.write(bytes(2_000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, before)
    assert not list(tmp_path.iterdir())
    with (
        pytest.raises(clients.ProgramFailed, match="pg_dump cannot be started: No such file"),
        clients.running(tmp_path / "pg_dump", at=connection.settings_dict, reads=False),
    ):
        pass


def test_it_says_which_programs_are_missing() -> None:
    with pytest.raises(OwnerProblem, match="PostgreSQL 97 and there is no pg_dump 97"):
        clients.matching("pg_dump", 97)


@pytest.fixture
def kept(clone_db: str, tmp_path: Path) -> Path:
    path = tmp_path / "a.backup"
    call_command("backup", str(path), "--no-progress")
    return path


def test_it_finds_every_kind_of_damage(
    kept: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    call_command("backup", str(kept), "--check")
    assert "whole:" in capsys.readouterr().out
    good = words(kept)
    kinds = {
        "cut off": good[: len(good) // 2],
        "a block short": good[:-20_000],
        "a bit of the dump": good[:5_000] + bytes([good[5_000] ^ 1]) + good[5_001:],
        "a count of the manifest": good.replace(b'"rows": 0', b'"rows": 1', 1),
        "empty": b"",
        "another file": b"PK\x03\x04" * 1_000,
    }
    for kind, damaged in kinds.items():
        kept.write_bytes(damaged)
        with pytest.raises(archive.Broken):
            archive.check(kept)
        with pytest.raises(CommandError) as error:
            call_command("backup", str(kept), "--check")
        assert error.value.returncode == 1, kind
    for command in (("backup", "--check"), ("restore",)):
        with pytest.raises(CommandError, match="there is no file") as error:
            call_command(*command, str(kept) + ".not")
        assert error.value.returncode == 2
        with pytest.raises(CommandError, match="invalid file_name value"):
            call_command(*command, "\x1b[31mred\nx")
    with pytest.raises(CommandError, match="needs the FILE") as error:
        call_command("backup", "--check")
    assert error.value.returncode == 2
    # The hashes fit, and it is no backup all the same.
    _changed_manifests(kept, good)
    # What a newer Argus wrote is refused in words.
    monkeypatch.setattr(archive, "FORMAT", 99)
    with archive.writing(kept, force=True) as out:
        out.write(archive.DUMP_MAGIC)
        out.finish({})
    monkeypatch.undo()
    with pytest.raises(archive.Broken, match="has the form 99 and this Argus reads 1"):
        archive.check(kept)


def _changed_manifests(path: Path, good: bytes) -> None:
    path.write_bytes(good)
    manifest = archive.check(path).manifest
    changes: list[dict[str, object]] = [
        {"migrations": [{"a": 1}]}, {"migrations": []}, {"closed": [5]}, {"rights": [{}]},
        {"extensions": {"vector": 1}}, {"tables": {}}, {"tables": {"a": {"rows": -5, "hash": ""}}},
        {"tables": {"a": {"rows": 1.5, "hash": ""}}}, {"tables": {"a": 5}}, {"made_at": "soon"},
        {"taken": []}, {"taken": {"a": 5}}, {"taken": {"a": [["1", "2026-11-30"]]}},
        {"taken": {"a": [[1, "soon"]]}}, {"taken": {"a": [[2**63, "2026-11-30"]]}},
    ]  # fmt: skip
    for change in changes:
        with archive.writing(path, force=True) as out:
            out.write(archive.DUMP_MAGIC)
            out.finish({**manifest, **change})
        with pytest.raises(archive.Broken, match="no backup of Argus"):
            archive.check(path)
    with archive.writing(path, force=True) as out:
        out.finish(manifest)
    with pytest.raises(archive.Broken, match="no dump"):
        archive.check(path)


def test_it_reads_the_dump_where_the_hashes_fit(
    kept: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dumped = _Bytes()
    manifest = archive.check(kept, dumped).manifest
    server = owner_of(dict(connection.settings_dict))
    program = clients.matching("pg_dump", int(manifest["server"].split(".")[0]))
    foreign = {**server, "NAME": "postgres"}
    with clients.running(program, "--format=custom", at=foreign, reads=False) as dump:
        others = dump.read()
    one_less = {**manifest["tables"], "memory_principal": {"rows": 999, "hash": "x"}}
    cases = (
        (bytes(dumped.held), manifest, None),
        (bytes(dumped.held[: len(dumped.held) * 9 // 10]), manifest, "cannot be read"),
        (bytes(dumped.held[:200]), manifest, "cannot be read"),
        (others, manifest, "of another database: rows of .* is missing"),
        (bytes(dumped.held), {**manifest, "tables": one_less}, "memory_principal [0-9]+, not 999"),
    )
    for words_of, told, wrong in cases:
        with archive.writing(kept, force=True) as out:
            out.write(words_of)
            out.finish(told)
        assert archive.check(kept), "every hash fits"
        if wrong is None:
            call_command("backup", str(kept), "--check")
            continue
        with pytest.raises(CommandError, match=wrong) as error:
            call_command("backup", str(kept), "--check")
        assert error.value.returncode == 1
    # A machine without the program: what was looked at is told, and that it was not all.
    with archive.writing(kept, force=True) as out:
        out.write(bytes(dumped.held))
        out.finish({**manifest, "server": "97.1"})
    with pytest.raises(SystemExit) as end:
        call_command("backup", str(kept), "--check")
    assert end.value.code == 3
    assert "There is no pg_restore 97 or newer here" in capsys.readouterr().out


class _Bytes:
    """Takes bytes."""

    def __init__(self) -> None:
        self.held = bytearray()

    def write(self, block: bytes, /) -> int:
        self.held += block
        return len(block)


def test_it_is_a_command_that_says_what_it_did(
    clone_db: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    call_command("backup", "--json")
    told = json.loads(capsys.readouterr().out)
    (path,) = tmp_path.iterdir()
    assert told["file"] == path.name and path.name.startswith("argus-")
    assert told["tables"] > 40
    with pytest.raises(CommandError, match="cannot be written") as error:
        call_command("backup", str(tmp_path / "no" / "folder"))
    assert error.value.returncode == 2
