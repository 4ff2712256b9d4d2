"""How: from POST /capture to the page, by Django's test client; staff of each role."""

from __future__ import annotations

import csv
import io
import json

import pytest
from django.test import Client
from django.urls import reverse

from memory.access import create_key
from memory.models import Act, Principal, TaskEvent, TaskItem
from memory.stages.track import track
from tests.factories import at, clock, items, three, turns
from tests.web import asked, htmx, staff

pytestmark = pytest.mark.django_db

ASKED = "Please fix the flaky upload test in uploader.py."
FIXED = "Fixed the flaky upload.\n\n===== 12 passed in 3.21s ====="


@pytest.fixture
def alice() -> Principal:
    return three()[0]


@pytest.fixture
def browser(alice: Principal) -> Client:
    return staff("reviewer", who=alice)


def tracked(owner: Principal, *bodies: str, **fields: object) -> TaskItem:
    item, *_ = turns(owner, bodies, **fields)  # type: ignore[arg-type]
    track(clock=clock(at(days=1)))
    found: TaskItem = TaskItem.objects.as_pipeline().get(raw_item=item)
    return found


def text(browser: Client, address: str) -> str:
    response = browser.get(address)
    assert response.status_code == 200
    return response.content.decode()


def page(task: TaskItem) -> str:
    return reverse("admin:task", args=[task.pk])


def test_it_shows_what_was_posted_to_capture(alice: Principal, browser: Client) -> None:
    key, _ = create_key(owner="alice", scopes=["capture"])
    posted = {
        "source": "task",
        "kind": "event",
        "body": "Renew the certificate of the till\n\nIt ends in May.",
        "project": "till",
        "original_timestamp": "2026-03-02T09:00:00Z",
    }
    response = Client().post(
        "/capture",
        json.dumps(posted),
        content_type="application/json",
        headers={"Authorization": f"Bearer {key}"},
    )
    assert response.status_code in (200, 201), response.content
    track()
    listed = text(browser, reverse("admin:tasks"))
    assert "Renew the certificate of the till" in listed
    assert "posted" in listed
    task = TaskItem.objects.as_pipeline().get()
    one = text(browser, page(task))
    assert "It ends in May." in one
    raw = reverse("admin:item", args=[task.raw_item_id])
    assert f"{raw}?start=0&amp;end={len(posted['body'])}" in one
    assert "Nobody has said anything about it since." in one


def test_it_shows_what_happened_and_what_decides(alice: Principal, browser: Client) -> None:
    task = tracked(alice, ASKED, FIXED)
    one = text(browser, page(task))
    for said in ("verified", "12 passed in 3.21s", "Fixed the flaky upload.", "this decides"):
        assert said in one
    event = TaskEvent.objects.get(happening="test_passed")
    raw = reverse("admin:item", args=[event.raw_item_id])
    assert f"{raw}?start={event.start}&amp;end={event.end}" in one


def test_it_says_what_to_do_when_there_is_nothing(browser: Client) -> None:
    assert "/capture with the source task" in text(browser, reverse("admin:tasks"))


def test_it_filters_by_what_a_person_looks_for(alice: Principal, browser: Client) -> None:
    done = tracked(alice, ASKED, FIXED, project="shop")
    claimed = tracked(alice, "Please rename the invoice column.", "Done.", session="s2",
                      start=at(days=2), project="till")  # fmt: skip
    everything = {done.pk, claimed.pk}
    asked = {
        "": everything,
        "status=verified": {done.pk},
        "status=claimed": {claimed.pk},
        "status=open": set(),
        "status=nonsense": set(),
        "q=invoice": {claimed.pk},
        f"q={done.pk}": {done.pk},
        "opening=request": everything,
        "opening=posted": set(),
        f"project={done.project_id}": {done.pk},
        "project=none": set(),
        "session=s2": {claimed.pk},
        "since=2026-03-03": {claimed.pk},
        "until=2026-03-03": {done.pk},
    }
    for query, wanted in asked.items():
        shown = text(browser, f"{reverse('admin:tasks')}?{query}")
        assert {pk for pk in everything if reverse("admin:task", args=[pk]) in shown} == wanted


def test_it_exports_what_is_filtered(alice: Principal, browser: Client) -> None:
    tracked(alice, ASKED, FIXED, project="shop")
    tracked(alice, "Please rename the invoice column.", "Done.", session="s2", start=at(days=2))
    address = f"{reverse('admin:tasks')}?status=verified&format="
    response = browser.get(f"{address}csv")
    (row,) = csv.DictReader(io.StringIO(response.getvalue().decode()))
    assert (row["title"], row["status"], row["project"]) == (ASKED, "verified", "shop")
    whole = json.loads(browser.get(f"{address}json").getvalue())
    assert [one["quote"] for one in whole] == [ASKED]


