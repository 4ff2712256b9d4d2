"""Claude Code's settings: our hooks in, everything else as it was."""

from __future__ import annotations

import json
import os
import pty
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from django.utils import timezone

from memory.access import authenticate, create_key
from memory.models import AccessKey
from tests.hook.ground import Toll
from tests.hook.installing import ROOT, Person, mode, snapshot

THEIRS = """{
    "model": "opus",   "permissions": {"allow": ["Bash(ls:*)"]},
    "hooks": {
        "Stop": [
            {"hooks": [{"type": "command", "command": "echo 'so says .argus/lib/argus-hook'"}]}
        ]
    },
    "env": {"EDITOR": "vi"}
}
"""
EVENTS = {"SessionStart", "UserPromptSubmit", "Stop", "SessionEnd", "PreCompact"}


@pytest.fixture
def person(tmp_path: Path) -> Person:
    home = tmp_path / 'ho me\'s ünd "x"'
    home.mkdir()
    return Person(home)


@pytest.fixture
def served(person: Person, server: str, key: str) -> Person:
    return Person(person.home, server, key)


def test_it_makes_settings_where_there_are_none(person: Person) -> None:
    (person.home / ".claude").mkdir()
    person.installs("claude")
    hooks = person.hooks()
    assert set(hooks) == EVENTS
    assert all(len(handlers) == 1 for handlers in hooks.values())
    assert mode(person.settings) == 0o600
    assert mode(person.home / ".argus" / "env") == 0o600
    assert person.key in (person.home / ".argus" / "env").read_text()
    assert person.key not in person.settings.read_text()


def test_it_names_timeouts_and_never_runs_asynchronously(person: Person) -> None:
    person.installs("claude")
    for handlers in person.hooks().values():
        assert all(0 < one["timeout"] <= 10 and "async" not in one for one in handlers)


def test_it_adds_and_leaves_the_rest_where_it_stood(person: Person) -> None:
    before = person.wrote(THEIRS).decode()
    person.installs("claude")
    after = person.settings.read_text()
    kept = iter(after.splitlines())
    assert all(line.rstrip(",") in (k.rstrip(",") for k in kept) for line in before.splitlines())
    stop = person.hooks()["Stop"]
    assert [one["command"][:4] for one in stop][0] == "echo"
    assert len(stop) == 2


@pytest.mark.parametrize(
    "text",
    [
        THEIRS,
        THEIRS.replace("\n", "\r\n"),
        "\ufeff" + THEIRS,
        THEIRS.rstrip("\n"),
        THEIRS.replace("    ", "\t"),
        "{}",
        "{ }\n",
        "{\n}\n",
        "",
        '{"hooks":{}}',
        '{"hooks": {"Stop": [], "PreToolUse": []}}\n',
        '{"model":"x"}',
    ],
)
def test_it_leaves_the_very_bytes_behind(person: Person, text: str) -> None:
    before = person.wrote(text)
    person.installs("claude")
    assert set(person.hooks()) >= EVENTS
    person.uninstalls("--client", "claude")
    assert person.settings.read_bytes() == before
    assert not (person.home / ".argus" / "backup").exists()


def test_it_removes_settings_that_it_made(person: Person) -> None:
    person.installs("claude")
    person.uninstalls()
    assert not person.settings.exists()


def test_it_changes_no_byte_the_second_time(person: Person) -> None:
    person.wrote(THEIRS)
    person.installs("claude")
    before = snapshot(person.home)
    assert "unchanged" in person.installs("claude")
    assert snapshot(person.home) == before


