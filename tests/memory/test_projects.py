"""The registry as people keep it: names, folders, and two projects that are read as one."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from memory import projects
from memory.attribution import Registry, attribute, family, followed, project_rows
from memory.errors import ArgusError, Conflict, NotFound, RefusedError
from memory.models import Act, Attribution, Centroid, Note, Principal, Project
from memory.neighbours import comparable
from memory.stages.dedup import dedup
from memory.verdicts import effect
from tests.factories import at, clock, episode, note, project, three, turns

OLD = "The staging server listens on port 8443."


def act(by: Principal, days: float = 0) -> dict[str, Any]:
    return {"by": by, "now": at(days=days)}


@pytest.fixture
def alice(db: None) -> Principal:
    return three()[0]


def test_it_follows_a_chain_to_its_end_and_a_ring_to_an_end_as_well() -> None:
    assert followed({1: 2, 2: 3, 4: 3}) == {1: 3, 2: 3, 4: 3}
    assert set(followed({1: 2, 2: 1})) == {1, 2}


def test_it_reads_one_project_as_the_other_by_every_name_and_folder(alice: Principal) -> None:
    shop, old = project("shop"), project("shop-old")
    projects.add_alias(old.pk, "store", **act(alice))
    projects.add_path(old.pk, "/src/store", **act(alice))
    projects.merge(old.pk, shop.pk, reason="moved", **act(alice))
    registry = Registry.load()
    for told in ({"project": "shop-old"}, {"project": "store"}, {"cwd": "/src/store/cart"}):
        assert (
            attribute(registry, project=told.get("project", ""), cwd=told.get("cwd", "")).name
            == "shop"
        ), told
    assert attribute(registry, cwd="/home/a/src/shop-old").name == "shop"
    assert registry.canonical(old.pk) == shop.pk and registry.canonical(None) is None
    assert family(old.pk) == family(shop.pk) == [shop.pk, old.pk] and family(None) == []
    row = Act.objects.get(verb="merge")
    assert (row.kind, row.reference, row.reason) == ("project", str(old.pk), "moved")
    assert row.detail == {"into": shop.pk}

    projects.unmerge(old.pk, **act(alice))
    assert attribute(Registry.load(), cwd="/src/store/cart").name == "shop-old"
    assert family(shop.pk) == [shop.pk]
    assert project_rows([attribute(Registry.load(), project="store")]) == {"shop-old": old.pk}


def test_it_follows_a_target_that_is_merged_on(alice: Principal) -> None:
    a, b, c = project("a"), project("b"), project("c")
    projects.merge(a.pk, b.pk, **act(alice))
    projects.merge(b.pk, c.pk, **act(alice))
    assert attribute(Registry.load(), project="a").name == "c"
    assert family(a.pk) == family(b.pk) == family(c.pk) == [a.pk, b.pk, c.pk]
    projects.unmerge(b.pk, **act(alice))
    assert attribute(Registry.load(), project="a").name == "b"
    assert family(c.pk) == [c.pk] and family(a.pk) == [a.pk, b.pk]


def test_it_merges_neither_what_is_merged_nor_global_nor_one_with_itself(alice: Principal) -> None:
    a, b, c = project("a"), project("b"), project("c")
    everywhere = project("global")
    for pair in ((a, a), (a, everywhere), (everywhere, a)):
        with pytest.raises(RefusedError):
            projects.merge(pair[0].pk, pair[1].pk, **act(alice))
    projects.merge(a.pk, b.pk, **act(alice))
    for pair in ((a, c), (c, a), (b, a)):
        with pytest.raises(Conflict, match="already"):
            projects.merge(pair[0].pk, pair[1].pk, **act(alice))
    with pytest.raises(Conflict):
        projects.unmerge(b.pk, **act(alice))
    with pytest.raises(NotFound):
        projects.merge(a.pk, 10**9, **act(alice))
    assert Act.objects.count() == 1, "what was refused is no act"


def test_it_makes_no_ring_when_two_merge_at_once(clone_db: str) -> None:
    alice = three()[0]
    a, b = project("a"), project("b")

    def go(pair: tuple[int, int]) -> str:
        try:
            projects.merge(*pair, **act(alice))
        except Conflict as refused:
            return str(refused)
        finally:
            connection.close()
        return ""

    with ThreadPoolExecutor(2) as pool:
        said = list(pool.map(go, [(a.pk, b.pk), (b.pk, a.pk)]))
    assert sorted(map(bool, said)) == [False, True], said
    assert Project.objects.filter(merged_into__isnull=False).count() == 1


@pytest.mark.parametrize("name", ["", "  ", "global", "x" * 201])
def test_it_refuses_a_name_that_is_none(alice: Principal, name: str) -> None:
    with pytest.raises(RefusedError):
        projects.add_alias(project("shop").pk, name, **act(alice))


@pytest.mark.parametrize("folder", ["", "/", "web/cart", "/" + "x" * 5_000])
def test_it_refuses_a_folder_that_is_none(alice: Principal, folder: str) -> None:
    with pytest.raises(RefusedError):
        projects.add_path(project("shop").pk, folder, **act(alice))


def test_it_takes_no_name_and_no_folder_from_another_project(alice: Principal) -> None:
    shop, other = project("shop"), project("other")
    projects.add_alias(shop.pk, "store", **act(alice))
    projects.add_path(shop.pk, "C:\\code\\store", **act(alice))
    for again in (
        lambda: projects.add_alias(other.pk, "store", **act(alice)),
        lambda: projects.add_alias(shop.pk, "other", **act(alice)),
        lambda: projects.add_path(other.pk, "C:/code/store/", **act(alice)),
    ):
        with pytest.raises(Conflict):
            again()
    alias, rule = shop.aliases.get(), shop.paths.get()
    with pytest.raises(NotFound):
        projects.remove_alias(other.pk, alias.pk, **act(alice))
    with pytest.raises(NotFound):
        projects.remove_path(other.pk, rule.pk, **act(alice))
    projects.remove_alias(shop.pk, alias.pk, **act(alice))
    projects.remove_path(shop.pk, rule.pk, **act(alice))
    assert not shop.aliases.exists() and not shop.paths.exists()
    verbs = list(Act.objects.order_by("pk").values_list("verb", flat=True))
    assert verbs == ["alias", "path", "unalias", "unpath"]


def test_the_command_merges_by_names_and_takes_it_back(
    alice: Principal, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("shop", "shop-old"):
        project(name)
    out = StringIO()
    call_command("project", "merge", "shop-old", "shop", "--reason", "one shop", stdout=out)
    assert "merged into shop" in out.getvalue()
    assert Act.objects.get(verb="merge").door == "command"
    with pytest.raises(CommandError) as told:
        call_command("project", "merge", "shop-old", "shop")
    assert told.value.returncode == 1
    with pytest.raises(CommandError):
        call_command("project", "merge", "nothing", "shop")
    out = StringIO()
    call_command("project", "unmerge", "shop-old", "--json", stdout=out)
    rows = json.loads(out.getvalue())["projects"]
    assert [row["merged_into"] for row in rows] == [None, None]


def test_an_alias_that_is_refused_leaves_no_project_behind(alice: Principal) -> None:
    project("shop")
    with pytest.raises(CommandError):
        call_command("project", "alias", "new one", "shop")
    assert not Project.objects.filter(name="new one").exists()


def test_two_notes_of_merged_projects_are_settled_without_a_person(alice: Principal) -> None:
    shop, old = project("shop"), project("shop-old")
    first = note(alice, OLD, project=old)
    second = note(alice, OLD, project=shop, when=at(days=1))
    assert effect("duplicate", second, first).held
    assert first not in comparable(second, now=at(days=2))
    projects.merge(old.pk, shop.pk, **act(alice))
    assert first in comparable(second, now=at(days=2))
    assert not effect("duplicate", second, first, family=family(shop.pk)).held
    report = dedup(clock=clock(at(days=2)))
    assert (report.duplicate, report.held) == (1, 0)
    gone: Note = Note.objects.as_pipeline().get(pk=second.pk)
    assert gone.retired_reason == "duplicate" and gone.project_id == shop.pk


def test_an_episode_of_a_merged_project_is_the_other_ones_and_teaches_that(
    alice: Principal,
) -> None:
    shop, old = project("shop"), project("shop-old")
    before = episode(alice, ["Why is it slow?", "The index was missing."], cwd="/src/shop-old")
    assert before.project_id == old.pk
    projects.merge(old.pk, shop.pk, **act(alice))
    said = ["And the cart?", "It keeps no session."]
    after = episode(alice, said, cwd="/src/shop-old", session="s2", start=at(days=1))
    assert after.project_id == shop.pk
    row = Attribution.objects.get(episode=after)
    assert (row.project_id, row.method, row.cwd_mismatch) == (shop.pk, "basename", False)
    before.refresh_from_db()
    assert before.project_id == old.pk, "no row moves"


def test_turns_captured_before_the_merge_are_cut_into_an_episode_of_the_one_that_stays(
    alice: Principal,
) -> None:
    shop, old = project("shop"), project("shop-old")
    turns(alice, ["Why is it slow?", "The index was missing."], cwd="/src/shop-old")
    projects.merge(old.pk, shop.pk, **act(alice))
    more = ["And the cart?", "It keeps no session."]
    cut = episode(alice, more, cwd="/src/shop", start=at(5))
    assert cut.turn_count == 4
    assert (cut.project_id, cut.project_confidence) == (shop.pk, 0.6)
    assert Attribution.objects.get(episode=cut).turns == {"shop": 4}
    assert not Centroid.objects.filter(project=old).exists()


def test_every_way_of_a_verb_to_fail_is_one_of_ours(alice: Principal) -> None:
    for verb in (projects.unmerge, projects.remove_alias):
        with pytest.raises(ArgusError):
            verb(10**9, *([1] if verb is projects.remove_alias else []), **act(alice))
