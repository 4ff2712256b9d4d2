"""How: short stories through the real capture verb and the stage; none of them shows anything."""

from __future__ import annotations

import pytest

from memory.models import Principal, TaskEvent, TaskItem
from memory.stages.track import track
from memory.tracking.status import status
from tests.factories import at, clock, three, turns

pytestmark = pytest.mark.django_db

ASKED = "Please add retries to the uploader client."
WILL = "I'll add retries to the uploader client."
DONE = "Done, I added retries to the uploader client."


@pytest.fixture
def alice() -> Principal:
    return three()[0]


def stands(owner: Principal, said: list[str]) -> list[str]:
    """The status of each task that a session of these turns comes to; a user begins."""
    turns(owner, said)
    track(clock=clock(at(hours=5)))
    found: list[str] = []
    for task in TaskItem.objects.as_pipeline().order_by("opened_at", "pk"):
        events = TaskEvent.objects.filter(item=task).order_by("occurred_at", "pk")
        found.append(status(task.opening, events.values_list("happening", flat=True)))
    return found


@pytest.mark.parametrize(
    "said",
    [
        [ASKED, WILL, "ok", "Expected output once done: 5 passed in 0.2s"],
        [ASKED, WILL, "ok", "It should print:\n\n```\n===== 5 passed in 0.2s =====\n```"],
        [ASKED, "The crash began when Bob merged the uploader client in commit 1a2b3c4."],
        [ASKED, "I have committed nothing of the uploader client as deadbee1."],
        [ASKED, DONE, "It works not at all."],
        [ASKED, DONE, "That fixed nothing."],
        [ASKED, DONE, "I doubt it works now."],
        [ASKED, DONE, "confirmed the bug"],
        [ASKED, DONE, "5 passed in 0.3s is what it should print"],
        [ASKED, "Fixed nothing in the uploader client.", "LGTM, not."],
    ],
)
def test_nothing_is_verified_without_anything_shown(alice: Principal, said: list[str]) -> None:
    found = stands(alice, said)
    assert len(found) == 1
    assert "verified" not in found


@pytest.mark.parametrize(
    "said",
    [
        [ASKED, DONE, "That fixed it, thanks."],
        [ASKED, f"{DONE}\n\n```\n===== 5 passed in 0.2s =====\n```"],
        [ASKED, DONE, "LGTM"],
        [ASKED, "Added retries to the uploader client in 1a2b3c4."],
    ],
)
def test_what_is_shown_still_verifies(alice: Principal, said: list[str]) -> None:
    assert stands(alice, said) == ["verified"]


def test_requests_that_differ_by_a_number_are_tasks_of_their_own(alice: Principal) -> None:
    said = [f"please fix issue {n} of the importer" for n in range(10, 40)]
    answered = [part for one in said for part in (one, "On it.")]
    answered += ["ok", "Fixed issue 12 of the importer."]
    found = stands(alice, answered)
    assert len(found) == 30
    assert [n for n, one in enumerate(found) if one == "claimed"] == [2]