def test_it_replaces_an_older_entry_where_it_stands(person: Person) -> None:
    old = "/opt/python -I -S /elsewhere/.argus/lib/argus-hook capture --client claude"
    entry = {"hooks": [{"type": "command", "command": old, "timeout": 1}]}
    theirs = {"hooks": [{"type": "command", "command": "theirs"}]}
    person.wrote(json.dumps({"hooks": {"Stop": [entry, theirs, entry], "Notification": [entry]}}))
    person.installs("claude")
    hooks = person.hooks()
    assert [str(person.home) in h["command"].replace("'\"'\"'", "'") for h in hooks["Stop"]] == [
        True,
        False,
    ]
    assert not hooks["Notification"]
    person.uninstalls()
    assert [one["command"] for one in person.hooks()["Stop"]] == ["theirs"]


def test_it_takes_only_its_own_out_when_others_wrote_meanwhile(person: Person) -> None:
    person.wrote(THEIRS)
    person.installs("claude")
    meanwhile = person.settings.read_text().replace('"model": "opus"', '"model": "sonnet"')
    person.settings.write_text(meanwhile)
    person.uninstalls()
    assert person.settings.read_text() == THEIRS.replace("opus", "sonnet")


def test_it_leaves_the_bytes_after_somebody_wrote_between_two_installations(
    person: Person,
) -> None:
    person.wrote(THEIRS)
    person.installs("claude")
    hooks = person.settings.read_text().replace("opus", "sonnet")
    person.settings.write_text(hooks.replace('"timeout": 10', '"timeout": 7'))
    person.installs("claude")
    person.uninstalls()
    assert person.settings.read_text() == THEIRS.replace("opus", "sonnet")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{\n "a": 1,\n}', "settings.json, line 2, column 8: a comma"),
        ("{\n // mine\n}", "settings.json, line 2, column 2: a comment"),
        ("[]", "settings.json, line 1, column 1: an object"),
        ('{"hooks": 5}', "hooks must be an object"),
        ('{"hooks": {"Stop": {}}}', "hooks.Stop must be an array"),
        ('{"hooks": {}, "hooks": {}}', "stands here a second time"),
        (b'{"a": "\xff"}', "settings.json, line 1, column 8: no UTF-8"),
    ],
)
def test_it_refuses_broken_settings_and_writes_nothing(
    person: Person, text: str | bytes, said: str
) -> None:
    before = person.wrote(text)
    assert said in person.refused("claude")
    assert person.settings.read_bytes() == before
    assert not (person.home / ".argus").exists()


def test_it_refuses_a_read_only_file_and_writes_nothing(person: Person) -> None:
    before = person.wrote(THEIRS)
    person.settings.chmod(0o444)
    assert "read-only" in person.refused("claude")
    assert person.settings.read_bytes() == before
    assert not (person.home / ".argus").exists()


@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
def test_it_refuses_what_is_no_file_and_does_not_wait(person: Person, kind: str) -> None:
    person.settings.parent.mkdir()
    if kind == "pipe":
        os.mkfifo(person.settings)
    elif kind == "device":
        person.settings.symlink_to("/dev/zero")
    else:
        person.settings.mkdir()
    assert str(person.settings) in person.refused("claude")
    assert not (person.home / ".argus").exists()


def test_it_refuses_a_file_with_several_names(person: Person) -> None:
    before = person.wrote(THEIRS)
    os.link(person.settings, person.home / "dotfiles.json")
    assert "hard links" in person.refused("claude")
    assert (person.home / "dotfiles.json").read_bytes() == before
    assert not (person.home / ".argus").exists()


def test_it_writes_through_a_link_and_keeps_the_mode(person: Person) -> None:
    real = person.home / "dotfiles.json"
    before = person.wrote(THEIRS, real)
    real.chmod(0o640)
    (person.home / ".claude").mkdir()
    person.settings.symlink_to(real)
    person.installs("claude")
    assert person.settings.is_symlink()
    assert set(person.hooks(real)) == EVENTS
    assert mode(real) == 0o640
    person.uninstalls()
    assert person.settings.is_symlink()
    assert real.read_bytes() == before


def test_it_shows_the_diff_and_writes_nothing(person: Person) -> None:
    before = person.wrote(THEIRS)
    told = person.installs("claude", "--dry-run")
    assert "+++ " in told and "argus-hook" in told
    assert person.key not in told
    assert person.settings.read_bytes() == before
    assert not (person.home / ".argus").exists()


