"""Where it is asked from: named as capture names it, by every way of asking."""

from __future__ import annotations

from typing import Any

import pytest

from memory.models import Injection, Project, ProjectAlias
from recall.where import Facts, where
from tests.memory.posting import SECRET
from tests.recall.making import client, note, people

pytestmark = pytest.mark.django_db

PORT = "The staging database listens on port 5433."
ASKED = "Which port does the staging database use?"
WAYS = ["/recall/notes", "/recall/query", "/recall/context"]

BELOW = {"cwd": "/src/harbor/service/api", "git_root": "/src/harbor"}
TREE = {
    "cwd": "/tmp/trees/fix-7", "git_root": "/tmp/trees/fix-7",
    "git_common_dir": "/src/harbor/.git",
}  # fmt: skip
NAMED = {"cwd": "/tmp/scratch", "here": "harbor"}


@pytest.mark.parametrize("path", WAYS)
@pytest.mark.parametrize("place", [BELOW, TREE, NAMED], ids=["below", "worktree", "named"])
def test_it_finds_the_project_of_a_subfolder_a_worktree_and_a_name(path: str, place: Any) -> None:
    alice = people().alice
    note(alice, PORT, project="harbor")
    who = client(alice)
    asked = {} if path.endswith("context") else {"query": ASKED}
    got = who.get(path, asked | place).json()
    row = Injection.objects.as_pipeline().get(pk=got["injection"])
    assert row.project == Project.objects.get(name="harbor")
    assert who.get(path, asked | {"cwd": place["cwd"]}).status_code == 200
    alone = Injection.objects.as_pipeline().latest("pk")
    assert alone.project is None, "the folder alone would not have told"


def test_a_context_tells_the_notes_of_the_repository_of_a_subfolder() -> None:
    alice = people().alice
    note(alice, PORT, project="harbor")
    who = client(alice)
    assert PORT in who.get("/recall/context", BELOW).json()["text"]
    assert who.get("/recall/context", {"cwd": BELOW["cwd"]}).json()["text"] == ""


def test_where_one_is_leaves_nothing_out() -> None:
    alice = people().alice
    note(alice, PORT, project="harbor")
    got = client(alice).get("/recall/notes", {"query": ASKED, "here": "quay"}).json()
    assert PORT in got["text"]


def test_a_name_is_taken_through_its_alias_and_before_any_folder() -> None:
    alice = people().alice
    harbor = Project.objects.create(name="harbor")
    ProjectAlias.objects.create(name="port", project=harbor)
    place = where(principal=alice, cwd="/src/quay", facts=Facts("/src/quay", "", "port"))
    assert (place.project, place.project_id) == ("harbor", harbor.pk)


def test_it_keeps_nothing_secret_or_private_of_where_it_is() -> None:
    alice = people().alice
    dirty = f"a\x00 {SECRET} <private>hunter2</private>"
    place = where(
        principal=alice, session=dirty, cwd=f"/src/{dirty}", facts=Facts(dirty, dirty, dirty)
    )
    for text in (place.session, place.cwd, place.project or ""):
        assert SECRET not in text and "hunter2" not in text and "\x00" not in text


@pytest.mark.parametrize("path", ["/recall/notes", "/recall/query"])
def test_it_searches_for_nothing_private_and_keeps_none_of_it(path: str) -> None:
    alice = people().alice
    port = note(alice, PORT)
    other = note(alice, "Marjolein keeps the keys of the harbor office in her drawer.")
    who = client(alice)
    asked = f"{ASKED} <private>Where does Marjolein keep the keys of the office?</private>"
    got = who.get(path, {"query": asked, "explain": "1"}).json()
    shown = [one["id"] for one in got.get("notes", got.get("results"))]
    assert shown[0] == str(port.pk)
    searched = " ".join(got["words"])
    assert "port" in searched and not any(part in searched for part in ("marj", "privat", "key"))
    if path.endswith("notes"):
        assert str(other.pk) not in shown
    assert "Marjolein" not in Injection.objects.as_pipeline().get(pk=got["injection"]).query


def test_a_reason_keeps_nothing_private() -> None:
    alice = people().alice
    port = note(alice, PORT)
    answer = client(alice).post(
        f"/recall/notes/{port.pk}/feedback",
        {"verdict": "wrong", "reason": "It moved. <private>hunter2</private>"},
        content_type="application/json",
    )
    assert answer.status_code == 201 and answer.json()["reason"] == "It moved. [private]"
