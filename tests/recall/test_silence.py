"""Silence and its price: off-topic prompts that inject something, on-topic ones that miss.

Both are measured on two memories; `tests.recall.prompts` says how the prompts were made. Half of
them was never used to choose a floor, and is judged by itself, too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from django.utils import timezone
from pytest_django import DjangoDbBlocker

from memory.access import principal
from memory.files import capture_files
from memory.pipeline import process
from recall.notes import recall_notes
from tests.cluster import copied
from tests.corpus import database, needs_corpus
from tests.recall.prompts import PROMPTS, Prompt, corpus, demo

DEMO = Path(__file__).resolve().parents[1] / "fixtures" / "demo"

#: Shares that may be injected for off-topic prompts, and must be right for on-topic ones.
FALSE_MAX = 0.02
RIGHT_MIN = 0.90

#: The same on the half that no floor was chosen on.
# Why: of a hundred prompts two more are well within chance of two, as four fewer are of ninety.
HELD_FALSE_MAX = 0.04
HELD_RIGHT_MIN = 0.86


@dataclass(frozen=True)
class Asked:
    """A prompt, and the text that an agent would see."""

    prompt: Prompt
    text: str


def ask_all(prompts: list[Prompt]) -> list[Asked]:
    me, now = principal(), timezone.now()
    return [
        Asked(one, recall_notes(one.text, principal=me, now=now, cwd=place(one)).text)
        for one in prompts
    ]


def place(prompt: Prompt) -> str:
    return f"/home/dev/src/{prompt.project}" if prompt.project else ""


@pytest.fixture(scope="module")
def of_demo(template_db: str, django_db_blocker: DjangoDbBlocker) -> Iterator[list[Asked]]:
    """What the demo's memory says to all its prompts."""
    with django_db_blocker.unblock(), copied(template_db):
        capture_files([str(DEMO)], owner=principal(), progress=False)
        process()
        yield ask_all([*demo.off_topic(), *demo.on_topic()])


@pytest.fixture(scope="module")
def of_corpus(template_db: str, django_db_blocker: DjangoDbBlocker) -> Iterator[list[Asked]]:
    """What the corpus' memory says to the prompts that no floor was chosen on."""
    with django_db_blocker.unblock(), copied(database()):
        yield ask_all(held_out([*corpus.off_topic(), *corpus.on_topic()]))


def judge(asked: list[Asked], *, false_max: float, right_min: float) -> None:
    off = [one for one in asked if not one.prompt.answerable]
    on = [one for one in asked if one.prompt.answerable]
    false = [one for one in off if one.text]
    wrong = [one for one in on if not one.prompt.answered_by(one.text)]
    kinds = Counter(one.prompt.kind for one in false)
    assert len(false) <= false_max * len(off), (kinds, [one.prompt.text for one in false])
    assert len(wrong) <= (1 - right_min) * len(on), [one.prompt.text for one in wrong]


def held_out(prompts: list[Prompt]) -> list[Prompt]:
    return [one for one in prompts if one.held_out]


def test_it_is_silent_off_topic_and_right_on_topic_on_the_demo(of_demo: list[Asked]) -> None:
    judge(of_demo, false_max=FALSE_MAX, right_min=RIGHT_MIN)


def test_it_carries_over_to_prompts_that_no_floor_saw(of_demo: list[Asked]) -> None:
    unseen = [one for one in of_demo if one.prompt.held_out]
    judge(unseen, false_max=HELD_FALSE_MAX, right_min=HELD_RIGHT_MIN)


@needs_corpus
def test_it_carries_over_to_prompts_of_the_corpus_that_no_floor_saw(
    of_corpus: list[Asked],
) -> None:
    judge(of_corpus, false_max=HELD_FALSE_MAX, right_min=HELD_RIGHT_MIN)


@pytest.mark.parametrize("memory", [demo, corpus], ids=["demo", "corpus"])
def test_it_asks_two_hundred_prompts_of_each_sort_half_of_them_held_out(memory: object) -> None:
    for prompts in (memory.off_topic(), memory.on_topic()):  # type: ignore[attr-defined]
        assert len({one.text for one in prompts}) == PROMPTS
        assert 0.45 <= sum(one.held_out for one in prompts) / PROMPTS <= 0.55
    assert not any(one.answerable for one in memory.off_topic())  # type: ignore[attr-defined]
    assert all(one.answerable for one in memory.on_topic())  # type: ignore[attr-defined]
