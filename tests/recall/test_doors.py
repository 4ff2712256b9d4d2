"""Every door to an agent: what was silenced leaves by none of them, and what left is on the ledger.

One note is silenced; around it stands every link that could lead to it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from memory import verdicts
from memory.ledger import came_from_us, shown_in
from memory.models import DedupVerdict, Emission, Injection, Note, Principal, Project, RawItem
from recall.context import recall_context
from recall.feedback import give_feedback
from recall.links import open_note
from recall.notes import Wanted, recall_notes
from recall.opened import read_note, read_turn
from recall.query import recall_query
from recall.reader import reader
from recall.search import Past
from recall.surroundings import open_turn
from tests.recall.making import NOW, client, evidence, note, people, said, turn

pytestmark = pytest.mark.django_db

ASKED = "Which port does the staging database use?"
SECRET = "The staging database listens on port 5433."
OLD = "The staging database listens on port 5432."
BESIDE = "Deploys are frozen on Friday."
DAY = timedelta(days=1)


@dataclass(frozen=True)
class Scene:
    """`silent` superseded `old`; its turn also says `beside`; `near` means nearly the same and was
    said right after it."""

    who: Principal
    silent: Note
    old: Note
    beside: Note
    near: Note
    turn: RawItem
    after: RawItem


def scene() -> Scene:
    alice = people().alice
    at = NOW - 10 * DAY
    first = said(alice, f"{SECRET} {BESIDE}", session="s1", occurred_at=at)
    second = said(alice, "Staging's database is on port 54 33, I think.", session="s1",
                  occurred_at=at + timedelta(minutes=1))  # fmt: skip
    old = note(alice, OLD, project="harbor", created_at=NOW - 30 * DAY)
    silent = note(alice, SECRET, project="harbor", valid_from=at, created_at=at)
    beside = note(alice, BESIDE, project="harbor", valid_from=at)
    near = note(alice, second.body, project="harbor", valid_from=at)
    for one, item in ((silent, first), (beside, first), (near, second)):
        evidence(one, item, one.content)
    row = DedupVerdict.objects.create(owner=alice, note=silent, target=old, verdict="supersede")
    verdicts.apply(row, now=NOW - 5 * DAY)
    return Scene(alice, silent, old, beside, near, first, second)


def prompt(it: Scene, **more: Any) -> Any:
    return recall_notes(
        ASKED, principal=it.who, cwd="/src/harbor", now=NOW, **more
    ).as_json(explain=True)  # fmt: skip


def query(it: Scene, **more: Any) -> Any:
    return recall_query(
        ASKED, principal=it.who, cwd="/src/harbor", now=NOW, **more
    ).as_json(explain=True)  # fmt: skip


def opened(it: Scene, one: Note) -> Any:
    return read_note(
        one.pk, principal=it.who, now=NOW, cwd="/src/harbor", expand=["all"], characters=50_000
    )


THEN = Past(NOW - 20 * DAY, NOW)
DOORS: dict[str, Callable[[Scene], Any]] = {
    "prompt": prompt,
    "prompt of the past": lambda it: prompt(it, wanted=Wanted(past=THEN)),
    "query": query,
    "query of the past": lambda it: query(it, past=THEN),
    "context": lambda it: recall_context(principal=it.who, cwd="/src/harbor", now=NOW).as_json(),
    "what it replaced": lambda it: opened(it, it.old),
    "sibling": lambda it: opened(it, it.beside),
    "neighbour": lambda it: opened(it, it.near),
    "turn after it": lambda it: read_turn(
        it.after.pk, principal=it.who, now=NOW, cwd="/src/harbor"
    ),
}


def tells(answer: Any, it: Scene) -> bool:
    """Whether an answer holds the words, the name or the turn of the silenced note."""
    text = json.dumps(answer, default=str)
    return SECRET in text or str(it.silent.pk) in text


@pytest.mark.parametrize("door", DOORS)
def test_it_lets_what_was_silenced_out_by_no_door(door: str) -> None:
    it = scene()
    assert tells(DOORS[door](it), it), "or the door leads nowhere, and this shows nothing"
    give_feedback(
        it.silent.pk, "never", principal=it.who, project="quay", now=NOW, cwd=""
    ) if Project.objects.get_or_create(name="quay")[0] else None
    assert tells(DOORS[door](it), it), "it was silenced elsewhere"
    give_feedback(it.silent.pk, "never", principal=it.who, project="harbor", now=NOW)
    assert not tells(DOORS[door](it), it)
    give_feedback(it.silent.pk, "withdrawn", principal=it.who, project="harbor", now=NOW)
    give_feedback(it.silent.pk, "never", principal=it.who, now=NOW)
    assert not tells(DOORS[door](it), it)


def test_it_answers_an_agent_that_a_silenced_note_and_its_turn_are_not_there() -> None:
    it = scene()
    agent = client(it.who)
    paths = [f"/recall/notes/{it.silent.pk}", f"/recall/turns/{it.turn.pk}"]
    for path in paths:
        assert SECRET in agent.get(path).content.decode()
    give_feedback(it.silent.pk, "never", principal=it.who, project="harbor", now=NOW)
    for path in paths:
        answer = agent.get(path, {"cwd": "/src/harbor"})
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
        assert SECRET not in answer.content.decode()
        assert agent.get(path).status_code == 200, "it is silenced in harbor alone"


def test_it_knows_where_a_session_reads_by_what_it_was_told_before() -> None:
    it = scene()
    give_feedback(it.silent.pk, "never", principal=it.who, project="harbor", now=NOW)
    recall_context(principal=it.who, cwd="/src/harbor", session="s9", now=NOW)
    agent = client(it.who)
    path = f"/recall/notes/{it.silent.pk}"
    assert agent.get(path, {"session": "s9"}).status_code == 404
    assert agent.get(path, {"session": "s8"}).status_code == 200


def test_it_opens_to_a_person_what_he_silenced() -> None:
    it = scene()
    give_feedback(it.silent.pk, "never", principal=it.who, now=NOW)
    who = reader(it.who, None)
    told = open_note(it.silent.pk, who=who, now=NOW, expand=["chain"])
    assert told["content"] == SECRET and told["feedback"][0]["verdict"] == "never"
    assert told["chain"][0]["new"]["content"] == SECRET
    assert SECRET in open_turn(it.turn.pk, who=who, now=NOW)["body"]


def test_it_keeps_on_the_ledger_all_that_an_opened_note_told() -> None:
    it = scene()
    opened_note = opened(it, it.beside)
    row = Injection.objects.as_pipeline().get(mode="open")
    assert row.note_ids[0] == it.beside.pk and it.silent.pk in row.note_ids
    assert row.turn_ids == [it.after.pk], "the turn after its evidence was told whole"
    assert row.cwd == "/src/harbor" and row.project is not None
    assert opened_note["evidence"][0]["after"]
    opened(it, it.old)
    row = Injection.objects.as_pipeline().filter(mode="open").latest("pk")
    assert {it.old.pk, it.silent.pk} <= set(row.note_ids), "what stands in its place was told, too"


def test_it_keeps_on_the_ledger_what_stands_in_the_place_of_a_result() -> None:
    it = scene()
    query(it, past=THEN, session="s9")
    shown = shown_in([it.silent.pk, it.old.pk], owner=it.who, sessions=["s9"])
    assert shown == {it.silent.pk, it.old.pk}
    row = Injection.objects.as_pipeline().get(mode="query")
    assert [str(pk) for pk in row.note_ids[-1:]] == [str(it.silent.pk)]


@pytest.mark.parametrize("kind", ["note", "turn"])
def test_it_knows_again_what_an_agent_read(kind: str) -> None:
    alice = people().alice
    long = " ".join(f"word{n * 7919 % 1009} of{n}" for n in range(60))
    item = turn(alice, long)
    one = note(alice, long, embedding=None)
    assert came_from_us([long], owner=alice) == [False]
    if kind == "note":
        read_note(one.pk, principal=alice, now=NOW)
    else:
        read_turn(item.pk, principal=alice, now=NOW)
    assert came_from_us([long], owner=alice) == [True]
    row = Injection.objects.as_pipeline().get(mode="open")
    assert Emission.objects.get(owner=alice).reference == str(row.pk)
