"""What we read from git's files is what git itself answers."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from argus.hook.repository import facts, remote, without_credentials

ENVIRONMENT = {
    "PATH": os.environ["PATH"],
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@example.test",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@example.test",
}


def git(where: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", "-c", "protocol.file.allow=always", *arguments],
        cwd=where,
        env={**ENVIRONMENT, "HOME": str(where)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def asked(where: Path) -> dict[str, str]:
    """The same facts, from git."""
    common = git(where, "rev-parse", "--git-common-dir")
    return {
        "git_root": git(where, "rev-parse", "--show-toplevel"),
        "git_common_dir": str((where / common).resolve()),
        "branch": git(where, "rev-parse", "--abbrev-ref", "HEAD"),
    }


def told(where: Path) -> dict[str, str]:
    found = facts(str(where))
    found.pop("repo", None)
    return found


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository with one commit on the branch `main`, and a folder in it."""
    path = tmp_path / "project"
    (path / "src" / "deep").mkdir(parents=True)
    git(path, "init", "-q", "-b", "main")
    (path / "src" / "file").write_text("x")
    git(path, "add", ".")
    git(path, "commit", "-q", "-m", "one")
    return path


def test_it_knows_nothing_outside_of_a_repository(tmp_path):
    assert facts(str(tmp_path)) == {}


def test_it_answers_as_git_does_in_a_repository(project):
    assert told(project) == asked(project)
    assert told(project / "src" / "deep") == asked(project / "src" / "deep")
    git(project, "checkout", "-q", "-b", "feature/ü-1")
    assert told(project)["branch"] == "feature/ü-1"


def test_it_answers_as_git_does_in_a_worktree(project, tmp_path):
    place = tmp_path / "elsewhere" / "tree"
    git(project, "worktree", "add", "-q", "-b", "side", str(place))
    (place / "src" / "new").mkdir()
    assert told(place / "src" / "new") == asked(place)
    assert told(place)["git_common_dir"] == str(project / ".git")
    inside = project / ".claude" / "worktrees" / "x"
    git(project, "worktree", "add", "-q", "-b", "third", str(inside))
    assert told(inside) == asked(inside)


def test_it_finds_the_repository_of_a_worktree_that_is_gone(project):
    assert told(project / ".claude" / "worktrees" / "gone")["git_root"] == str(project)


def test_it_answers_as_git_does_in_worktrees_of_a_bare_repository(project, tmp_path):
    top = tmp_path / "top"
    top.mkdir()
    git(tmp_path, "clone", "-q", "--bare", str(project), str(top / ".bare"))
    (top / ".git").write_text("gitdir: ./.bare\n")
    git(top / ".bare", "worktree", "add", "-q", "-b", "tree", str(top / "tree"))
    assert told(top / "tree") == asked(top / "tree")
    assert told(top / "tree")["git_common_dir"] == str(top / ".bare")
    assert told(top)["git_common_dir"] == str(top / ".bare")


def test_it_knows_a_bare_repository_without_a_tree(project, tmp_path):
    git(tmp_path, "clone", "-q", "--bare", str(project), "bare.git")
    found = told(tmp_path / "bare.git")
    assert found == {"git_common_dir": str(tmp_path / "bare.git"), "branch": "main"}


def test_it_answers_as_git_does_in_a_submodule(project, tmp_path):
    outer = tmp_path / "outer"
    outer.mkdir()
    git(outer, "init", "-q", "-b", "main")
    git(outer, "submodule", "-q", "add", str(project), "libs/inner")
    inner = outer / "libs" / "inner"
    assert told(inner / "src") == asked(inner)
    assert told(inner)["git_root"] == str(inner)
    assert told(outer / "libs")["git_root"] == str(outer)


def test_it_answers_as_git_does_where_the_folder_lies_elsewhere(project, tmp_path):
    git(
        tmp_path,
        "clone",
        "-q",
        "--separate-git-dir",
        str(tmp_path / "store.git"),
        str(project),
        "far",
    )
    assert told(tmp_path / "far") == asked(tmp_path / "far")


def test_it_resolves_links_as_git_does(project, tmp_path):
    (tmp_path / "link").symlink_to(project / "src")
    assert told(tmp_path / "link") == asked(project)


def test_it_has_no_branch_where_git_is_on_none(project):
    git(project, "checkout", "-q", "--detach")
    assert "branch" not in facts(str(project))


def test_it_reads_the_remote_without_its_credentials(project):
    git(project, "remote", "add", "upstream", "https://example.test/up/stream.git")
    assert facts(str(project))["repo"] == "https://example.test/up/stream.git"
    git(project, "remote", "add", "origin", "https://me:ghp_secret@example.test:8443/o/r.git?t=1#x")
    assert facts(str(project))["repo"] == "https://example.test:8443/o/r.git"


@pytest.mark.parametrize(
    ("address", "kept"),
    [
        ("git@github.com:o/r.git", "git@github.com:o/r.git"),
        ("ssh://git@host:22/o/r", "ssh://host:22/o/r"),
        ("https://token@host/o/r", "https://host/o/r"),
        ("https://a:p@ss@host/o/r", "https://host/o/r"),
        ("user:secret@host:o/r", "host:o/r"),
        ("/srv/git/r.git", "/srv/git/r.git"),
        ("", ""),
    ],
)
def test_it_cuts_credentials_out_of_every_form_of_address(address, kept):
    assert without_credentials(address) == kept


def test_it_reads_a_configuration_as_git_writes_it():
    text = '[core]\n\turl = no\n[remote "origin"] ; c\n\tpushurl = no\n\tURL = "git@h:o/r" # c\n'
    assert remote(text) == "git@h:o/r"
    assert remote('[remote "a"]\n\turl = /x ; c\n[remote "origin"]\n\tfetch = y\n') == "/x"
    assert remote("garbage ] [ = \0") == ""


def test_it_bears_broken_and_hostile_files(project, tmp_path):
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / ".git").write_text("no gitdir here")
    assert facts(str(broken)) == {}
    (broken / ".git").write_text("gitdir: " + "../" * 2_000)
    assert facts(str(broken)) == {}
    (broken / ".git").unlink()
    os.mkfifo(broken / ".git")
    assert facts(str(broken)) == {}
    (project / ".git" / "config").write_bytes(b"\xff" * 1_000_000)
    (project / ".git" / "HEAD").write_bytes(b"\x00\xff" * 100_000)
    assert facts(str(project))["git_root"] == str(project)


@pytest.mark.parametrize(
    "folder", ["", ".", "src", "/x\0y", "/\ud800", "/" + "a" * 300, "/" + "a/" * 5_000]
)
def test_it_bears_any_folder(folder):
    assert facts(folder) == {}
