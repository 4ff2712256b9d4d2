"""What a command writes: names and texts of others steer no terminal, and stay in their line."""

from __future__ import annotations

import io
import re

import pytest
from django.core.management import call_command, get_commands, load_command_class
from django.core.management.base import BaseCommand

from memory.access import create_key, principal
from memory.management.plain import PlainCommand, Terminal
from memory.models import LlmCall
from memory.pipeline import process
from tests.factories import at, clock, end_session, project, turns

#: Colours, the window's title, another line, the line from its start, text from the right.
FORGED = "ok    database    forged line"
EVIL = f"e\x1b[31mX\x1b]0;own\x07\n{FORGED}\r\u202eevil\u2028"

#: What a terminal obeys or hides, and no line of ours holds.
OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u2028-\u202e\u2066-\u2069]")

OURS = {"argus", "memory", "recall", "review", "exporter"}


#: Django's migrate and the queue's worker, which we only open: they write no text of others.
OPENED = {"migrate", "qcluster"}


@pytest.mark.parametrize(
    "name", sorted({one for one, app in get_commands().items() if app in OURS} - OPENED)
)
def test_every_command_of_ours_writes_what_no_terminal_obeys(name: str) -> None:
    command: BaseCommand = load_command_class(get_commands()[name], name)
    assert isinstance(command, PlainCommand)
    assert isinstance(command.stdout, Terminal) and isinstance(command.stderr, Terminal)


@pytest.mark.django_db
@pytest.mark.parametrize(
    "words",
    [
        ("project", "list"),
        ("keys",),
        ("budget",),
        ("recall", "where is the queue of jobs, Redis or Postgres?", "--explain"),
        ("recall", "the queue of jobs", "--query"),
        ("trace", "1"),
        ("purge", "--raw", "1"),
        ("rejection", "list"),
        ("hold", "list"),
    ],
    ids=" ".join,
)
def test_hostile_names_and_texts_are_seen_and_not_obeyed(
    words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    me = principal()
    said = turns(
        me, [f"{EVIL} We moved the queue of jobs from Redis to Postgres: Redis lost them."] * 2,
        session=f"s {EVIL}", cwd=f"/c/{EVIL}",
    )  # fmt: skip
    end_session(me, f"s {EVIL}", now=at(hours=1))
    process(clock=clock(at(hours=2)))
    project(f"p {EVIL}")
    create_key(owner=me.name, name=f"k {EVIL}", scopes=["recall"], by=me)
    LlmCall.objects.create(
        stage="distill", port="distill", unit="u", model_asked=f"m {EVIL}", model_real=f"r {EVIL}"
    )
    told = io.StringIO()
    call_command(*[str(said[0].pk) if one == "1" else one for one in words], stdout=told)
    assert told.getvalue().strip()
    assert not OBEYED.findall(told.getvalue()), told.getvalue()
    assert not any(line.startswith(FORGED) for line in told.getvalue().splitlines())
