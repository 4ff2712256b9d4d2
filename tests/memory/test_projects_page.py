"""The registry's pages: who is who, how work came to a project, and two that are one."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from memory import projects
from memory.models import Act, Attribution, Episode, Principal, Project, ProjectAlias
from tests.factories import at, episode, note, project, three
from tests.web import asked, htmx, staff

LIST = "/ui/projects/"


@pytest.fixture
def alice(db: None) -> Principal:
    return three()[0]


def exported(web: Client, where: str, asked: dict[str, str]) -> bytes:
    answer: Any = web.get(where, asked)
    return b"".join(answer.streaming_content)


def text(response: Any) -> str:
    body: str = response.content.decode()
    return body


def of(one: Project) -> str:
    return reverse("admin:project", args=[one.pk])


def change(web: Client, one: Project, verb: str, **given: Any) -> Any:
    return web.post(reverse("admin:project-change", args=[one.pk, verb]), given, follow=True)


def worked(owner: Principal, folder: str, session: str, days: float = 0) -> Episode:
    said = ["Why is it slow?", "The index was missing."]
    return episode(owner, said, cwd=folder, session=session, start=at(days=days))


def test_it_says_what_to_do_when_nothing_is_known(alice: Principal) -> None:
    page = text(staff("reader", who=alice).get(LIST))
    assert "No project is known yet." in page and "manage.py project" in page


def test_it_lists_projects_with_names_counts_and_what_was_worked_on(alice: Principal) -> None:
    web = staff("reader", who=alice)
    worked(alice, "/src/shop", "s1")
    shop, quay = Project.objects.get(name="shop"), project("quay")
    for n in range(2):
        note(alice, f"Shop fact {n}.", project=shop)
    projects.add_alias(shop.pk, "store", by=alice, now=at())
    projects.add_path(shop.pk, "/src/store", by=alice, now=at())
    page = text(web.get(LIST))
    for word in ("shop", "store", "/src/store", "quay", "2 in all", "basename", "latest 1,000"):
        assert word in page, word
    assert "of 1 episode" in page, "the centroid that was learned"
    assert "1 in all" in text(web.get(LIST, {"q": "STORE"})), "by its other name"
    assert "1 in all" in text(web.get(LIST, {"origin": "basename"}))
    assert "Nothing is like that." in text(web.get(LIST, {"state": "merged"}))
    rows = json.loads(exported(web, LIST, {"format": "json"}))
    assert [row["name"] for row in rows] == ["quay", "shop"] and rows[1]["aliases"] == ["store"]
    assert quay.name in text(web.get(of(quay)))


def test_it_counts_what_the_viewer_sees_alone(alice: Principal) -> None:
    worked(alice, "/src/shop", "s1")
    shop = Project.objects.get(name="shop")
    note(alice, "Alice alone knows.", project=shop)
    charlie = staff("reader", who=three()[2])
    page = text(charlie.get(of(shop)))
    assert "0 live" in page and "No episode of yours" in page and "No centroid" in page
    assert "not lately" in text(charlie.get(LIST))
    own = text(staff("reader", who=alice).get(of(shop)))
    assert "1 live" in own and "/src/shop" in own


def test_it_shows_how_episodes_came_to_a_project(alice: Principal) -> None:
    web = staff("reader", who=alice)
    first = worked(alice, "/src/shop", "s1")
    second = worked(alice, "/src/shop", "s2", days=1)
    shop = Project.objects.get(name="shop")
    Attribution.objects.create(
        episode=second, project=shop, method="centroid", confidence=0.8, cwd_mismatch=True,
        score=0.81, threshold=0.7, runner_up="quay", runner_up_score=0.61, centroid_episodes=9,
        centroid_age_seconds=7_300.0,
    )  # fmt: skip
    page = text(web.get(of(shop)))
    for word in (f"episode {first.pk}", "0.81 against 0.7", "quay", "centroid of 9, 2 h old"):
        assert word in page, word
    assert "1 in all" in text(web.get(of(shop), {"mismatch": "yes"}))
    assert "2 in all" in text(web.get(of(shop), {"method": "basename"}))
    assert "Nothing is like that." in text(web.get(of(shop), {"until": "2001-01-01"}))
    rows = json.loads(exported(web, of(shop), {"format": "json"}))
    assert [row["method"] for row in rows] == ["centroid", "basename", "basename"]
    assert rows[0]["project"] == "shop" and rows[0]["runner_up_score"] == 0.61
    assert web.get(reverse("admin:project", args=[10**9])).status_code == 404


def test_an_operator_keeps_names_and_folders(alice: Principal) -> None:
    shop = project()
    web = staff("operator", who=alice)
    page = text(change(web, shop, "alias-add", name="store"))
    assert "store" in page and "from the next capture on" in page
    page = text(change(web, shop, "path-add", folder="C:\\code\\store\\"))
    assert "C:/code/store" in page
    assert change(web, project("quay"), "alias-add", name="store").status_code == 409
    assert change(web, shop, "path-add", folder="store").status_code == 422
    assert change(web, shop, "alias-remove", id="x").status_code == 404
    answer = htmx(web).post(
        reverse("admin:project-change", args=[shop.pk, "alias-remove"]),
        {"id": shop.aliases.get().pk},
    )
    assert "<html" not in text(answer) and "No other name." in text(answer)
    change(web, shop, "path-remove", id=shop.paths.get().pk)
    assert not shop.paths.exists()
    assert set(Act.objects.values_list("door", flat=True)) == {"page"}
    assert "Who changed it" in text(web.get(of(shop)))


def test_a_reviewer_merges_and_takes_it_back(alice: Principal) -> None:
    worked(alice, "/src/shop-old", "s1")
    old, shop = Project.objects.get(name="shop-old"), project("shop")
    note(alice, "The old shop had a cart.", project=old)
    note(alice, "The shop has a till.", project=shop)
    projects.add_alias(shop.pk, "store", by=alice, now=at())
    web = staff("reviewer", who=alice)
    assert change(web, old, "merge", into="nowhere").status_code == 404
    page = text(change(web, old, "merge", into="store", reason="It moved."))
    assert "Merged into" in page and "Take the merge back" in page
    assert "It moved." in text(web.get(of(old), {"part": "acts"}))
    offered = text(htmx(web).get(of(shop), {"part": "offered"}))
    assert "<html" not in offered and '<datalist id="others">' in offered
    kept = text(web.get(of(shop)))
    assert "2 live" in kept and "shop-old" in kept, "with what was merged into it"
    assert "merged into shop" in text(web.get(LIST))
    assert "1 in all" in text(web.get(LIST, {"state": "merged"}))
    assert change(web, old, "merge", into="shop").status_code == 409
    page = text(change(web, old, "unmerge"))
    assert "Take the merge back" not in page
    assert "1 live" in text(web.get(of(shop)))


def test_it_tells_nobody_the_reasons_of_others(alice: Principal) -> None:
    quay, harbor = project("quay"), project("harbor")
    web, bob = staff("reviewer", who=alice), staff("reader", who=three()[1])
    change(web, quay, "merge", into="harbor", reason="Mr Smith left us.")
    assert "one for everybody on this machine" in text(web.get(of(harbor)))
    acts = f"{of(quay)}?part=acts"
    assert "alice, merge" not in text(web.get(of(quay))), "fetched when it is opened"
    assert "Mr Smith" in text(web.get(acts)) and "Mr Smith" in text(htmx(web).get(acts))
    page = text(bob.get(acts))
    assert "alice, merge" in page and "Mr Smith" not in page
    everybody = staff(superuser=True, who=three()[2])
    assert "Mr Smith" not in text(everybody.get(acts))
    everybody.post("/ui/owners", {"all": "on"})
    assert "Mr Smith" in text(everybody.get(acts))


def test_who_may_only_look_sees_no_button_and_changes_nothing(alice: Principal) -> None:
    shop, quay = project(), project("quay")
    alias = ProjectAlias.objects.create(name="store", project=shop)
    reader, operator = staff("reader", who=alice), staff("operator", who=three()[1])
    page = text(reader.get(of(shop)))
    for word in ("Add the name", "Add the folder", "Merge", "Remove"):
        assert word not in page, word
    for verb, given in (
        ("alias-add", {"name": "x"}), ("alias-remove", {"id": alias.pk}),
        ("path-add", {"folder": "/x"}), ("path-remove", {"id": 1}), ("merge", {"into": "quay"}),
        ("unmerge", {}), ("burn", {}),
    ):  # fmt: skip
        assert change(reader, shop, verb, **given).status_code == 404, verb
    assert change(operator, shop, "merge", into="quay").status_code == 404
    nobody = staff(who=three()[2])
    for where in (LIST, of(quay)):
        assert nobody.get(where).status_code == 404
    assert not Act.objects.exclude(kind="owners").exists()


def test_it_asks_as_often_for_thirty_projects_as_for_one(alice: Principal) -> None:
    web = staff("operator", who=alice)

    worked(alice, "/src/shop", "s1")
    shop = Project.objects.get(name="shop")
    ProjectAlias.objects.create(name="store", project=shop)
    note(alice, "The shop has a till.", project=shop)
    one, own = len(asked(web, LIST)), len(asked(web, of(shop)))
    for n in range(29):
        more = project(f"more {n}")
        ProjectAlias.objects.create(name=f"other {n}", project=more)
        Attribution.objects.create(
            episode=Episode.objects.as_pipeline().get(), project=shop, method="git", confidence=0.9
        )
    assert len(asked(web, LIST)) == one
    assert len(asked(web, of(shop))) == own
