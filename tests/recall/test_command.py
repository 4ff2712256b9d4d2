"""`manage.py recall`: every number that decided, in a terminal."""

from __future__ import annotations

import json

import pytest
from django.core.management import call_command

from memory.access import principal
from memory.models import Injection
from tests.recall.making import note

pytestmark = pytest.mark.django_db

ASKED = "Which port does the staging database use?"
PORT = "The staging database listens on port 5433."


def run(capsys: pytest.CaptureFixture[str], *args: str) -> str:
    call_command("recall", *args)
    return capsys.readouterr().out


def test_it_shows_gates_floors_ranks_and_the_block(capsys: pytest.CaptureFixture[str]) -> None:
    note(principal(), PORT, project="harbor")
    note(principal(), "Semicolons separate the columns of the export.")
    out = run(capsys, ASKED, "--cwd", "/src/harbor")
    assert "gates: passed" in out and "semantic 0.36" in out and "keyword 0.04" in out
    assert "(#1)" in out and "x1.25" in out and "below every track's floor" in out
    assert "<argus-memory" in out and PORT in out
    assert f"injection {Injection.objects.as_pipeline().latest('pk').pk}" in out


def test_it_shows_which_gate_refused(capsys: pytest.CaptureFixture[str]) -> None:
    out = run(capsys, "ok")
    assert "gated; gate: too_short (0 meaningful tokens, 5 needed)" in out


def test_it_prints_json(capsys: pytest.CaptureFixture[str]) -> None:
    note(principal(), PORT)
    told = json.loads(run(capsys, ASKED, "--json"))
    assert told["outcome"] == "injected" and told["notes"][0]["content"] == PORT
    assert Injection.objects.as_pipeline().get(pk=told["injection"]).owner == principal()


def test_it_takes_a_floor(capsys: pytest.CaptureFixture[str]) -> None:
    note(principal(), PORT)
    assert "below_floor" in run(capsys, ASKED, "--floor", "0.9")
