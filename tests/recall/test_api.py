"""The doors of recall: /recall/context, /recall/notes and /recall/notes/<id>."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.conf import LazySettings
from django.test import Client

from memory.models import Injection, Note
from memory.text.fence import MARK
from tests.recall.making import NOW, client, note, notes, people, said

pytestmark = pytest.mark.django_db

ASKED = "Which port does the staging database use?"
PORT = "The staging database listens on port 5433."


def post(who: Client, path: str, body: Any) -> Any:
    data = body if isinstance(body, (str, bytes)) else json.dumps(body)
    return who.post(path, data, content_type="application/json")


def ask(who: Client, query: str = ASKED, **more: Any) -> dict[str, Any]:
    answer = post(who, "/recall/notes", {"query": query} | more)
    assert answer.status_code == 200, answer.content
    got: dict[str, Any] = answer.json()
    return got


def test_it_answers_a_prompt_by_post_and_by_get_alike() -> None:
    alice = people().alice
    port = note(alice, PORT, project="harbor")
    who = client(alice)
    posted = ask(who, cwd="/src/harbor", session="s1")
    got = who.get("/recall/notes", {"query": ASKED, "cwd": "/src/harbor", "session": "s1"})
    assert got.status_code == 200 and got.json()["text"] == posted["text"]
    assert "no-store" in got.headers["Cache-Control"]
    assert posted["outcome"] == "injected" and posted["notes"][0]["id"] == str(port.pk)
    assert posted["notes"][0]["content"] == PORT and posted["turns"] == []
    assert posted["degraded"] == [] and MARK in posted["text"]
    assert Injection.objects.as_pipeline().filter(owner=alice, session="s1").count() == 2


@pytest.mark.parametrize("path", ["/recall/notes", "/recall/query"])
def test_it_tells_every_number_when_asked_to_explain_and_few_otherwise(path: str) -> None:
    alice = people().alice
    note(alice, PORT)
    note(alice, "Semicolons separate the columns of the export.")
    who = client(alice)
    short = who.get(path, {"query": ASKED}).json()
    told = who.get(path, {"query": ASKED, "explain": "1"}).json()
    name = "notes" if path.endswith("notes") else "results"
    assert [one["id"] for one in short[name]] == [one["id"] for one in told[name]]
    assert "tracks" not in short[name][0] and "words" not in short
    first = told[name][0]
    assert first["tracks"]["semantic"]["rank"] == 1 and first["cleared"]
    assert sum(first["features"].values()) == pytest.approx(first["order"], abs=0.01)
    assert told["words"] and told["timings"] and told["reranking"]["reranked"] is False
    if name == "notes":
        assert [hit["injected"] for hit in told["weighed"]] == [True, False]
        assert told["weighed"][1]["refused"]


def test_it_answers_a_query_by_post_and_by_get_alike() -> None:
    alice = people().alice
    one, item = note(alice, PORT, project="harbor"), said(alice, f"Mind you: {PORT}")
    who = client(alice)
    got = who.get("/recall/query", {"query": ASKED, "limit": "5"})
    posted = post(who, "/recall/query", {"query": ASKED, "limit": 5})
    assert got.status_code == posted.status_code == 200
    assert "no-store" in got.headers["Cache-Control"]
    assert got.json()["results"] == posted.json()["results"]
    found = {(row["source"], str(row["id"])) for row in got.json()["results"]}
    assert found == {("note", str(one.pk)), ("turn", str(item.pk))}
    only = who.get("/recall/query", {"query": ASKED, "sources": "turn"}).json()["results"]
    assert [row["id"] for row in only] == [item.pk]
    of = who.get("/recall/query", {"query": ASKED, "project": "harbor"}).json()["results"]
    assert [row["id"] for row in of] == [str(one.pk)]


@pytest.mark.parametrize("path", ["/recall/notes", "/recall/query"])
def test_it_asks_about_the_past_by_the_door(path: str) -> None:
    alice = people().alice
    note(alice, PORT, valid_from=NOW - timedelta(days=30), valid_to=NOW - timedelta(days=10))
    note(alice, PORT.replace("5433", "6001"), valid_from=NOW - timedelta(days=10))
    who, name = client(alice), "notes" if path.endswith("notes") else "results"

    def contents(**at: str) -> list[str]:
        answer = who.get(path, {"query": ASKED} | at)
        assert answer.status_code == 200, answer.content
        return [row["content"] for row in answer.json()[name]]

    then = (NOW - timedelta(days=20)).isoformat()
    assert contents() == [PORT.replace("5433", "6001")]
    assert contents(as_of=then) == contents(as_of=then[:10]) == [PORT]
    assert contents(known_at="2020-01-01T00:00:00Z") == []
    assert who.get(path, {"query": ASKED, "as_of": "yesterday"}).status_code == 422


def test_it_keeps_to_the_callers_budget() -> None:
    alice = people().alice
    notes(alice, [f"The staging database listens on port 54{n}." for n in range(10, 30)])
    who = client(alice)
    few = ask(who, notes=2)
    assert len(few["notes"]) == 2
    short = ask(who, characters=500)
    assert 0 < len(short["notes"]) < 5 and len(short["text"]) <= 500
    assert short["omitted"] == 5 - len(short["notes"])
    got = post(who, "/recall/query", {"query": ASKED, "characters": 800}).json()
    assert len(got["results"]) + got["omitted"] == 20
    assert len(json.dumps(got["results"], separators=(",", ":"))) <= 900


def test_it_answers_silence_with_200_and_the_reason() -> None:
    got = ask(client(people().alice), "ok")
    assert (got["outcome"], got["gate"], got["text"], got["notes"]) == (
        "gated",
        "too_short",
        "",
        [],
    )
    assert got["detail"] and got["injection"]


def test_it_answers_the_context_of_a_session() -> None:
    alice = people().alice
    note(alice, PORT, project="harbor")
    got = client(alice).get("/recall/context", {"cwd": "/src/harbor", "session": "s1"}).json()
    assert got["outcome"] == "injected" and PORT in got["text"]
    assert got["notes"][0]["project"] == "harbor" and got["injection"]


def test_it_answers_one_note_and_404_for_somebody_elses() -> None:
    cast = people()
    one = note(cast.alice, PORT)
    path = f"/recall/notes/{one.pk}"
    assert client(cast.alice).get(path).json()["content"] == PORT
    for who in (cast.bob, cast.charlie):
        answer = client(who).get(path)
        assert answer.status_code == 404 and answer.json()["code"] == "not_found"
        assert PORT not in answer.content.decode()
    assert client(cast.alice).get("/recall/notes/not-an-id").status_code == 404


ZERO = f"/recall/notes/{'0' * 8}-0000-0000-0000-{'0' * 12}"
PATHS = ["/recall/context", "/recall/notes", "/recall/query", ZERO, "/recall/turns/1"]


@pytest.mark.parametrize("path", PATHS)
def test_it_wants_a_key_with_the_scope_recall(path: str) -> None:
    alice = people().alice
    nobody = Client().get(path, {"query": ASKED})
    assert nobody.status_code == 401 and nobody.headers["WWW-Authenticate"].startswith("Bearer")
    assert client(alice, "capture", "operate", "resolve").get(path).status_code == 403
    assert not Injection.objects.as_pipeline().exists()


def test_it_shows_every_reader_only_what_is_theirs_on_every_path() -> None:
    cast = people()
    mine = note(cast.alice, PORT, project="global")
    shared = note(cast.alice, f"{PORT} Shared.", project="global", visibility="team")
    spoken = said(cast.alice, f"Only said: {PORT}")
    told = said(cast.alice, f"Said to all of us: {PORT}", visibility="team")
    for who, seen in ((cast.alice, {mine, shared}), (cast.bob, {shared}), (cast.charlie, set())):
        as_who = client(who)
        for got in (ask(as_who), as_who.get("/recall/context").json()):
            assert {row["id"] for row in got["notes"]} == {str(one.pk) for one in seen}
        for one in (mine, shared):
            status = as_who.get(f"/recall/notes/{one.pk}").status_code
            assert status == (200 if one in seen else 404)
        heard = {mine: {spoken, told}, shared: {told}}.get(next(iter(seen & {mine}), shared), set())
        heard = heard if seen else set()
        queried = as_who.get("/recall/query", {"query": PORT}).json()
        assert {str(row["id"]) for row in queried["results"]} == {
            str(one.pk) for one in (*seen, *heard)
        }
        for item in (spoken, told):
            status = as_who.get(f"/recall/turns/{item.pk}").status_code
            assert status == (200 if item in heard else 404)


def test_it_takes_identity_from_the_key_and_from_nothing_else() -> None:
    cast = people()
    note(cast.alice, PORT)
    got = ask(client(cast.charlie), owner="alice", principal="alice", user_id=cast.alice.pk)
    assert got["notes"] == []


def test_it_lets_a_key_raise_the_floor_and_only_operate_lower_it(settings: LazySettings) -> None:
    alice = people().alice
    note(alice, PORT)
    score = ask(client(alice))["notes"][0]["score"]
    assert ask(client(alice), floor=score + 0.001)["outcome"] == "below_floor"
    settings.ARGUS = settings.ARGUS.model_copy(update={"recall_floor": score + 0.001})
    low = ask(client(alice), floor=0.0)
    assert low["outcome"] == "below_floor"
    assert low["floors"]["note"]["score"] == pytest.approx(score + 0.001, abs=1e-4)
    assert ask(client(alice, "recall", "operate"), floor=0.0)["outcome"] == "injected"
    row = Injection.objects.as_pipeline().latest("pk")
    assert row.floors["note"]["score"] == row.floors["turn"]["score"] == 0.0


@pytest.mark.parametrize(
    "body",
    [
        {}, {"query": 5}, {"query": None}, [], 7, None, {"query": ASKED, "floor": -1},
        {"query": ASKED, "floor": "high"}, {"query": ASKED, "session": "s" * 10_000},
        {"query": ASKED, "cwd": "c" * 100_000}, {"query": ASKED, "cwd": {"a": 1}},
    ],
)  # fmt: skip
def test_it_says_what_is_wrong_with_a_request(body: Any) -> None:
    answer = post(client(people().alice), "/recall/notes", body)
    assert answer.status_code == 422, answer.content
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert answer.json()["code"] == "invalid" and answer.json()["errors"]


@pytest.mark.parametrize(
    "body",
    [
        {}, {"query": ""}, {"query": "x" * 5_000}, {"query": ASKED, "limit": 0},
        {"query": ASKED, "limit": 51}, {"query": ASKED, "sources": "all of them"},
        {"query": ASKED, "characters": 1}, {"query": ASKED, "as_of": "soon"},
        {"query": ASKED, "project": "p" * 5_000},
    ],
)  # fmt: skip
def test_it_says_what_is_wrong_with_a_query(body: Any) -> None:
    answer = post(client(people().alice), "/recall/query", body)
    assert answer.status_code == 422, answer.content
    assert answer.json()["code"] == "invalid" and answer.json()["errors"]


@pytest.mark.parametrize("data", [b" ", b"{", b'{"query": NaN}', b"\xff\xfe", b"[" * 100_000])
def test_it_says_that_a_body_is_not_json(data: bytes) -> None:
    answer = post(client(people().alice), "/recall/notes", data)
    assert answer.status_code == 400 and answer.json()["code"] == "parse_error"


@pytest.mark.parametrize(
    "query",
    [
        "", "😀😀😀😀😀😀", "which port \x00 does the staging \ud83d database use",
        "C:\\repo\\src\\main.py & !x | (y a:*b '''", "'; DROP TABLE memory_note; -- 100% \\ %s",
        "ما هو منفذ قاعدة بيانات الاختبار", "适者生存的设备端口是哪个",
        "\u202ereversed staging database port use",
        "which port does the staging database use " + "x9 " * 330_000,
    ],
)  # fmt: skip
def test_it_answers_any_prompt_with_200_and_a_row(query: str) -> None:
    who = client(people().alice)
    got = ask(who, query)
    assert got["outcome"] in ("gated", "no_hits")
    assert Injection.objects.as_pipeline().filter(pk=got["injection"]).exists()
    if 0 < len(query) <= 4_000 and "\ud83d" not in query:
        answer = post(who, "/recall/query", {"query": query})
        assert (answer.status_code, answer.json()["results"]) == (200, [])


@pytest.mark.parametrize("project", ["a\x00b", "'; DROP TABLE x", "🔴", "%s{}"])
@pytest.mark.parametrize("path", ["/recall/notes", "/recall/query"])
def test_it_answers_any_project_with_200_and_nothing(path: str, project: str) -> None:
    alice = people().alice
    note(alice, PORT, project="harbor")
    answer = post(client(alice), path, {"query": ASKED, "project": project})
    assert answer.status_code == 200, answer.content
    assert not (answer.json().get("notes") or answer.json().get("results"))


def test_it_is_refused_by_capture_when_its_own_block_comes_back() -> None:
    alice = people().alice
    notes(
        alice,
        [f"The staging database number {n} listens on port 543{n} of host h{n}." for n in range(5)],
    )
    who = client(alice, "capture", "recall")
    block = ask(who)["text"]
    assert block

    def capture(body: str, at: int) -> dict[str, Any]:
        stamp = (NOW - timedelta(days=1, minutes=at)).isoformat()
        item = {"source": "claude-code", "role": "user", "session": "s", "body": body}
        answer = post(who, "/capture", item | {"original_timestamp": stamp})
        got: dict[str, Any] = answer.json()
        return got

    escaped = block.replace("<", "&lt;").replace(">", "&gt;")
    reminder = (
        f"<system-reminder>\nUserPromptSubmit hook additional context: {block}\n</system-reminder>"
    )
    bare = "\n".join(block.splitlines()[1:-1])
    for n, echo in enumerate([block, f"\n{block}\n", escaped, reminder, bare]):
        assert capture(echo, n)["refused"] in ("derived", "harness"), echo
    kept = capture(f"{block}\nNo: since today it is port 6000.", 9)
    assert kept["id"] and not kept["duplicate"]
    from memory.models import RawItem

    item = RawItem.objects.as_pipeline().get(pk=kept["id"])
    assert item.body == "No: since today it is port 6000." and item.flags["derived_stripped"]


def test_it_writes_one_row_a_call_whatever_comes_of_it() -> None:
    alice = people().alice
    note(alice, PORT)
    who = client(alice)
    for query in (ASKED, "ok", "Who won the football cup final in nineteen ninety?"):
        before = Injection.objects.as_pipeline().count()
        ask(who, query)
        assert Injection.objects.as_pipeline().count() == before + 1


def test_it_takes_the_longest_session_that_it_allows_in_any_script() -> None:
    alice = people().alice
    for session in ("".join(chr(0x4E00 + n * 37 % 20_000) for n in range(512)), "🔴" * 512):
        assert ask(client(alice), session=session)["outcome"] == "no_hits"


def test_it_changes_no_note() -> None:
    alice = people().alice
    note(alice, PORT)
    before = list(Note.objects.visible_to(alice).values())
    ask(client(alice))
    assert str(list(Note.objects.visible_to(alice).values())) == str(before)
