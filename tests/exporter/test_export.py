"""The export: what lies in the vault afterwards, whose notes those are, and which rows say so."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from exporter.export import preview
from exporter.models import ExportedFile
from exporter.place import Place, around_vault
from memory import projects
from memory.access import principal
from memory.ledger import came_from_us
from memory.models import Emission, Note, Principal, StageRun
from tests import factories as make
from tests.exporter.exports import (
    LATER,
    jot,
    look_anew,
    note,
    replace,
    rows,
    run,
    times,
    tree,
    where,
)
from tests.exporter.vaults import front

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("vault", "local")]


@pytest.fixture
def alice() -> Principal:
    return principal("alice")


# What lies there.


def test_it_writes_one_file_for_each_note_and_a_page_for_the_project(
    vault: Path, alice: Principal
) -> None:
    plan = note(alice, "Deploy plan", tags=["ops"], importance=0.7)
    note(alice, "Nobody's", project=None)
    report = run()
    assert set(tree(vault)) == {
        "shop/Deploy plan.md", "shop/_index.md", "_unattributed/Nobody's.md",
        "_unattributed/_index.md",
    }  # fmt: skip
    assert (report.written, report.unchanged, report.pending) == (4, 0, 0)
    told = front((vault / "shop/Deploy plan.md").read_bytes())
    assert told is not None
    assert told["argus_id"] == str(plan.pk)
    assert (told["project"], told["level"], told["importance"]) == ("shop", "note", 0.7)
    assert told["sources"] == [f"session {plan.session}"]
    assert told["evidence"] == 1
    assert f"> {plan.content}" in (vault / "shop/Deploy plan.md").read_text()
    assert "[[shop/Deploy plan|Deploy plan]]" in (vault / "shop/_index.md").read_text()


def test_a_second_export_writes_nothing_and_touches_nothing(vault: Path, alice: Principal) -> None:
    for number in range(5):
        note(alice, f"Number {number}")
    first = run()
    before, emitted = times(vault), Emission.objects.filter(kind="vault").count()
    again = run(make.at(days=31))
    assert (again.written, again.unchanged) == (0, first.written)
    assert times(vault) == before
    assert len(rows()) == first.written
    assert Emission.objects.filter(kind="vault").count() == emitted == 5
    assert again.linked == first.linked


def test_it_does_the_same_the_long_way(vault: Path, alice: Principal) -> None:
    one = note(alice, "One")
    run()
    jot(where(vault, one), "My own.\n")
    before = times(vault)
    look_anew(vault)
    report = run()
    assert (report.written, report.unchanged) == (0, 2)
    assert times(vault) == before
    # What was written meanwhile is no business of the log.
    assert [action for action, _ in rows()] == ["written", "written"]


def test_it_makes_the_vault_again_from_nothing(vault: Path, alice: Principal) -> None:
    for title in ("Plan", "plan", "PLAN", "C#", "C", "a/b"):
        note(alice, title)
    run()
    before = tree(vault)
    shutil.rmtree(vault)
    run()
    assert tree(vault) == before


def test_it_finds_everything_missing_that_is(vault: Path, alice: Principal) -> None:
    one, two = note(alice, "One"), note(alice, "Two")
    run()
    before = tree(vault)
    where(vault, one).unlink()
    assert (run().written, tree(vault)) == (1, before)
    assert where(vault, two).exists()


def test_it_fills_another_folder_whole(vault: Path, alice: Principal, tmp_path: Path) -> None:
    note(alice, "One")
    run()
    other = tmp_path / "Other"
    with around_vault(Place(other, "alice")):
        assert run().written == 2
        assert run().unchanged == 2
    assert tree(other) == tree(vault)
    assert run().written == 0


def test_hubs_and_links_lead_to_pages_that_are_there(vault: Path, alice: Principal) -> None:
    said = "The staging database of the harbour listens on port"
    for port in range(4):
        note(alice, f"Port {port}", f"{said} {port} {said}")
    report = run()
    assert (report.clusters, report.largest) == (1, 4)
    assert report.linked == 12
    (hub,) = (vault / "shop/_hubs").iterdir()
    pages = {path.removesuffix(".md") for path in tree(vault)}
    for data in tree(vault).values():
        for link in data.decode().split("[[")[1:]:
            assert link.partition("|")[0] in pages
    assert f"[[shop/_hubs/{hub.stem}|" in (vault / "shop/Port 1.md").read_text()


def test_words_on_a_hub_stay_when_its_oldest_note_goes(vault: Path, alice: Principal) -> None:
    said = "The staging database of the harbour listens on port"
    notes = [note(alice, f"Port {port}", f"{said} {port} {said}", when=make.at(port))
             for port in range(5)]  # fmt: skip
    run()
    (hub,) = (vault / "shop/_hubs").iterdir()
    jot(hub, "Look at this one.\n")
    new = note(alice, "Port 9", f"{said} 9 {said}", when=make.at(50))
    replace(notes[0], new)
    run()
    (hub,) = (vault / "shop/_hubs").iterdir()
    assert hub.read_text().endswith("Look at this one.\n")


# Whose notes.


def test_only_what_the_owner_may_see_and_what_may_lie_there(vault: Path) -> None:
    alice, bob, charlie = make.three()
    note(alice, "Mine")
    note(alice, "Secret", confidentiality="secret")
    note(alice, "Restricted", confidentiality="restricted")
    note(bob, "Bob's own")
    note(bob, "Bob's, for the team", visibility="team")
    note(charlie, "A stranger's, for the team", visibility="team")
    note(charlie, "A stranger's, for all", visibility="common")
    run()
    names = {path.rpartition("/")[2] for path in tree(vault)}
    assert names == {
        "Mine.md", "Bob's, for the team.md", "A stranger's, for all.md", "_index.md",
    }  # fmt: skip
    # The words of a raw item that is Bob's alone are not quoted.
    page = (vault / "shop/Bob's, for the team.md").read_text()
    assert "## Evidence" not in page and "Noted in passing" not in page


def test_what_is_not_true_yet_or_any_more_is_not_there(vault: Path, alice: Principal) -> None:
    note(alice, "Later", when=make.at(days=40), created_at=make.at())
    note(alice, "Ended", valid_to=make.at(days=10))
    stays = note(alice, "Stays", valid_to=make.at(days=35))
    run()
    assert set(tree(vault)) == {"shop/Stays.md", "shop/_index.md"}
    # Time alone changes what the vault holds.
    run(make.at(days=41))
    assert set(tree(vault)) == {"shop/Later.md", "shop/_index.md"}
    assert not (vault / "shop" / f"{stays.title}.md").exists()


def test_merged_projects_share_a_folder(vault: Path, alice: Principal) -> None:
    one, two = make.project("shop"), make.project("store")
    note(alice, "In the shop", project=one)
    moved = note(alice, "In the store", project=two)
    run()
    jot(vault / "store/In the store.md", "Mine.\n")
    jot(vault / "store/_index.md", "Of the store.\n")
    projects.merge(two.pk, one.pk, by=alice, now=LATER)
    report = run()
    assert (report.renamed, report.removed) == (1, 1)
    assert set(tree(vault)) == {"shop/In the shop.md", "shop/In the store.md", "shop/_index.md"}
    assert not (vault / "store").exists()
    assert where(vault, moved).read_text().endswith("Mine.\n")
    assert (vault / "shop/_index.md").read_text().endswith("Of the store.\n")
    projects.unmerge(two.pk, by=alice, now=LATER)
    run()
    assert (vault / "store/In the store.md").read_text().endswith("Mine.\n")


def test_projects_that_differ_by_case_have_two_folders(vault: Path, alice: Principal) -> None:
    note(alice, "One", project=make.project("Database"))
    note(alice, "One", project=make.project("database"))
    run()
    folders = {path.partition("/")[0] for path in tree(vault)}
    assert len({folder.casefold() for folder in folders}) == len(folders) == 2


def test_a_folder_that_a_person_made_is_the_project_s(vault: Path, alice: Principal) -> None:
    (vault / "Shop").mkdir(parents=True)
    note(alice, "One")
    run()
    assert set(tree(vault)) == {"Shop/One.md", "Shop/_index.md"}


# The rest.


def test_what_is_quoted_is_no_echo_and_what_was_made_of_it_is(
    vault: Path, alice: Principal
) -> None:
    said = " ".join(f"word{number} of what she told us about it" for number in range(12))
    made = " ".join(f"summary{number} in words that nobody had used" for number in range(12))
    item = make.turns(alice, [f"{said}\n{made}"])[0]
    one = make.note(alice, said, evidence=item, title="Told")
    two = make.note(alice, made, evidence=make.turns(alice, [made], session="s2")[0], title="Made")
    three = Note.objects.as_pipeline().get(pk=two.pk)
    three.pk, three.content = uuid.uuid4(), made.replace("summary", "digest")
    three.save(force_insert=True)
    run()
    assert came_from_us([said, made, three.content], owner=alice) == [False, False, True]
    for each in (one, two, three):
        assert Emission.objects.filter(kind="vault", reference=str(each.pk)).count() == 1


def test_the_preview_writes_nothing_and_says_all(vault: Path, alice: Principal) -> None:
    one = note(alice, "One")
    told = preview(now=LATER)
    assert {(change.action, change.path) for change in told.changes} == {
        ("written", "shop/One.md"), ("written", "shop/_index.md"),
    }  # fmt: skip
    assert not vault.exists()
    assert rows() == [] and not StageRun.objects.filter(stage="export").exists()
    run()
    assert {change.path: change.after for change in told.changes} == tree(vault)
    jot(where(vault, one), "Mine.\n")
    new = note(alice, "New", when=make.at(days=2))
    replace(one, new)
    before, count = times(vault), len(rows())
    change = {change.path: change for change in preview(now=LATER).changes}["shop/New.md"]
    assert (change.action, change.was) == ("renamed", "shop/One.md")
    assert change.before == (vault / "shop/One.md").read_bytes()
    assert (times(vault), len(rows())) == (before, count)
    run()
    assert change.after == (vault / "shop/New.md").read_bytes()


def test_a_limit_leaves_the_rest_to_the_next(vault: Path, alice: Principal) -> None:
    from exporter.export import export

    for number in range(6):
        note(alice, f"Number {number}")
    report = export(clock=make.clock(LATER), limit=3)
    assert (report.written, report.pending) == (3, 4)
    assert run().written == 4
    assert run().written == 0


def test_each_run_is_on_the_books(
    vault: Path, alice: Principal, local: Callable[..., None]
) -> None:
    note(alice, "One")
    report = run()
    row = StageRun.objects.get(stage="export")
    assert (row.status, row.report["written"], row.report["place"]) == ("done", 2, report.place)
    assert set(ExportedFile.objects.as_pipeline().values_list("run", flat=True)) == {row.pk}
