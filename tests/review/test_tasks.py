"""How: tasks from turns through capture and track; decisions by the verbs; the table in SQL."""

from __future__ import annotations

import re
from itertools import product

import pytest
from django.db import connection

from memory.acts import through
from memory.errors import Conflict, NotFound
from memory.models import Act, Principal, TaskEvent, TaskItem
from memory.models.task import HAPPENINGS, OPENINGS
from memory.stages.track import track
from memory.tracking.status import ASKED, STATUSES, status
from memory.web.viewer import Viewer
from review import tasks as verbs
from tests.factories import at, clock, three, turns
from tests.web import user

pytestmark = pytest.mark.django_db

ASKED_FOR = "Please fix the flaky upload test in uploader.py."
#: One happening for each letter of a tale.
LETTERS = {"d": "claim_done", "f": "claim_failed", "c": "confirmed", "w": "commit", "n": "denied"}


@pytest.fixture
def alice() -> Principal:
    return three()[0]


def opened(
    owner: Principal, *more: str, asked: str = ASKED_FOR, session: str = "s1", **fields: object
) -> TaskItem:
    item, *_ = turns(owner, [asked, *more], session=session, **fields)  # type: ignore[arg-type]
    track(clock=clock(at(days=1)))
    found: TaskItem = TaskItem.objects.as_pipeline().get(raw_item=item)
    return found


def copy_of(task: TaskItem, opening: str, number: int) -> TaskItem:
    made = TaskItem(opening=opening, start=number)
    for name in ("owner", "title", "raw_item", "quote", "sha256", "opened_at"):
        setattr(made, name, getattr(task, name))
    made.end = number + len(made.quote)
    return made


def say(task: TaskItem, *happened: str) -> list[TaskEvent]:
    return [
        TaskEvent(item=task, happening=one, principal=task.owner, occurred_at=at(minutes=n))
        for n, one in enumerate(happened)
    ]


def viewer(who: Principal) -> Viewer:
    return Viewer(user(f"web {who.name}", "reviewer", who=who), who)


def test_it_has_a_letter_for_every_happening() -> None:
    assert set(verbs.LETTERS) == set(HAPPENINGS)
    for opening, word in product(OPENINGS, HAPPENINGS):
        alike = LETTERS[verbs.LETTERS[word]]
        for before in product(HAPPENINGS, repeat=2):
            assert status(opening, [*before, word]) == status(opening, [*before, alike])


@pytest.mark.parametrize("opening", OPENINGS)
def test_it_says_the_same_in_patterns_as_the_table(opening: str) -> None:
    place = 0 if opening in ASKED else 1
    for length in range(8):
        for tale in product(LETTERS, repeat=length):
            fits = [
                word
                for word, patterns in verbs.PATTERNS.items()
                if re.search(patterns[place], "".join(tale))
            ]
            assert fits == [status(opening, [LETTERS[one] for one in tale])], tale


def test_it_reads_patterns_as_postgres_does() -> None:
    tales = ["".join(t) for length in range(6) for t in product(LETTERS, repeat=length)]
    with connection.cursor() as cursor:
        for pair in verbs.PATTERNS.values():
            for pattern in pair:
                cursor.execute(
                    "SELECT tale FROM unnest(%s::text[]) AS t(tale) WHERE tale ~ %s",
                    [tales, pattern],
                )
                found = {tale for (tale,) in cursor.fetchall()}
                assert found == {tale for tale in tales if re.search(pattern, tale)}


def test_it_filters_rows_by_the_status_that_they_show(alice: Principal) -> None:
    first = opened(alice)
    tales = [t for length in range(3) for t in product(HAPPENINGS, repeat=length)]
    made = [
        copy_of(first, opening, 1 + number)
        for number, (opening, _) in enumerate(product(OPENINGS, tales))
    ]
    TaskItem.objects.bulk_create(made)
    events = [
        event
        for task, (_, tale) in zip(made, product(OPENINGS, tales), strict=True)
        for event in say(task, *tale)
    ]
    # Later ones first: what counts is when they occurred.
    TaskEvent.objects.bulk_create(events[::-1])
    rows = verbs.told_rows(TaskItem.objects.visible_to(alice))
    seen = 0
    for word in STATUSES:
        found = list(verbs.of_status(rows, word))
        assert {verbs.status_of(row) for row in found} <= {word}
        seen += len(found)
    assert seen == len(made) + 1
    told = {row.pk: verbs.status_of(row) for row in rows}
    for task, (opening, tale) in zip(made, product(OPENINGS, tales), strict=True):
        assert told[task.pk] == status(opening, tale)


