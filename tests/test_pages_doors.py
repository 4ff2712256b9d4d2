"""Who did what, by which door: the rows are the same, whichever door an act came by."""

from __future__ import annotations

import json
from io import StringIO

import pytest
from django.core.management import call_command

from memory.models import Act, Decision, DedupVerdict, Feedback, Note
from tests.flow import PORT, World, acting_as, found, held, hides, place, press, see, world

__all__ = ["world"]

pytestmark = pytest.mark.django_db


def test_it_lists_who_did_what_by_which_door(world: World) -> None:
    row = held(world, visibility="team")
    press(world.owner, place("review-decide", row.pk, "reject"), {"reason": "not yet upgraded"})
    with acting_as("alice"):
        call_command("note", "pin", str(row.note_id), stdout=StringIO())
    word = {"verdict": "useful", "reason": "it was"}
    world.post(f"/recall/notes/{row.note_id}/feedback", word)
    listed = place("audit")
    page = see(world.owner, listed)
    lines = world.owner.get(f"{listed}?format=json").getvalue().decode()
    told = {(act["verb"], act["kind"], act["door"], act["key"]) for act in json.loads(lines)}
    assert told == {
        ("reject", "verdict", "page", ""),
        ("pin", "note", "command", ""),
        ("useful", "note", "api", world.key.split("_")[1]),
    }
    assert "not yet upgraded" in page and str(row.note_id) in page
    hides(world, listed, "not yet upgraded", str(row.note_id))


def test_it_leaves_by_a_terminal_what_it_leaves_by_a_page(world: World) -> None:
    row = held(world)
    wanted = []
    for verb in ("approve", "undo", "reject"):
        press(world.owner, place("review-decide", row.pk, verb), {"reason": "as I saw it"})
        wanted.append(left(row))
        if verb == "reject":
            press(world.owner, place("review-decide", row.pk, "undo"))
    got = []
    for verb in ("approve", "undo", "reject"):
        with acting_as("alice"):
            call_command("hold", verb, str(row.pk), "--reason", "as I saw it", stdout=StringIO())
        got.append(left(row))
    assert [one[:-1] for one in got] == [one[:-1] for one in wanted]
    assert {one[-1] for one in wanted} == {"page"} and {one[-1] for one in got} == {"command"}


def left(row: DedupVerdict) -> tuple[object, ...]:
    """What the last decision about a verdict left, its door last."""
    row = found(DedupVerdict.objects, pk=row.pk)
    decision = Decision.objects.filter(verdict=row).latest("pk")
    act = Act.objects.filter(kind="verdict", reference=str(row.pk)).latest("pk")
    old, new = (found(Note.objects, pk=pk) for pk in (row.target_id, row.note_id))
    assert decision.created_at == act.created_at == row.decided_at
    return (
        (row.status, row.decided_by, old.retired_reason, old.deleted_at is None, new.deleted_at),
        (decision.action, decision.principal, decision.reason, decision.status_after),
        (act.verb, act.principal, act.reason, act.detail["after"]),
        act.door,
    )


def test_it_leaves_the_same_rows_by_each_of_three_doors(world: World) -> None:
    world.say("monday", "Which database is it?", PORT)
    world.run()
    one = found(Note.objects).pk

    def page() -> None:
        press(world.owner, place("note-feedback", one), {"verdict": "useful", "reason": "so"})

    def command() -> None:
        with acting_as("alice"):
            call_command("feedback", "useful", str(one), "--reason", "so", stdout=StringIO())

    def api() -> None:
        word = {"verdict": "useful", "reason": "so"}
        world.post(f"/recall/notes/{one}/feedback", word)

    rows, doors = [], []
    for door in (page, command, api):
        door()
        row = Feedback.objects.latest("pk")
        act = Act.objects.filter(kind="note").latest("pk")
        rows.append((row.principal, row.note_id, row.verdict, row.reason, row.project_id,
                     act.principal, act.verb, act.reference))  # fmt: skip
        doors.append((act.door, act.key and act.key.prefix))
        press(world.owner, place("note-feedback", one), {"verdict": "withdrawn"})
    assert rows == [rows[0]] * 3
    assert doors == [("page", None), ("command", None), ("api", world.key.split("_")[1])]
