"""Who stands in the place of a retired note: followed along what stands, for many at once."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.db.models.signals import post_init
from django.test.utils import CaptureQueriesContext

from memory import verdicts
from memory.heirs import heirs, lines
from memory.keeping import retire_note, standing_for
from memory.models import DedupVerdict, Note, Principal
from tests.recall.making import NOW, note, people

pytestmark = pytest.mark.django_db


@pytest.fixture
def alice() -> Principal:
    return people().alice


def chain(alice: Principal, many: int = 4) -> list[Note]:
    """Notes each of which took the place of the one before."""
    made = [
        note(alice, f"The port is {n}000.", embedding=None, valid_from=NOW - timedelta(days=9 - n))
        for n in range(many)
    ]
    for old, new in zip(made, made[1:], strict=False):
        row = DedupVerdict.objects.create(
            owner=alice, note=new, target=old, verdict="supersede", status="applied"
        )
        verdicts.apply(row, now=NOW)
    return [Note.objects.as_pipeline().get(pk=one.pk) for one in made]


def ways(*notes: Note) -> list[list[Note]]:
    found = lines([one.pk for one in notes])
    return [[heir.kept for heir in found[one.pk]] for one in notes]


def test_it_follows_many_notes_to_what_is_live_in_a_statement_a_step(alice: Principal) -> None:
    a, b, c, d = chain(alice)
    with CaptureQueriesContext(connection) as queries:
        assert ways(a, b, c, d) == [[b, c, d], [c, d], [d], []]
    assert len(queries) == 4, "three steps, and a look that there is none behind"
    row, kept = standing_for(a) or (None, None)
    assert kept == d and row == DedupVerdict.objects.as_pipeline().get(target=a)


def test_it_reads_no_verdict_of_those_that_went_into_a_note(alice: Principal) -> None:
    a, b = chain(alice, 2)
    for number in range(20):
        twin = note(alice, f"The port was 1000, twin {number}.", embedding=None)
        DedupVerdict.objects.create(
            owner=alice, note=twin, target=a, verdict="duplicate", status="applied"
        )
        Note.objects.as_pipeline().filter(pk=twin.pk).update(deleted_at=NOW)
    read: list[DedupVerdict] = []

    def count(instance: DedupVerdict, **_: object) -> None:
        read.append(instance)

    post_init.connect(count, sender=DedupVerdict)
    try:
        assert heirs([a.pk])[a.pk].kept == b and heirs([b.pk]) == {}
    finally:
        post_init.disconnect(count, sender=DedupVerdict)
    assert len(read) == 1, "the one that retired it"


def test_it_ends_at_what_a_person_retired_and_at_what_was_taken_back(alice: Principal) -> None:
    a, b, c = chain(alice, 3)
    retire_note(c.pk, by=alice, now=NOW)
    assert ways(a) == [[b, c]] and standing_for(a) is None
    # A hold that nobody decided and a verdict that was undone are no way on.
    spare = note(alice, "The port is 9000.", embedding=None, valid_from=NOW)
    for status in ("pending", "undone", "rejected"):
        DedupVerdict.objects.create(
            owner=alice, note=spare, target=c, verdict="refine", status=status
        )
    assert heirs([c.pk]) == {} and ways(b) == [[c]]


def test_a_note_that_is_live_has_no_heir_whatever_was_decided(alice: Principal) -> None:
    old, new = (note(alice, f"The port is {n}000.", embedding=None) for n in (1, 2))
    DedupVerdict.objects.create(
        owner=alice, note=new, target=old, verdict="refine", status="approved"
    )
    assert heirs([old.pk, new.pk]) == {}


def test_a_ring_ends(alice: Principal) -> None:
    a, b, c = (
        note(
            alice, f"The port is {n}000.", embedding=None, deleted_at=NOW, retired_reason="refined"
        )
        for n in range(3)
    )
    for new, old in ((b, a), (c, b), (a, c)):
        DedupVerdict.objects.create(
            owner=alice, note=new, target=old, verdict="refine", status="applied"
        )
    assert ways(a) == [[b, c]] and standing_for(a) is None
