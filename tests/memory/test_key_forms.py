"""One form makes one key, however often its button is pressed."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client

from memory.models import AccessKey, Act, Principal
from tests.factories import three
from tests.web import staff


def form(browser: Client) -> str:
    found = re.search(r'name="form" value="([^"]+)"', browser.get("/ui/keys/").content.decode())
    assert found is not None
    return found[1]


@pytest.fixture
def alice(db: None) -> Principal:
    return three()[0]


def press(browser: Client, token: str) -> Any:
    return browser.post("/ui/keys/make", {"name": "tower", "scope": ["recall"], "form": token})


def test_it_makes_one_key_of_two_presses_and_says_so(alice: Principal) -> None:
    browser = staff("operator", who=alice)
    token = form(browser)
    assert press(browser, token).status_code == 200
    again = press(browser, token)
    key = AccessKey.objects.get()
    assert again.status_code == 409 and f"{key.prefix} was made" in again.content.decode()
    assert Act.objects.filter(kind="key").count() == 1
    assert press(browser, form(browser)).status_code == 200
    assert AccessKey.objects.count() == 2


def test_it_takes_no_form_of_somebody_else_or_made_up(alice: Principal) -> None:
    token = form(staff("operator", who=alice))
    other = staff("operator", who=three()[1])
    for given in (token, "deadbeef", "x" * 5_000):
        assert press(other, given).status_code == 422
    assert not AccessKey.objects.exists()
