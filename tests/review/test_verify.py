"""The check that review offers: the feed shows nobody a note that was retired."""

from __future__ import annotations

import pytest

from memory.retire import retire, revive
from review.models import Draw
from tests.factories import at, note, three
from tests.memory.breaking import look

pytestmark = pytest.mark.django_db


def test_it_finds_what_came_up_after_it_was_retired_and_no_race() -> None:
    alice, bob, _ = three()
    one = note(alice, "The number 7 bus stops at the harbour.", visibility="team")

    def shown(minutes: float) -> Draw:
        return Draw.objects.create(
            principal=bob, note=one, drawn_by="draw", probability=0.5, pool=2,
            created_at=at(minutes),
        )  # fmt: skip

    shown(30)
    retire([one.pk], reason="wrong", now=at(60))
    shown(65)
    assert look("fed", at(days=9)) == []
    bad = shown(120)
    (found,) = look("fed", at(days=9))
    assert (found.kind, found.reference, found.owner_id) == ("note", str(one.pk), bob.pk)
    assert found.detail["draw"] == bad.pk
    revive(one.pk)
    assert look("fed", at(days=9)) == []