def test_it_pages_through_all_tasks_once(alice: Principal, browser: Client) -> None:
    fill(alice, 120)
    seen: list[int] = []
    query = ""
    while True:
        listed = browser.get(f"{reverse('admin:tasks')}{query}").context["listed"]
        seen += [row.pk for row in listed.rows]
        if not listed.older:
            break
        query = listed.older
    assert len(seen) == len(set(seen)) == 120
    assert seen == sorted(seen, reverse=True)


def fill(owner: Principal, count: int) -> None:
    item = turns(owner, ["Nothing to do here."], session="filled")[0]
    first = TaskItem.objects.as_pipeline().filter(raw_item=item).count()
    made = TaskItem.objects.bulk_create(
        TaskItem(owner=owner, opening="request", title=f"Fix number {n}", raw_item=item, start=n,
                 end=n + 1, quote="x", sha256="x", opened_at=at(n // 2))
        for n in range(first, first + count)
    )  # fmt: skip
    TaskEvent.objects.bulk_create(
        TaskEvent(item=one, happening=word, principal=owner, occurred_at=at(days=1))
        for one in made
        for word in ("claim_done", "confirmed")
    )


def test_it_asks_no_more_of_the_database_for_more_tasks(alice: Principal, browser: Client) -> None:
    address = reverse("admin:tasks")
    fill(alice, 1)
    one = asked(browser, address)
    fill(alice, 29)
    assert len(asked(browser, address)) == len(one)


def test_it_confirms_in_place_and_in_a_plain_browser(alice: Principal, browser: Client) -> None:
    task = tracked(alice, ASKED, "Done.")
    response = htmx(browser).post(
        reverse("admin:task-decide", args=[task.pk, "confirm"]), {"reason": "saw it"}
    )
    assert response.status_code == 200
    assert "verified" in response.content.decode()
    assert "<h1" not in response.content.decode()
    assert json.loads(response["HX-Trigger"])["said"]["text"] == f"Task {task.pk} is now verified."
    plain = browser.post(reverse("admin:task-decide", args=[task.pk, "deny"]), follow=True)
    assert plain.redirect_chain[-1][0] == page(task)
    assert f"Task {task.pk} is now disputed." in plain.content.decode()
    assert list(Act.objects.values_list("verb", "door").order_by("pk")) == [
        ("confirm", "page"), ("deny", "page"),
    ]  # fmt: skip


def test_it_answers_who_was_faster(alice: Principal, browser: Client) -> None:
    _, bob, _ = three()
    task = tracked(alice, ASKED, "Done.", visibility="team")
    other = staff("reviewer", who=bob)
    newest = browser.get(page(task)).context["told"].newest
    address = reverse("admin:task-decide", args=[task.pk, "confirm"])
    assert browser.post(address, {"seen": newest}).status_code == 302
    late = htmx(other).post(reverse("admin:task-decide", args=[task.pk, "deny"]), {"seen": newest})
    assert late.status_code == 409
    assert "confirmed by alice at" in late.content.decode()


def test_it_shows_a_reader_no_button_and_a_stranger_nothing(alice: Principal) -> None:
    _, _, charlie = three()
    task = tracked(alice, ASKED, "Done.")
    address = reverse("admin:task-decide", args=[task.pk, "confirm"])
    reader, stranger = staff("reader", who=alice), staff("reviewer", who=charlie)
    assert "It is done" not in text(reader, page(task))
    assert reader.post(address).status_code == 404
    assert stranger.get(page(task)).status_code == 404
    assert stranger.post(address).status_code == 404
    assert ASKED not in text(stranger, reverse("admin:tasks"))
    assert staff("reader", who=alice).get(address).status_code in (404, 405)
    assert TaskEvent.objects.filter(principal__isnull=False).count() == 0


def test_it_knows_no_other_verb(alice: Principal, browser: Client) -> None:
    task = tracked(alice, ASKED, "Done.")
    assert browser.post(f"{page(task)}purge").status_code == 404


def test_it_escapes_what_was_said(alice: Principal, browser: Client) -> None:
    said = "Please fix <script>alert(1)</script> in \u202eevil.py\u202c"
    task = tracked(alice, said, "Done.")
    for address in (page(task), reverse("admin:tasks")):
        shown = text(browser, address)
        assert "<script>alert(1)" not in shown
        assert "\u202e" not in shown


def test_it_takes_posted_tasks_of_both_kinds(alice: Principal) -> None:
    from memory.intake import Incoming

    for number, kind in enumerate(("event", "turn")):
        items(alice, Incoming(source="task", kind=kind, body=f"Order labels, lot {number}",  # type: ignore[arg-type]
                              original_timestamp=at(number)))  # fmt: skip
    track()
    openings = TaskItem.objects.as_pipeline().values_list("opening", flat=True)
    assert list(openings) == ["posted", "posted"]
