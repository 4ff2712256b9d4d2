"""Whose units a list shows: one predicate, said of each table that a unit may stand in."""

from __future__ import annotations

import pytest

from memory.models import Episode, Note, RawItem
from memory.querysets import condition
from tests import factories

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("deciding", [False, True])
def test_it_is_the_same_for_every_table(deciding: bool) -> None:
    alice, bob, _ = factories.three()
    said = set()
    for model in (Episode, RawItem, Note):
        rows = model.objects.all()
        scoped = rows.decidable_by if deciding else rows.visible_to
        where, params = condition(scoped(alice, mates=(alice.pk, bob.pk)))
        said.add((where.replace(model._meta.db_table, "table"), str(params)))
    assert len(said) == 1, "units.seen_by puts it together once"
