"""What holds of everything said of notes, spelled three times: as rows, as one word of a filter, as
silence. Over random rows the three say the same."""

from __future__ import annotations

from datetime import timedelta
from random import Random
from uuid import UUID

import pytest

from memory.attribution import family
from memory.models import Feedback, Note, Project
from memory.models.note import FEEDBACKS
from memory.querysets import called, silenced
from recall.feedback import feedback_of, given
from tests.recall.making import NOW, note, people

pytestmark = pytest.mark.django_db

#: Rows said in one round, of so few notes and places that most of them meet another.
SAID = 40

#: Which project was merged into which, by place in the list: two families and one alone.
MERGED = {1: 0, 2: 1, 4: 3}


def test_what_was_said_last_of_a_note_and_a_place_holds_however_it_is_asked_for() -> None:
    cast = people()
    places = [Project.objects.create(name=f"place {n}") for n in range(6)]
    for below, above in MERGED.items():
        Project.objects.filter(pk=places[below].pk).update(merged_into=places[above])
    notes = [
        note(cast.alice, f"Fact {n}.", visibility="common", embedding=None).pk for n in range(3)
    ]
    rows = Note.objects.as_pipeline()
    for seed, who in enumerate((cast.alice, cast.bob, cast.charlie)):
        dice = Random(seed)
        Feedback.objects.bulk_create(
            Feedback(
                principal=who, note_id=dice.choice(notes), verdict=dice.choice(FEEDBACKS),
                project=dice.choice([None, *places]), created_at=NOW + timedelta(seconds=second),
            )
            for second in range(SAID)
        )  # fmt: skip
        held = feedback_of(notes, principal=who)
        assert {said for said, _ in given(who)} == {one for some in held.values() for one in some}
        for word in FEEDBACKS[:-1]:
            found = rows.filter(pk__in=called(who, [word])).values_list("pk", flat=True)
            assert set(found) == {
                pk for pk, some in held.items() if any(one.verdict == word for one in some)
            }, (seed, word)
        for place in (None, *places):
            of_place = family(place.pk if place else None)
            kin = set(Project.objects.filter(pk__in=of_place).values_list("name", flat=True))
            quiet: set[UUID] = {
                pk for pk, some in held.items() for one in some
                if one.verdict == "never" and (one.project is None or one.project in kin)
            }  # fmt: skip
            found = rows.filter(pk__in=silenced(who, place.pk if place else None))
            assert set(found.values_list("pk", flat=True)) == quiet, (seed, place)
