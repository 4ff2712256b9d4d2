"""Holds as a list: narrowed, paged, exported, and many decided at once."""

from __future__ import annotations

import csv
from io import StringIO
from typing import Any

import pytest
from django.urls import reverse

from memory.models import Decision
from review import holds
from tests.factories import at, fresh, note, project, three, verdict
from tests.review.holdpages import LIST, NEW, OLD, QUEUE, held, text
from tests.web import asked, staff


@pytest.mark.django_db
class TestList:
    @pytest.fixture(autouse=True)
    def people(self) -> None:
        self.alice, self.bob, self.charlie = three()
        self.browser = staff("reviewer", who=self.alice)

    def rows(self, **given: str) -> list[int]:
        response = self.browser.get(QUEUE, {"view": "list"} | given)
        return [row.pk for row in response.context["listed"].rows]

    def test_it_narrows_by_every_filter(self) -> None:
        first, second = held(self.alice), held(self.alice, days=5)
        third = verdict(
            note(self.alice, "Backups run at noon.", when=at(days=9), project=project()),
            note(self.alice, "Backups run at night.", when=at(days=8), confidence=0.3),
            kind="refine", similarity=0.62, reasoning="more exact", model_real="rules",
        )  # fmt: skip
        held(self.charlie)
        holds.approve(second.pk, by=self.alice, now=at(days=7))
        assert self.rows() == [third.pk, second.pk, first.pk]
        assert self.rows(status="pending") == [first.pk, third.pk], "oldest first"
        assert self.rows(status="settled") == self.rows(status="approved") == [second.pk]
        assert self.rows(kind="refine") == self.rows(q="night") == [third.pk]
        assert self.rows(q=str(first.pk)) == [first.pk]
        assert self.rows(q="more exact") == self.rows(judge="rule") == [third.pk]
        assert self.rows(similarity="90") == [second.pk, first.pk]
        assert self.rows(similarity="50") == self.rows(confidence="0") == [third.pk]
        assert self.rows(project=str(project().pk)) == [third.pk]
        assert self.rows(project="none") == [second.pk, first.pk]
        assert self.rows(since="2026-03-10", until="2026-03-12") == [third.pk]
        assert self.rows(status="nonsense") == self.rows(project="x") == []
        assert "Nothing is like that." in text(self.browser.get(LIST + "&q=nowhere"))

    def test_it_pages_by_keys_and_exports_what_is_filtered(self) -> None:
        made = [held(self.alice, days=number) for number in range(32)]
        waits = {"view": "list", "status": "pending"}
        first = self.browser.get(QUEUE, waits)
        assert [row.pk for row in first.context["listed"].rows] == [row.pk for row in made[:30]]
        older = self.browser.get(f"{QUEUE}{first.context['listed'].older}")
        assert [row.pk for row in older.context["listed"].rows] == [row.pk for row in made[30:]]
        exported = self.browser.get(QUEUE, waits | {"format": "csv", "since": "2026-04-02"})
        content = b"".join(exported.streaming_content).decode()  # type: ignore[attr-defined]
        lines = list(csv.DictReader(StringIO(content)))
        assert [int(line["verdict"]) for line in lines] == [row.pk for row in made[30:]]
        assert (lines[0]["old"], lines[0]["new"], lines[0]["status"]) == (OLD, NEW, "pending")

    def test_it_asks_the_database_no_more_for_thirty_rows_than_for_one(self) -> None:
        held(self.alice)
        one = asked(self.browser, LIST)
        for number in range(29):
            held(self.alice, days=number + 1)
        many = asked(self.browser, LIST)
        assert many.body.count("<tr data-row>") == 30 and len(many) == len(one)

    def bulk(self, verb: str, *chosen: str, **more: str) -> Any:
        sent = {"verb": verb, "chosen": list(chosen), **more}
        return self.browser.post(reverse("admin:review-bulk"), sent)

    def test_it_lists_what_would_change_before_it_does_many(self) -> None:
        rows = [held(self.alice, days=3 * number) for number in range(3)]
        chosen = [f"{row.pk}:0" for row in rows]
        body = text(self.bulk("approve", *chosen, "99999999:0"))
        assert "Approve 3 verdicts?" in body and "1 of those selected is not there" in body
        assert body.count('name="chosen"') == 3 and not Decision.objects.exists()
        done = self.bulk("approve", *chosen, sure="1", reason="all seen")
        assert "3 done" in text(done) and done.status_code == 200
        decided = Decision.objects.values_list("action", "reason")
        assert list(decided) == [("approve", "all seen")] * 3
        undone = self.bulk("undo", *(str(row.pk) for row in rows), sure="1")
        assert "3 done" in text(undone)
        assert all(fresh(row.target).deleted_at is None for row in rows if row.target)

    def test_it_asks_as_often_before_it_does_many_as_before_it_does_one(self) -> None:
        rows = [held(self.alice, days=3 * number) for number in range(20)]
        many = [f"{row.pk}:0" for row in rows]
        one, all_of_them = (
            asked(self.browser, reverse("admin:review-bulk"), {"verb": "approve", "chosen": chosen})
            for chosen in (many[:1], many)
        )
        assert all_of_them.body.count('name="chosen"') == 20
        assert len(all_of_them) == len(one), all_of_them.statements[-1]

    def test_it_does_the_others_when_one_cannot_be_done_and_says_so(self) -> None:
        first, second = held(self.alice), held(self.alice, days=5, visibility="team")
        chosen = [f"{first.pk}:0", f"{second.pk}:0"]
        holds.reject(second.pk, by=self.bob, now=at(days=9))
        assert "It is rejected and stays so." in text(self.bulk("approve", *chosen))
        done = self.bulk("approve", *chosen, sure="1")
        assert "1 done, 1 not" in text(done) and "rejected by bob" in text(done)
        none = self.bulk("approve", *chosen, sure="1")
        assert none.status_code == 409 and Decision.objects.count() == 2

    def test_it_refuses_nothing_too_much_and_another_verb(self) -> None:
        row = held(self.alice)
        assert self.bulk("approve").status_code == 422
        assert self.bulk("approve", "x", ":").status_code == 422
        assert self.bulk("purge", f"{row.pk}:0").status_code == 422
        many = [f"{number}:0" for number in range(1, holds.CHOSEN_MAX + 2)]
        assert self.bulk("approve", *many).status_code == 422
        assert not Decision.objects.exists()
