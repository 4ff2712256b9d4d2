"""The plugin for Claude Code: a folder that needs nothing else, and steps back from settings."""

from __future__ import annotations

import json
import os
import shutil
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


def test_it_steps_back_only_at_the_events_that_the_settings_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    (tmp_path / ".claude").mkdir()
    person = Person(tmp_path)
    person.installs("claude")
    assert all(claude.installed(event) for event in claude.EVENTS)
    value = json.loads(person.settings.read_text())
    del value["hooks"]["UserPromptSubmit"], value["hooks"]["Stop"]
    value["hooks"]["Stop"] = [
        {"hooks": [{"type": "command", "command": "echo '/.argus/lib/argus-hook'"}]}
    ]
    value["note"] = "'/x/.argus/lib/argus-hook' recall --client claude"
    person.settings.write_text("\ufeff" + json.dumps(value))
    held = {event for event in claude.EVENTS if claude.installed(event)}
    assert held == {"SessionStart", "SessionEnd", "PreCompact"}
    posted = {"type": "http", "url": "http://127.0.0.1:8765/hook/claude/UserPromptSubmit?floor=1"}
    person.settings.write_text(json.dumps({"hooks": {"UserPromptSubmit": [{"hooks": [posted]}]}}))
    assert [event for event in claude.EVENTS if claude.installed(event)] == ["UserPromptSubmit"]
    person.settings.write_text("{")
    assert not claude.installed()


def test_it_costs_no_prompt_when_all_of_it_is_gone(tmp_path: Path) -> None:
    for event, groups in plugin.hooks().items():
        done = subprocess.run(
            groups[0]["hooks"][0]["command"],
            shell=True,
            timeout=30,
            env={"PATH": os.environ["PATH"], "CLAUDE_PLUGIN_ROOT": str(tmp_path / "gone")},
        )
        assert done.returncode == 0, event


def asks(built: Path, verb: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the plugin's hook of a prompt or a start as Claude does in this folder."""
    named = {"recall": "UserPromptSubmit", "context": "SessionStart"}[verb]
    event = {"hook_event_name": named, "session_id": "s", "cwd": str(cwd), "prompt": "which port?"}
    return subprocess.run(
        ["sh", str(built / "run.sh"), verb, "--client", "claude", "--via", "plugin"],
        input=json.dumps({**event, "source": "startup"}),
        capture_output=True,
        text=True,
        timeout=30,
        cwd=cwd,
        env={"PATH": os.environ["PATH"], **environment},
    )


@pytest.mark.parametrize("home", [".", "home", "/repo", "/repo/home", "/link", "project"])
def test_it_takes_no_home_from_a_repository(built: Path, tmp_path: Path, home: str) -> None:
    repo = tmp_path / "repo"
    (repo / ".git").mkdir(parents=True)
    (repo / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (tmp_path / "link").symlink_to(repo)
    (tmp_path / "plain").mkdir()
    more = {"HOME": str(tmp_path) + home if home.startswith("/") else home}
    if home == "project":
        more = {"HOME": str(tmp_path / "plain"), "CLAUDE_PROJECT_DIR": str(tmp_path / "plain")}
    before = sorted(tmp_path.rglob("*"))
    done = asks(built, "recall", repo, **more)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert sorted(tmp_path.rglob("*")) == before


def test_it_takes_the_home_of_a_person_who_stands_in_it(built: Path, tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    asks(built, "recall", tmp_path / "src", HOME=str(tmp_path), CLAUDE_PROJECT_DIR="/")
    assert (tmp_path / ".argus" / "hook" / "skipped.jsonl").exists()


def test_it_says_at_the_start_of_a_session_what_is_missing(built: Path, tmp_path: Path) -> None:
    said = [asks(built, "context", tmp_path, HOME=str(tmp_path)).stderr for _ in range(2)]
    assert f"sh '{built}/run.sh' install --client none" in said[0] and said[1] == ""
    shutil.copytree(built, tmp_path / "broken")
    shutil.rmtree(tmp_path / "broken" / "lib")
    assert "no client" in asks(tmp_path / "broken", "context", tmp_path).stderr
    assert asks(tmp_path / "broken", "recall", tmp_path).stderr == ""


def test_it_costs_no_prompt_when_half_of_it_is_gone(tmp_path: Path) -> None:
    plugin.plugin(str(tmp_path / "argus"), "1")
    (tmp_path / "argus" / "lib" / "argus" / "hook" / "main.py").unlink()
    command = ["sh", str(tmp_path / "argus" / "run.sh"), "recall", "--client", "claude"]

    def runs() -> tuple[int, bytes]:
        home = {"HOME": str(tmp_path), "PATH": os.environ["PATH"]}
        done = subprocess.run(command, input=b"{}", capture_output=True, timeout=30, env=home)
        return done.returncode, done.stdout

    assert runs() == (0, b"")
    shutil.rmtree(tmp_path / "argus" / "lib")
    assert runs() == (0, b"")


def test_it_replaces_its_own_folder_and_nothing_else(built: Path, tmp_path: Path) -> None:
    plugin.plugin(str(built), "1.2.4")
    described = json.loads((built / ".claude-plugin" / "plugin.json").read_text())
    assert described["version"] == "1.2.4"
    (tmp_path / "letters").write_text("dear")
    with pytest.raises(FileExistsError):
        plugin.plugin(str(tmp_path), "1.2.4")
    assert (tmp_path / "letters").read_text() == "dear"


def test_it_is_seen_where_no_settings_name_it(built: Path, tmp_path: Path) -> None:
    person, note = Person(tmp_path), tmp_path / ".argus" / "hook" / "plugin"
    asks(built, "recall", tmp_path, HOME=str(tmp_path))
    assert not note.exists(), "a prompt writes nothing"
    asks(built, "context", tmp_path, HOME=str(tmp_path))
    day, _, root = note.read_text().rstrip("\n").partition(" ")
    assert root == str(built)
    written = note.stat().st_mtime_ns
    asks(built, "context", tmp_path, HOME=str(tmp_path))
    assert note.stat().st_mtime_ns == written
    seen = f"as a plugin, last seen {day} in {built}"
    assert f"claude     installed: {seen}" in person.does("status").stdout
    told = person.does("doctor").stdout
    assert "no client has our hooks" not in told and seen in told
    assert seen in person.uninstalls()
    note.write_text(f"2020-01-01 {built}\n")
    assert "absent" in (told := person.does("status").stdout) and "last seen 2020-01-01" in told
    assert "no client has our hooks" in person.does("doctor").stdout


def test_it_is_not_waited_for_by_who_purges(built: Path, tmp_path: Path) -> None:
    asks(built, "context", tmp_path, HOME=str(tmp_path))
    assert "as a plugin" not in Person(tmp_path).uninstalls("--purge", "--yes")
    assert not (tmp_path / ".argus" / "hook").exists()
