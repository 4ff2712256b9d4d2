"""Fifty owners of very different size: each finds its own as if it were alone."""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from pytest_django import DjangoDbBlocker

from memory.access import principal
from memory.llm.minilm import shared
from memory.models import Group, Note, Principal, Project, SearchText
from memory.retire import retire
from memory.tracks import EXACT_ROWS_MAX, nearest
from recall.search import Searched, search
from tests import cluster
from tests.bench.load import Writing, add_notes, add_turns, analyze, index, without
from tests.recall.making import NOW

pytestmark = pytest.mark.slow

#: Notes of each owner: one has most of them, and most have few.
SIZES = [2_600, 1_100, 600, 300, 150, 80, 40, 25, 12, 10, 9, 5, 3, 2, *[1] * 36]

#: Owners above whose size theirs is a class of its own.
CLASSES = (EXACT_ROWS_MAX, 1_000, 100, 10, 0)

#: Questions to each owner of a class, so that every class is asked as much.
QUERIES_A_CLASS = 25

#: Names of which one begins like another: a person is who it is, not how the name begins.
NAMES = ["ann", "anna", "annabel", "ann ", "Ann", *[f"owner{n}" for n in range(len(SIZES) - 5)]]


@dataclass
class Town:
    """The owners, what each has, and the database's address for the owner of the tables."""

    address: str
    owners: list[Principal]
    writing: Writing
    vectors: dict[int, Any]
    texts: dict[int, list[list[str]]]
    lost: list[uuid.UUID] = field(default_factory=list)

    def ask(self, owner: Principal, at: int) -> tuple[str, list[float]]:
        """A question made of one of the owner's notes, known to the embedder."""
        words = self.texts[owner.pk][at][:5]
        vector = self.writing.around(self.vectors[owner.pk][at : at + 1])[0].tolist()
        return self.asked(" ".join(words), vector), vector

    def asked(self, text: str, vector: list[float]) -> str:
        text = f"{text} q{uuid.uuid4().hex[:8]}"
        shared()._recent.of(text, lambda: vector)
        return text


@pytest.fixture(scope="module")
def town(template_db: str, django_db_blocker: DjangoDbBlocker) -> Iterator[Town]:
    with django_db_blocker.unblock(), cluster.copied(template_db) as name:
        yield build(cluster.owner_address(cluster.address(name)))


