"""The vault's folder: nothing leads out of it, and nothing is overwritten unseen."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from exporter.disk import Astray, content
from exporter.folder import Folder, Put
from exporter.found import sha256
from memory.errors import Conflict
from memory.text.region import OURS, SIGN
from tests.exporter.exports import tree


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "Vault"


@pytest.fixture
def folder(root: Path) -> Iterator[Folder]:
    with Folder.hold(root) as folder:
        yield folder


def test_it_is_known_as_a_vault(root: Path, folder: Folder) -> None:
    assert (root / OURS / SIGN).read_text().startswith("A vault of Argus")


def test_nobody_else_reads_a_vault_that_we_made(root: Path, folder: Folder) -> None:
    assert stat.S_IMODE(root.stat().st_mode) == 0o700


def test_a_folder_that_was_there_keeps_its_mode(root: Path) -> None:
    root.mkdir()
    root.chmod(0o755)
    with Folder.hold(root):
        assert stat.S_IMODE(root.stat().st_mode) == 0o755


def test_it_belongs_to_one_person(root: Path) -> None:
    # One that says nothing yet is whoever's comes first.
    with Folder.hold(root):
        pass
    with Folder.hold(root, "alice"), Folder.look(root, "alice") as seen:
        assert seen is not None
    for opened in (Folder.hold, Folder.look):
        with pytest.raises(Astray, match="this vault is alice's, not bob's"), opened(root, "bob"):
            pass
    with Folder.hold(root, "alice"):
        assert (root / OURS / SIGN).read_text().endswith("Owner: alice\n")


def test_one_at_a_time(root: Path, folder: Folder) -> None:
    with (
        pytest.raises(Conflict, match="another export is running"),
        Folder.hold(root, wait_seconds=0.1),
    ):
        pass


def test_the_lock_ends_with_the_block(root: Path) -> None:
    for _ in range(3):
        with Folder.hold(root, wait_seconds=0):
            pass


def test_looking_makes_nothing(root: Path) -> None:
    with Folder.look(root) as folder:
        assert folder is None
    root.mkdir()
    with Folder.look(root) as folder:
        assert folder is not None and folder.scan().files == {}
    assert list(root.iterdir()) == []


def test_looking_needs_no_lock(root: Path, folder: Folder) -> None:
    folder.put([Put("a.md", b"a")])
    with Folder.look(root) as other:
        assert other is not None and other.read("a.md") == b"a"


def test_it_writes_what_is_new_and_replaces_what_is_known(root: Path, folder: Folder) -> None:
    assert folder.put([Put("shop/a.md", b"one"), Put("b.md", b"two")]) == set()
    assert folder.put([Put("shop/a.md", b"three", sha256(b"one"))]) == set()
    assert tree(root) == {"shop/a.md": b"three", "b.md": b"two"}
    assert list((root / OURS / "tmp").iterdir()) == []


def test_it_overwrites_nothing_that_it_does_not_expect(root: Path, folder: Folder) -> None:
    folder.put([Put("a.md", b"one")])
    (root / "b.md").write_bytes(b"somebody's")
    left = folder.put([Put("a.md", b"new", sha256(b"other")), Put("b.md", b"new"),
                       Put("c.md", b"new", sha256(b"gone"))])  # fmt: skip
    assert left == {"a.md", "b.md", "c.md"}
    assert tree(root) == {"a.md": b"one", "b.md": b"somebody's"}
    assert list((root / OURS / "tmp").iterdir()) == []


def test_it_removes_what_is_as_it_was_and_folders_that_are_empty(
    root: Path, folder: Folder
) -> None:
    folder.put([Put("shop/deep/a.md", b"one"), Put("shop/b.md", b"two"), Put("blog/c.md", b"3")])
    (root / "blog/c.md").write_bytes(b"changed")
    gone = [(path, sha256(data)) for path, data in (
        ("shop/deep/a.md", b"one"), ("blog/c.md", b"3"), ("shop/not there.md", b""))]  # fmt: skip
    assert folder.remove(gone, ["shop/deep", "blog"]) == {"blog/c.md"}
    assert tree(root) == {"shop/b.md": b"two", "blog/c.md": b"changed"}
    assert not (root / "shop/deep").exists()
    # A folder that a person made stays.
    assert folder.remove([("shop/b.md", sha256(b"two"))]) == set()
    assert list((root / "shop").iterdir()) == []


@pytest.mark.parametrize(
    "path",
    ["../x.md", "a/../x.md", "/x.md", "a//x.md", "./x.md", ".x.md", ".argus/x.md", "a/.b/c.md", "",
     "a\0.md", ".."],
)  # fmt: skip
def test_no_path_leads_out(root: Path, folder: Folder, path: str) -> None:
    for ask in (lambda: folder.put([Put(path, b"x")]), lambda: folder.read(path)):
        with pytest.raises(Astray):
            ask()
    assert tree(root) == {} and {one.name for one in root.parent.iterdir()} == {"Vault"}


def test_no_link_is_followed(root: Path, folder: Folder, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a.md").write_bytes(b"theirs")
    (root / "shop").symlink_to(outside)
    (root / "b.md").symlink_to(outside / "a.md")
    assert folder.read("shop/a.md") is None and folder.read("b.md") is None
    known = sha256(b"theirs")
    assert folder.put([Put("shop/new.md", b"x"), Put("b.md", b"x"), Put("b.md", b"x", known)]) == {
        "shop/new.md", "b.md",
    }  # fmt: skip
    assert folder.remove([("shop/a.md", known), ("b.md", known)]) == set()
    assert {one.name for one in outside.iterdir()} == {"a.md"}
    assert (root / "b.md").is_symlink()
    seen = folder.scan()
    assert seen.others == {"shop"} and seen.files["b.md"].kind == "other"


def test_the_root_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "Vault").symlink_to(tmp_path / "real")
    with Folder.hold(tmp_path / "Vault") as folder:
        folder.put([Put("a.md", b"x")])
    assert (tmp_path / "real/a.md").exists()


@pytest.mark.parametrize("name", [OURS, f"{OURS}/tmp"])
def test_a_link_in_the_place_of_our_own_folder_stops_it(
    root: Path, tmp_path: Path, name: str
) -> None:
    (tmp_path / "outside").mkdir()
    (root / name).parent.mkdir(parents=True)
    (root / name).symlink_to(tmp_path / "outside")
    with pytest.raises(Astray), Folder.hold(root):
        pass
    assert list((tmp_path / "outside").iterdir()) == []


def test_it_sweeps_what_a_killed_one_left_and_nothing_else(root: Path) -> None:
    parts = root / OURS / "tmp"
    parts.mkdir(parents=True)
    (parts / f"{'a' * 16}.part").write_text("half")
    (parts / "mine.txt").write_text("whole")
    with Folder.hold(root):
        assert [one.name for one in parts.iterdir()] == ["mine.txt"]


def test_it_keeps_a_file_s_mode(root: Path, folder: Folder) -> None:
    folder.put([Put("a.md", b"one")])
    (root / "a.md").chmod(0o600)
    folder.put([Put("a.md", b"two", sha256(b"one"))])
    assert (root / "a.md").stat().st_mode & 0o777 == 0o600


def test_it_sees_whose_each_file_is(root: Path, folder: Folder) -> None:
    page = b"---\nargus_id: x1\n---\n# t\n"
    (root / "sub.md").mkdir()
    (root / ".obsidian").mkdir()
    (root / ".obsidian/c.md").write_bytes(page)
    (root / "a.md").write_bytes(page)
    (root / "own.md").write_bytes(b"argus_id: x1\n")
    (root / "long.md").write_bytes(page + b"x" * 200_000)
    os.mkfifo(root / "pipe.md")
    seen = folder.scan()
    assert {path: (one.kind, one.key) for path, one in seen.files.items()} == {
        "sub.md": ("folder", None), "a.md": ("file", "x1"), "own.md": ("file", None),
        "long.md": ("file", "x1"), "pipe.md": ("other", None),
    }  # fmt: skip
    assert seen.files["long.md"].whole == sha256((root / "long.md").read_bytes())
    assert seen.folders == {"sub.md"}


def test_a_name_that_is_not_utf8_is_somebody_s(root: Path, folder: Folder) -> None:
    descriptor = os.open(bytes(root) + b"/\xff.md", os.O_CREAT | os.O_WRONLY)
    os.close(descriptor)
    assert folder.scan().files == {}


def test_more_folders_than_are_kept_open(root: Path, folder: Folder) -> None:
    paths = [f"p{number}/_hubs/x.md" for number in range(100)]
    assert folder.put([Put(path, path.encode()) for path in paths]) == set()
    assert all(folder.read(path) == path.encode() for path in paths)
    hubs = [path.rpartition("/")[0] for path in paths]
    assert folder.remove([(path, sha256(path.encode())) for path in paths], hubs) == set()
    assert tree(root) == {} and not (root / "p1").exists()


def test_a_file_is_read_to_its_end(root: Path, folder: Folder) -> None:
    whole = os.urandom(3_000_000)
    (root / "a.md").write_bytes(whole)
    parent = os.open(root, os.O_RDONLY)
    try:
        assert content(parent, "a.md") == whole
    finally:
        os.close(parent)
