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
    env.write_text(env.read_text().replace(served.key, "argus_nobody_knows_it"))
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


def test_it_counts_what_waits(person: Person) -> None:
    spool = person.home / ".argus" / "hook" / "spool"
    spool.mkdir(parents=True)
    (spool / f"{1:020}-1.claude-s.post").write_text("12345")
    found = json.loads(person.does("spool", "--json").stdout)
    assert found["files"] == 1
    assert found["bytes"] == 5
