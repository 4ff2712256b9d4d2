"""The plugin for Claude Code: a folder that needs nothing else, and steps back from settings."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from argus import plugin
from argus.hook import claude
from tests.hook.installing import Person


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("a plugin") / "argus"
    plugin.plugin(str(target), "1.2.3")
    return target


def test_it_describes_itself_and_its_market(built: Path) -> None:
    described = json.loads((built / ".claude-plugin" / "plugin.json").read_text())
    assert (described["name"], described["version"]) == ("argus", "1.2.3")
    market = json.loads((built / ".claude-plugin" / "marketplace.json").read_text())
    assert market["plugins"][0]["source"] == "./"


def test_it_has_the_hooks_of_the_settings_by_its_own_path(built: Path) -> None:
    hooks = json.loads((built / "hooks" / "hooks.json").read_text())["hooks"]
    assert set(hooks) == set(claude.EVENTS)
    for event, (verb, seconds) in claude.EVENTS.items():
        (handler,) = hooks[event][0]["hooks"]
        assert handler["timeout"] == seconds
        assert f" {verb} --client claude --via plugin" in handler["command"]
        assert "${CLAUDE_PLUGIN_ROOT}" in handler["command"]


def test_it_runs_from_wherever_it_lies(built: Path, tmp_path: Path) -> None:
    hooks = json.loads((built / "hooks" / "hooks.json").read_text())["hooks"]
    for event, (verb, _) in claude.EVENTS.items():
        done = subprocess.run(
            hooks[event][0]["hooks"][0]["command"],
            shell=True,
            input=json.dumps({"hook_event_name": event, "session_id": "s", "cwd": "/"}),
            capture_output=True,
            text=True,
            timeout=30,
            env={
                "HOME": str(tmp_path),
                "PATH": os.environ["PATH"],
                "CLAUDE_PLUGIN_ROOT": str(built),
            },
        )
        assert (done.returncode, done.stdout) == (0, ""), (verb, done.stderr)


def test_it_knows_whether_the_settings_have_our_hooks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    assert not claude.installed()
    (tmp_path / ".claude").mkdir()
    person = Person(tmp_path)
    person.wrote('{"model": "argus-hook"}')
    assert not claude.installed()
    person.installs("claude")
    assert claude.installed()
    person.uninstalls()
    assert not claude.installed()


def test_it_steps_back_where_the_settings_have_our_hooks(built: Path, tmp_path: Path) -> None:
    (tmp_path / ".claude").mkdir()
    person = Person(tmp_path)
    person.installs("claude")
    skipped = tmp_path / ".argus" / "hook" / "skipped.jsonl"
    event = {"hook_event_name": "UserPromptSubmit", "session_id": "s", "cwd": "/", "prompt": "why?"}

    def prompt() -> None:
        command = ["sh", str(built / "run.sh"), "recall", "--client", "claude", "--via", "plugin"]
        subprocess.run(
            command,
            input=json.dumps(event),
            text=True,
            check=True,
            timeout=30,
            env={"HOME": str(tmp_path), "PATH": os.environ["PATH"]},
        )

    prompt()
    assert not skipped.exists()
    person.settings.unlink()
    prompt()
    assert json.loads(skipped.read_text())["mode"] == "prompt"


def test_it_replaces_its_own_folder_and_nothing_else(built: Path, tmp_path: Path) -> None:
    plugin.plugin(str(built), "1.2.4")
    described = json.loads((built / ".claude-plugin" / "plugin.json").read_text())
    assert described["version"] == "1.2.4"
    (tmp_path / "letters").write_text("dear")
    with pytest.raises(FileExistsError):
        plugin.plugin(str(tmp_path), "1.2.4")
    assert (tmp_path / "letters").read_text() == "dear"
