"""How: predicates on real rows against plain Python, steps chosen by hypothesis."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.apps import apps
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from memory import retire, verdicts
from memory.access import principal
from memory.models import (
    CaptureReceipt,
    DedupVerdict,
    Episode,
    GateRejection,
    Injection,
    Note,
    Principal,
    RawItem,
)
from memory.models.record import VISIBILITIES
from memory.querysets import OwnedQuerySet, OwnerQuerySet, Unscoped, mates_of, may_settle
from tests.factories import T0, at, group, note, three, turns, verdict

pytestmark = pytest.mark.django_db

#: Minutes that the clock of the machine moves for each step.
STEP_MINUTES = 10


@dataclass
class Kept:
    """A note as a list keeps it."""

    row: Note
    valid_from: datetime
    created_at: datetime
    retired_at: datetime | None = None
    reason: str = ""
    valid_to: datetime | None = None

    def believed(self, *, as_of: datetime, known_at: datetime) -> bool:
        if self.created_at > known_at or self.valid_from > as_of:
            return False
        if self.retired_at is None or self.retired_at > known_at:
            return True
        # By then it was known to have ended: only of the time before its end it was still true.
        return self.valid_to is not None and as_of < self.valid_to

    def live(self, now: datetime) -> bool:
        return self.retired_at is None and self.believed(as_of=now, known_at=now)


class Beliefs(RuleBasedStateMachine):
    """Create, supersede, duplicate, undo; after each step every question has the list's answer."""

    numbers = iter(range(10**9))

    @initialize()
    def begin(self) -> None:
        self.owner = principal(f"machine-{next(self.numbers)}")
        self.now = T0
        self.notes: list[Kept] = []

    def tick(self) -> datetime:
        self.now += timedelta(minutes=STEP_MINUTES)
        return self.now

    def pick(self, data: st.DataObject, retired: bool) -> Kept:
        pool = [one for one in self.notes if (one.retired_at is not None) is retired]
        return data.draw(st.sampled_from(pool))

    @rule(said_before=st.integers(0, 6))
    def create(self, said_before: int) -> None:
        now = self.tick()
        when = now - timedelta(minutes=STEP_MINUTES * said_before)
        row = note(
            self.owner, f"Fact {next(self.numbers)}.", when=when, created_at=now, embedded=False
        )
        self.notes.append(Kept(row, when, now))

    @precondition(lambda self: sum(one.retired_at is None for one in self.notes) >= 2)
    @rule(data=st.data())
    def supersede(self, data: st.DataObject) -> None:
        first = self.pick(data, retired=False)
        second = self.pick(data, retired=False)
        if first is second:
            return
        now = self.tick()
        found = verdicts.effect("supersede", second.row, first.row)
        assert found.retired is not None
        retire.retire([found.retired.pk], reason=found.reason, now=now, valid_to=found.valid_to)
        loser = first if found.retired is first.row else second
        winner = second if loser is first else first
        loser.retired_at, loser.reason, loser.valid_to = now, "superseded", winner.valid_from

    @precondition(lambda self: any(one.retired_at is None for one in self.notes))
    @rule(data=st.data())
    def duplicate(self, data: st.DataObject) -> None:
        one = self.pick(data, retired=False)
        now = self.tick()
        assert retire.retire([one.row.pk], reason="duplicate", now=now) == 1
        one.retired_at, one.reason = now, "duplicate"

    @precondition(lambda self: any(one.retired_at is not None for one in self.notes))
    @rule(data=st.data())
    def undo(self, data: st.DataObject) -> None:
        one = self.pick(data, retired=True)
        assert retire.revive(one.row.pk) == 1
        one.retired_at, one.reason, one.valid_to = None, "", None

    @invariant()
    def answers_alike(self) -> None:
        rows = Note.objects.visible_to(self.owner)
        live = set(rows.live(self.now).values_list("pk", flat=True))
        assert live == {one.row.pk for one in self.notes if one.live(self.now)}
        ages = (0, 1, 3, 6)
        for as_of in (self.now - timedelta(minutes=STEP_MINUTES * age + 5) for age in ages):
            for known_at in (self.now - timedelta(minutes=STEP_MINUTES * age) for age in ages):
                asked = {"as_of": as_of, "known_at": known_at}
                believed = set(rows.believed(**asked).values_list("pk", flat=True))
                assert believed == {one.row.pk for one in self.notes if one.believed(**asked)}