def build(address: str) -> Town:
    chance, writing = random.Random(8), Writing(8, clusters=100)
    made = Town(address, [principal(name) for name in NAMES], writing, {}, {})
    crew = Group.objects.create(name="crew")
    crew.members.add(*made.owners[1:4])
    with without(address, "note_nearest", "turn_nearest"):
        first = 0
        for owner, size in zip(made.owners, SIZES, strict=True):
            made.texts[owner.pk], made.vectors[owner.pk] = random_notes(writing, size)
            ids = add(made, owner, first, shared_notes=3 if size > 20 else 0)
            if size > 20:
                retire(chance.sample(ids, 4), reason="duplicate", now=NOW)
            turns = max(1, size // 4)
            add_turns(
                address, owner.pk, shared().name, writing.texts(turns), spread(writing, turns),
                first=first, seed=owner.pk,
            )  # fmt: skip
            first += size
        made.lost = two_projects(made, first)
    index()
    analyze(address, "memory_note", "memory_turnvector", "memory_searchtext", "memory_posting")
    return made


def spread(writing: Writing, count: int) -> Any:
    """Unit-length vectors in no clusters: what a graph finds hardest."""
    moved = np.zeros((count, 768))
    moved[:, :384] = writing.chance.normal(size=(count, 384))
    return moved / np.linalg.norm(moved, axis=1, keepdims=True)


def random_notes(writing: Writing, count: int) -> tuple[list[list[str]], Any]:
    """Of many, vectors as those of sentences lie; of few, that are compared, the hardest."""
    many = count > EXACT_ROWS_MAX
    return writing.texts(count), writing.vectors(count) if many else spread(writing, count)


def add(
    town: Town, owner: Principal, first: int, *, shared_notes: int = 0, **fields: Any
) -> list[uuid.UUID]:
    """The owner's notes; the first few are for the group, as many more for everybody."""
    texts, vectors = town.texts[owner.pk], town.vectors[owner.pk]
    ends = {"team": shared_notes, "common": 2 * shared_notes, "private": len(texts)}
    ids: list[uuid.UUID] = []
    for visibility, end in ends.items():
        start = len(ids)
        ids += add_notes(
            town.address, owner.pk, shared().name, texts[start:end], vectors[start:end],
            first=first + start, visibility=visibility, seed=owner.pk, **fields,
        )  # fmt: skip
    return ids


def searched(town: Town, owner: Principal, text: str, **more: Any) -> Searched:
    return search(text, principal=owner, now=NOW, **more)


def test_it_finds_by_the_graph_what_comparing_finds_for_owners_of_any_size(town: Town) -> None:
    for low, high in zip(CLASSES, (10**9, *CLASSES), strict=False):
        owners = [one for one, size in zip(town.owners, SIZES, strict=True) if low < size <= high]
        hits = wanted = 0
        for number in range(QUERIES_A_CLASS):
            owner = owners[number % len(owners)]
            _, vector = town.ask(owner, number % len(town.texts[owner.pk]))
            for rows in (
                Note.objects.visible_to(owner).live(NOW),
                SearchText.objects.visible_to(owner).filter(raw=True),
            ):
                exact, usual = (
                    [key for key, _ in nearest(rows, vector, shared().name, depth=10, exact=way)]
                    for way in (True, None)
                )
                assert len(usual) == min(10, rows.count()) == len(exact)
                hits += len(set(exact) & set(usual))
                wanted += len(exact)
        assert hits >= 0.98 * wanted, (low, hits / wanted)


def test_it_shows_nobody_what_is_not_theirs_to_see(town: Town) -> None:
    seen_of_others = 0
    for number, owner in enumerate(town.owners):
        text, _ = town.ask(owner, 0)
        visible = set(Note.objects.visible_to(owner).live(NOW).values_list("pk", flat=True))
        turns = SearchText.objects.visible_to(owner).filter(raw=True)
        items = set(turns.values_list("raw_item_id", flat=True))
        found = searched(town, owner, text).found
        assert found, number
        for one in found:
            assert one.key in (visible if one.source == "note" else items)
            seen_of_others += one.facts["owner_id"] != owner.pk
        if number < 12:
            # From the outside in: what is asked for is in another's private notes.
            other = town.owners[(number + 1) % 12]
            theirs, _ = town.ask(other, 0)
            for one in searched(town, owner, theirs).found:
                assert one.key in (visible if one.source == "note" else items)
    assert seen_of_others, "some of what others share was found"


def test_it_retires_for_everybody_at_once(town: Town) -> None:
    gone = set(
        Note.objects.as_pipeline().filter(deleted_at__isnull=False).values_list("pk", flat=True)
    )
    assert gone
    for owner in town.owners[:8]:
        for at in range(0, len(town.texts[owner.pk]), 50):
            text, _ = town.ask(owner, at)
            assert not gone & {one.key for one in searched(town, owner, text).found}


def numbers(found: Searched) -> list[tuple[Any, ...]]:
    """All by which results stand, in their order."""
    return [
        (one.source, one.key, one.tracks, one.fused, one.order, one.coverage, one.cosine)
        for one in found.found
    ]


@pytest.mark.parametrize("at", [1, 13], ids=["large", "tiny"])
def test_it_ranks_as_before_whatever_a_stranger_adds(town: Town, at: int) -> None:
    owner = town.owners[at]
    stranger = principal(f"stranger to {at}")
    asked = [town.ask(owner, n)[0] for n in range(min(6, len(town.texts[owner.pk])))]
    before = [numbers(searched(town, owner, text)) for text in asked]
    # As like the owner's notes as can be, and many times as many.
    texts, vectors = town.texts[owner.pk], town.vectors[owner.pk]
    copies = 1_000 // len(texts) + 1
    town.texts[stranger.pk] = (texts * copies)[:1_000]
    town.vectors[stranger.pk] = town.writing.around(np.tile(vectors, (copies, 1))[:1_000], 1e-4)
    with without(town.address, "note_nearest"):
        add(town, stranger, 100_000 + 1_000 * at)
    index()
    after = [numbers(searched(town, owner, text)) for text in asked]
    for old, new in zip(before, after, strict=True):
        assert [row[:2] for row in new] == [row[:2] for row in old]
        for one, other in zip(old, new, strict=True):
            assert one[2].keys() == other[2].keys()
            for track, placed in one[2].items():
                assert other[2][track].rank == placed.rank
                assert other[2][track].score == pytest.approx(placed.score, abs=1e-12)
            assert [*other[3:6]] == pytest.approx([*one[3:6]], abs=1e-12)


def two_projects(town: Town, first: int) -> list[uuid.UUID]:
    """Dora's: 5,000 notes of one project around one place, 8 of another as far from it as can be,
    whose ids are given back."""
    dora, writing = principal("dora"), town.writing
    large, small = (Project.objects.create(name=name) for name in ("large", "small"))
    centre = spread(writing, 1)
    town.texts[dora.pk] = writing.texts(5_000)
    town.vectors[dora.pk] = writing.around(np.repeat(centre, 5_000, axis=0))
    add(town, dora, first, project=large.pk)
    far = Town(town.address, [], writing, {}, {})
    far.texts[dora.pk] = writing.texts(8)
    far.vectors[dora.pk] = writing.around(np.repeat(-centre, 8, axis=0))
    return add(far, dora, first + 5_000, project=small.pk)


def test_it_finds_the_few_of_a_small_project_beside_a_large_one(town: Town) -> None:
    dora, small = principal("dora"), Project.objects.get(name="small")
    vector = town.writing.around(town.vectors[dora.pk][:1])[0].tolist()
    pool = Note.objects.visible_to(dora).live(NOW).filter(project=small)
    for way in (None, False):
        found = [key for key, _ in nearest(pool, vector, shared().name, depth=5, exact=way)]
        exact = [key for key, _ in nearest(pool, vector, shared().name, depth=5, exact=True)]
        assert len(found) == 5 and found == exact
    text = town.asked("what is there", vector)
    asked = searched(town, dora, text, project=small.pk).found
    assert {one.key for one in asked} == set(town.lost)
