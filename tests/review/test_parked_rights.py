"""Who may settle a parked unit: whoever may settle its source, and nobody else who sees it."""

from __future__ import annotations

import pytest
from django.db import connection

from memory import units
from memory.errors import NotFound
from memory.models import Claim, Principal
from review import parked
from tests.factories import SAID, at, document, episode, note, three, turns
from tests.web import staff

pytestmark = pytest.mark.django_db

LIST = "/ui/parked/"


def parked_claim(unit: str, *, minutes: float = 0) -> Claim:
    return Claim.objects.create(
        stage="distill", unit=unit, parked_at=at(minutes=minutes), parked_reason="no JSON"
    )


@pytest.fixture
def people() -> tuple[Principal, Principal, Principal]:
    return three()


def test_it_lets_a_stranger_look_at_a_common_unit_and_do_nothing(
    people: tuple[Principal, Principal, Principal],
) -> None:
    alice, bob, charlie = people
    one = parked_claim(episode(alice, SAID, visibility="common").unit_key)
    stranger = staff("operator", who=charlie)
    listed, opened = stranger.get(LIST), stranger.get(f"{LIST}{one.pk}/")
    for page in (listed, opened):
        shown = page.content.decode()
        assert page.status_code == 200 and one.unit in shown
        assert "Retry" not in shown and "Dismiss</button>" not in shown
    for verb in ("release", "dismiss"):
        assert stranger.post(f"{LIST}{one.pk}/{verb}").status_code == 404
    for sure in ({}, {"sure": "1"}):
        asked = {"like": one.pk, **sure}
        assert stranger.post(f"{LIST}release-all", asked).status_code == 404
    one.refresh_from_db()
    assert one.parked_at is not None and one.dismissed_at is None
    mate = staff("operator", who=bob)
    assert "Retry" in mate.get(f"{LIST}{one.pk}/").content.decode()
    assert mate.post(f"{LIST}{one.pk}/dismiss").status_code == 302


def test_it_sets_all_of_a_kind_free_but_for_those_of_strangers(
    people: tuple[Principal, Principal, Principal],
) -> None:
    alice, _, charlie = people
    own = parked_claim(episode(charlie, SAID).unit_key)
    other = parked_claim(episode(alice, SAID, visibility="common").unit_key)
    freed = parked.release_all(own.pk, by=charlie, now=at(days=1))
    assert (freed.released, freed.left) == (1, 0)
    assert list(Claim.objects.filter(parked_at__isnull=False)) == [other]
    with pytest.raises(NotFound):
        parked.release(other.unit, by=charlie, now=at(days=1))


def test_it_says_the_same_of_a_list_and_of_names(
    people: tuple[Principal, Principal, Principal],
) -> None:
    alice, *_ = people
    (turn,) = turns(alice, ["A turn of its own."], session="s9")[:1]
    named = [
        episode(alice, SAID, visibility="common").unit_key,
        f"note:{note(alice, 'The build needs a flag.').pk}",
        f"item:{document(alice, 'A document.', visibility='team').pk}",
        f"item:{turn.pk}",
    ]
    odd = ["item:²", "session:²", f"item:{'9' * 30}", "note:x", "what:1", ""]
    for unit in (*named, *odd):
        parked_claim(unit)
    for person, seen, settled in zip(people, (4, 2, 1), (4, 2, 0), strict=True):
        for deciding, among, count in (
            (False, units.visible, seen), (True, units.decidable, settled),
        ):  # fmt: skip
            found = set(parked.rows(person, deciding=deciding).values_list("unit", flat=True))
            assert found == among([*named, *odd], person) and len(found) == count


def test_it_asks_once_for_all_units_and_not_for_each(
    people: tuple[Principal, Principal, Principal],
) -> None:
    alice, _, charlie = people
    one = note(alice, "Parked.")
    Claim.objects.bulk_create(
        Claim(stage="embed", unit=f"note:{n:08x}-0000-4000-8000-{n:012x}", parked_at=at())
        for n in range(3_000)
    )
    parked_claim(f"note:{one.pk}")
    with connection.cursor() as cursor:
        # The owner of the tables alone may; this speaks for it.
        cursor.execute("SELECT argus_analyze()")
        query, params = parked.rows(charlie).query.sql_with_params()
        cursor.execute(f"EXPLAIN (ANALYZE, TIMING OFF, COSTS OFF) {query}", params)
        plan = [line for (line,) in cursor.fetchall()]
    # What was materialized once may be read often; a table may not.
    asked = [line for line in plan if "Scan" in line and "never" not in line]
    assert all("loops=1)" in line for line in asked), "\n".join(plan)
    assert parked.rows(alice).count() == 1 and not parked.rows(charlie).exists()
