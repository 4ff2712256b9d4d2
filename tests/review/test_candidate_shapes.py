"""Refusals whose candidate another version wrote: shown, and decided like any other."""

from __future__ import annotations

from typing import Any

import pytest

from memory.llm.ports import Candidate
from memory.models import GateRejection, Note, Principal
from review.grounding import candidate_of
from tests.factories import QUOTE, SAID, at, episode, three
from tests.web import staff

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("field", "given", "read"),
    [
        ("memory_kind", "fact", "semantic"),
        ("memory_kind", ["semantic"], "semantic"),
        ("memory_kind", "procedural", "procedural"),
        ("importance", "high", 0.0),
        ("importance", True, 0.0),
        ("importance", 10**400, 1.0),
        ("importance", -3, 0.0),
        ("importance", 0.7, 0.7),
        ("content", ["a"], ""),
        ("title", {"a": 1}, ""),
        ("tags", [1, {}, "port"], ("port",)),
        ("tags", 5, ()),
        ("keywords", "port", ()),
        ("context", None, ""),
    ],
)
def test_it_reads_what_is_no_text_number_or_word_for_none(
    field: str, given: Any, read: Any
) -> None:
    assert getattr(candidate_of({field: given}), field) == read


def test_it_reads_a_candidate_of_today_as_it_is() -> None:
    one = Candidate("A title", QUOTE, QUOTE, 0.7, ("a", "b"), ("c",), "why", "procedural")
    fields = {
        "title": "A title", "content": QUOTE, "source_ref": QUOTE, "importance": 0.7,
        "keywords": ["a", "b"], "tags": ["c"], "context": "why", "memory_kind": "procedural",
    }  # fmt: skip
    assert candidate_of(fields) == one


def refused(alice: Principal, **fields: Any) -> GateRejection:
    one = episode(alice, SAID)
    said = {"title": "Job queue", "content": QUOTE, "source_ref": QUOTE} | fields
    made: GateRejection = GateRejection.objects.as_pipeline().create(
        owner=alice, episode=one, candidate=said, reason="grounding", created_at=at(days=1)
    )
    return made


@pytest.mark.parametrize(
    "fields", [{"memory_kind": "fact"}, {"importance": "high"}, {"tags": [1, {"a": 2}]}]
)
def test_it_shows_and_accepts_a_refusal_of_another_shape(fields: dict[str, Any]) -> None:
    alice, *_ = three()
    row = refused(alice, **fields)
    browser = staff("reviewer", who=alice)
    page = f"/ui/rejections/{row.pk}/"
    assert browser.get(page).status_code == 200
    answer = browser.post(f"{page}accept", {"reason": "it says so"})
    assert answer.status_code == 302, answer.content[:400]
    made = Note.objects.as_pipeline().get()
    assert (made.content, made.memory_kind, made.tags) == (QUOTE, "semantic", [])
