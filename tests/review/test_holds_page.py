"""How: held verdicts by factories, staff browsers of each role; one card at a time."""

from __future__ import annotations

import pytest
from django.urls import reverse

from memory.models import Decision, Injection
from review import holds
from tests.factories import at, note, three, turns, verdict
from tests.review.holdpages import LIST, NEW, OLD, QUEUE, held, shown, text, url
from tests.web import asked, htmx, staff


@pytest.mark.django_db
class TestQueue:
    @pytest.fixture(autouse=True)
    def people(self) -> None:
        self.alice, self.bob, self.charlie = three()
        self.browser = staff("reviewer", who=self.alice)

    def test_it_shows_the_oldest_hold_with_all_that_decides_it(self) -> None:
        later, first = held(self.alice, days=5), held(self.alice)
        Injection.objects.create(
            owner=self.alice,
            mode="prompt",
            outcome="injected",
            session="afternoon",
            note_ids=[first.target_id],
        )
        response = self.browser.get(QUEUE)
        body = text(response)
        assert shown(response) == first.pk
        for expected in ("1 of 2", "<del>8443</del>", "<ins>9443</ins>", "The port changed.",
                         "judge-7", "0.913", "0.755", "afternoon", "1 time"):  # fmt: skip
            assert expected in body, expected
        assert f'<mark class="evidence">{OLD}</mark>' in body and "Noted in passing" in body
        item = first.note.evidence.get()
        assert f"{reverse('admin:item', args=[item.raw_item_id])}?start={item.start}" in body
        assert shown(self.browser.get(f"{QUEUE}?after={first.pk}")) == later.pk
        assert "2 of 2" in text(self.browser.get(f"{QUEUE}?after={first.pk}"))
        assert shown(self.browser.get(f"{QUEUE}?before={later.pk}")) == first.pk
        assert shown(self.browser.get(f"{QUEUE}?before={first.pk}")) == first.pk

    def test_it_says_what_is_left_behind_the_last_one(self) -> None:
        row = held(self.alice)
        body = text(self.browser.get(f"{QUEUE}?after={row.pk}"))
        assert "That was the last one." in body and "1 still wait" in body

    def test_it_says_that_nothing_is_held(self) -> None:
        assert "Nothing is held." in text(self.browser.get(QUEUE))
        row = held(self.alice)
        holds.reject(row.pk, by=self.alice, now=at(days=2))
        body = text(self.browser.get(QUEUE))
        assert "Last decision: reject by alice" in body and "Undo" in body

    @pytest.mark.parametrize("after", ["x", "-1", "9" * 30, "٣", "12345"])
    def test_it_begins_at_the_beginning_when_the_place_is_nonsense(self, after: str) -> None:
        row = held(self.alice)
        assert shown(self.browser.get(QUEUE, {"after": after})) == row.pk

    def test_it_answers_htmx_with_the_card_alone(self) -> None:
        held(self.alice)
        body = text(htmx(self.browser).get(QUEUE))
        assert body.lstrip().startswith('<section id="hold"') and "<html" not in body
        again = {"HX-Request": "true", "HX-History-Restore-Request": "true"}
        assert "<html" in text(self.browser.get(QUEUE, headers=again))

    def test_it_hides_a_turn_that_its_owner_shows_to_nobody(self) -> None:
        row = held(self.alice, visibility="team")
        body = text(staff("reviewer", who=self.bob).get(url(row)))
        assert "does not show to you" in body and "Noted in passing" not in body
        assert "owner alice" in body

    def test_it_marks_the_span_in_a_long_turn_and_leaves_the_rest_out(self) -> None:
        said = "x " * 3_000 + OLD + " y" * 3_000
        item = turns(self.alice, [said], session="long")[0]
        new = note(self.alice, NEW, when=at(days=1))
        row = verdict(new, note(self.alice, OLD, evidence=item, confidence=0.8))
        body = text(self.browser.get(url(row)))
        assert f'<mark class="evidence">{OLD}</mark>' in body
        assert body.count("x x x") < 60 and "…" in body

    def test_it_shows_and_escapes_what_hides_in_texts(self) -> None:
        bad = "Ports \u202e are <img src=x onerror=alert(1)> set here."
        row = verdict(note(self.alice, bad, when=at(days=1)), note(self.alice, OLD, confidence=0.8))
        body = text(self.browser.get(url(row)))
        assert "<img" not in body and "&lt;img" in body
        assert "\u202e" not in body.split("hold-actions")[0], "fields hold it as it is"

    def test_it_gives_strangers_and_people_without_a_role_nothing(self) -> None:
        row = held(self.alice, visibility="team")
        stranger = staff("reviewer", who=self.charlie)
        assert shown(stranger.get(QUEUE)) is None
        assert stranger.get(url(row)).status_code == 404
        assert stranger.post(url(row, "approve")).status_code == 404
        nobody = staff(who=self.bob)
        for address in (QUEUE, LIST, url(row)):
            assert nobody.get(address).status_code == 404
        reader = staff("reader", who=self.bob)
        body = text(reader.get(url(row)))
        assert "Approve" not in body and shown(reader.get(url(row))) == row.pk
        assert "Approve those" not in text(reader.get(LIST))
        for address in (url(row, "approve"), reverse("admin:review-bulk"),
                        reverse("admin:review-edit", args=[row.pk])):  # fmt: skip
            assert reader.post(address).status_code == 404
        assert not Decision.objects.exists()

    def test_it_offers_no_decision_about_what_only_a_superuser_sees(self) -> None:
        row = held(self.charlie)
        root = staff("reviewer", who=self.alice, superuser=True)
        session = root.session
        session["all_owners"] = True
        session.save()
        response = root.get(QUEUE)
        assert shown(response) == row.pk and not response.context["hold"].may_decide
        assert root.post(url(row, "approve")).status_code == 404

    def test_it_asks_the_database_no_more_for_much_than_for_little(self) -> None:
        row = held(self.alice)
        one = asked(self.browser, QUEUE)
        assert row.target is not None
        for number in range(30):
            held(self.alice, days=number + 1)
            Injection.objects.create(
                owner=self.alice, mode="prompt", outcome="injected", session=f"s{number}",
                note_ids=[row.target_id, row.note_id],
            )  # fmt: skip
        many = asked(self.browser, QUEUE)
        assert "1 of 31" in many.body and "30 times" in many.body
        assert len(many) == len(one)
