"""What stands on this machine, and what to do about it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from argus.hook.doctor import examine
from tests.hook.installing import Person


@pytest.fixture
def person(tmp_path: Path) -> Person:
    home = tmp_path / "home"
    (home / ".claude").mkdir(parents=True)
    return Person(home)


@pytest.fixture
def served(person: Person, server: str, key: str) -> Person:
    return Person(person.home, server, key)


def test_it_tells_a_machine_without_anything(person: Person) -> None:
    done = person.does("status", "--json")
    found = json.loads(done.stdout)
    assert {one["client"]: one["state"] for one in found["clients"]} == {
        "claude": "absent",
        "codex": "absent",
        "pi": "absent",
    }
    assert person.does("doctor").returncode == 1
    assert not (person.home / ".argus").exists()


def test_it_tells_that_all_is_well(served: Person) -> None:
    served.installs("claude")
    done = served.does("doctor")
    assert done.returncode == 0, done.stdout
    assert "fail" not in done.stdout
    told = served.does("status").stdout
    assert "may capture, recall" in told
    assert "installed" in told
    assert served.key not in told


def test_it_knows_whether_the_server_has_another_build(served: Person) -> None:
    served.installs("claude")
    found = json.loads(served.does("status", "--json").stdout)
    assert found["build"] == found["server_build"] != ""
    (served.home / ".argus" / "lib" / "sha256").write_text("0" * 64 + "\n")
    done = served.does("doctor")
    assert "the server hands out another build" in done.stdout
    served.installs("claude")
    assert "another build" not in served.does("doctor").stdout


def test_it_warns_of_a_way_on_which_everybody_reads(
    served: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    served.installs("claude")
    found = json.loads(served.does("status", "--json").stdout)
    monkeypatch.setenv("HOME", str(served.home))

    def warned(url: str) -> bool:
        rows = examine({**found, "url": url})
        return any(row.name == "wire" and row.state == "warn" for row in rows)

    assert warned("http://argus.example:8765")
    assert not warned("https://argus.example:8765")
    assert not warned(served.url)


def test_it_tells_away_from_wrong(person: Person) -> None:
    person.installs("claude")
    assert person.does("doctor").returncode == 75
    (person.home / ".argus" / "env").chmod(0o644)
    done = person.does("doctor")
    assert done.returncode == 1
    assert "chmod 600" in done.stdout


def test_it_tells_a_revoked_key(served: Person) -> None:
    served.installs("claude")
    env = served.home / ".argus" / "env"
    env.write_text(f"ARGUS_URL={served.url}\nARGUS_KEY=argus_nobody_knows_it\n")
    env.chmod(0o600)
    done = served.does("doctor")
    assert done.returncode == 1
    assert "unknown or revoked" in done.stdout


def test_it_tells_hooks_that_are_half_there(person: Person) -> None:
    person.installs("claude")
    value = json.loads(person.settings.read_text())
    del value["hooks"]["SessionEnd"]
    value["disableAllHooks"] = True
    person.settings.write_text(json.dumps(value))
    told = person.does("status").stdout
    assert "partial" in told
    assert "no hook for SessionEnd" in told
    assert "disableAllHooks is on" in told


def test_it_tells_hooks_whose_program_is_gone(person: Person) -> None:
    person.installs("claude")
    (person.home / ".argus" / "lib" / "argus-hook").unlink()
    assert "is gone" in person.does("status").stdout


def test_it_tells_broken_settings_with_the_line(person: Person) -> None:
    person.wrote("{\n")
    told = person.does("status").stdout
    assert "broken" in told and "line 2" in told


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        (None, ": on"),
        ('{"project": "x"}', ": on, project x"),
        ('{"enabled": false}', ": off, by "),
        ('{"capture": false}', ": capture is off, by "),
        ('{"recall": false}', ": recall is off, by "),
        ('{"enabled": true,\n "recall" false}', "line 2, column 11"),
        ('{"enabled": true,\n "Recall": false}', '"Recall" is none of'),
    ],
)
def test_it_tells_what_holds_in_this_folder(person: Person, rules: str | None, said: str) -> None:
    path = person.home / ".argus.json"
    if rules is not None:
        path.write_text(rules)
    (row,) = [
        line for line in person.does("status").stdout.splitlines() if line.startswith("this folder")
    ]
    assert str(person.home) in row and said in row
    assert (str(path) in row) is (rules is not None and "project" not in rules)
    assert said in person.does("doctor").stdout


def test_it_tells_what_the_settings_and_the_shell_switch_off(person: Person) -> None:
    person.installs("claude")
    assert "off, by ARGUS_DISABLED" in person.does("status", ARGUS_DISABLED="1").stdout
    with (person.home / ".argus" / "env").open("a") as handle:
        handle.write("ARGUS_RECALL=false\n")
    assert "recall is off, by ARGUS_RECALL in " in person.does("status").stdout


def test_it_tells_a_plugin(person: Person) -> None:
    person.wrote('{"enabledPlugins": {"argus@argus": true}}')
    assert "claude     installed: as a plugin" in person.does("status").stdout
    person.wrote('{"enabledPlugins": {"argus@argus": false, "x@y": true}}')
    assert "claude     absent" in person.does("status").stdout


def test_it_tells_whether_the_last_trouble_is_over(served: Person) -> None:
    served.installs("claude")
    log = served.home / ".argus" / "log"
    log.mkdir()
    (log / "argus-hook.log").write_text("2026-01-02T03:04:05.000Z nothing was recalled: x\n")

    def row() -> str:
        (found,) = [x for x in served.does("status").stdout.splitlines() if "last trouble" in x]
        return found

    assert "and the server answers now): nothing was recalled" in row()
    sent = {"since": "2026-01-01T00:00:00.000Z", "last": "2026-01-03T00:00:00.000Z", "items": 7}
    path = served.home / ".argus" / "hook" / "sent.json"
    path.write_text(json.dumps({**sent, "redacted": {"github_token": 2}}))
    told = served.does("status").stdout
    assert "7 items since 2026-01-01T" in told and "redacted before: github_token 2" in told
    assert "(2026-01-02T03:04:05.000Z, over since " in row()
    env = served.home / ".argus" / "env"
    env.write_text("ARGUS_URL=http://127.0.0.1:9\nARGUS_KEY=k\n")
    assert "(2026-01-02T03:04:05.000Z):" in row()


def test_it_tells_a_folder_where_others_write(served: Person) -> None:
    served.installs("claude")
    assert "others may write" not in served.does("doctor").stdout
    (served.home / ".argus").chmod(0o777)
    done = served.does("doctor")
    assert done.returncode == 1 and f"chmod go-w {served.home}/.argus" in done.stdout


def test_it_says_what_waits_in_a_sentence(person: Person) -> None:
    assert "nothing waits" in person.does("spool").stdout
    person.installs("claude")
    spool = person.home / ".argus" / "hook" / "spool"
    spool.mkdir(parents=True)
    (spool / f"{1:020}-1.claude.s.post").write_text('{"key": "claude.s"}\n{"items": []}')
    assert "1 batch waits (" in person.does("spool").stdout
    done = person.does("flush")
    assert done.returncode == 75
    assert "nothing was sent (connection refused); 1 batch waits" in done.stdout


def test_it_prints_the_help_when_nothing_is_asked(person: Person) -> None:
    done = person.does()
    assert done.returncode == 0 and "backfill" in done.stdout


def test_it_counts_what_waits(person: Person) -> None:
    spool = person.home / ".argus" / "hook" / "spool"
    spool.mkdir(parents=True)
    (spool / f"{1:020}-1.claude-s.post").write_text("12345")
    found = json.loads(person.does("spool", "--json").stdout)
    assert found["files"] == 1
    assert found["bytes"] == 5


def test_it_counts_what_is_kept_out_refused_and_taken(person: Person) -> None:
    hook = person.home / ".argus" / "hook"
    for folder in ("sessions/claude", "sessions/pi", "aside"):
        (hook / folder).mkdir(parents=True)
    for name in ("claude/a.off", "claude/b.off", "claude/b.json", "pi/c.off"):
        (hook / "sessions" / name).write_text("{}")
    (hook / "aside" / "1.post").write_text("{}")
    (hook / "skipped.jsonl").write_text("{}\n")
    (hook / "skipped.taken").write_text("{}\n{}\n")
    (hook / "misses.taken").write_text("{}\n")
    told = person.does("status").stdout
    assert "1 known, the last one read 20" in told
    assert "3 sessions are kept out for good" in told
    assert f"1 post is kept in {hook}/aside" in told
    assert "3 recalls wait" in told and "1 transcripts wait" in told
