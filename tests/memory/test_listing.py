"""Lists of pages: filters, keys instead of offsets, bounded counts, exports that nothing runs."""

from __future__ import annotations

import csv
import io
import json
from datetime import datetime
from typing import Any
from urllib.parse import parse_qs

import pytest
from django.db import connection
from django.test import RequestFactory
from django.test.utils import CaptureQueriesContext

from memory.access import principal
from memory.models import Act, Principal
from memory.web import listing
from memory.web.listing import Choice, Column, Day, Listed, Words, list_rows
from tests.factories import at

pytestmark = pytest.mark.django_db

FILTERS = (
    Words("q", "Search", lambda rows, text: rows.filter(reference__icontains=text)),
    Choice("verb", "Verb", [("approve", "approved"), ("reject", "rejected")]),
    Day("since", "Since", "created_at__gte"),
    Day("until", "Until", "created_at__lt"),
)
COLUMNS = (Column("id", lambda row: row.pk), Column("reference", lambda row: row.reference))


@pytest.fixture
def alice() -> Principal:
    return principal("alice")


def acts(alice: Principal, count: int, **fields: Any) -> None:
    """Acts an hour apart; every two of them at the same moment."""
    Act.objects.bulk_create(
        Act(
            principal=alice,
            kind="note",
            **{"verb": "approve", "reference": f"n{number}", "created_at": at(hours=number // 2)}
            | fields,
        )
        for number in range(count)
    )


def ask(query: str = "", **how: Any) -> Listed:
    request = RequestFactory().get(f"/{query}")
    how = {"order": ("-created_at", "-pk"), "filters": FILTERS, "columns": COLUMNS} | how
    return list_rows(request, Act.objects.all(), **how)


def body(listed: Listed) -> str:
    assert listed.export is not None
    return b"".join(listed.export).decode()


def test_it_goes_to_the_end_and_back_over_every_row_once(alice: Principal) -> None:
    acts(alice, 27)
    seen: list[int] = []
    pages = [ask(page_rows=10)]
    while pages[-1].older:
        pages.append(ask(pages[-1].older, page_rows=10))
    seen = [row.pk for page in pages for row in page.rows]
    assert seen == list(Act.objects.order_by("-created_at", "-pk").values_list("pk", flat=True))
    assert [len(page.rows) for page in pages] == [10, 10, 7]
    assert not pages[0].newer
    back = ask(pages[-1].newer, page_rows=10)
    assert [row.pk for row in back.rows] == seen[10:20]
    first = ask(back.newer, page_rows=10)
    assert [row.pk for row in first.rows] == seen[:10]
    assert not first.newer and first.older


def test_it_counts_to_a_bound_and_never_the_table(alice: Principal) -> None:
    acts(alice, 9)
    with CaptureQueriesContext(connection) as queries:
        assert ask(counted_rows=5).total == "5+"
    counts = [one["sql"] for one in queries if "COUNT(" in one["sql"]]
    assert counts and all("LIMIT 6" in sql for sql in counts)
    assert "OFFSET" not in " ".join(one["sql"] for one in queries)


@pytest.mark.parametrize("query, found", [
    ("?q=n1", {"n1", "n10", "n11"}),
    ("?verb=approve", {f"n{n}" for n in range(12)}),
    ("?verb=odd", set()),
    ("?since=2026-03-02&until=2026-03-02", {f"n{n}" for n in range(12)}),
    ("?until=2026-03-01", set()),
    ("?since=2026-99-99", {f"n{n}" for n in range(12)}),
    ("?until=9999-12-31", {f"n{n}" for n in range(12)}),
    ("?q=%00n11", {"n11"}),
])  # fmt: skip
def test_it_narrows_by_what_is_given(alice: Principal, query: str, found: set[str]) -> None:
    acts(alice, 12)
    listed = ask(query)
    assert {row.reference for row in listed.rows} == found


def test_it_keeps_filters_on_the_way_and_starts_anew_after_a_cursor_of_nobody(
    alice: Principal,
) -> None:
    acts(alice, 12)
    listed = ask("?q=n&after=W251bGxd", page_rows=5)
    assert len(listed.rows) == 5
    assert parse_qs(listed.older[1:])["q"] == ["n"]
    for made_up in ("x", "W10", "WyIyMDI2LTAzLTAyIiwgMV0", "bnVsbA", "WzEsIDFd", "/////w"):
        assert len(ask(f"?after={made_up}", page_rows=5).rows) == 5


def test_it_begins_anew_when_what_came_before_is_gone(alice: Principal) -> None:
    acts(alice, 8)
    second = ask(ask(page_rows=4).older, page_rows=4)
    assert second.newer
    # The rows of the first page leave the filter while somebody reads the second one.
    gone = [row.pk for row in Act.objects.order_by("-created_at", "-pk")[:4]]
    kept = Act.objects.exclude(pk__in=gone)
    request = RequestFactory().get(f"/{second.newer}")
    listed = list_rows(request, kept, order=("-created_at", "-pk"), page_rows=4)
    assert [row.pk for row in listed.rows] == [row.pk for row in second.rows]
    assert not listed.newer


def test_it_takes_no_cursor_of_another_list(alice: Principal) -> None:
    acts(alice, 8)
    other = ask(page_rows=4, order=("-pk",))
    assert [row.pk for row in ask(other.older, page_rows=4).rows] == [
        row.pk for row in ask(page_rows=4).rows
    ]


def test_it_exports_all_that_is_filtered(alice: Principal) -> None:
    acts(alice, 120)
    told = json.loads(body(ask("?format=json&q=n1")))
    wanted = [row.reference for row in Act.objects.filter(reference__contains="n1")]
    assert sorted(row["reference"] for row in told) == sorted(wanted)
    rows = list(csv.DictReader(io.StringIO(body(ask("?format=csv")))))
    assert len(rows) == 120
    assert ask("?format=xml").export is None


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1"])
def test_it_exports_no_formula(alice: Principal, text: str) -> None:
    acts(alice, 1, reference=text)
    cell = list(csv.reader(io.StringIO(body(ask("?format=csv")), newline="")))[1][1]
    assert cell == f"'{text}"


def test_it_exports_moments_and_lists_as_they_are() -> None:
    assert listing._cell(datetime(2026, 3, 2)) == "2026-03-02T00:00:00"
    assert listing._cell(["é", 1]) == '["é", 1]'
    assert listing._cell(-1.5) == "-1.5"
    assert listing._cell(None) == ""


def test_it_begins_with_what_is_usual_and_goes_back_to_everything(alice: Principal) -> None:
    acts(alice, 3)
    acts(alice, 2, verb="reject")
    usual = Choice("verb", "Verb", [("approve", "approved"), ("reject", "rejected")],
                   default="reject")  # fmt: skip
    listed = ask("?view=list", filters=(usual,), keep=("view",))
    assert {row.verb for row in listed.rows} == {"reject"}
    assert parse_qs(listed.cleared[1:], keep_blank_values=True) == {"view": ["list"], "verb": [""]}
    assert len(ask(listed.cleared, filters=(usual,)).rows) == 5
