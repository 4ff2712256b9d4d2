"""`manage.py capture` keeps out what the people of the machine kept out of their hooks."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from argus.hook import sessions
from argus.management.commands import capture
from memory.models import RawItem


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    capture.look.cache_clear()
    return tmp_path


def session(home: Path, name: str, folder: Path, text: str, *, uuid: str = "") -> None:
    """A session's file, or one more turn of it."""
    row = {
        "type": "user",
        "uuid": uuid or f"{name}-1",
        "parentUuid": None,
        "sessionId": name,
        "cwd": str(folder),
        "timestamp": "2026-05-04T10:00:00Z",
        "message": {"role": "user", "content": text},
    }
    place = home / ".claude" / "projects" / "p"
    place.mkdir(parents=True, exist_ok=True)
    with (place / f"{name}.jsonl").open("a") as handle:
        handle.write(json.dumps(row) + "\n")


def told(home: Path, *options: str) -> dict[str, Any]:
    out = StringIO()
    call_command("capture", str(home / ".claude"), *options, "--json", stdout=out)
    report: dict[str, Any] = json.loads(out.getvalue())
    return report


@pytest.mark.django_db
def test_it_keeps_out_what_was_opted_out_and_says_so(home: Path) -> None:
    secret, named, plain = (home / name for name in ("secret", "named", "plain"))
    for folder in (secret, named, plain):
        folder.mkdir()
    (secret / ".argus.json").write_text('{"enabled": false}')
    (named / ".argus.json").write_text('{"project": "harbor"}')
    session(home, "a", secret, "The zebra is alpha.")
    session(home, "b", named, "Harbor deploys from tags.")
    session(home, "c", plain, "The gate opens at nine.")
    session(home, "d", plain, "The yak is off the record.")
    sessions.disable("claude", "d", "")
    assert told(home, "--dry-run")["refused"] == {"opted_out": 2}
    report = told(home)
    assert (report["stored"], report["refused"]) == (2, {"opted_out": 2})
    stored = RawItem.objects.as_pipeline().values_list("body", "project__name")
    assert set(stored) == {
        ("Harbor deploys from tags.", "harbor"),
        ("The gate opens at nine.", "plain"),
    }


@pytest.mark.django_db
def test_it_keeps_out_what_a_session_said_after_it_left_its_folder(home: Path) -> None:
    secret, plain = home / "secret", home / "plain"
    for folder in (secret, plain):
        folder.mkdir()
    (secret / ".argus.json").write_text('{"capture": false}')
    session(home, "a", secret, "The zebra is alpha.")
    session(home, "a", plain, "And so is the yak.", uuid="a-2")
    session(home, "a", Path(""), "Nobody says where.", uuid="a-3")
    assert told(home)["refused"] == {"opted_out": 3}


@pytest.mark.django_db
def test_it_stores_nothing_where_the_rules_cannot_be_read(home: Path) -> None:
    folder = home / "broken"
    folder.mkdir()
    (folder / ".argus.json").write_text('{"enabled": false,}')
    session(home, "a", folder, "Nobody knows what was meant.")
    assert told(home)["refused"] == {"opted_out": 1}
    assert not RawItem.objects.as_pipeline().exists()
