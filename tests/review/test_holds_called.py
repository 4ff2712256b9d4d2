"""Beside the queue: the live notes that the viewer called wrong or outdated, counted."""

from __future__ import annotations

import re
from html import unescape

import pytest
from django.urls import reverse

from memory.models import Feedback, Note, Principal
from review.shown import holds as shown_holds
from tests.factories import at, note, three
from tests.review.holdpages import LIST, QUEUE, held, text, url
from tests.web import asked, htmx, staff


@pytest.mark.django_db
class TestCalled:
    @pytest.fixture(autouse=True)
    def people(self) -> None:
        self.alice, self.bob, self.charlie = three()
        self.browser = staff("reviewer", who=self.alice)

    def test_it_tells_of_live_notes_that_the_viewer_called_wrong_or_outdated(self) -> None:
        row = held(self.alice)
        assert row.target
        said = "that you called wrong or outdated"
        assert said not in text(self.browser.get(QUEUE))

        def say(one: Note, word: str, who: Principal) -> None:
            Feedback.objects.create(note=one, principal=who, verdict=word, created_at=at(days=9))

        say(row.note, "useful", self.alice)
        say(row.note, "wrong", self.bob)
        assert said not in text(self.browser.get(QUEUE))
        say(row.note, "wrong", self.alice)
        for address in (QUEUE, LIST):
            body = text(self.browser.get(address))
            assert f"1 note</a> {said} is still live." in body
        say(row.target, "outdated", self.alice)
        body = text(self.browser.get(QUEUE))
        assert f"2 notes</a> {said} are still live." in body
        link = re.search(r'<p class="hold-called" id="hold-called"><a href="([^"]+)"', body)
        assert link
        found = text(self.browser.get(unescape(link[1])))
        assert all(
            reverse("admin:note", args=[one]) in found for one in (row.note_id, row.target_id)
        )
        # Neither where a hold is looked at alone, nor in a piece of a page.
        assert said not in text(self.browser.get(url(row)))
        assert said not in text(htmx(self.browser).get(QUEUE))
        say(row.note, "withdrawn", self.alice)
        Note.objects.as_pipeline().filter(pk=row.target_id).update(
            deleted_at=at(days=9), retired_reason="retired"
        )
        assert said not in text(self.browser.get(QUEUE))

    def test_it_tells_so_anew_with_every_decision_in_the_queue(self) -> None:
        first, second = held(self.alice), held(self.alice, days=5)
        for row in (first, second):
            assert row.target
            Feedback.objects.create(note=row.target, principal=self.alice, verdict="wrong")
        assert "2 notes</a> that you called" in text(self.browser.get(QUEUE))
        browser, beside = htmx(self.browser), 'id="hold-called" hx-swap-oob="true"'
        one = text(browser.post(url(first, "approve"), {"seen": "0", "then": "next"}))
        assert f"{beside}><a href=" in one and "1 note</a> that you called" in one
        none = text(browser.post(url(second, "approve"), {"seen": "0", "then": "next"}))
        assert f"{beside} hidden></p>" in none
        newest = self.browser.get(QUEUE).context["last"].newest
        back = text(browser.post(url(second, "undo"), {"seen": str(newest), "then": "next"}))
        assert beside in back and "1 note</a> that you called" in back
        seen = str(self.browser.get(url(second)).context["hold"].seen)
        alone = text(browser.post(url(second, "reject"), {"seen": seen, "then": "same"}))
        assert "hold-called" not in alone, "no such line where a hold is looked at alone"

    def test_it_counts_those_to_a_bound_with_as_many_queries_as_one(self) -> None:
        def wrong(many: int) -> None:
            for number in range(many):
                one = note(self.alice, f"{many} {number}.", when=at(days=number / 100))
                Feedback.objects.create(note=one, principal=self.alice, verdict="wrong")

        wrong(1)
        one = asked(self.browser, QUEUE)
        wrong(shown_holds.CALLED_MAX)
        many = asked(self.browser, QUEUE)
        assert len(many) == len(one)
        assert "100+ notes</a> that you called wrong or outdated are still live." in many.body

    def test_it_counts_what_is_live_whatever_was_said_since_of_others(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(shown_holds, "CALLED_WORDS_MAX", 3)
        first, again, gone, ended = (note(self.alice, f"Fact {n}.", when=at(n)) for n in range(4))

        def wrong(one: Note, times: int = 1) -> None:
            for _ in range(times):
                Feedback.objects.create(note=one, principal=self.alice, verdict="wrong")

        wrong(first)
        wrong(again, 4)
        wrong(gone, 4)
        wrong(ended, 4)
        notes = Note.objects.as_pipeline()
        notes.filter(pk=gone.pk).update(deleted_at=at(days=1), retired_reason="retired")
        notes.filter(pk=ended.pk).update(valid_to=at(days=1))
        body = text(self.browser.get(QUEUE))
        assert "2 notes</a> that you called wrong or outdated are still live." in body
        listed = text(self.browser.get(f"{reverse('admin:notes')}?state=live&called=off"))
        assert listed.count("data-row") == 2
        past = f"{reverse('admin:notes')}?state=retired&called=off"
        assert text(self.browser.get(past)).count("data-row") == 1
