"""What is spelled twice, for a page and for an act, says the same of random rows."""

from __future__ import annotations

from datetime import timedelta
from random import Random

import pytest

from memory.models import GateRejection, RejectionDecision
from review import feed
from review.health import health
from review.models import Rating
from review.shown.rejections import decided, refusals, waiting
from tests.factories import at, document, note, three
from tests.review.test_feed import shown_to

pytestmark = pytest.mark.django_db

#: What may have been decided of a refusal, one after the other.
ACTIONS = ("accept", "confirm", "forbid", "undo")


def test_the_board_counts_as_undecided_what_the_list_has_to_decide() -> None:
    alice, dice = three()[0], Random(1)
    item = document(alice, "A page.")
    for _ in range(40):
        row = GateRejection.objects.create(
            owner=alice, raw_item=item, reason=dice.choice(("title", "shape", "rejected")),
            candidate={"title": "T", "content": "C"}, detail="why", created_at=at(1),
        )  # fmt: skip
        for action in dice.sample(ACTIONS, dice.randrange(len(ACTIONS))):
            RejectionDecision.objects.create(rejection=row, principal=alice, action=action)
    mine = GateRejection.objects.visible_to(alice)
    found = set(waiting(mine).values_list("pk", flat=True))
    assert 0 < len(found) < 40 and health(alice).undecided == len(found)
    assert found == {one.pk for one in refusals(list(decided(mine))) if one.waits}


def test_a_card_lies_on_the_table_until_it_was_rated() -> None:
    alice, dice = three()[0], Random(2)
    notes = [note(alice, f"Fact {n}.") for n in range(2)]
    seen = set()
    for day in range(10, 40):
        one = dice.choice(notes)
        last = shown_to(alice, one, at(days=day))
        for _ in range(dice.randrange(3)):
            when = at(days=day) + timedelta(hours=dice.choice((-1, 0, 1)))
            Rating.objects.create(
                principal=alice, note=dice.choice(notes), rating=3, created_at=when
            )
        lies = feed.on_table(alice, now=at(days=50))
        assert feed._last(alice) == last
        assert (lies is None) == (feed._rated(last) is not None)
        assert lies is None or lies.draw == last
        seen.add(lies is None)
    assert seen == {True, False}
