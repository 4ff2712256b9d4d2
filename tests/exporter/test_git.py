"""Git as a place that the vault goes to."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from exporter.git import GitAway, Inside
from exporter.place import Place, around_vault
from memory.access import principal
from memory.models import Principal, StageRun
from memory.retire import retire
from tests import factories as make
from tests.exporter.exports import jot, replace, run, tree, where

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.usefixtures("local"),
    pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed"),
]


@pytest.fixture
def vault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    with around_vault(Place(tmp_path / "Vault", "alice", git=True)):
        yield tmp_path / "Vault"


@pytest.fixture
def alice() -> Principal:
    return principal("alice")


def git(vault: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", "-c", "user.name=Al", "-c", "user.email=al@x", *words], cwd=vault, check=True,
        capture_output=True, text=True,
    )  # fmt: skip
    return done.stdout.strip()


def commits(vault: Path) -> list[str]:
    return git(vault, "log", "--format=%s").splitlines()


def listed(vault: Path) -> set[str]:
    said = git(vault, "-c", "core.quotePath=false", "ls-tree", "-r", "-z", "--name-only", "HEAD")
    return {name for name in said.split("\0") if name}


def test_one_commit_for_each_export_that_changed_something(vault: Path, alice: Principal) -> None:
    one = make.note(alice, "What is known of one.", title="Ünï 'x'", project=make.project())
    report = run()
    assert report.commit == git(vault, "rev-parse", "HEAD")
    assert commits(vault) == ["Export: 2 written"]
    assert listed(vault) == set(tree(vault)) == {"shop/Ünï 'x'.md", "shop/_index.md"}
    assert run().commit == ""
    jot(where(vault, one), "Mine.\n")
    assert run().commit == ""
    new = make.note(alice, "What is known of two.", title="Two", project=make.project(),
                    when=make.at(9))  # fmt: skip
    replace(one, new)
    run()
    assert commits(vault) == ["Export: 1 written, 1 renamed", "Export: 2 written"]
    assert listed(vault) == set(tree(vault)) == {"shop/Two.md", "shop/_index.md"}
    retire([new.pk], reason="retired", now=make.at(days=20))
    run()
    assert listed(vault) == set(tree(vault)) == {"_retired/Two.md"}
    assert git(vault, "status", "--porcelain") == ""


def test_what_a_person_staged_and_wrote_is_on_no_commit_of_ours(
    vault: Path, alice: Principal
) -> None:
    vault.mkdir()
    git(vault, "init", "--quiet")
    (vault / "staged.md").write_text("mine")
    (vault / "other.md").write_text("mine")
    git(vault, "add", "staged.md")
    make.note(alice, "What is known of one.", title="One", project=make.project())
    run()
    assert listed(vault) == {"shop/One.md", "shop/_index.md"}
    assert git(vault, "status", "--porcelain").splitlines() == ["A  staged.md", "?? other.md"]


def test_hooks_and_names_of_a_vault_run_nothing(vault: Path, alice: Principal) -> None:
    vault.mkdir()
    git(vault, "init", "--quiet")
    for name in ("pre-commit", "post-commit", "post-index-change"):
        hook = vault / ".git/hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text("#!/bin/sh\ntouch ran\nexit 1\n")
        hook.chmod(0o755)
    make.note(alice, "What is known.", title=":(glob)** --all", project=make.project())
    assert run().commit
    assert not (vault / "ran").exists()


def test_a_vault_inside_another_repository_is_not_committed_into_it(
    vault: Path, alice: Principal
) -> None:
    git(vault.parent, "init", "--quiet")
    make.note(alice, "What is known of one.", title="One", project=make.project())
    with pytest.raises(Inside, match=str(vault.parent)) as refused:
        run()
    assert f"git -C {vault} init" in str(refused.value)
    assert git(vault.parent, "status", "--porcelain").splitlines() == ["?? Vault/"]
    assert (vault / "shop/One.md").exists() and not (vault / ".git").exists()
    # What it says to do settles it.
    git(vault, "init", "--quiet")
    assert run().commit and listed(vault) == set(tree(vault))


def test_what_a_person_laid_over_a_page_is_on_no_commit(vault: Path, alice: Principal) -> None:
    one = make.note(alice, "What is known of one.", title="One", project=make.project())
    run()
    ours = where(vault, one).read_text()
    where(vault, one).write_text("Dear diary.\n")
    make.note(alice, "What is known of two.", title="Two", project=make.project())
    assert run().conflicts == 1
    assert git(vault, "show", "HEAD:shop/One.md") == ours.strip()
    assert listed(vault) == {"shop/One.md", "shop/Two.md", "shop/_index.md"}


def test_a_vault_that_is_up_to_date_is_committed_when_git_comes_to_it(
    vault: Path, alice: Principal
) -> None:
    make.note(alice, "What is known of one.", title="One", project=make.project())
    with around_vault(Place(vault, "alice")):
        assert run().commit == ""
    assert not (vault / ".git").exists()
    report = run()
    assert report.written == 0 and report.commit == git(vault, "rev-parse", "HEAD")
    assert commits(vault) == ["Export"]
    assert listed(vault) == set(tree(vault))


def test_what_git_refuses_is_told_and_the_next_export_commits_it(
    vault: Path, alice: Principal
) -> None:
    vault.mkdir()
    git(vault, "init", "--quiet")
    (vault / ".git/index.lock").touch()
    make.note(alice, "What is known of one.", title="One", project=make.project())
    with pytest.raises(GitAway, match="^git add failed") as error:
        run()
    # Git's own words name files; they are for whoever asked.
    assert "index.lock" in error.value.told
    last = StageRun.objects.latest("pk")
    assert "index.lock" not in last.error and last.report["written"] == 2
    assert (vault / "shop/One.md").exists()
    (vault / ".git/index.lock").unlink()
    report = run()
    assert report.written == 0 and report.commit
    assert listed(vault) == set(tree(vault))
    assert run().commit == ""


def test_no_program_of_the_vaults_own_configuration_runs(vault: Path, alice: Principal) -> None:
    vault.mkdir()
    git(vault, "init", "--quiet")
    (vault / ".gitattributes").write_text("*.md filter=evil=1\n")
    (vault / "more").write_text('[filter "evil=1"]\n\tclean = touch ../ran && cat\n\trequired\n')
    git(vault, "config", "include.path", "../more")
    make.note(alice, "What is known of one.", title="One", project=make.project())
    assert run().commit
    assert not (vault.parent / "ran").exists()
    assert git(vault, "show", "HEAD:shop/One.md") == (vault / "shop/One.md").read_text().strip()
    git(vault, "add", "--renormalize", "shop/One.md")
    assert (vault.parent / "ran").exists(), "it would have run"


def test_what_a_person_has_git_ignore_is_on_no_commit(vault: Path, alice: Principal) -> None:
    vault.mkdir()
    git(vault, "init", "--quiet")
    (vault / ".gitignore").write_text("private/\n")
    for project in ("private", "shop"):
        make.note(alice, f"Of {project}.", title="Salary", project=make.project(project))
    run()
    assert listed(vault) == {"shop/Salary.md", "shop/_index.md"}
    (vault / ".gitignore").write_text("*\n")
    make.note(alice, "What is known of two.", title="Two", project=make.project())
    run()
    assert listed(vault) == {"shop/Salary.md", "shop/_index.md"}


def test_a_repository_within_the_vault_is_left_to_itself(vault: Path, alice: Principal) -> None:
    (vault / "harbor").mkdir(parents=True)
    git(vault, "init", "--quiet")
    git(vault / "harbor", "init", "--quiet")
    for project in ("harbor", "shop"):
        make.note(alice, f"Of {project}.", title="One", project=make.project(project))
    assert run().commit
    assert listed(vault) == {"shop/One.md", "shop/_index.md"}


def test_it_puts_nothing_into_a_merge_of_a_person(vault: Path, alice: Principal) -> None:
    make.note(alice, "What is known of one.", title="One", project=make.project())
    run()
    (vault / ".git/MERGE_HEAD").write_text(git(vault, "rev-parse", "HEAD") + "\n")
    make.note(alice, "What is known of two.", title="Two", project=make.project())
    with pytest.raises(GitAway, match="MERGE_HEAD"):
        run()
    assert "A " not in git(vault, "status", "--porcelain")
    (vault / ".git/MERGE_HEAD").unlink()
    assert run().commit and listed(vault) == set(tree(vault))


@pytest.mark.parametrize("known", [b"caf\xe9\n", b"a\x0cb", b".argus/\n", None])
def test_what_is_left_out_keeps_the_lines_that_it_has(
    vault: Path, alice: Principal, known: bytes | None
) -> None:
    vault.mkdir()
    git(vault, "init", "--quiet")
    exclude = vault / ".git/info/exclude"
    exclude.unlink(missing_ok=True)
    if known is not None:
        exclude.write_bytes(known)
    make.note(alice, "What is known of one.", title="One", project=make.project())
    run()
    lines = [line for line in (known or b"").split(b"\n") if line not in (b"", b".argus/")]
    assert exclude.read_bytes() == b"\n".join([*lines, b".argus/", b""])


def test_nothing_is_written_behind_a_link(vault: Path, alice: Principal) -> None:
    vault.mkdir()
    git(vault, "init", "--quiet")
    (vault.parent / "bashrc").write_text("mine\n")
    exclude = vault / ".git/info/exclude"
    exclude.unlink(missing_ok=True)
    exclude.symlink_to("../../../bashrc")
    make.note(alice, "What is known of one.", title="One", project=make.project())
    assert run().commit
    assert (vault.parent / "bashrc").read_text() == "mine\n"


def test_it_commits_for_who_has_an_address_and_no_name(vault: Path, alice: Principal) -> None:
    vault.mkdir()
    git(vault, "init", "--quiet")
    git(vault, "config", "user.email", "al@x")
    git(vault, "config", "user.useConfigOnly", "true")
    git(vault, "config", "core.autocrlf", "input")
    git(vault, "config", "core.safecrlf", "true")
    one = make.note(alice, "What is known of one.", title="One", project=make.project())
    assert run().commit
    with where(vault, one).open("ab") as file:
        file.write(b"Mine.\r\n")
    make.note(alice, "What is known of two.", title="Two", project=make.project())
    assert run().commit
