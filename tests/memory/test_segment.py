"""How: turns through the real capture verb, vectors from the scripted server, rows read back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import datetime

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from memory.claims import CONTENT_FAILURES_MAX
from memory.models import (
    Attribution,
    Centroid,
    Claim,
    Episode,
    EpisodeTurn,
    LlmCall,
    Principal,
    SegmentCheck,
    Session,
    StageRun,
    TurnVector,
)
from memory.stages import segment as stage
from memory.stages.segment import SegmentReport, segment
from tests.factories import at, clock, end_session, three, turns
from tests.hashing_embedder import vector_of
from tests.openai_server import EMBEDDINGS, OpenAIServer, Scripted, fails, gives

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("local")]

Configure = Callable[..., None]
DATABASE = "The Postgres migration adds an index on the orders table, batch {}."
KITCHEN = "Chop onions, fry garlic slowly, season soup with thyme, pot {}00."


@pytest.fixture
def alice() -> Principal:
    return three()[0]


def episodes() -> list[Episode]:
    return list(Episode.objects.as_pipeline().order_by("started_at", "pk"))


def shapes() -> list[tuple[int, str]]:
    return [(one.turn_count, one.boundary_reason) for one in episodes()]


def run(now: datetime, limit: int | None = None) -> SegmentReport:
    return segment(clock=clock(now), limit=limit)


def lines(count: int, text: str = DATABASE) -> list[str]:
    return [text.format(number) for number in range(count)]


def test_it_closes_episodes_by_size_and_pause_and_counts_them(alice: Principal) -> None:
    turns(alice, lines(25))
    first = run(at(25))
    assert (first.sessions, first.turns, first.episodes, first.open) == (1, 20, 1, 1)
    second = run(at(60))
    assert (second.turns, second.episodes, second.open) == (5, 1, 0)
    assert second.reasons == {"gap": 1}
    assert shapes() == [(20, "size"), (5, "gap")]
    assert not Session.objects.filter(pending=True).exists()
    row = StageRun.objects.filter(stage="segment").latest("pk")
    assert (row.status, row.report["episodes"], row.report["open"]) == ("done", 1, 0)
    assert all(one.run_id for one in episodes())


def test_it_leaves_the_tail_open_until_the_session_ends(alice: Principal) -> None:
    turns(alice, lines(3))
    run(at(3))
    assert shapes() == []
    end_session(alice, now=at(4))
    run(at(5))
    assert shapes() == [(3, "session_end")]


def test_it_goes_on_when_a_session_speaks_again_after_its_end(alice: Principal) -> None:
    turns(alice, lines(3))
    end_session(alice, now=at(4))
    run(at(5))
    turns(alice, [KITCHEN.format(1), KITCHEN.format(2)], start=at(6))
    run(at(8))
    assert shapes() == [(3, "session_end")]
    run(at(60))
    assert shapes() == [(3, "session_end"), (2, "gap")]


def test_it_cuts_where_the_topic_shifts_with_score_and_threshold(alice: Principal) -> None:
    turns(alice, lines(6) + lines(6, KITCHEN))
    run(at(90))
    assert shapes() == [(6, "topic"), (6, "gap")]
    look = SegmentCheck.objects.get(check_kind="topic", fired=True)
    assert look.score is not None and look.threshold is not None
    assert look.score < look.threshold and look.raw_item.body == KITCHEN.format(0)
    assert episodes()[0].boundary_score == look.score


def test_it_cuts_alike_in_one_go_and_in_many(alice: Principal) -> None:
    _, bob, _ = three()
    said = lines(9) + lines(24, KITCHEN) + lines(16)[9:]
    turns(alice, said)
    run(at(200))
    for number, body in enumerate(said):
        turns(bob, [body], start=at(number))
        run(at(number))
    run(at(200))
    shape: dict[str, list[tuple[int, str, float | None]]] = {"alice": [], "bob": []}
    for one in episodes():
        shape[one.owner.name].append((one.turn_count, one.boundary_reason, one.boundary_score))
    assert shape["alice"] == shape["bob"] and len(shape["alice"]) >= 3
    looks = Counter(
        SegmentCheck.objects.values_list("raw_item__body", "check_kind", "score", "fired")
    )
    # Every look of the one is a look of the other, and none was written twice.
    assert set(looks.values()) == {2}


def test_it_writes_each_look_once_however_often_it_runs(alice: Principal) -> None:
    turns(alice, lines(10))
    for minute in (10, 11, 12):
        run(at(minute))
    kinds = Counter(SegmentCheck.objects.values_list("check_kind", "raw_item"))
    assert kinds and set(kinds.values()) == {1}


def test_it_opens_a_late_episode_and_changes_no_closed_one(alice: Principal) -> None:
    turns(alice, lines(4), start=at(10), step_minutes=5)
    run(at(100))
    before = Episode.objects.as_pipeline().values().get()
    turns(
        alice, ["This came late from another machine.", "So did this."], start=at(12), now=at(101)
    )
    report = run(at(102))
    assert report.late == 1
    late = Episode.objects.as_pipeline().get(late=True)
    assert late.turn_count == 2
    assert Episode.objects.as_pipeline().filter(pk=before["id"]).values().get() == before


def test_it_keeps_late_turns_and_new_ones_apart(alice: Principal) -> None:
    turns(alice, lines(2), start=at(10))
    run(at(100))
    turns(alice, ["A late word about the index."], start=at(5), now=at(100))
    turns(alice, ["A new word about the index."], start=at(100), now=at(100))
    run(at(101))
    run(at(200))
    assert [(one.turn_count, one.late) for one in episodes()] == [(1, True), (2, False), (1, False)]


def test_it_says_not_checked_while_the_embedder_is_away_and_cuts_by_topic_later(
    alice: Principal, server: OpenAIServer
) -> None:
    turns(alice, lines(6) + lines(6, KITCHEN))
    server.script(EMBEDDINGS, *[fails(503)] * 2)
    report = run(at(12))
    assert report.not_checked == 12 and shapes() == []
    assert SegmentCheck.objects.filter(check_kind="topic", outcome="not_checked").exists()
    server.scripts[EMBEDDINGS].clear()
    connection.cursor().execute("DELETE FROM memory_cooldown")
    run(at(13))
    assert shapes() == [(6, "topic")]
    assert SegmentCheck.objects.filter(outcome="not_checked", fired=True).count() == 0


def test_it_cuts_by_size_and_pause_without_any_embedder(
    alice: Principal, server: OpenAIServer
) -> None:
    turns(alice, lines(22) + lines(3, KITCHEN))
    server.script(EMBEDDINGS, fails(503))
    run(at(90))
    assert shapes() == [(20, "size"), (5, "gap")]
    assert not TurnVector.objects.exists()


def test_it_goes_without_the_vector_of_one_bad_turn(alice: Principal, server: OpenAIServer) -> None:
    turns(alice, lines(5))
    server.script(EMBEDDINGS, gives([[float("nan")] * 768] + [[1.0] + [0.0] * 767] * 4))
    run(at(60))
    assert shapes() == [(5, "gap")]
    assert TurnVector.objects.count() >= 4


def test_it_makes_each_vector_once(alice: Principal, server: OpenAIServer) -> None:
    turns(alice, lines(5))
    run(at(5))
    asked = len(server.requests)
    run(at(6))
    assert len(server.requests) == asked
    turns(alice, ["One more turn about the index."], start=at(7))
    run(at(8))
    assert server.requests[-1].body["input"] == ["One more turn about the index."]


def test_it_reads_a_long_session_in_parts(
    alice: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns(alice, lines(130))
    monkeypatch.setattr(stage, "SESSION_TURNS_MAX", 50)
    report = run(at(300))
    assert report.turns == 130 and EpisodeTurn.objects.count() == 130
    assert shapes() == [(20, "size")] * 6 + [(10, "gap")]


def test_it_looks_at_so_many_sessions_and_no_more(alice: Principal) -> None:
    for number in range(3):
        turns(alice, lines(2), session=f"s{number}", start=at(number * 10))
    assert run(at(300), limit=2).sessions == 2
    assert run(at(300), limit=2).sessions == 1


def test_it_keeps_sessions_of_two_owners_and_sources_apart(alice: Principal) -> None:
    _, bob, _ = three()
    turns(alice, lines(3), session="same")
    turns(alice, lines(3, KITCHEN), session="same", source="codex")
    turns(bob, lines(3), session="same")
    run(at(90))
    assert len(episodes()) == 3 and {one.turn_count for one in episodes()} == {3}


def test_it_takes_the_narrowest_visibility_and_the_strictest_confidentiality(
    alice: Principal,
) -> None:
    turns(alice, lines(1), visibility="team", confidentiality="public")
    turns(alice, ["Private and restricted."], start=at(1), confidentiality="restricted")
    run(at(90))
    one = episodes()[0]
    assert (one.visibility, one.confidentiality) == ("private", "restricted")


def test_it_gives_the_episode_the_project_of_most_turns_and_audits_the_mismatch(
    alice: Principal,
) -> None:
    turns(alice, lines(2), cwd="/home/alice/src/shop")
    turns(alice, ["Elsewhere for one turn."], start=at(2), cwd="/home/alice/src/blog")
    run(at(90))
    row = Attribution.objects.get()
    assert row.project is not None and row.project.name == "shop"
    assert row.cwd_mismatch and row.turns == {"shop": 2, "blog": 1}
    assert (row.cwd, row.method) == ("/home/alice/src/shop", "basename")
    assert episodes()[0].project_confidence == row.confidence == pytest.approx(0.4)


def test_it_lets_one_explicit_turn_name_the_episode(alice: Principal) -> None:
    turns(alice, lines(3), cwd="/home/alice/src/shop")
    turns(alice, ["By name."], start=at(3), project="blog")
    run(at(90))
    row = Attribution.objects.get()
    assert row.project is not None and (row.project.name, row.method) == ("blog", "explicit")


@pytest.mark.parametrize(
    ("cwd", "mismatch"), [("/src/shop", True), ("/src/blog", False), ("", False)]
)
def test_it_audits_a_given_name_that_the_folder_contradicts(
    alice: Principal, cwd: str, mismatch: bool
) -> None:
    turns(alice, lines(2), project="blog", cwd=cwd)
    run(at(90))
    row = Attribution.objects.get()
    assert (row.project and row.project.name, row.cwd_mismatch) == ("blog", mismatch)


def test_it_guesses_a_project_by_the_nearest_centroid_and_shows_the_numbers(
    alice: Principal,
) -> None:
    turns(alice, lines(4), session="known", project="shop", start=at(0))
    turns(alice, lines(4, KITCHEN), session="other", project="soup", start=at(0))
    run(at(90))
    turns(alice, lines(4), session="nameless", cwd="", start=at(100), source="telegram")
    run(at(200))
    row = Attribution.objects.get(method="centroid")
    assert row.project is not None and row.project.name == "shop"
    assert row.score is not None and row.threshold is not None and row.score >= row.threshold
    assert row.runner_up == "soup" and row.runner_up_score is not None
    assert row.runner_up_score < row.score
    assert (row.centroid_episodes, row.centroid_age_seconds) == (1, 110 * 60)
    assert Centroid.objects.get(project__name="shop").episodes == 1, "it learns from no guess"


def test_it_guesses_nothing_below_the_threshold_and_says_what_was_nearest(alice: Principal) -> None:
    turns(alice, lines(4), session="known", project="shop")
    run(at(90))
    turns(alice, lines(4, KITCHEN), session="nameless", cwd="", start=at(100))
    run(at(200))
    row = Attribution.objects.latest("pk")
    assert row.project is None and row.method == "" and row.score is not None
    assert row.threshold is not None and row.score < row.threshold


def test_it_never_guesses_global(alice: Principal) -> None:
    turns(alice, lines(4), session="known", project="global")
    run(at(90))
    turns(alice, lines(4), session="nameless", cwd="", start=at(100))
    run(at(200))
    assert Attribution.objects.latest("pk").project is None


def test_it_guesses_from_nobody_elses_episodes(alice: Principal) -> None:
    _, bob, _ = three()
    turns(bob, lines(4), session="known", project="shop")
    run(at(90))
    turns(alice, lines(4), session="nameless", cwd="", start=at(100))
    run(at(200))
    assert Attribution.objects.latest("pk").project is None


def test_it_moves_the_centroid_as_a_running_mean(alice: Principal) -> None:
    turns(alice, lines(2), session="one", project="shop")
    run(at(90))
    first = list(Centroid.objects.get().vector)
    turns(alice, lines(2, KITCHEN), session="two", project="shop", start=at(100))
    run(at(200))
    row = Centroid.objects.get()
    vectors = TurnVector.objects.filter(raw_item__session="two").values_list("embedding", flat=True)
    second = [sum(column) / 2 for column in zip(*vectors, strict=True)]
    assert row.episodes == 2
    for moved, a, b in zip(row.vector, first, second, strict=True):
        assert moved == pytest.approx((a + b) / 2, abs=1e-3)


def test_it_says_where_its_calls_came_from(alice: Principal) -> None:
    turns(alice, lines(3))
    run(at(90))
    call = LlmCall.objects.get(port="embed")
    assert call.stage == "segment" and call.unit.startswith("session:") and call.run_id


def test_it_gives_the_same_episode_the_same_key_for_each_owner(alice: Principal) -> None:
    _, bob, _ = three()
    for owner in (alice, bob):
        turns(owner, lines(3))
    run(at(90))
    keys = [one.unit_key for one in episodes()]
    assert len(set(keys)) == 2


def test_it_stops_asking_for_the_vector_of_a_turn_that_can_have_none(
    alice: Principal, server: OpenAIServer
) -> None:
    turns(alice, lines(3))
    poison: Scripted = lambda r: (  # noqa: E731
        fails(400)
        if lines(3)[1] in r.body["input"]
        else gives([vector_of(text) for text in r.body["input"]])
    )
    server.script(EMBEDDINGS, *[poison] * 99)
    for minute in range(3, 3 + CONTENT_FAILURES_MAX):
        run(at(minute))
    asked = len(server.requests)
    row = Claim.objects.get()
    assert row.unit.startswith("item:") and row.parked_at is not None
    assert run(at(20)).not_checked == 1
    assert len(server.requests) == asked
    run(at(90))
    assert shapes() == [(3, "gap")]


def test_it_asks_once_about_turns_that_may_not_leave(
    alice: Principal, server: OpenAIServer
) -> None:
    turns(alice, lines(4))
    turns(alice, ["Secret one.", "Secret two."], start=at(5), confidentiality="secret")
    run(at(90))
    assert TurnVector.objects.count() == 4 and not Claim.objects.exists()
    assert LlmCall.objects.filter(outcome="confidential").count() == 1
    assert not any("Secret" in str(request.body) for request in server.requests)


def test_it_reads_of_a_long_turn_only_what_it_embeds(
    alice: Principal, server: OpenAIServer
) -> None:
    turns(alice, ["x" * 900_000, "y" * 900_000])
    with CaptureQueriesContext(connection) as queries:
        run(at(90))
    reading = [q["sql"] for q in queries.captured_queries if '"body"' in q["sql"]]
    assert reading and all("LEFT(" in sql for sql in reading)
    assert [len(text) for text in server.requests[-1].body["input"]] == [2_000, 2_000]


def test_it_names_whose_vectors_it_compared(alice: Principal) -> None:
    turns(alice, lines(6) + lines(6, KITCHEN), project="shop")
    run(at(90))
    turns(alice, lines(4), session="nameless", cwd="", start=at(100))
    run(at(200))
    looks = set(SegmentCheck.objects.values_list("check_kind", "model"))
    assert looks == {("topic", "scripted-embed"), ("size", ""), ("gap", "")}
    row = Attribution.objects.latest("pk")
    assert (row.model, row.created_at) == ("scripted-embed", at(200))


def test_it_says_how_many_sessions_are_left(alice: Principal) -> None:
    for number in range(3):
        turns(alice, lines(2), session=f"s{number}", start=at(number * 10))
    assert run(at(300), limit=1).pending == 2
    assert segment(clock=clock(at(300)), until=at(300)).pending == 2
    assert run(at(300)).pending == 0
