"""Ledger rows that another version wrote: pages tell what they can and leave out the rest."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

import pytest
from django.test import Client
from django.urls import reverse

from memory.errors import NotFound, RefusedError
from memory.llm.minilm import NAME
from memory.models import Feedback, Injection
from recall.feedback import give_feedback
from recall.notes import recall_notes
from recall.weighed import weighed
from tests.recall.making import NOW, People, note, people
from tests.web import staff

pytestmark = pytest.mark.django_db

ODD_HITS: list[Any] = [
    [{}],
    [{"note": None}],
    [{"note": "x"}],
    [{"note": ["x"]}],
    [{"turn": "abc"}],
    [{"turn": "²"}],
    [5, None, "x", []],
    [{"note": str(UUID(int=1)), "rank": "first", "tracks": [], "turns": 5, "twins": "x"}],
    [{"note": str(UUID(int=1)), "coverage": "high", "score": "low", "refused": 5}],
    {"a": 1},
    5,
]


@pytest.fixture
def crew() -> People:
    return people()


@pytest.fixture
def browser(crew: People) -> Client:
    return staff("reviewer", who=crew.alice)


def kept(crew: People, **fields: Any) -> Injection:
    given = {"mode": "prompt", "outcome": "injected", "query": "Which port?", "model_asked": NAME}
    made: Injection = Injection.objects.as_pipeline().create(owner=crew.alice, **given | fields)
    return made


@pytest.mark.parametrize("hits", ODD_HITS, ids=str)
@pytest.mark.parametrize("mode", ["prompt", "context"])
def test_it_shows_a_recall_whose_hits_have_another_shape(
    crew: People, browser: Client, hits: Any, mode: str
) -> None:
    row = kept(crew, hits=hits, mode=mode)
    for address in (
        reverse("admin:injection", args=[row.pk]),
        reverse("admin:injections"),
        reverse("admin:injections") + "?format=json",
        reverse("admin:floors"),
    ):
        answer: Any = browser.get(address)
        assert answer.status_code == 200, address
        if answer.streaming:
            assert b"Which port?" in b"".join(answer.streaming_content)


@pytest.mark.parametrize("field", ["options", "floors", "timings"])
@pytest.mark.parametrize("value", [[], 5, "x"])
def test_it_shows_a_recall_whose_numbers_have_another_shape(
    crew: People, browser: Client, field: str, value: Any
) -> None:
    row = kept(crew, hits=[], **{field: value})
    for address in (
        reverse("admin:injection", args=[row.pk]), reverse("admin:injections"),
        reverse("admin:floors"),
    ):  # fmt: skip
        assert browser.get(address).status_code == 200, address


def test_it_still_reads_what_todays_recall_writes(crew: People, browser: Client) -> None:
    made = note(crew.alice, "The staging database listens on port 5433.")
    recall_notes("Which port does the staging database use?", principal=crew.alice, now=NOW)
    kept(crew, hits={"a": 1})
    odd, one = weighed(Injection.objects.visible_to(crew.alice), model=NAME)
    assert not odd.hits and one.whole and [hit.key for hit in one.hits] == [str(made.pk)]
    shown = browser.get(reverse("admin:injection", args=[one.injection])).content.decode()
    assert made.title in shown and "sent" in shown


def test_it_takes_no_word_for_a_note_that_an_odd_row_does_not_name(crew: People) -> None:
    made = note(crew.alice, "The staging database listens on port 5433.")
    for hits in ODD_HITS:
        row = kept(crew, hits=hits)
        with pytest.raises(RefusedError, match="had nothing to do"):
            give_feedback(made.pk, "wrong", principal=crew.alice, now=NOW, injection=row.pk)


def test_it_knows_no_project_of_a_name_that_nothing_can_have(crew: People, browser: Client) -> None:
    made = note(crew.alice, "The staging database listens on port 5433.", project="harbor")
    said: dict[str, Any] = {"principal": crew.alice, "now": NOW}
    for name in ("\0", "a\0b", "\ud800"):
        with pytest.raises(NotFound):
            give_feedback(made.pk, "wrong", project=name, **said)
    assert not Feedback.objects.exists()
    assert give_feedback(made.pk, "wrong", project="har\0bor", **said).project == "harbor"
    row = kept(crew, hits=[{"note": str(made.pk)}])
    asked = {"note": str(made.pk), "verdict": "wrong", "project": "a\0b"}
    address = reverse("admin:injection-feedback", args=[row.pk])
    assert browser.post(address, asked).status_code == 404
    assert browser.post(address, asked | {"note": str(uuid4())}).status_code == 404
