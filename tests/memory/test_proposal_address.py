"""A proposal is decided at the address of its own episode, where its changes are shown."""

from __future__ import annotations

import pytest
from django.urls import reverse

from memory.models import Act, Episode, Principal, Proposal
from tests.factories import SAID, at, episode, three
from tests.web import staff

pytestmark = pytest.mark.django_db


def proposed(one: Episode, by: Principal) -> Proposal:
    made: Proposal = Proposal.objects.as_pipeline().create(
        owner=by, unit=one.unit_key, principal=by, notes=[], refused=[], created_at=at(days=1)
    )
    return made


@pytest.mark.parametrize("verb", ["apply", "drop"])
def test_it_is_not_decided_from_the_page_of_another_episode(verb: str) -> None:
    alice, *_ = three()
    first = episode(alice, SAID)
    second = episode(alice, SAID, session="s2", start=at(days=1))
    waits = proposed(second, alice)
    browser = staff("reviewer", who=alice)
    asked = {"proposal": waits.pk, "seen": "anything"}
    answer = browser.post(reverse(f"admin:episode-{verb}", args=[first.pk]), asked)
    assert answer.status_code == 404
    waits = Proposal.objects.as_pipeline().get(pk=waits.pk)
    assert waits.status == "open" and not Act.objects.filter(kind="unit").exists()
    own = browser.post(reverse("admin:episode-drop", args=[second.pk]), asked)
    assert own.status_code == 302
    assert Proposal.objects.as_pipeline().get(pk=waits.pk).status == "dropped"
