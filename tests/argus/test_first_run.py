"""The first steps: from nothing to the first note, by what is there."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from html import unescape

import pytest
from django.core.cache import cache
from django.utils import timezone

from argus.first import is_empty, steps
from argus.hookdoors import install_line
from memory.access import authenticate, create_key
from memory.stages.distill import distill
from memory.stages.segment import segment
from tests import factories as make
from tests.web import htmx, staff

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def forget() -> Iterator[None]:
    cache.clear()
    yield
    cache.clear()


def test_it_leads_from_nothing_to_the_first_note_by_rows_alone() -> None:
    alice, _, _ = make.three()
    browser = staff("operator", who=alice)

    def shown() -> str:
        return browser.get("/ui/first").content.decode()

    assert steps(alice).current == 1
    assert "Make a key</a>" in shown()
    key, _ = create_key(owner="alice", scopes=["capture", "recall"])
    assert steps(alice).current == 2 and "Waiting to hear from a hook" in shown()
    authenticate(key, now=timezone.now())
    assert steps(alice).current == 3 and "Heard from" in shown()
    start = timezone.now() - timedelta(hours=2)
    items = make.turns(alice, make.SAID, start=start)
    assert steps(alice).current == 4
    assert f"/ui/items/{items[-1].pk}/" in shown() and "Process now" in shown()
    segment()
    distill()
    assert steps(alice).done and "All set" in shown() and "hx-trigger" not in shown()


def test_an_empty_argus_shows_the_steps_and_a_filled_one_the_board() -> None:
    alice, _, _ = make.three()
    browser = staff("reader", who=alice)
    empty = browser.get("/ui/").content.decode()
    assert "Welcome to Argus" in empty and "stage-capture" not in empty
    assert "stage-capture" in browser.get("/ui/?board=1").content.decode()
    make.turns(alice, ["A thing."])
    filled = browser.get("/ui/").content.decode()
    assert "stage-capture" in filled and "First steps" in filled, "no note yet"


def test_somebody_who_captures_nothing_but_sees_a_teams_notes_gets_the_board() -> None:
    alice, bob, charlie = make.three()
    make.note(alice, "The team deploys on Fridays.", visibility="team")
    assert not is_empty(bob)
    assert is_empty(charlie)


def test_the_steps_of_one_are_not_ticked_by_anothers_rows() -> None:
    alice, bob, _ = make.three()
    create_key(owner="bob", scopes=["capture"])
    make.turns(bob, make.SAID)
    assert steps(alice).current == 1 and steps(alice).captured is None


def test_a_key_that_cannot_capture_or_was_revoked_is_no_first_step() -> None:
    alice, _, _ = make.three()
    _, row = create_key(owner="alice", scopes=["recall"])
    assert steps(alice).key is None
    _, row = create_key(owner="alice", scopes=["capture"])
    assert steps(alice).key == row
    row.revoked_at = timezone.now()
    row.save()
    assert steps(alice).key is None


def test_the_steps_stay_where_they_are_until_something_changes() -> None:
    alice, _, _ = make.three()
    browser = htmx(staff("operator", who=alice))
    assert browser.get("/ui/first?seen=1").status_code == 204
    create_key(owner="alice", scopes=["capture"])
    answer = browser.get("/ui/first?seen=1")
    assert answer.status_code == 200 and "first?seen=2" in answer.content.decode()


def test_the_line_that_installs_is_there_whole_and_escaped() -> None:
    alice, _, _ = make.three()
    for browser in (staff("reader", who=alice), htmx(staff("reader", who=alice))):
        shown = browser.get("/ui/install-line").content.decode()
        assert install_line() in unescape(shown) and install_line() not in shown


def test_a_reader_is_told_whom_to_ask_for_a_key() -> None:
    alice, _, _ = make.three()
    shown = staff("reader", who=alice).get("/ui/").content.decode()
    assert "createkey --owner alice" in shown and "/ui/keys/?scope" not in shown
