"""The words of a run's error: to operators and to whoever asked; to others its kind."""

from __future__ import annotations

import pytest
from django.utils import timezone

from memory import passes, redistill
from memory.models import Principal, StageRun
from tests.factories import SAID, at, episode, three
from tests.web import staff

WORDS = "the reply quoted the secret plan"
SAYS = f"ContentError: {WORDS}"


@pytest.fixture
def people(db: None) -> tuple[Principal, Principal, Principal]:
    return three()


def failed(run: StageRun) -> StageRun:
    run.status, run.error, run.finished_at = "failed", SAYS, timezone.now()
    run.save(update_fields=["status", "error", "finished_at"])
    return run


def test_it_tells_words_to_who_asked_and_to_operators(
    people: tuple[Principal, Principal, Principal],
) -> None:
    alice, bob, charlie = people
    run = failed(passes.start("embed", by=alice, now=timezone.now()))
    page = f"/ui/runs/{run.pk}/"
    assert WORDS in staff("reader", who=alice).get(page).content.decode()
    assert WORDS in staff("operator", who=charlie).get(page).content.decode()
    shown = staff("reader", who=bob).get(page).content.decode()
    assert WORDS not in shown and "ContentError" in shown


def test_it_tells_the_same_of_the_stages_of_a_run(
    people: tuple[Principal, Principal, Principal],
) -> None:
    alice, bob, _ = people
    run = passes.start("embed", by=alice, now=timezone.now())
    step = failed(StageRun.objects.create(stage="embed", started_at=at()))
    run.progress = {**run.progress, "stages": {"embed": {"pending": 1, "run": step.pk}}}
    run.save(update_fields=["progress"])
    for reader, error in ((None, SAYS), (alice, SAYS), (bob, "ContentError")):
        (told,) = passes.running(now=timezone.now(), reader=reader)
        assert [one.error for one in told.steps] == [error]
    assert WORDS not in staff("reader", who=bob).get("/ui/").content.decode()
    assert WORDS not in staff("reader", who=bob).get(f"/ui/runs/{step.pk}/").content.decode()


def test_it_tells_a_reviewer_why_its_own_asking_failed(
    people: tuple[Principal, Principal, Principal],
) -> None:
    alice, bob, _ = people
    one = episode(alice, SAID, visibility="team")
    one.distilled_at = at(days=1)
    one.save(update_fields=["distilled_at"])
    failed(redistill.start(one.pk, by=alice, now=timezone.now()))
    page = f"/ui/episodes/{one.pk}/"
    assert WORDS in staff("reviewer", who=alice).get(page).content.decode()
    assert WORDS not in staff("reviewer", who=bob).get(page).content.decode()
    assert "ContentError" in staff("reviewer", who=bob).get(page).content.decode()


@pytest.mark.parametrize(
    ("error", "kind"),
    [(SAYS, "ContentError"), ("it ended: badly", "an error"), ("words", "an error"), ("", "")],
)
def test_it_knows_the_kind_of_an_error(error: str, kind: str) -> None:
    assert passes.kind_of(error) == kind
