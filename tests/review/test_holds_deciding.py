"""Deciding on the card of a hold, alone and two at once, and the way of a fact to it."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection
from django.test import Client
from django.urls import reverse

from memory.access import create_key, principal
from memory.models import Act, Decision, DedupVerdict, Note
from review import holds
from tests.factories import at, fresh, note, project, three, turns, verdict
from tests.review.holdpages import NEW, OLD, QUEUE, held, shown, text, url
from tests.web import htmx, staff


@pytest.mark.django_db
class TestDeciding:
    @pytest.fixture(autouse=True)
    def people(self) -> None:
        self.alice, self.bob, self.charlie = three()
        self.browser = staff("reviewer", who=self.alice)

    def test_it_decides_by_name_and_goes_on(self) -> None:
        first, second = held(self.alice), held(self.alice, days=5)
        response = self.browser.post(url(first, "approve"), {"reason": "seen it", "seen": "0"})
        assert response.status_code == 302
        following = self.browser.get(response["Location"])
        assert shown(following) == second.pk
        assert f"Verdict {first.pk} is now approved." in text(following)
        decision = Decision.objects.get()
        assert (decision.principal, decision.reason) == (self.alice, "seen it")
        act = Act.objects.get(kind="verdict")
        assert (act.principal, act.verb, act.reference, act.reason, act.door) == (
            self.alice, "approve", str(first.pk), "seen it", "page",
        )  # fmt: skip
        assert act.detail["before"] == "pending" and OLD not in json.dumps(act.detail)

    def test_it_answers_htmx_with_the_next_card_and_says_what_happened(self) -> None:
        first, second = held(self.alice), held(self.alice, days=5)
        response = htmx(self.browser).post(url(first, "reject"), {"seen": "0", "then": "next"})
        assert shown(response) == second.pk
        assert f"Verdict {first.pk} is now rejected." in response["HX-Trigger"]
        assert response.context["last"].pk == first.pk
        alone = htmx(self.browser).post(url(second, "reject"), {"seen": "0", "then": "same"})
        assert shown(alone) == second.pk and "rejected" in text(alone)

    def test_it_comes_back_to_what_was_skipped(self) -> None:
        first, second = held(self.alice), held(self.alice, days=5)
        response = htmx(self.browser).post(url(second, "reject"), {"seen": "0"})
        assert shown(response) == first.pk
        assert shown(htmx(self.browser).post(url(first, "reject"), {"seen": "0"})) is None

    def test_it_undoes_ones_last_decisions_one_after_the_other(self) -> None:
        first, second = held(self.alice), held(self.alice, days=5)
        third = held(self.alice, days=9, visibility="team")
        for row, verb in ((first, "approve"), (second, "reject")):
            self.browser.post(url(row, verb), {"seen": "0"})
        staff("reviewer", who=self.bob).post(url(third, "reject"), {"seen": "0"})
        for expected, status in ((second, "pending"), (first, "undone")):
            last = self.browser.get(QUEUE).context["last"]
            assert last.pk == expected.pk, "not what somebody else decided"
            sent = {"seen": str(last.newest), "then": "next"}
            response = htmx(self.browser).post(url(last, "undo"), sent)
            assert shown(response) == expected.pk
            expected.refresh_from_db()
            assert expected.status == status
            assert ("does not ask again" in text(response)) == (status == "undone")
        assert self.browser.get(QUEUE).context["last"] is None

    def test_it_tells_the_second_of_two_who_was_first_and_when(self) -> None:
        row = held(self.alice, visibility="team")
        holds.approve(row.pk, by=self.bob, now=at(days=2))
        for browser in (self.browser, htmx(self.browser)):
            response = browser.post(url(row, "reject"), {"seen": "0"})
            assert response.status_code == 409
            assert "by bob at 2026-03-04 09:00:00Z" in text(response)
        assert Decision.objects.count() == 1

    def test_it_decides_nothing_on_what_was_decided_and_undone_meanwhile(self) -> None:
        row = held(self.alice, visibility="team")
        holds.reject(row.pk, by=self.bob, now=at(days=2))
        holds.undo(row.pk, by=self.bob, now=at(days=3))
        response = self.browser.post(url(row, "approve"), {"seen": "0"})
        assert response.status_code == 409 and "undo by bob at 2026-03-05" in text(response)
        now = self.browser.get(url(row)).context["hold"].seen
        assert self.browser.post(url(row, "approve"), {"seen": str(now)}).status_code == 302

    def test_it_knows_no_other_verb_and_no_other_way(self) -> None:
        row = held(self.alice)
        assert self.browser.post(url(row, "delete")).status_code == 404
        assert self.browser.get(url(row, "approve")).status_code == 405
        assert self.browser.post(url(row, "reject"), {"reason": "x" * 1001}).status_code == 422
        assert not Decision.objects.exists()

    def test_it_approves_with_other_words_and_takes_both_back(self) -> None:
        row = held(self.alice)
        words = "Staging listens on port 9443 behind the new proxy."
        sent = {"title": "Port of staging", "content": words, "seen": "0", "reason": "clearer"}
        response = self.browser.post(reverse("admin:review-edit", args=[row.pk]), sent)
        assert response.status_code == 302, text(response)
        assert row.target is not None
        edited = Note.objects.as_pipeline().get(content=words)
        gone = [fresh(one).retired_reason for one in (row.target, row.note)]
        assert gone == ["superseded", "edited"] and edited.deleted_at is None
        last = self.browser.get(QUEUE).context["last"]
        assert last.pk == row.pk, "the hold, not its edit"
        self.browser.post(url(row, "undo"), {"seen": str(last.newest)})
        assert [fresh(one).deleted_at for one in (row.target, row.note)] == [None, None]
        assert fresh(edited).deleted_at is not None

    def test_it_writes_nothing_when_the_words_are_refused(self) -> None:
        row = held(self.alice)
        where = reverse("admin:review-edit", args=[row.pk])
        response = self.browser.post(where, {"title": "", "content": "", "seen": "0"})
        assert response.status_code == 422
        row.refresh_from_db()
        assert row.status == "pending" and not Decision.objects.exists()

    def test_it_is_a_plain_approval_when_no_word_was_changed(self) -> None:
        row = held(self.alice)
        sent = {"title": row.note.title, "content": row.note.content + "\r\n", "seen": "0"}
        self.browser.post(reverse("admin:review-edit", args=[row.pk]), sent)
        assert Decision.objects.get().action == "approve"
        assert fresh(row.note).deleted_at is None

    def test_it_links_the_card_to_the_span_in_the_raw_turn(self) -> None:
        shop = project()
        old, new = turns(self.alice, [OLD, NEW], session="posted")
        row = verdict(
            note(self.alice, NEW, evidence=new, when=at(days=1), project=shop),
            note(self.alice, OLD, evidence=old, confidence=0.8, project=shop),
        )
        body = text(self.browser.get(QUEUE))
        assert f"{reverse('admin:item', args=[new.pk])}?start=0&amp;end={len(NEW)}" in body
        assert "shop" in body and shown(self.browser.get(QUEUE)) == row.pk


def test_it_lets_one_of_two_browsers_decide_and_tells_the_other(clone_db: str) -> None:
    alice, bob, _ = three()
    rows = [held(alice, visibility="team", days=10 * number) for number in range(4)]
    browsers = [staff("reviewer", who=person) for person in (alice, bob)]
    start = threading.Barrier(2)

    def decide(job: tuple[Client, DedupVerdict, str]) -> tuple[int, str]:
        browser, row, verb = job
        try:
            start.wait(timeout=10)
            response = browser.post(url(row, verb), {"seen": "0"})
            return response.status_code, text(response)
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as pool:
        for row in rows:
            said = list(
                pool.map(decide, [(browsers[0], row, "approve"), (browsers[1], row, "reject")])
            )
            decided = Decision.objects.get(verdict=row)
            assert sorted(status for status, _ in said) == [302, 409]
            told = next(words for status, words in said if status == 409)
            assert f"by {decided.principal.name} at 20" in told


def test_it_takes_a_fact_from_capture_to_a_hold_on_the_page(
    clone_db: str, local: Callable[..., None]
) -> None:
    key, _ = create_key(owner="alice", scopes=["capture", "operate"])
    client = Client(headers={"authorization": f"Bearer {key}"})
    # Around it other words each day: a near copy of a turn is no evidence of its own.
    said = [
        f"Good morning. {OLD}",
        f"Thanks for waiting, the certificate was renewed in the meantime. {OLD}",
        f"{OLD} Billing has nothing to do with that, as far as anybody here can tell.",
        f"Somebody moved it over the weekend. {NEW}",
    ]
    for day, statement in enumerate(said):
        question = ["Where is staging?", "Which port is it?", "Deploys fail.", "And now?"][day]
        turns_of_it = [
            {
                "source": "claude-code",
                "role": role,
                "body": body,
                "session": f"s{day}",
                "cwd": "/home/alice/src/shop",
                "original_timestamp": at(minute, days=day).isoformat(),
            }
            for minute, (role, body) in enumerate([("user", question), ("assistant", statement)])
        ]
        batch = {"items": turns_of_it, "session_end": {"session": f"s{day}", "reason": "exit"}}
        for path, sent in (("/capture", batch), ("/process", {})):
            answer = client.post(path, json.dumps(sent), content_type="application/json")
            assert answer.status_code in (200, 201), answer.content
    row = DedupVerdict.objects.as_pipeline().get(status="pending")
    body = text(staff("reviewer", who=principal("alice")).get(QUEUE))
    assert f"supersede {row.pk}" in body and "<ins>9443</ins>" in body and "shop" in body
