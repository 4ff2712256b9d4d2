"""Where a person said no, nothing happens, and no file below says otherwise."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from argus.hook import optout
from argus.hook.optout import Rules, disabled, look


def put(folder: Path, given: object) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    text = given if isinstance(given, str) else json.dumps(given)
    (folder / ".argus.json").write_text(text)


def told(rules: Rules) -> tuple[bool, bool, bool, str]:
    return rules.enabled, rules.capture, rules.recall, rules.project


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "work" / "repo" / "src").mkdir(parents=True)
    return tmp_path / "work" / "repo"


def test_it_is_on_where_nobody_said_anything(tree):
    assert told(look(str(tree / "src"), {})) == (True, True, True, "")


def test_it_switches_off_below_the_folder_of_the_file(tree):
    put(tree, {"enabled": False})
    assert told(look(str(tree / "src"), {})) == (False, False, False, "")
    assert told(look(str(tree.parent), {})) == (True, True, True, "")


def test_it_switches_capture_alone_off_and_names_the_project(tree):
    put(tree, {"capture": False, "recall": True, "project": " the\tx \n"})
    assert told(look(str(tree), {})) == (True, False, True, "the x")


@pytest.mark.parametrize("name", ["enabled", "capture", "recall"])
def test_it_lets_no_repository_overrule_the_tree_above(tree, name):
    put(tree.parent, {name: False, "project": "far"})
    put(tree, {"enabled": True, "capture": True, "recall": True, "project": "near"})
    rules = look(str(tree / "src"), {})
    assert not getattr(rules, name)
    assert rules.project == "near"


@pytest.mark.parametrize(
    "given",
    ["{", "", "[]", "null", '{"enabled": "false"}', '{"capture": 0}', '{"recall": null}',
     '{"enable": false}', '{"Enabled": false}', '{"capture ": false}', '{"reacll": false}',
     '{"disabled": true}', '{"captures": false}', '{"Project": "x"}',
     '{"enabled": false, "enabled": true}', '{"project": "a", "project": "b"}',
     '{"project": 7}', '{"project": "' + "x" * 20_000 + '"}', "\ufffd"],
)  # fmt: skip
def test_it_is_off_where_a_file_cannot_be_read_as_rules(tree, given):
    put(tree, given)
    rules = look(str(tree / "src"), {})
    assert told(rules) == (False, False, False, "")
    assert str(tree / ".argus.json") in rules.why


def test_it_is_off_where_the_file_is_a_folder_or_a_pipe(tree):
    os.mkfifo(tree / ".argus.json")
    assert not look(str(tree), {}).enabled
    (tree / "src" / ".argus.json").mkdir()
    assert not look(str(tree / "src"), {}).enabled


def test_it_bears_what_is_meant_for_others(tree):
    put(tree, {"$schema": "x", "note": "keep", "name": "y", "recall": False})
    assert told(look(str(tree), {})) == (True, True, False, "")


def worktree(main: Path, at: Path) -> Path:
    """A second working tree of the repository, as git lays it out."""
    inner = main / ".git" / "worktrees" / at.name
    inner.mkdir(parents=True)
    for folder in (main / ".git", inner):
        (folder / "HEAD").write_text("ref: refs/heads/main\n")
    (inner / "commondir").write_text("../..\n")
    at.mkdir(parents=True)
    (at / ".git").write_text(f"gitdir: {inner}\n")
    return at


def test_it_holds_in_the_worktrees_of_a_repository(tree, tmp_path):
    at = worktree(tree, tmp_path / "elsewhere" / "second")
    (at / "src").mkdir()
    assert told(look(str(at / "src"), {})) == (True, True, True, "")
    put(tree, {"capture": False, "project": "main"})
    rules = look(str(at / "src"), {})
    assert told(rules) == (True, False, True, "main")
    assert rules.by == (str(tree / ".argus.json"),)
    put(at, {"capture": True, "project": "second"})
    assert told(look(str(at), {})) == (True, False, True, "second")
    put(tree.parent, {"enabled": False})
    assert not look(str(at), {}).enabled


def test_it_reads_a_file_with_a_byte_order_mark(tree):
    put(tree, '\ufeff{"recall": false}')
    assert told(look(str(tree), {})) == (True, True, False, "")


def test_it_follows_a_link_and_the_folder_that_the_link_is_in(tree, tmp_path):
    private = tmp_path / "private"
    private.mkdir()
    (tmp_path / "link").symlink_to(tree / "src")
    (private / "link").symlink_to(tree / "src")
    put(private, {"enabled": False})
    assert look(str(tmp_path / "link"), {}).enabled
    assert not look(str(private / "link"), {}).enabled
    put(tree, {"enabled": False})
    assert not look(str(tmp_path / "link"), {}).enabled


def test_it_looks_above_a_folder_that_is_gone(tree):
    put(tree, {"enabled": False})
    assert not look(str(tree / "gone" / "deeper"), {}).enabled


@pytest.mark.parametrize(
    "folder", ["", "relative", "../x", "C:\\x", "/\ud800", "/x\0y", "/" + "a/" * 3_000]
)
def test_it_bears_any_folder(folder):
    assert look(folder, {}).enabled


@pytest.mark.skipif(os.getuid() != 0, reason="only a superuser gives a file away")
def test_it_takes_no_project_from_a_strangers_file_and_a_no_from_anybody(
    tree, tmp_path, monkeypatch
):
    put(tree, {"project": "planted"})
    os.chown(tree / ".argus.json", 12_345, 12_345)
    assert look(str(tree), {}).project == ""
    put(tree.parent, {"recall": False})
    os.chown(tree.parent / ".argus.json", 12_345, 12_345)
    assert not look(str(tree), {}).recall


def test_it_obeys_the_persons_settings():
    settings = {"ARGUS_CAPTURE": "false", "ARGUS_RECALL": "off"}
    assert told(look("/", settings)) == (True, False, False, "")


@pytest.mark.parametrize(
    ("value", "off"),
    [("1", True), ("true", True), ("x", True), ("", False), ("0", False), ("No", False)],
)
def test_it_reads_argus_disabled(value, off):
    assert disabled({"ARGUS_DISABLED": value}) is off
    assert not disabled({})


def test_it_looks_once_at_a_folder(tree, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(optout, "_CACHE", {})
    assert optout.rules(str(tree)).enabled
    put(tree, {"enabled": False})
    assert optout.rules(str(tree)).enabled
    assert not optout.rules(str(tree / "src")).enabled