def test_it_goes_where_claude_looks(person: Person) -> None:
    elsewhere = person.home / "config"
    elsewhere.mkdir()
    person.installs("all", CLAUDE_CONFIG_DIR=str(elsewhere))
    assert set(person.hooks(elsewhere / "settings.json")) == EVENTS
    assert not person.settings.exists()


def test_it_says_when_no_client_is_there(person: Person) -> None:
    assert "no client is found" in person.refused("all")
    assert not (person.home / ".argus").exists()


def test_it_needs_a_key(person: Person) -> None:
    done = person.does("install", "--client", "claude")
    assert (done.returncode, done.stdout) == (1, "")
    assert "createkey --scope capture,recall" in done.stderr
    shown = person.does("install", "--client", "claude", "--dry-run")
    assert shown.returncode == 0 and "Stop" in shown.stdout
    assert not (person.home / ".argus").exists()


def env(person: Person) -> dict[str, str]:
    lines = (person.home / ".argus" / "env").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines)


def may(key: str) -> list[str]:
    row = authenticate(key, now=timezone.now())
    return list(row.scopes) if row else []


def test_it_keeps_no_key_that_may_more_than_hooks_need(served: Person) -> None:
    told = served.installs("claude")
    mine = env(served)["ARGUS_KEY"]
    assert may(mine) == ["capture", "recall"]
    assert env(served)["ARGUS_KEY_FROM"] == served.key.split("_")[1]
    for key in (mine, env(served)["ARGUS_RECALL_KEY"]):
        assert f"({key.split('_')[1]})" in told
    kept = (served.home / ".argus").rglob("*")
    assert not [
        path for path in kept if path.is_file() and served.key.encode() in path.read_bytes()
    ]
    served.installs("claude")
    assert env(served)["ARGUS_KEY"] == mine, "the same key makes no second one"
    assert served.does("install", "--client", "claude").returncode == 0
    assert env(served)["ARGUS_KEY"] == mine, "its own key is kept"


def test_it_takes_another_key_and_gives_its_own_back(served: Person) -> None:
    served.installs("claude")
    mine = env(served)["ARGUS_KEY"]
    exact = create_key(owner="me", scopes=["capture", "recall"])[0]
    Person(served.home, served.url, exact).installs("claude")
    assert env(served)["ARGUS_KEY"] == exact and "ARGUS_KEY_FROM" not in env(served)
    assert may(mine) == [] and may(exact) == ["capture", "recall"]


def revoke(key: str) -> None:
    AccessKey.objects.filter(prefix=key.split("_")[1]).update(revoked_at=timezone.now())


