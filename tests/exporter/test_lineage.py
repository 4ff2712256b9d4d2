"""Notes that replace each other, and notes that go: their files, and what people wrote in them."""

from __future__ import annotations

import shutil
from dataclasses import replace as changed
from pathlib import Path

import pytest

from exporter.inert import one_line
from exporter.models import ExportedFile
from exporter.place import Place, around_vault
from memory.access import principal
from memory.models import Note, Principal
from memory.retire import retire, revive
from memory.text.region import MARKER
from tests import factories as make
from tests.exporter.exports import gone, jot, note, replace, rows, run, tree, where
from tests.exporter.vaults import front

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("vault", "local")]


@pytest.fixture
def alice() -> Principal:
    return principal("alice")


# Names.


def test_a_new_title_renames_and_keeps_what_a_person_wrote(vault: Path, alice: Principal) -> None:
    old = note(alice, "Deploy from main")
    run()
    jot(where(vault, old), "Ask Mel first.\n")
    new = note(alice, "Deploy from tags", when=make.at(days=2))
    replace(old, new)
    report = run()
    assert (report.renamed, report.removed, report.conflicts) == (1, 0, 0)
    assert set(tree(vault)) == {"shop/Deploy from tags.md", "shop/_index.md"}
    text = (vault / "shop/Deploy from tags.md").read_text()
    assert text.endswith(f"{MARKER}\nAsk Mel first.\n") and str(new.pk) in text
    assert rows(key=str(new.pk)) == [("renamed", "shop/Deploy from tags.md")]
    assert rows(key=str(old.pk))[-1] == ("removed", "shop/Deploy from main.md")


def test_a_title_that_changes_in_case_alone_renames_nothing(vault: Path, alice: Principal) -> None:
    old = note(alice, "deploy plan")
    run()
    jot(where(vault, old), "Mine.\n")
    new = note(alice, "Deploy Plan", when=make.at(days=2))
    replace(old, new)
    report = run()
    assert (report.renamed, report.removed) == (0, 0)
    assert set(tree(vault)) == {"shop/deploy plan.md", "shop/_index.md"}
    text = (vault / "shop/deploy plan.md").read_text()
    assert "# Deploy Plan\n" in text and text.endswith("Mine.\n")
    before = tree(vault)
    shutil.rmtree(vault)
    run()
    assert set(tree(vault)) == set(before)


def test_equal_titles_have_two_files_whose_names_stay(vault: Path, alice: Principal) -> None:
    first = note(alice, "Plan", "The first of the two plans we made.")
    second = note(alice, "plan", "The second of the two plans we made.", when=make.at(5))
    run()
    assert where(vault, first).name == "Plan.md"
    assert where(vault, second).name == f"plan ~{second.pk.hex[:8]}.md"
    gone(first)
    run()
    assert where(vault, second).name == f"plan ~{second.pk.hex[:8]}.md"


@pytest.mark.parametrize(
    "title",
    ["../../etc/passwd", "..", "/abs", "a\\..\\b", ".argus", "CON", "x" * 300, "\u202eevil",
     "Q3\nconfidential: true\n---\n# x", "[[x]]"],
)  # fmt: skip
def test_no_title_leads_out(vault: Path, alice: Principal, title: str) -> None:
    note(alice, title, "What is known of it is this.", project=make.project(title[:200]))
    run()
    outside = {path.name for path in vault.parent.iterdir()}
    assert outside == {"Vault"}
    (page,) = (path for path in tree(vault) if not path.endswith("_index.md"))
    assert page.count("/") == 1 and not page.startswith((".", "_"))
    told = front((vault / page).read_bytes())
    assert told is not None and told["aliases"] == [one_line(title)]
    assert told["project"] == one_line(title[:200])


# Notes that go.


def test_a_retired_note_leaves(vault: Path, alice: Principal) -> None:
    one, two = note(alice, "One"), note(alice, "Two")
    run()
    gone(one)
    report = run()
    assert (report.removed, report.retired) == (1, 0)
    assert set(tree(vault)) == {"shop/Two.md", "shop/_index.md"}
    assert rows(key=str(one.pk))[-1] == ("removed", "shop/One.md")
    gone(two)
    assert run().removed == 2
    assert tree(vault) == {} and not (vault / "shop").exists()


