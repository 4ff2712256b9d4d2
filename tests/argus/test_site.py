"""The ground of every page: login, roles, the frame, and what a page may not do."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError, connection
from django.test import Client
from django.urls import reverse

from memory.access import principal
from memory.models import Act, Principal
from memory.web.viewer import principal_of
from tests import web

pytestmark = pytest.mark.django_db


def test_it_asks_strangers_for_a_login() -> None:
    answer = Client().get("/ui/notes/")
    assert answer.status_code == 302
    assert answer["Location"] == "/ui/login/?next=/ui/notes/"


def test_it_shows_its_login_page_under_the_policy() -> None:
    answer = Client().get("/ui/login/")
    assert answer.status_code == 200
    policy = answer["Content-Security-Policy"]
    assert "script-src 'self' 'unsafe-eval'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "'unsafe-eval'" not in Client().get("/healthz")["Content-Security-Policy"]


def test_it_locks_out_who_guesses_passwords_and_nobody_else() -> None:
    web.user("alice", "reader")
    browser = Client()
    told = {"username": "alice", "password": "wrong"}
    tries = [browser.post("/ui/login/", told).status_code for _ in range(6)]
    assert tries[0] == 200
    assert tries[-1] == 429
    right = {"username": "alice", "password": web.PASSWORD}
    locked = browser.post("/ui/login/", right)
    assert locked.status_code == 429
    assert int(locked["Retry-After"]) > 0
    elsewhere = Client(REMOTE_ADDR="192.0.2.7").post("/ui/login/", right)
    assert elsewhere.status_code == 302


def test_it_refuses_a_host_that_is_not_its_own() -> None:
    assert Client(headers={"Host": "evil.example"}).get("/ui/login/").status_code == 400


def test_it_takes_no_post_without_its_token() -> None:
    web.user("alice", "reviewer", superuser=True)
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(
        User.objects.get(username="alice"), "django.contrib.auth.backends.ModelBackend"
    )
    answer = browser.post(
        reverse("admin:owners"), {"all": "on"}, headers={"Origin": "http://evil.example"}
    )
    assert answer.status_code == 403
    assert not Act.objects.filter(kind="owners").exists()


def test_a_user_becomes_a_principal_of_its_own_and_no_namesake() -> None:
    theirs = principal("alice")
    user = User.objects.create_user("alice", is_staff=True)
    mine = principal_of(user)
    assert mine != theirs
    assert principal_of(user) == mine
    assert Principal.objects.get(pk=theirs.pk).user is None


class TestAllOwners:
    def test_a_superuser_asks_for_it_and_each_look_is_an_act(self) -> None:
        browser = web.staff("reader", superuser=True)
        browser.post(reverse("admin:owners"), {"all": "on"})
        before = Act.objects.filter(verb="see_all").count()
        browser.get(reverse("admin:notes"))
        assert Act.objects.filter(verb="see_all", kind="owners").count() == before + 1
        browser.post(reverse("admin:owners"), {"all": "off"})
        browser.get(reverse("admin:notes"))
        assert Act.objects.filter(verb="see_all").count() <= before + 2

    def test_it_is_for_nobody_else(self) -> None:
        browser = web.staff("reviewer")
        assert browser.post(reverse("admin:owners"), {"all": "on"}).status_code == 404


def test_it_says_that_the_database_is_away() -> None:
    web.user("alice", "reader")
    browser = Client(raise_request_exception=False)
    browser.force_login(
        User.objects.get(username="alice"), "django.contrib.auth.backends.ModelBackend"
    )
    connection.ensure_connection()
    with connection.execute_wrapper(_away):
        answer = browser.get("/ui/notes/")
    assert answer.status_code == 503
    assert int(answer["Retry-After"]) > 0
    assert "The database does not answer" in answer.content.decode()


def _away(*args: object) -> None:
    raise OperationalError("the server closed the connection")
