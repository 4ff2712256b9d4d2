"""What goes with the last client, what stays, and what never is lost unasked."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from django.utils import timezone

from memory.access import authenticate
from tests.hook.installing import Person


@pytest.fixture
def person(tmp_path: Path) -> Person:
    home = tmp_path / "home"
    for folder in (".claude", ".codex", ".pi/agent"):
        (home / folder).mkdir(parents=True)
    return Person(home)


def there(person: Person) -> set[str]:
    return {path.name for path in (person.home / ".argus").iterdir()}


def test_it_finds_every_client_of_the_machine(person: Person) -> None:
    told = person.installs("all")
    assert all(name in told for name in ("settings.json", "hooks.json", "argus.ts"))


def test_it_keeps_the_program_while_a_client_needs_it(person: Person) -> None:
    person.installs("all")
    person.uninstalls("--client", "claude")
    person.uninstalls("--client", "pi")
    assert {"lib", "bin"} <= there(person)
    assert "stays" in person.uninstalls("--client", "codex")
    assert there(person) == {"env", "hook"}
    assert not (person.home / ".argus" / "hook" / "since").exists()


def test_it_leaves_what_was_never_sent_and_what_the_server_keeps(person: Person) -> None:
    person.installs("claude")
    argus = person.home / ".argus"
    for name in ("hook/spool", "pg", "log"):
        (argus / name).mkdir(parents=True, exist_ok=True)
    (argus / "hook" / "spool" / f"{1:020}-1.claude-s.post").write_text("{}")
    (argus / "secret_key").write_text("x")
    person.uninstalls()
    assert there(person) == {"env", "hook", "pg", "log", "secret_key"}
    person.installs("claude")
    done = person.does("uninstall", "--purge")
    assert done.returncode == 1
    assert "argus-hook flush" in done.stderr
    assert {"lib", "hook"} <= there(person)
    assert set(person.hooks()) >= {"Stop"}
    person.uninstalls("--purge", "--yes")
    assert there(person) == {"pg", "secret_key"}
    assert not person.settings.exists()


def test_it_says_what_becomes_of_the_key_and_of_what_stays(person: Person) -> None:
    key = "argus_0a1b2c3d_typed_by_the_person"
    person = Person(person.home, key=key)
    person.installs("claude")
    told = person.uninstalls()
    assert "the key 0a1b2c3d in" in told and "manage.py revokekey 0a1b2c3d" in told
    (line,) = [line for line in told.splitlines() if line.startswith("to take what stays: ")]
    subprocess.run(line.partition(": ")[2], shell=True, check=True)
    assert there(person) == set()
    person.installs("claude")
    assert "revokekey 0a1b2c3d" in person.uninstalls("--purge")
    assert key not in told


def test_it_keeps_what_says_that_a_session_is_never_captured(person: Person) -> None:
    person.installs("claude")
    sessions = person.home / ".argus" / "hook" / "sessions" / "claude"
    sessions.mkdir(parents=True)
    (sessions / "secret.off").write_text("/x/secret.jsonl")
    (sessions / "plain.json").write_text("{}")
    (person.home / ".argus" / "hook" / "link").symlink_to(person.home)
    told = person.uninstalls("--purge")
    assert "1 sessions that ran while Argus was off" in told
    left = [path for path in (person.home / ".argus").rglob("*") if path.is_file()]
    assert left == [sessions / "secret.off"]


def test_it_revokes_what_it_made(person: Person, server: str, key: str) -> None:
    served = Person(person.home, server, key)
    served.installs("claude")
    env = (served.home / ".argus" / "env").read_text()
    told = served.uninstalls("--purge")
    made = [line.split("=")[1] for line in env.splitlines() if "=argus_" in line]
    assert len(made) == 2
    assert all(authenticate(one, now=timezone.now()) is None for one in made)
    assert all(one.split("_")[1] in told for one in made)
    assert authenticate(key, now=timezone.now()) is not None
    assert there(served) == set()


def test_it_takes_a_folder_with_it_that_it_made(person: Person) -> None:
    extensions = person.home / ".pi" / "agent" / "extensions"
    person.installs("pi")
    person.installs("pi")
    person.uninstalls()
    assert not extensions.exists() and extensions.parent.exists()
    person.installs("pi")
    (extensions / "theirs.ts").write_text("x")
    person.uninstalls()
    assert [path.name for path in extensions.iterdir()] == ["theirs.ts"]
    (extensions / "theirs.ts").unlink()
    person.installs("pi")
    person.uninstalls()
    assert extensions.exists()


def test_it_says_so_when_nothing_is_there(person: Person) -> None:
    assert "nothing of ours" in person.uninstalls()
    assert not (person.home / ".argus").exists()


def test_it_undoes_the_first_client_when_the_second_refuses_midway(person: Person) -> None:
    before = person.wrote('{"model": "x"}')
    # A folder where the draft of the second file would be written: found out only when writing.
    (person.home / ".argus").mkdir()
    (person.home / ".argus" / "backup").mkdir()
    (person.home / ".argus" / "backup" / "codex.json").mkdir()
    said = person.refused("all")
    assert "codex.json" in said
    assert person.settings.read_bytes() == before
    assert not (person.codex / "hooks.json").exists()
    assert not person.extension.exists()


def test_it_keeps_the_way_back_when_a_second_installation_fails_midway(person: Person) -> None:
    before = person.wrote('{"model": "x"}')
    person.installs("all")
    backup = person.home / ".argus" / "backup"
    for path in (person.settings, person.codex / "hooks.json"):
        path.write_text(path.read_text().replace('"timeout": 10', '"timeout": 7'))
    known = {path.name: path.read_bytes() for path in backup.glob("claude.*e*")}
    settings = person.settings.read_bytes()
    (backup / "codex.json").unlink()
    (backup / "codex.json").mkdir()
    person.refused("all")
    assert person.settings.read_bytes() == settings
    assert {name: (backup / name).read_bytes() for name in known} == known
    (backup / "codex.json").rmdir()
    person.installs("all")
    person.uninstalls()
    assert person.settings.read_bytes() == before