def test_a_retired_note_with_words_of_a_person_is_laid_aside(vault: Path, alice: Principal) -> None:
    one = note(alice, "One")
    run()
    jot(where(vault, one), "I will need this.\n")
    before = where(vault, one).read_bytes()
    gone(one)
    report = run()
    assert (report.removed, report.retired) == (1, 1)  # Its project's index went.
    assert tree(vault) == {"_retired/One.md": before}
    again = run()
    assert (again.retired, again.removed, tree(vault)) == (0, 0, {"_retired/One.md": before})
    revive(one.pk)
    assert run().renamed == 1
    assert set(tree(vault)) == {"shop/One.md", "shop/_index.md"}
    assert (vault / "shop/One.md").read_text().endswith("I will need this.\n")


def test_by_setting_every_retired_note_is_laid_aside(vault: Path, alice: Principal) -> None:
    one, two = note(alice, "Plan"), note(alice, "Plan", "Another one.", project=None)
    keeping = changed(Place(vault, "alice"), retired="keep")
    with around_vault(keeping):
        run()
        gone(one)
        gone(two)
        assert run().retired == 2
        names = sorted(tree(vault))
        assert len(names) == 2 and all(name.startswith("_retired/") for name in names)
        assert run().retired == 0


def test_a_duplicate_leaves_its_words_to_the_note_that_stays(vault: Path, alice: Principal) -> None:
    kept, double = note(alice, "Kept"), note(alice, "Double", when=make.at(9))
    run()
    jot(where(vault, kept), "First.\n")
    jot(where(vault, double), "Second.\n")
    replace(kept, double, "duplicate")
    report = run()
    assert (report.removed, report.retired) == (1, 0)
    assert set(tree(vault)) == {"shop/Kept.md", "shop/_index.md"}
    assert where(vault, kept).read_text().endswith(f"{MARKER}\nFirst.\nSecond.\n")
    assert run().written == 0


def test_a_duplicate_without_words_leaves_the_other_file_alone(
    vault: Path, alice: Principal
) -> None:
    kept = note(alice, "Kept", "The worker polls the queue every second.")
    double = note(alice, "Double", "Postgres holds what waits.", when=make.at(9))
    run()
    make.verdict(double, kept, "duplicate", status="applied")
    retire([double.pk], reason="duplicate", now=make.at(days=20))
    before = where(vault, kept).stat().st_mtime_ns
    assert run().removed == 1
    assert where(vault, kept).stat().st_mtime_ns == before


def test_words_go_along_through_many_hands(vault: Path, alice: Principal) -> None:
    one, two = note(alice, "One"), note(alice, "Two", when=make.at(9))
    run()
    jot(where(vault, one), "Of one.\n")
    jot(where(vault, two), "Of two.\n")
    three = note(alice, "Three", when=make.at(20))
    replace(one, three, "refine")
    four = note(alice, "Four", when=make.at(30))
    replace(three, four)
    replace(two, four)
    run()
    assert set(tree(vault)) == {"shop/Four.md", "shop/_index.md"}
    words = where(vault, four).read_text().partition(MARKER)[2]
    assert "Of one.\n" in words and "Of two.\n" in words


def test_a_purged_note_leaves_nothing_but_a_person_s_words(
    vault: Path, alice: Principal, django_db_blocker: object
) -> None:
    from tests.memory.books import purge

    one, two = note(alice, "Purge me"), note(alice, "Purge me, too")
    run()
    jot(where(vault, two), "I said this myself.\n")
    items = [edge.raw_item_id for one_of in (one, two) for edge in one_of.evidence.all()]
    purge([item for item in items if item is not None])
    assert not Note.objects.as_pipeline().filter(pk__in=(one.pk, two.pk)).exists()
    assert not ExportedFile.objects.as_pipeline().exclude(kind="index").exists()
    run()
    (path,) = tree(vault)
    assert path.startswith("_retired/") and "Purge" not in path
    assert tree(vault)[path] == b"I said this myself.\n"