def test_it_believes_what_a_list_would_believe() -> None:
    run_state_machine_as_test(
        Beliefs,
        settings=settings(
            max_examples=10,
            stateful_step_count=12,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_it_takes_for_live_what_is_true_now_and_not_retired() -> None:
    alice, _, _ = three()
    now = at(100)
    kept = note(alice, "Now.", when=at(100))
    note(alice, "From tomorrow.", when=at(days=1))
    note(alice, "Ended just now.", valid_to=at(100))
    until = note(alice, "Ends in a minute.", valid_to=at(101))
    note(alice, "Retired.", deleted_at=at(99))
    assert set(Note.objects.as_pipeline().live(now)) == {kept, until}


def test_it_shows_mine_my_groups_and_what_is_common() -> None:
    alice, bob, charlie = three()
    rows = {
        kind: note(alice, f"{kind} fact.", visibility=kind)
        for kind in ("private", "team", "common")
    }

    def seen(by: Principal) -> set[str]:
        return set(Note.objects.visible_to(by).values_list("visibility", flat=True))

    assert seen(alice) == set(rows)
    assert seen(bob) == {"team", "common"}
    assert seen(charlie) == {"common"}
    group("pair", charlie)
    assert seen(charlie) == {"team", "common"}


def test_it_shows_each_row_once_to_people_of_two_groups() -> None:
    alice, bob, _ = three()
    group("other pair", alice, bob)
    note(alice, "Team fact.", visibility="team")
    assert Note.objects.visible_to(bob).count() == 1


ACTS: list[Callable[[OwnedQuerySet], Any]] = [
    list,
    len,
    bool,
    lambda rows: rows.count(),
    lambda rows: rows.exists(),
    lambda rows: rows.first(),
    lambda rows: rows.last(),
    lambda rows: rows.get(pk=1),
    lambda rows: rows.in_bulk(),
    lambda rows: list(rows.iterator()),
    lambda rows: list(rows.values("pk")),
    lambda rows: list(rows.values_list("pk", flat=True)),
    lambda rows: rows.aggregate(),
    lambda rows: rows.update(owner=None),
    lambda rows: rows.delete(),
    lambda rows: rows[0],
    lambda rows: rows.exclude(owner=None).earliest("pk"),
    lambda rows: list(Principal.objects.filter(pk__in=rows.values("owner"))),
]

OWNED = [Note, RawItem, Episode]
OWN = [CaptureReceipt, DedupVerdict, GateRejection, Injection]


@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("model", [*OWNED, *OWN])
def test_it_refuses_to_read_for_nobody(model: Any, act: Callable[[OwnerQuerySet], Any]) -> None:
    with pytest.raises(Unscoped):
        act(model.objects.all())
    with pytest.raises(Unscoped):
        act(model.objects.filter(owner__name="alice"))


def test_it_shows_the_rows_of_a_ledger_to_their_owner_alone() -> None:
    alice, bob, _ = three()
    row = Injection.objects.create(owner=alice, mode="notes", outcome="empty")
    assert list(Injection.objects.visible_to(alice)) == [row]
    assert not Injection.objects.visible_to(bob).exists()
    with pytest.raises(Unscoped):
        Injection.objects.visible_to(None)


def test_it_refuses_a_principal_that_is_none() -> None:
    for nobody in (None, Principal(name="unsaved")):
        with pytest.raises(Unscoped):
            Note.objects.visible_to(nobody)


def test_it_guards_the_way_round_through_a_relation() -> None:
    alice, _, _ = three()
    item = turns(alice, ["A turn that is cited."])[0]
    made = note(alice, "A turn that is cited.", evidence=item)
    with pytest.raises(Unscoped):
        list(alice.note_set.all())
    assert list(alice.note_set.all().visible_to(alice)) == [made]


def test_it_guards_every_table_with_an_owner_and_a_visibility() -> None:
    for model in apps.get_app_config("memory").get_models():
        names = {field.name for field in model._meta.get_fields()}
        if {"owner", "visibility"} <= names:
            assert isinstance(model._default_manager.all(), OwnedQuerySet), model


def test_it_lets_those_settle_a_note_who_are_more_than_its_readers() -> None:
    alice, bob, charlie = three()
    for kind in ("private", "team", "common"):
        note(alice, f"{kind} fact.", visibility=kind)

    def settled(by: Principal) -> set[str]:
        return set(Note.objects.decidable_by(by).values_list("visibility", flat=True))

    assert settled(alice) == {"private", "team", "common"}
    assert settled(bob) == {"team", "common"}
    assert settled(charlie) == set()


def test_it_holds_a_note_against_older_ones_and_those_judged_before_it_once_each() -> None:
    alice, _, _ = three()
    old, new, young, judged = (note(alice, f"{n}.", when=at(n)) for n in range(4))
    verdict(judged, old, "distinct")
    with CaptureQueriesContext(connection) as seen:
        assert set(Note.objects.as_pipeline().met_by(new)) == {old, judged}
    assert seen[0]["sql"].count("EXISTS") == 1
    assert young not in Note.objects.as_pipeline().met_by(new)


def test_it_orders_notes_by_age_as_older_than_has_it() -> None:
    alice, _, _ = three()
    made = [
        note(alice, f"Fact {said} {stored}.", when=at(said), created_at=at(stored))
        for said in (1, 2, 2)
        for stored in (50, 60)
    ]
    ordered = list(Note.objects.as_pipeline().by_age())
    assert len(ordered) == len(made)
    for place, one in enumerate(ordered):
        older = Note.objects.as_pipeline().older_than(one).by_age()
        assert list(older) == ordered[:place]


def test_who_may_settle_a_row_is_the_same_for_a_row_that_was_read() -> None:
    alice, bob, charlie = three()
    rows = [
        note(owner, f"{owner} shows it: {how}.", visibility=how)
        for owner in (alice, bob, charlie)
        for how in VISIBILITIES
    ]
    for who in (alice, bob, charlie):
        mates = mates_of(who)
        asked = set(Note.objects.decidable_by(who).values_list("pk", flat=True))
        assert asked == {
            row.pk
            for row in rows
            if may_settle(row.owner_id, row.visibility, by=who.pk, mates=mates)
        }
        assert 0 < len(asked) < len(rows)
