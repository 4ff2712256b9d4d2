"""What a browser may do with our pages."""

from __future__ import annotations

import re

import pytest
from django.test import Client


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["/ui/login/", "/healthz", "/recall/context"])
def test_it_sends_a_strict_policy_with_every_answer(client: Client, path: str) -> None:
    answer = client.get(path)
    policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'self'" in policy and "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy


@pytest.mark.django_db
def test_it_needs_nothing_inline_to_log_in(client: Client) -> None:
    page = client.get("/ui/login/").content.decode()
    assert "<form" in page
    assert not re.search(r"<script(?![^>]*\bsrc=)|\sstyle=|\son\w+=|<style", page)
