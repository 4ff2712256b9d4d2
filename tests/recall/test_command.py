"""`manage.py recall`: every number that decided, in a terminal."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command

from memory import verdicts
from memory.access import principal
from memory.models import DedupVerdict, Injection
from tests.recall.making import NOW, evidence, note, said

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
    assert "gates: passed" in out
    assert "floors of a note: semantic" in out and "floors of a turn: semantic" in out
    assert all(f"{name} " in out for name in ("keyword", "relevance", "score"))
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


def test_it_explains_each_hit_when_asked(capsys: pytest.CaptureFixture[str]) -> None:
    one = note(principal(), PORT, project="harbor")
    note(principal(), "Semicolons separate the columns of the export.")
    plain = run(capsys, ASKED, "--cwd", "/src/harbor")
    out = run(capsys, ASKED, "--cwd", "/src/harbor", "--explain")
    assert "log-odds" in out and "log-odds" not in plain
    assert f"#1 note {one.pk}" in out and "injected" in out and "left out" in out
    for told in ("tracks", "ranker", "boost 1.25", "words", "floors", "relevance", "refused"):
        assert told in out, told
    told = json.loads(run(capsys, ASKED, "--explain", "--json"))
    assert told["weighed"][0]["features"] and told["words"] and "calibration" in told


def test_it_explains_first_what_went_out_as_it_was_read(
    capsys: pytest.CaptureFixture[str],
) -> None:
    alice = principal()
    item = said(alice, f"Mind you: {PORT}", project="harbor")
    one = note(alice, PORT, project="harbor")
    evidence(one, item, PORT)
    refused = note(alice, "Semicolons separate the columns of the export.")
    out = run(capsys, ASKED, "--cwd", "/src/harbor", "--explain")
    heads = [line for line in out.splitlines() if line.startswith("#")]
    assert [head.split("  ")[0] for head in heads] == [
        f"#1 note {one.pk}", f"#2 note {refused.pk}",
    ]  # fmt: skip
    assert heads[0].endswith("injected") and heads[1].endswith("left out")
    assert f"turns {item.pk}" in out, "the turn is told by the note that stands for it"


def test_it_explains_what_became_of_a_note_of_the_past(
    capsys: pytest.CaptureFixture[str],
) -> None:
    alice = principal()
    old, new = (
        note(alice, PORT.replace("3.", f"{n}."), valid_from=NOW - timedelta(days=30 - n * 10),
             created_at=NOW - timedelta(days=30 - n * 10))
        for n in range(2)
    )  # fmt: skip
    row = DedupVerdict.objects.create(owner=alice, note=new, target=old, verdict="supersede")
    verdicts.apply(row, now=NOW - timedelta(days=5))
    day = (NOW - timedelta(days=25)).date().isoformat()
    for more in ((), ("--query",)):
        out = run(capsys, ASKED, "--as-of", day, "--explain", *more)
        assert f"superseded today by {new.pk} {new.title}" in out, more


def test_it_answers_a_query_with_both_sources(capsys: pytest.CaptureFixture[str]) -> None:
    note(principal(), "Semicolons separate the columns of the export.")
    item = said(principal(), f"Mind you: {PORT}")
    out = run(capsys, ASKED, "--query")
    assert f"turn {item.pk}" in out or "Mind you" in out
    assert "Semicolons" in out, "floors are told and not enforced"
    told = json.loads(run(capsys, ASKED, "--query", "--json", "--notes", "1"))
    assert (len(told["results"]), told["omitted"]) == (1, 1)
    assert Injection.objects.as_pipeline().get(pk=told["injection"]).mode == "query"
    assert "log-odds" in run(capsys, ASKED, "--query", "--explain")


def test_it_asks_about_the_past(capsys: pytest.CaptureFixture[str]) -> None:
    note(
        principal(), PORT, valid_from=NOW - timedelta(days=30), created_at=NOW - timedelta(days=30),
        valid_to=NOW - timedelta(days=10),
    )  # fmt: skip
    assert PORT not in run(capsys, ASKED)
    day = (NOW - timedelta(days=20)).date().isoformat()
    assert PORT in run(capsys, ASKED, "--as-of", day)
    assert PORT in run(capsys, ASKED, "--as-of", f"{day}T12:00:00Z", "--query")
    assert PORT not in run(capsys, ASKED, "--known-at", "2020-01-01")


def test_it_keeps_to_a_project_and_a_budget(capsys: pytest.CaptureFixture[str]) -> None:
    note(principal(), PORT, project="harbor")
    note(principal(), PORT.replace("5433", "6001"), project="tidepool")
    told = json.loads(run(capsys, ASKED, "--project", "tidepool", "--json"))
    assert [one["project"] for one in told["notes"]] == ["tidepool"]
    assert json.loads(run(capsys, ASKED, "--notes", "1", "--json"))["omitted"] == 0
    assert "no_hits" in run(capsys, ASKED, "--project", "atlantis")


@pytest.mark.parametrize(
    "args", [("--notes", "0"), ("--notes", "99"), ("--as-of", "soon"), ("--floor", "high")]
)
def test_it_refuses_what_makes_no_sense(args: tuple[str, str]) -> None:
    with pytest.raises(CommandError) as refused:
        call_command("recall", ASKED, *args)
    assert refused.value.returncode in (1, 2)
    assert not Injection.objects.as_pipeline().exists()
