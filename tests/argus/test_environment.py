"""Settings come from the environment; a wrong one is named before anything starts."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from argus import environment
from argus.environment import EnvironmentProblem, read


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("ARGUS_")]:
        monkeypatch.delenv(name)


def test_it_needs_nothing_set() -> None:
    assert read().embedded
    assert read().local
    assert read().home == Path.home() / ".argus"


def test_it_takes_an_empty_variable_for_one_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARGUS_MODEL_URL", "")
    assert read().model_url is None


@pytest.mark.parametrize(
    ("name", "given", "allowed"),
    [
        ("ARGUS_RECALL_FLOOR", "7", "0 to 1"),
        ("ARGUS_RECALL_FLOOR", "high", "0 to 1"),
        ("ARGUS_WORKERS", "0", "1 to 64"),
        ("ARGUS_BIND", "8765", "HOST:PORT"),
        ("ARGUS_BIND", "localhost:99999", "1 to 65535"),
        ("ARGUS_BIND", "localhost:8²", "1 to 65535"),
        pytest.param("ARGUS_BIND", f"localhost:{'9' * 5_000}", "1 to 65535", id="many digits"),
        ("ARGUS_URL", "argus.example", "http://"),
        ("ARGUS_EMBEDDER", "best", "minilm, url"),
        ("ARGUS_DEBUG", "perhaps", "true, false"),
        ("ARGUS_HOME", "here", "absolute path"),
        ("ARGUS_LOG_LEVEL", "LOUD", "DEBUG, INFO"),
        ("ARGUS_VAULT", "notes", "absolute path"),
        ("ARGUS_VAULT_CONFIDENTIALITY", "hidden", "public, internal"),
        ("ARGUS_VAULT_RETIRED", "burn", "remove, keep"),
        ("ARGUS_VAULT_EVERY_MINUTES", "-1", "0 to 1,440"),
    ],
)
def test_it_names_the_variable_what_was_given_and_what_is_allowed(
    monkeypatch: pytest.MonkeyPatch, name: str, given: str, allowed: str
) -> None:
    monkeypatch.setenv(name, given)
    with pytest.raises(EnvironmentProblem) as problem:
        read()
    for part in (name, repr(given), allowed):
        assert part in str(problem.value)


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("ARGUS_DATABASE_URL", "mysql://argus:hunter2@db/argus"),
        ("ARGUS_SECRET_KEY", "hunter2"),
    ],
)
def test_it_never_repeats_a_secret(monkeypatch: pytest.MonkeyPatch, name: str, given: str) -> None:
    monkeypatch.setenv(name, given)
    with pytest.raises(EnvironmentProblem, match=name) as problem:
        read()
    assert "hunter2" not in str(problem.value)
    monkeypatch.setenv(name, "postgresql://argus:hunter2@db/argus-with-a-long-name")
    assert "hunter2" not in repr(read())


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"ARGUS_MODEL_URL": "http://m/v1"}, "ARGUS_MODEL is not set"),
        ({"ARGUS_VERIFY": "true"}, "ARGUS_MODEL_URL is not set"),
        ({"ARGUS_EMBEDDER": "url"}, "ARGUS_EMBED_URL is not set"),
        ({"ARGUS_DEBUG": "true", "ARGUS_BIND": "0.0.0.0:80"}, "ARGUS_DEBUG"),
        ({"ARGUS_OWNER_DATABASE_URL": "postgres://o@db/a"}, "ARGUS_DATABASE_URL is not set"),
    ],
)
def test_it_refuses_settings_that_do_not_fit_together(
    monkeypatch: pytest.MonkeyPatch, given: dict[str, str], said: str
) -> None:
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(EnvironmentProblem, match=said):
        read()


def test_it_notices_a_name_that_is_misspelt() -> None:
    given = {"ARGUS_RECAL_FLOOR": "0.1", "ARGUS_HOME": "/x", "PATH": "/bin"}
    assert environment.unknown(given) == [("ARGUS_RECAL_FLOOR", "ARGUS_RECALL_FLOOR")]


def test_it_describes_every_setting_in_the_table() -> None:
    rows = [line for line in environment.table().splitlines() if line.startswith("| `ARGUS_")]
    assert len(rows) == len(environment.Environment.model_fields)
    assert all(len(row.split("|")[3].strip()) > 10 for row in rows)


def test_it_stops_a_command_with_one_sentence_and_no_traceback(tmp_path: Path) -> None:
    environ = {**os.environ, "ARGUS_HOME": str(tmp_path), "ARGUS_WORKERS": "many"}
    environ["DJANGO_SETTINGS_MODULE"] = "argus.settings"
    answer = subprocess.run(
        [sys.executable, "manage.py", "check"], env=environ, capture_output=True, text=True
    )
    assert answer.returncode == 2
    assert answer.stderr == "ARGUS_WORKERS is 'many'; allowed: 1 to 64.\n"


def test_a_home_that_is_no_folder_is_said_in_one_sentence(tmp_path: Path) -> None:
    home = tmp_path / "file"
    home.write_text("")
    environ = {**os.environ, "ARGUS_HOME": str(home), "DJANGO_SETTINGS_MODULE": "argus.settings"}
    answer = subprocess.run(
        [sys.executable, "manage.py", "doctor"], env=environ, capture_output=True, text=True
    )
    assert (answer.returncode, answer.stdout) == (2, "")
    assert answer.stderr.startswith(f"ARGUS_HOME: {home} cannot be used (")
    assert answer.stderr.count("\n") == 1


def test_it_makes_the_secret_key_once_and_for_itself_alone(tmp_path: Path) -> None:
    environ = {**os.environ, "ARGUS_HOME": str(tmp_path / "home")}
    environ["DJANGO_SETTINGS_MODULE"] = "argus.settings"
    program = "from django.conf import settings; print(settings.SECRET_KEY)"
    started = [
        subprocess.Popen(
            [sys.executable, "-c", program], env=environ, stdout=subprocess.PIPE, text=True
        )
        for _ in range(3)
    ]
    keys = {process.communicate()[0].strip() for process in started}
    path = tmp_path / "home" / "secret_key"
    assert keys == {path.read_text()}
    assert len(path.read_text()) > 50
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [entry.name for entry in path.parent.iterdir()] == ["secret_key"]


@pytest.mark.parametrize("vault", ["~", "~/.argus", "~/link"])
def test_a_vault_never_holds_the_keys_of_argus(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, vault: str
) -> None:
    """A vault is synced to devices and committed: the home of Argus is neither."""
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "link").symlink_to(tmp_path)
    monkeypatch.setenv("ARGUS_VAULT", vault)
    with pytest.raises(EnvironmentProblem, match="holds ARGUS_HOME"):
        read()
    monkeypatch.setenv("ARGUS_VAULT", "~/Notes")
    assert read().vault == tmp_path / "Notes"


def test_the_vault_is_exported_by_the_clock_only_where_there_is_one(tmp_path: Path) -> None:
    program = "from django.conf import settings; print(settings.SCHEDULES.get('export'))"
    vault = {"ARGUS_VAULT": str(tmp_path / "Notes")}
    for told, expected in (
        ({}, "None"),
        (vault, "('exporter.tasks.run_export', 15)"),
        (vault | {"ARGUS_VAULT_EVERY_MINUTES": "0"}, "None"),
    ):
        environ = {
            "PATH": os.environ["PATH"], "HOME": str(tmp_path), "ARGUS_HOME": str(tmp_path / "a"),
            "DJANGO_SETTINGS_MODULE": "argus.settings", **told,
        }  # fmt: skip
        ran = subprocess.run([sys.executable, "-c", program], env=environ, capture_output=True)
        assert ran.stdout.decode().strip() == expected, ran.stderr