def at_a_terminal(person: Person, typed: str) -> tuple[int, str]:
    """Install with somebody to ask; the exit code and what was said."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "argus.hook", "install", "--client", "claude"],
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={"HOME": str(person.home), "PATH": person.path, "PYTHONPATH": str(ROOT)},
        cwd=person.home,
        text=True,
        # Why: without a terminal of its own the key is asked where stdin is.
        start_new_session=True,
    ) as done:
        assert done.stdout is not None
        said = ""
        # Why: what was typed before the question is thrown away.
        while "not shown" not in said and (sign := done.stdout.read(1)):
            said += sign
        os.write(ours, f"{typed}\n".encode())
        said += done.stdout.read()
    os.close(ours)
    os.close(theirs)
    return done.returncode, said


def test_it_asks_for_another_key_where_the_kept_one_is_revoked(served: Person) -> None:
    served.installs("claude")
    mine = env(served)["ARGUS_KEY"]
    revoke(mine)
    done = served.does("install", "--client", "claude")
    assert done.returncode == 1 and "argus-hook install --key-stdin" in done.stderr
    assert "install --key-stdin" in served.does("doctor").stdout
    exact = create_key(owner="me", scopes=["capture", "recall"])[0]
    code, said = at_a_terminal(served, exact)
    assert code == 0 and "refuses the key of " in said, said
    assert env(served)["ARGUS_KEY"] == exact and exact not in said


def test_it_warns_of_a_key_that_nobody_could_be_asked_about(
    served: Person, person: Person, toll: Toll
) -> None:
    behind = Person(person.home, toll.url, served.key)
    toll.close()
    assert "nobody knows what the key may do" in behind.installs("claude")
    assert env(behind)["ARGUS_KEY"] == served.key
    toll.open()
    assert "nobody knows" not in behind.installs("claude")
    toll.close()
    assert "nobody knows" not in behind.does("install", "--client", "claude").stderr


def test_it_revokes_the_small_key_where_it_was_made(served: Person, toll: Toll) -> None:
    served.installs("claude")
    path, small = served.home / ".argus" / "env", env(served)["ARGUS_RECALL_KEY"]
    # Made by another server, of which the one at the new address knows nothing.
    foreign = "argus_0a1b2c3d_made_elsewhere"
    for address, warned in ((toll.url, False), ("http://127.0.0.1:9", True)):
        known = {**env(served), "ARGUS_URL": address, "ARGUS_RECALL_KEY": foreign}
        path.write_text("".join(f"{name}={value}\n" for name, value in known.items()))
        told = served.installs("claude")
        assert ("revokekey 0a1b2c3d" in told) is warned
        assert env(served)["ARGUS_RECALL_KEY"] not in (foreign, small)
    # The machine's own key, and the small one.
    assert [method for method, path, _ in toll.requests if path == "/keys"].count("DELETE") == 2


def test_it_warns_of_a_key_that_may_too_little(served: Person) -> None:
    small = create_key(owner="me", scopes=["recall"])[0]
    assert "may not capture" in Person(served.home, served.url, small).installs("claude")


def test_it_installs_without_a_client_for_a_plugin(served: Person) -> None:
    told = served.installs("none")
    assert "next:" in told
    assert not (served.home / ".claude").exists()
    assert may(env(served)["ARGUS_KEY"]) == ["capture", "recall"]
    assert (served.home / ".argus" / "lib" / "argus-hook").exists()


def test_it_says_first_that_the_server_is_away(person: Person) -> None:
    arguments = ["install", "--client", "claude", "--url", person.url, "--key-stdin"]
    done = person.does(*arguments, stdin="argus_k\n")
    assert done.stderr.startswith(f"argus-hook: {person.url} is away: connection refused")
    assert "next:" in done.stdout


def test_it_posts_the_prompt_where_the_server_is_on_this_machine(served: Person) -> None:
    before = served.wrote(THEIRS)
    served.installs("claude")
    (prompt,) = served.hooks()["UserPromptSubmit"]
    assert prompt["type"] == "http"
    assert prompt["url"] == served.url + "/hook/claude/UserPromptSubmit"
    assert prompt["timeout"] == 2
    text = served.settings.read_text()
    assert served.key not in text
    small = prompt["headers"]["Authorization"].removeprefix("Bearer ")
    assert json.loads(text)["env"] == json.loads(before)["env"], "its children inherit no key"
    assert f"ARGUS_RECALL_KEY={small}" in (served.home / ".argus" / "env").read_text()
    unchanged = snapshot(served.home)
    served.installs("claude")
    assert snapshot(served.home) == unchanged
    assert small not in served.installs("claude", "--dry-run")
    assert "revoked" in served.uninstalls()
    assert served.settings.read_bytes() == before


def test_it_gives_the_small_key_back_with_the_http_hook(served: Person) -> None:
    served.installs("claude")
    served.installs("claude", "--mode", "command")
    assert served.hooks()["UserPromptSubmit"][0]["type"] == "command"
    assert "Bearer" not in served.settings.read_text()
    assert "ARGUS_RECALL_KEY" not in (served.home / ".argus" / "env").read_text()


def test_it_tells_and_mends_an_http_hook_that_is_behind_the_settings(served: Person) -> None:
    served.installs("claude")
    env = served.home / ".argus" / "env"
    env.write_text(env.read_text() + "ARGUS_RECALL_FLOOR=0.5\n")
    assert "not as ~/.argus/env" in served.does("doctor").stdout
    served.installs("claude")
    assert served.hooks()["UserPromptSubmit"][0]["url"].endswith("?floor=0.5")
    env.write_text(env.read_text() + "ARGUS_RECALL=false\n")
    assert "still posted" in served.does("doctor").stdout
    served.installs("claude")
    assert served.hooks()["UserPromptSubmit"][0]["type"] == "command"


def test_it_puts_no_key_into_a_repository(served: Person) -> None:
    (served.home / ".git").mkdir()
    served.wrote(THEIRS)
    assert "lies in a repository" in served.installs("claude", "--mode", "http")
    assert served.hooks()["UserPromptSubmit"][0]["type"] == "command"
    assert "Bearer" not in served.settings.read_text()


def test_it_posts_no_prompt_to_a_server_that_does_not_see_this_machines_files(
    person: Person, toll: Toll, key: str
) -> None:
    tunnelled = Person(person.home, toll.url, key)
    # Health, what the key may, and then the proof: what another machine would say.
    toll.script, toll.status = ["pass", "pass", "status"], 404
    told = tunnelled.installs("claude", "--mode", "http")
    assert toll.requests[2][1] == "/hook/here"
    assert "a tunnel or a container" in told
    assert tunnelled.hooks()["UserPromptSubmit"][0]["type"] == "command"
    assert "Bearer" not in tunnelled.settings.read_text()
    tunnelled.installs("claude", "--mode", "http")
    assert tunnelled.hooks()["UserPromptSubmit"][0]["type"] == "http"
    assert not (person.home / ".argus" / "hook" / "here").exists()


def test_it_writes_nothing_when_it_only_shows_what_a_server_here_would_get(served: Person) -> None:
    assert "/hook/claude/UserPromptSubmit" in served.installs("claude", "--dry-run")
    assert not (served.home / ".argus").exists()


def test_it_warns_of_a_way_on_which_everybody_reads(person: Person) -> None:
    plain = "can be read on their way"
    assert plain in Person(person.home, "http://no-such-host.invalid").installs("claude")
    assert plain not in Person(person.home, "https://no-such-host.invalid").installs("claude")
    assert plain not in person.installs("claude")


def test_it_keeps_what_is_kept_to_the_person_whatever_the_shell_says(person: Person) -> None:
    os.umask(before := os.umask(0))
    try:
        os.umask(0)
        person.installs("claude")
    finally:
        os.umask(before)
    kept = (person.home / ".argus").rglob("*")
    open_to_others = [path for path in kept if not path.is_symlink() and mode(path) & 0o077]
    assert open_to_others == [person.home / ".argus" / "bin" / "argus-hook"]


def test_it_warns_where_others_can_read_the_key(served: Person) -> None:
    served.wrote(THEIRS)
    served.settings.chmod(0o644)
    assert "chmod 600" in served.installs("claude")
    assert stat.S_IMODE(os.stat(served.settings).st_mode) == 0o644


def test_it_refuses_a_key_that_the_server_refuses(served: Person) -> None:
    stranger = Person(served.home, served.url, "argus_nobody_knows_this_key")
    assert "refuses the key" in stranger.refused("claude")
    assert not (served.home / ".argus").exists()
    assert "nobody_knows" not in stranger.refused("claude")


@pytest.mark.parametrize("url", ["nowhere", "ftp://127.0.0.1", "http://me:pw@127.0.0.1:8765"])
def test_it_refuses_an_address_that_is_none(person: Person, url: str) -> None:
    assert "address" in Person(person.home, url).refused("claude")
    assert not (person.home / ".argus").exists()
