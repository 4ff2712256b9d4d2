"""What goes with the last client, what stays, and what never is lost unasked."""

from __future__ import annotations

from pathlib import Path

import pytest

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
