"""What somebody searched for is said again no longer than it is searched for."""

from __future__ import annotations

import pytest
from django.urls import reverse

from tests.factories import three
from tests.web import staff

pytestmark = pytest.mark.django_db

#: More of an answer than its frame and a search take, and far less than what is asked with.
ANSWER_CHARACTERS_MAX = 60_000
LONG = "x" * 360_000


@pytest.mark.parametrize(
    ("page", "name"),
    [("notes", "q"), ("episodes", "said"), ("episodes", "other"), ("ask", "q"), ("ask", "cwd")],
)
def test_it_answers_a_long_address_with_a_short_page(page: str, name: str) -> None:
    browser = staff("reader", who=three()[0])
    where = reverse(f"admin:{page}")
    usual = len(browser.get(where).content)
    answer = browser.get(where, {name: LONG})
    assert answer.status_code == 200
    assert len(answer.content) < usual + ANSWER_CHARACTERS_MAX