def test_it_confirms_by_a_persons_word(alice: Principal) -> None:
    task = opened(alice, "Done.")
    with through("page"):
        assert verbs.confirm(task.pk, by=alice, now=at(days=2), reason="I saw it") == "verified"
    event = TaskEvent.objects.latest("pk")
    assert (event.happening, event.principal, event.raw_item) == ("confirmed", alice, None)
    act = Act.objects.get()
    assert (act.verb, act.kind, act.reference, act.reason) == (
        "confirm", "task", str(task.pk), "I saw it",
    )  # fmt: skip
    assert act.detail == {"before": "claimed", "after": "verified"}


def test_it_denies_and_reopens(alice: Principal) -> None:
    task = opened(alice, "Done.")
    assert verbs.deny(task.pk, by=alice, now=at(days=2)) == "disputed"
    assert verbs.reopen(task.pk, by=alice, now=at(days=3)) == "open"
    assert verbs.confirm(task.pk, by=alice, now=at(days=4)) == "verified"
    assert verbs.find(viewer(alice), task.pk).why == "alice said so here."
    assert Act.objects.filter(kind="task").count() == 3


def test_it_tells_the_second_of_two_who_was_faster(alice: Principal) -> None:
    _, bob, _ = three()
    task = opened(alice, "Done.", visibility="team")
    newest = verbs.find(viewer(bob), task.pk).newest
    verbs.confirm(task.pk, by=alice, now=at(days=2))
    with pytest.raises(Conflict, match="confirmed by alice at 2026-03-04"):
        verbs.decide(task.pk, "deny", by=bob, now=at(days=2), seen=newest)
    with pytest.raises(Conflict, match="nothing to confirm: .* by alice"):
        verbs.confirm(task.pk, by=bob, now=at(days=2))
    assert TaskEvent.objects.filter(principal__isnull=False).count() == 1
    assert Act.objects.count() == 1


def test_it_has_nothing_to_deny_or_reopen_of_an_open_task(alice: Principal) -> None:
    task = opened(alice)
    assert verbs.find(viewer(alice), task.pk).verbs == ("confirm",)
    for verb in (verbs.deny, verbs.reopen):
        with pytest.raises(Conflict):
            verb(task.pk, by=alice, now=at(days=2))


def test_it_knows_no_task_of_a_stranger_and_no_other_verb(alice: Principal) -> None:
    _, bob, charlie = three()
    task = opened(alice, "Done.", visibility="common")
    hidden = opened(alice, "Done.", asked="Rename the invoice column.", session="s2", start=at(60))
    for pk, who in ((task.pk, charlie), (hidden.pk, bob), (0, alice)):
        with pytest.raises(NotFound):
            verbs.confirm(pk, by=who, now=at(days=2))
    with pytest.raises(NotFound):
        verbs.decide(task.pk, "purge", by=alice, now=at(days=2))
    assert verbs.confirm(task.pk, by=bob, now=at(days=2)) == "verified"


def test_it_says_which_event_decides_and_why(alice: Principal) -> None:
    said = "Fixed the flaky upload.\n\n===== 12 passed in 3.21s ====="
    task = opened(alice, said, "It still doesn't work.")
    told = verbs.find(viewer(alice), task.pk)
    assert [line.event.happening for line in told.lines] == ["claim_done", "test_passed", "denied"]
    assert [line.decides for line in told.lines] == [False, False, True]
    assert (told.status, told.why) == ("disputed", "It was denied by a person.")


def test_it_shows_no_words_of_a_turn_that_the_viewer_may_not_see(alice: Principal) -> None:
    _, bob, _ = three()
    task = opened(alice, visibility="team", project="shop")
    turns(alice, ["Hi.", "Fixed the flaky upload in uploader.py."], session="s2", start=at(60),
          visibility="private", project="shop")  # fmt: skip
    track(clock=clock(at(days=1)))
    assert [line.seen for line in verbs.find(viewer(alice), task.pk).lines] == [True]
    assert [line.seen for line in verbs.find(viewer(bob), task.pk).lines] == [False]
