"""How often pages ask the database: as often for many rows as for one, wherever one is in a list.

Beside what each page's own tests say of it: its first page of 1 and of 30 rows.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from memory import findings
from memory.findings import Found
from memory.models import (
    Act,
    Attribution,
    Episode,
    GateRejection,
    Injection,
    Principal,
    StageRun,
    TaskItem,
)
from memory.web.listing import PAGE_ROWS
from review.models import Draw
from tests.factories import at, document, episode, note, three, turns, verdict
from tests.web import FRAME, asked, staff

pytestmark = pytest.mark.django_db

#: What every page asks: the session, the user, and who that is and may do.
FRAME_ASKS = 3

Make = Callable[[Principal], None]


def notes(owner: Principal) -> None:
    for n in range(2 * PAGE_ROWS + 1):
        note(owner, f"The queue has {n} workers.", embedded=False, created_at=at(n))


def holds(owner: Principal) -> None:
    old, new = (note(owner, f"The port is {n}.", embedded=False) for n in (1, 2))
    for _ in range(2 * PAGE_ROWS + 1):
        verdict(new, old)


def rejections(owner: Principal) -> None:
    item = document(owner, "The port is 8443.")
    GateRejection.objects.bulk_create(
        GateRejection(owner=owner, raw_item=item, reason="trivial", candidate={"title": str(n)})
        for n in range(2 * PAGE_ROWS + 1)
    )


def injections(owner: Principal) -> None:
    Injection.objects.bulk_create(
        Injection(owner=owner, mode="prompt", outcome="no_hits", query=f"where is it {n}")
        for n in range(2 * PAGE_ROWS + 1)
    )


def draws(owner: Principal) -> None:
    one = note(owner, "The port is 8443.", embedded=False)
    Draw.objects.bulk_create(
        Draw(principal=owner, note=one, drawn_by="draw", probability=0.1, pool=10)
        for n in range(2 * PAGE_ROWS + 1)
    )


def acts(owner: Principal) -> None:
    Act.objects.bulk_create(
        Act(principal=owner, verb="retire", kind="note", reference=str(n))
        for n in range(2 * PAGE_ROWS + 1)
    )


def found(owner: Principal) -> None:
    run = StageRun.objects.create(stage="verify", status="done")
    some = [Found("item", str(n), owner.pk) for n in range(2 * PAGE_ROWS + 1)]
    findings.write(run, "items", some, now=at())


def tasks(owner: Principal) -> None:
    item = turns(owner, ["I will move the queue."])[0]
    TaskItem.objects.bulk_create(
        TaskItem(
            owner=owner, opening="promise", title="move it", raw_item=item, start=n, end=n + 1,
            quote="I", opened_at=at(n),
        )
        for n in range(2 * PAGE_ROWS + 1)
    )  # fmt: skip


def episodes(owner: Principal) -> None:
    made = episode(owner, ["Why is it slow?", "The index was missing."])
    values = {f.attname: getattr(made, f.attname) for f in Episode._meta.fields if f.name != "id"}
    Episode.objects.bulk_create(
        Episode(**{**values, "unit_key": f"episode:{n}", "started_at": at(n)})
        for n in range(2 * PAGE_ROWS + 1)
    )


LISTS: dict[str, Make] = {
    "/ui/notes/": notes,
    "/ui/review/?view=list": holds,
    "/ui/rejections/": rejections,
    "/ui/injections/": injections,
    "/ui/feed/draws/": draws,
    "/ui/audit/": acts,
    "/ui/findings/": found,
    "/ui/tasks/": tasks,
    "/ui/episodes/": episodes,
}


@pytest.mark.parametrize("address", LISTS)
def test_it_asks_as_often_further_down_a_list_as_at_its_top(address: str) -> None:
    alice = three()[0]
    LISTS[address](alice)
    browser = staff("reviewer", "operator", who=alice)
    bare, _, query = address.partition("?")
    top = browser.get(address).context["listed"]
    second = browser.get(bare + top.older).context["listed"]
    assert top.older and second.older and second.newer
    first = asked(browser, address).statements
    below, above = (asked(browser, bare + way).statements for way in (top.older, second.newer))
    assert len(first) == len(below) == len(above)
    # Whatever is skipped is read all the same: no page begins by that.
    assert not [sql for sql in (*below, *above) if " OFFSET " in sql and " OFFSET 0" not in sql]
    assert all(sql.count("COUNT(") == 0 or " LIMIT " in sql for sql in first), first


def test_the_frame_of_a_page_asks_three_times() -> None:
    browser = staff("reviewer", who=three()[0])
    assert len(asked(browser, FRAME)) == FRAME_ASKS


def test_the_page_of_a_project_asks_as_often_for_many_attributions_as_for_one() -> None:
    alice = three()[0]
    made = episode(alice, ["Why is it slow?", "The index was missing."], cwd="/src/shop")
    browser = staff("reader", who=alice)
    address = f"/ui/projects/{made.project_id}/"
    one = asked(browser, address)
    Attribution.objects.bulk_create(
        Attribution(episode=made, project=made.project, method="git", confidence=0.9)
        for _ in range(2 * PAGE_ROWS)
    )
    assert len(asked(browser, address)) == len(one)


def test_what_is_told_beside_a_refusal_is_looked_up_for_those_of_the_page_alone() -> None:
    """Where it came from is told, and no reason to read it of all that wait: a planner that joins
    it before the cut reads every episode for each of them."""
    alice = three()[0]
    rejections(alice)
    told = asked(staff("reviewer", who=alice), "/ui/rejections/").statements
    counted, listed = (
        [sql for sql in told if 'FROM "memory_gaterejection"' in sql and ("COUNT(" in sql) is whole]
        for whole in (True, False)
    )
    assert len(counted) == len(listed) == 1
    assert "memory_episode" not in counted[0] and "JOIN" not in counted[0]
    assert 'JOIN "memory_episode"' not in listed[0] and 'JOIN "memory_rawitem"' not in listed[0]
