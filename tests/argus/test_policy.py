"""What a browser may do with our pages."""

from __future__ import annotations

import re

import pytest
from django.test import Client

#: What every reply says to a browser.
HEADERS = (
    "Content-Security-Policy",
    "X-Frame-Options",
    "X-Content-Type-Options",
    "Referrer-Policy",
    "Cross-Origin-Opener-Policy",
)


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["/healthz", "/recall/context", "/hook/"])
def test_it_sends_a_strict_policy_with_every_answer(client: Client, path: str) -> None:
    answer = client.get(path)
    policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'self'" in policy and "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy


@pytest.mark.django_db
def test_it_makes_one_exception_for_the_theme_and_no_other(client: Client) -> None:
    policy = client.get("/ui/login/").headers["Content-Security-Policy"]
    assert "default-src 'self'" in policy and "frame-ancestors 'none'" in policy
    allowed = {part.strip() for part in policy.split(";")}
    assert "script-src 'self' 'unsafe-eval'" in allowed
    assert "style-src 'self' 'unsafe-inline'" in allowed
    assert policy.count("unsafe") == 2


@pytest.mark.django_db
def test_it_needs_no_inline_script_to_log_in(client: Client) -> None:
    page = client.get("/ui/login/").content.decode()
    assert "<form" in page
    assert not re.search(r"<script(?![^>]*\bsrc=)|\son\w+=", page)


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["/api/schema", "/ui/login/", "/ui/notes/", "/recall/context"])
def test_it_tells_a_foreign_host_no_less_than_its_own(client: Client, path: str) -> None:
    own, foreign = client.get(path), client.get(path, headers={"Host": "evil.example"})
    assert foreign.status_code == 400
    for name in HEADERS:
        assert foreign.headers[name] == own.headers[name], name


def test_it_says_it_of_a_file_and_of_an_address_that_nobody_serves(client: Client) -> None:
    for path, status in (("/static/argus.svg", 200), ("/nobody/serves/this", 404)):
        answer = client.get(path)
        assert answer.status_code == status
        assert "default-src 'self'" in answer.headers["Content-Security-Policy"]
        assert set(HEADERS) <= set(answer.headers)
        answer.close()
