"""What the registry does not take: secrets, NUL and the like, and a name that is given away."""

from __future__ import annotations

from typing import Any

import pytest

from memory import projects
from memory.attribution import Registry, attribute
from memory.errors import Conflict, NotFound, RefusedError
from memory.models import Act, PathRule, Principal, Project, ProjectAlias
from tests.factories import at, project, three
from tests.web import staff

KEY = "ghp_abcdefghijklmnopqrstuvwxyz0123456789"


def act(by: Principal) -> dict[str, Any]:
    return {"by": by, "now": at()}


@pytest.fixture
def alice(db: None) -> Principal:
    return three()[0]


def test_it_keeps_no_secret_as_a_name_or_in_a_folder(alice: Principal) -> None:
    shop = project("shop")
    web = staff("operator", who=alice)
    for verb, given in (
        ("alias-add", {"name": KEY}), ("path-add", {"folder": f"/home/{KEY}/src"}),
    ):  # fmt: skip
        answer = web.post(f"/ui/projects/{shop.pk}/{verb}", given)
        assert answer.status_code == 422 and KEY not in answer.content.decode()
    with pytest.raises(RefusedError, match="holds a secret"):
        projects.enter(KEY)
    assert not ProjectAlias.objects.exists() and not PathRule.objects.exists()
    assert not Act.objects.filter(kind="project").exists()
    assert not Project.objects.filter(name=KEY).exists()


def test_it_finds_nothing_by_a_name_that_nothing_can_have(alice: Principal) -> None:
    shop = project("shop")
    for name in ("a\0b", "\0", "\ud800"):
        with pytest.raises(NotFound):
            projects.find(name)
    web = staff("reviewer", "operator", who=alice)
    assert web.post(f"/ui/projects/{shop.pk}/merge", {"into": "a\0b"}).status_code == 404
    assert web.post(f"/ui/projects/{shop.pk}/alias-add", {"name": "st\0ore"}).status_code == 302
    assert ProjectAlias.objects.get().name == "store"


def test_it_takes_no_merge_back_while_the_name_is_given_away(alice: Principal) -> None:
    one, three_ = project("one"), project("three")
    projects.merge(one.pk, three_.pk, **act(alice))
    projects.add_alias(three_.pk, "one", **act(alice))
    with pytest.raises(Conflict, match="one is another name of three"):
        projects.unmerge(one.pk, **act(alice))
    assert attribute(Registry.load(), project="one").name == "three"
    projects.remove_alias(three_.pk, ProjectAlias.objects.get().pk, **act(alice))
    projects.unmerge(one.pk, **act(alice))
    assert attribute(Registry.load(), project="one").name == "one"
