"""How: hits of this test's own, a scripted reranker; the order must stand whatever it does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from django.conf import settings as django_settings
from hypothesis import given
from hypothesis import strategies as st

from memory.llm.remote.rerank import shared
from memory.models import LlmCall
from recall.reranking import RERANKED_MAX, Reranking, reorder, rerank
from tests.openai_server import RERANK, OpenAIServer, Step, fails, hangs, ranks, running

Configure = Callable[..., None]


@dataclass(frozen=True)
class Hit:
    text: str
    confidentiality: str = "internal"


HITS = [Hit("the queue moved"), Hit("the port is 8443"), Hit("nothing of note")]


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with running() as server:
        yield server


@pytest.fixture
def configure(server: OpenAIServer, settings: Any) -> Configure:
    """Point the settings of this test at the reranker, with changes by keyword."""

    def change(**values: Any) -> None:
        base = {"rerank_url": server.url, "rerank_model": "scripted-rerank"}
        settings.ARGUS = django_settings.ARGUS.model_copy(update=base | values)

    shared.cache_clear()
    change()
    return change


def ask(hits: list[Hit], **more: Any) -> tuple[list[Hit], Reranking]:
    return rerank(
        "which port?", hits,
        text=lambda hit: hit.text, confidentiality=lambda hit: hit.confidentiality, **more,
    )  # fmt: skip


@pytest.mark.django_db
class TestAsking:
    def test_it_orders_by_the_reranker_and_says_so(
        self, server: OpenAIServer, configure: Configure
    ) -> None:
        server.script(RERANK, ranks([0.2, 0.9, 0.5]))
        hits, said = ask(HITS)
        assert hits == [HITS[1], HITS[2], HITS[0]]
        assert said.scores == (0.9, 0.5, 0.2)
        assert said.as_json() | {"milliseconds": 0} == {
            "reranked": True, "why": "", "model": "scripted-rerank", "shown": 3, "withheld": 0,
            "milliseconds": 0,
        }  # fmt: skip

    @pytest.mark.parametrize(
        "step",
        [
            fails(500),
            fails(429),
            fails(400, "too many texts"),
            hangs(3),
            ranks([0.2, 0.9]),
            Step("<html>"),
        ],
    )
    def test_it_keeps_the_order_and_tells_when_the_reranker_fails(
        self, server: OpenAIServer, configure: Configure, step: Step
    ) -> None:
        configure(rerank_timeout_seconds=0.2)
        server.script(RERANK, step)
        hits, said = ask(HITS)
        assert hits == HITS
        assert not said.reranked and said.why and said.scores == (None, None, None)
        assert LlmCall.objects.get().outcome not in ("ok", "bug")

    def test_it_does_not_wait_again_for_one_that_was_late(
        self, server: OpenAIServer, configure: Configure
    ) -> None:
        configure(rerank_timeout_seconds=0.2)
        server.script(RERANK, hangs(3))
        ask(HITS)
        _, said = ask(HITS)
        assert len(server.requests) == 1
        assert "rests" in said.why

    def test_it_never_shows_what_may_not_leave_and_leaves_it_in_its_place(
        self, server: OpenAIServer, configure: Configure
    ) -> None:
        hits = [HITS[0], Hit("hidden", "secret"), HITS[1], Hit("odd", "no such word"), HITS[2]]
        server.script(RERANK, ranks([0.2, 0.5, 0.9]))
        order, said = ask(hits)
        assert order == [HITS[2], hits[1], HITS[1], hits[3], HITS[0]]
        assert server.requests[0].body["documents"] == [hit.text for hit in HITS]
        assert (said.shown, said.withheld) == (3, 2)
        assert said.scores == (0.9, None, 0.5, None, 0.2)

    def test_it_asks_nobody_when_no_question_may_leave(
        self, server: OpenAIServer, configure: Configure
    ) -> None:
        configure(model_confidentiality="public")
        hits, said = ask([Hit(hit.text, "public") for hit in HITS])
        assert not said.reranked and "may leave" in said.why
        assert [hit.text for hit in hits] == [hit.text for hit in HITS]
        assert not server.requests

    def test_it_shows_the_best_and_keeps_the_rest_behind_them(
        self, server: OpenAIServer, configure: Configure
    ) -> None:
        many = [Hit(f"number {n}") for n in range(RERANKED_MAX + 5)]
        server.script(RERANK, ranks([float(n) for n in range(RERANKED_MAX)]))
        hits, said = ask(many)
        assert hits == many[:RERANKED_MAX][::-1] + many[RERANKED_MAX:]
        assert said.shown == RERANKED_MAX
        assert said.scores[RERANKED_MAX:] == (None,) * 5

    def test_it_asks_for_a_prompt_only_where_the_settings_say_so(
        self, server: OpenAIServer, configure: Configure
    ) -> None:
        assert ask(HITS, prompt=True)[1].why == "off for prompts"
        assert not server.requests
        configure(rerank_prompts=True)
        assert ask(HITS, prompt=True)[1].reranked


@pytest.mark.parametrize(
    ("hits", "why"),
    [
        ([], "fewer than two texts"),
        (HITS[:1], "fewer than two texts"),
        ([HITS[0], Hit("hidden", "secret")], "fewer than two texts that may leave"),
    ],
)
def test_it_asks_nobody_about_an_order_of_one(
    server: OpenAIServer, configure: Configure, hits: list[Hit], why: str
) -> None:
    same, said = ask(hits)
    assert (same, said.reranked, said.why) == (hits, False, why)
    assert not server.requests


def test_it_says_that_there_is_none(configure: Configure) -> None:
    configure(rerank_url=None)
    hits, said = ask(HITS)
    assert (hits, said.reranked, said.why) == (HITS, False, "no reranker is set")


@given(st.lists(st.none() | st.integers(-2, 2), max_size=12))
def test_it_moves_only_what_has_a_score_and_among_its_own_places(
    given_: list[int | None],
) -> None:
    scores = {place: float(score) for place, score in enumerate(given_) if score is not None}
    order = reorder(len(given_), scores)
    assert sorted(order) == list(range(len(given_)))
    assert all(order[place] == place for place in order if place not in scores)
    ranked = [(-scores[place], place) for place in order if place in scores]
    assert ranked == sorted(ranked)
