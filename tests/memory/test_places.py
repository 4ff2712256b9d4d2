"""How: two projects that were merged, and every list that can be narrowed by project."""

from __future__ import annotations

import json
from typing import Any

import pytest

from memory import projects
from memory.models import GateRejection, Injection, Note, Principal, Project
from memory.web.page import number
from memory.web.places import PROJECTS_MAX, project_choice
from tests.factories import at, note, project, three, turns, verdict
from tests.web import staff

pytestmark = pytest.mark.django_db

#: Name of a list -> how it says that nothing is there.
LISTS = ("notes", "review-list", "rejections", "injections", "tasks", "episodes")


@pytest.fixture
def alice() -> Principal:
    return three()[0]


@pytest.fixture
def merged(alice: Principal) -> tuple[Project, Project]:
    """The project that went and the one that stayed."""
    old, shop = project("old"), project("shop")
    projects.merge(old.pk, shop.pk, by=alice, now=at())
    return old, shop


def chosen(rows: Any, given: object, *columns: str) -> Any:
    return project_choice(*columns).narrow(rows, str(given))


def test_it_offers_what_stands_and_finds_what_went_under_it(
    alice: Principal, merged: tuple[Project, Project]
) -> None:
    old, shop = merged
    of_old, of_none = note(alice, "One.", project=old), note(alice, "Two.")
    of_shop, _ = note(alice, "Three.", project=shop), note(alice, "Four.", project=project("quay"))
    labels = [label for _, label in project_choice().options()]
    assert labels == ["no project", "quay", "shop"]
    rows = Note.objects.as_pipeline()
    # A link to the one that was merged leads where its rows are read now.
    for pk in (shop.pk, old.pk):
        assert set(chosen(rows, pk)) == {of_old, of_shop}
    assert set(chosen(rows, "none")) == {of_none}
    for odd in ("²", "-1", "9" * 30, "x"):
        assert not chosen(rows, odd), odd
    assert len(labels) <= PROJECTS_MAX


def test_it_reads_the_project_behind_any_of_several_columns(alice: Principal) -> None:
    shop = project()
    item = turns(alice, ["Hi.", "Hi."], project="shop")[0]
    bare = turns(alice, ["Ho.", "Ho."], session="s2", cwd="")[0]
    rows = [
        GateRejection.objects.create(owner=alice, reason="shape", candidate={}, raw_item=one)
        for one in (item, bare, None)
    ]
    both = ("episode__project", "raw_item__project")
    found = GateRejection.objects.as_pipeline()
    assert list(chosen(found, shop.pk, *both)) == [rows[0]]
    assert list(chosen(found, "none", *both)) == [rows[1]]


def test_a_hold_and_a_recall_are_found_under_the_project_that_theirs_was_merged_into(
    alice: Principal, merged: tuple[Project, Project]
) -> None:
    old, shop = merged
    new, before = (note(alice, f"It is port {n}.", project=old) for n in (2, 1))
    held = verdict(new, before, status="pending")
    Injection.objects.create(
        owner=alice, mode="prompt", outcome="no_hits", project=old, query="which port"
    )
    web = staff("reader", who=alice)
    wanted = f"project={shop.pk}&format=json"
    holds = json.loads(web.get(f"/ui/review/?view=list&{wanted}").getvalue())
    assert [row["verdict"] for row in holds] == [held.pk]
    recalls = json.loads(web.get(f"/ui/injections/?{wanted}").getvalue())
    assert [row["query"] for row in recalls] == ["which port"]


@pytest.mark.parametrize(
    ("text", "found"),
    [("0", 0), ("17", 17), ("9" * 18, 10**18 - 1), ("9" * 19, None), ("", None), ("²", None),
     ("\u0663", None), ("-1", None), ("+1", None), (" 1", None), ("1\0", None), ("1_0", None)],
)  # fmt: skip
def test_it_takes_digits_for_a_number_and_nothing_else(text: str, found: int | None) -> None:
    assert number(text) == found
