"""Which project an item belongs to, by which rule; and never a guess where there is nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from memory.attribution import (
    CONFIDENCES,
    NAME_CHARACTERS_MAX,
    Attributed,
    Registry,
    attribute,
    last_folder,
    majority,
    nearest_centroid,
    project_rows,
    slashed,
)
from memory.models import PathRule, Project
from tests.memory.posting import item, post, stored

REGISTRY = Registry(
    names={"shop-old": "shop", "everything": "global"},
    prefixes={"/src/a": "alpha", "/src/a/inner": "inner", "C:/src/shop": "shop"},
)


def named(**said: Any) -> tuple[str | None, str]:
    found = attribute(REGISTRY, **said)
    assert found.confidence == CONFIDENCES.get(found.method, 0.0)
    return found.name, found.method


@pytest.mark.parametrize(
    ("cwd", "name"),
    [
        ("/home/me/code/repo-a", "repo-a"),
        ("/home/me/code/repo-b/", "repo-b"),
        ("/home/me/code", "code"),
        ("  /srv/app//  ", "app"),
        ("C:\\Users\\me\\proj", "proj"),
        ("C:\\Users\\me\\proj\\", "proj"),
        ("c:/Users/me/proj", "proj"),
        ("\\\\wsl$\\Ubuntu\\home\\a\\p", "p"),
        ("\\\\server\\share\\team\\tool\\", "tool"),
        ("/mnt/c/Users/me/proj", "proj"),
        ("/srv/a\\b", "a\\b"),
        ("/srv/my project", "my project"),
        ("/srv/プロジェクト", "プロジェクト"),
        # The root of anything, and a home, name no project.
        ("", None),
        ("   ", None),
        ("/", None),
        ("//", None),
        ("C:\\", None),
        ("C:", None),
        ("D:/", None),
        ("\\\\server\\share", None),
        ("\\\\wsl$\\Ubuntu\\home\\a", None),
        ("/root", None),
        ("/home/me", None),
        ("/home/me/", None),
        ("/home", None),
        ("/Users/me", None),
        ("/Users", None),
        ("C:\\Users\\me", None),
        ("C:\\Users", None),
        ("/c/Users/me", None),
        ("/mnt/c/Users/me", None),
        ("/mnt/c", None),
    ],
)
def test_it_takes_the_last_folder_that_is_no_home_and_no_root(cwd: str, name: str | None) -> None:
    assert named(cwd=cwd) == (name, "basename" if name else "")


@pytest.mark.parametrize(
    ("cwd", "metadata", "name"),
    [
        ("/repo/.claude/worktrees/bugfix-1", {}, "repo"),
        ("/repo/.claude/worktrees/bugfix-1/src/deep", {}, "repo"),
        ("/code/repo/.worktrees/x", {}, "repo"),
        ("C:\\code\\repo\\.claude\\worktrees\\x", {}, "repo"),
        ("/repo-wt-feature", {"git_common_dir": "/code/repo/.git"}, "repo"),
        ("/repo-wt-feature", {"git_common_dir": "/code/repo/.git/worktrees/feature"}, "repo"),
        # A bare repository in a hidden folder, with its worktrees around it.
        ("/code/repo/path/to/wt", {"git_common_dir": "/code/repo/.bare"}, "repo"),
        ("/code/repo/wt", {"git_common_dir": "/code/repo/.bare/worktrees/wt"}, "repo"),
        ("/tmp/wt", {"git_common_dir": "/srv/git/repo.git"}, "repo"),
        ("/code/repo/src", {"git_root": "/code/repo"}, "repo"),
        ("C:\\code\\repo\\src", {"git_root": "C:\\code\\repo\\"}, "repo"),
        ("C:\\code\\repo\\src", {"git_common_dir": "C:\\code\\repo\\.git"}, "repo"),
        # Both: what all worktrees share names the repository.
        ("/w/x", {"git_root": "/w/x", "git_common_dir": "/code/repo/.git"}, "repo"),
        # Relative, as git itself says it from inside the main tree.
        ("/code/repo", {"git_common_dir": ".git"}, "repo"),
        ("/code/repo/src/deep", {"git_common_dir": "../../.git"}, "repo"),
        ("/anywhere", {"repo": "https://example.org/team/repo.git"}, "repo"),
        ("/anywhere", {"repo": "git@example.org:team/repo.git"}, "repo"),
        ("/anywhere", {"repo": "git@example.org:repo"}, "repo"),
        ("/anywhere", {"repo": "https://example.org/team/repo/"}, "repo"),
    ],
)
def test_it_names_the_repository_and_not_its_worktree(
    cwd: str, metadata: dict[str, Any], name: str
) -> None:
    assert named(cwd=cwd, metadata=metadata) == (name, "git")


@pytest.mark.parametrize("root", ["/home/me", "/", "C:\\Users\\me", ""])
def test_a_repository_that_is_a_home_or_a_root_names_nothing(root: str) -> None:
    assert named(cwd="/home/me/notes", metadata={"git_root": root}) == ("notes", "basename")
    assert named(cwd="/home/me", metadata={"git_root": root}) == (None, "")


@pytest.mark.parametrize("odd", [None, 0, [], {}, ["x"], {"a": 1}, True, "\u0000", "." * 9])
def test_it_survives_git_facts_of_any_type(odd: Any) -> None:
    for name in ("git_common_dir", "git_root", "repo"):
        attribute(REGISTRY, cwd="/srv/app", metadata={name: odd})


@pytest.mark.parametrize(
    ("cwd", "expected"),
    [
        ("/src/a", ("alpha", "path")),
        ("/src/a/", ("alpha", "path")),
        ("/src/a/lib/x", ("alpha", "path")),
        ("/src/a/inner/x", ("inner", "path")),
        ("/src/ab", ("ab", "basename")),
        ("/src/ab/a", ("a", "basename")),
        ("/src/a-b", ("a-b", "basename")),
        ("/other/src/a", ("a", "basename")),
        ("/src", ("src", "basename")),
        ("C:\\src\\shop\\web", ("shop", "path")),
        ("C:\\work\\shopping", ("shopping", "basename")),
    ],
)
def test_a_path_rule_ends_at_the_border_of_a_folder(cwd: str, expected: tuple[str, str]) -> None:
    assert named(cwd=cwd) == expected


def test_its_rules_have_an_order() -> None:
    everything: dict[str, Any] = {"cwd": "/src/a/x", "metadata": {"git_root": "/code/repo"}}
    assert named(project="said", **everything) == ("said", "explicit")
    assert named(**everything) == ("alpha", "path")
    assert named(**everything | {"cwd": "/else/x"}) == ("repo", "git")
    assert named(cwd="/else/x") == ("x", "basename")
    assert list(CONFIDENCES.values()) == sorted(CONFIDENCES.values(), reverse=True)


def test_an_alias_holds_for_every_rule() -> None:
    assert named(project="shop-old") == ("shop", "explicit")
    assert named(cwd="/x/shop-old") == ("shop", "basename")
    assert named(cwd="/x", metadata={"git_root": "/x/shop-old"}) == ("shop", "git")
    assert named(cwd="/x/shop-older") == ("shop-older", "basename")


def test_it_never_guesses_global() -> None:
    assert named(project="global") == ("global", "explicit")
    assert named(project="everything") == ("global", "explicit")
    assert named(cwd="/x/global") == (None, "")
    assert named(cwd="/x/everything") == (None, "")
    assert named(cwd="/x", metadata={"git_root": "/x/global"}) == (None, "")
    assert named(cwd="/x", metadata={"repo": "git@example.org:team/global.git"}) == (None, "")


def test_a_name_that_no_folder_can_have_is_no_name() -> None:
    longest = "x" * NAME_CHARACTERS_MAX
    assert named(cwd=f"/src/{longest}") == (longest, "basename")
    assert named(cwd=f"/src/{longest}x") == (None, "")


def test_most_turns_name_an_episode_and_a_stronger_rule_names_it_first() -> None:
    pairs: list[tuple[str | None, str]] = [("a", "basename"), ("a", "basename"), ("b", "basename")]
    found, counts = majority([*pairs, (None, "")])
    assert (found.name, found.method, counts) == ("a", "basename", {"a": 2, "b": 1})
    assert found.confidence == pytest.approx(CONFIDENCES["basename"] * 2 / 3, abs=1e-4)
    assert majority([*pairs, ("c", "explicit")])[0].name == "c"
    assert majority([("b", "git"), ("a", "git")])[0].name == "a", "a draw is settled by name"
    assert majority([(None, ""), (None, "")]) == (Attributed(), {})


def test_it_ranks_centroids_and_names_the_runner_up() -> None:
    found = nearest_centroid([1.0, 0.1], {"a": [1.0, 0.0], "b": [0.0, 1.0]})
    assert found is not None
    assert (found.name, found.runner_up) == ("a", "b")
    assert found.score > (found.runner_up_score or 0)
    assert nearest_centroid([1.0], {}) is None


@pytest.mark.parametrize("path", ["/a/b", "C:/a", "//server/share/x", "/", "", "relative/x"])
def test_a_path_has_one_spelling(path: str) -> None:
    assert slashed(slashed(path)) == slashed(path) == slashed(path + "/" if path else "")
    assert "/" not in last_folder(slashed(path))


# Through capture.


@pytest.mark.django_db
def test_each_row_is_attributed_by_its_own_folder() -> None:
    post(
        item("Where shall we begin?", cwd="/home/me/code"),
        item("In a.", cwd="/home/me/code/repo-a"),
        item("In b.", cwd="/home/me/code/repo-b"),
        item("At home.", cwd="/home/me"),
    )
    found = [(row.project and row.project.name, row.project_method) for row in stored()]
    assert found == [
        ("code", "basename"),
        ("repo-a", "basename"),
        ("repo-b", "basename"),
        (None, ""),
    ]


@pytest.mark.django_db
def test_the_registry_learns_a_project_once_and_says_how() -> None:
    post(item(cwd="/x/shop"), item("Two.", project="shop"), item("Three.", cwd="/x/other"))
    origins = dict(Project.objects.values_list("name", "origin"))
    assert origins == {"shop": "basename", "other": "basename"}
    ids = project_rows([Attributed("shop", "git"), Attributed(None), Attributed("new", "git")])
    assert ids["shop"] == Project.objects.get(name="shop").pk
    assert Project.objects.get(name="new").origin == "git"


@pytest.mark.django_db
def test_what_a_person_enters_in_the_registry_holds_for_the_next_post() -> None:
    call_command("project", "alias", "shop", "shop-old")
    call_command("project", "path", "shop", "C:\\work\\web\\")
    post(item("One.", cwd="/x/shop-old"), item("Two.", cwd="C:\\work\\web\\cart"))
    assert [(row.project.name, row.project_method) for row in stored()] == [
        ("shop", "basename"),
        ("shop", "path"),
    ]


@pytest.mark.django_db
def test_a_relative_folder_is_meant_from_where_the_command_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    call_command("project", "path", "shop", "web/")
    post(item("One.", cwd=f"{tmp_path}/web/cart"), item("Two.", cwd=f"{tmp_path}/webs"))
    assert [row.project.name for row in stored()] == ["shop", "webs"]


@pytest.mark.django_db
@pytest.mark.parametrize("folder", ["", "  ", "/", "//"])
def test_no_rule_takes_all_work_there_is(folder: str) -> None:
    with pytest.raises(CommandError) as told:
        call_command("project", "path", "shop", folder)
    assert told.value.returncode == 2
    assert not PathRule.objects.exists() and not Project.objects.exists()


@pytest.mark.django_db
def test_the_registry_lists_names_and_folders(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("project", "alias", "shop", "shop-old")
    call_command("project", "path", "shop", "/src/shop")
    capsys.readouterr()
    call_command("project", "list")
    told = capsys.readouterr().out
    assert all(word in told for word in ("shop", "shop-old", "/src/shop"))
