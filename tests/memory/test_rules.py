"""The rule judge: what it proves, what it must never join, and how it chooses among several."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.llm.ports import Judgement, Origin, Statement
from memory.llm.rules.frames import read
from memory.llm.rules.judge import Rules
from tests.bench.judge_pairs import VERDICTS, confusion, judge
from tests.growth import GROWTH_MAX, growth

FIXTURES = Path(__file__).parents[1] / "fixtures"
PIECES = (
    "we", "use", "never", "Redis", "3.11", "the", "port", "is", "of", "`x`", ",", "not", "不",
    "用", "or",
)  # fmt: skip
ODD = ("a", "a.", "-", "/a", "a_", "`", "1.", "不", "x:1", "(a", "so, ")
SUBJECTS = (
    "billing API", "search API", "admin API", "importer", "staging server", "production server",
    "user service", "order service", "frontend", "worker",
)  # fmt: skip
VALUES = (
    ("The {} listens on port 8080.", "The {} listens on port 9090."),
    ("The timeout of the {} is 30 seconds.", "The timeout of the {} is 60 seconds."),
    ("The {} uses MySQL.", "The {} uses Postgres."),
    ("The config of the {} is in `/etc/a.yml`.", "The config of the {} is in `/etc/b.yml`."),
    ("The {} runs on Python 3.11.", "The {} runs on Python 3.12."),
    ("The {} is deployed to `eu-west-1`.", "The {} is deployed to `us-east-1`."),
    ("Never restart the {} by hand.", "Always restart the {} by hand."),
    ("The cache of the {} is enabled.", "The cache of the {} is disabled."),
    ("The {} needs 4 GB of memory.", "The {} needs 8 GB of memory."),
    ("The owner of the {} is Alice.", "The owner of the {} is Bob."),
)


def _rows(name: str) -> list[tuple[str, ...]]:
    lines = (FIXTURES / name).read_text(encoding="utf-8").splitlines()
    return [tuple(line.split(" | ")) for line in lines if line and not line.startswith("#")]


def _new(content: str, **more: Any) -> Statement:
    return Statement(id="n", content=content, **more)


def _ask(new: Statement, *older: Statement) -> Judgement:
    return Rules().judge(new, older, origin=Origin(stage="dedup"))[0]


@pytest.mark.parametrize(("verdict", "old", "new"), _rows("judge_proved.txt"))
def test_it_proves_what_the_words_prove(verdict: str, old: str, new: str) -> None:
    assert judge(old, new)[0] == verdict


@pytest.mark.parametrize(("one", "other"), _rows("judge_distinct.txt"))
def test_it_never_joins_two_statements_in_either_order(one: str, other: str) -> None:
    assert judge(one, other)[0] == "distinct"
    assert judge(other, one)[0] == "distinct"


@pytest.mark.parametrize("subject", SUBJECTS)
def test_it_sees_another_value_of_the_same_subject(subject: str) -> None:
    for old, new in VALUES:
        assert judge(old.format(subject), new.format(subject))[0] == "supersede", (old, new)


@pytest.mark.parametrize("subject", SUBJECTS)
def test_it_keeps_another_subject_apart_with_the_same_and_with_another_value(subject: str) -> None:
    for other in SUBJECTS:
        if other == subject:
            continue
        for old, new in VALUES:
            assert judge(old.format(subject), new.format(other))[0] == "distinct"
            assert judge(old.format(subject), old.format(other))[0] == "distinct"


def test_it_keeps_another_attribute_of_one_subject_apart() -> None:
    attributes = ("port", "timeout", "retry limit", "batch size", "pool size", "memory limit")
    for one in attributes:
        for other in attributes:
            if one != other:
                assert (
                    judge(f"The {one} of the API is 10.", f"The {other} of the API is 20.")[0]
                    == "distinct"
                )
                assert judge(f"Set the {one} to 10.", f"Set the {other} to 10.")[0] == "distinct"


def test_it_is_never_wrong_on_the_labelled_pairs_and_finds_most() -> None:
    pairs = json.loads((FIXTURES / "pairs.json").read_text(encoding="utf-8"))
    counts = confusion(pairs)
    for verdict in ("duplicate", "supersede", "refine"):
        assert sum(counts[label, verdict] for label in VERDICTS if label != verdict) == 0
        labelled = sum(counts[verdict, judged] for judged in VERDICTS)
        assert counts[verdict, verdict] >= 0.8 * labelled, verdict


def test_it_prefers_the_strongest_proof_and_then_the_most_similar() -> None:
    refined = Statement(id="r", content="We use Postgres")
    same = Statement(id="d", content="we use Postgres 16 with pgvector.")
    verdict = _ask(_new("We use Postgres 16 with pgvector"), refined, same)
    assert (verdict.verdict, verdict.target) == ("duplicate", "d")
    other = Statement(id="s", content="The port is 8080.")
    near = Statement(id="t", content="The port is 8080 because nginx asks for it.")
    verdict = _ask(_new("The port is 9090."), near, other)
    assert (verdict.verdict, verdict.target) == ("supersede", "s")


def test_it_looks_at_no_more_candidates_than_it_says() -> None:
    fillers = [Statement(id=str(n), content=f"Host h{n} is idle.") for n in range(10)]
    match = Statement(id="match", content="The port is 8080.")
    assert _ask(_new("The port is 8080"), *fillers, match).verdict == "distinct"
    assert _ask(_new("The port is 8080"), *fillers[:9], match).target == "match"


def test_it_names_the_proof_and_the_value_that_changed() -> None:
    verdict = _ask(
        _new("The port is 9090."),
        Statement(id="o", content="The port is 8080."),
    )
    assert "8080" in verdict.reasoning
    assert "9090" in verdict.reasoning
    distinct = _ask(_new("Hello world"), Statement(id="o", content="Other"))
    assert distinct.target is None
    assert distinct.reasoning


def test_it_bills_nothing_and_says_which_rules_ran() -> None:
    _, usage = Rules().judge(_new("x"), [], origin=Origin(stage="dedup"))
    assert (usage.model_real, usage.tokens_in, usage.tokens_out) == ("rules-1", 0, 0)
    assert usage.prompt_version == "1"


def test_it_keeps_the_words_of_two_people_apart() -> None:
    old = Statement(id="o", content="I prefer tabs.", said_by="alice")
    assert _ask(_new("I prefer spaces.", said_by="bob"), old).verdict == "distinct"
    assert _ask(_new("I prefer tabs.", said_by="bob"), old).verdict == "distinct"
    assert _ask(_new("I prefer spaces.", said_by="alice"), old).verdict == "supersede"


def test_it_does_not_read_an_elliptic_answer_without_its_question() -> None:
    old = Statement(id="o", content="Yes, do that.", context="Shall we drop the cache?")
    other = _new("Yes, do that.", context="Shall we delete the table?")
    again = _new("yes, do that", context="Shall we drop the cache?")
    assert _ask(other, old).verdict == "distinct"
    assert _ask(again, old).verdict == "duplicate"
    port = Statement(id="o", content="It is 8080.", context="Which port?")
    assert _ask(_new("It is 9090.", context="Which port?"), port).verdict == "distinct"


def test_it_keeps_short_statements_apart_whose_contexts_name_different_things() -> None:
    old = Statement(id="o", content="The port is 8080.", context="About `billing_api`.")
    apart = _new("The port is 9090.", context="About `search_api`.")
    same = _new("The port is 9090.", context="About `billing_api`.")
    assert _ask(apart, old).verdict == "distinct"
    assert _ask(same, old).verdict == "supersede"


def test_it_proves_a_change_whichever_of_the_two_was_read_first() -> None:
    early, late = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 2, 1, tzinfo=UTC)
    known = Statement(id="o", content="The port is 8080.", valid_from=late)
    assert _ask(_new("The port is 9090.", valid_from=early), known).verdict == "supersede"
    gone = Statement(id="o", content="The port is no longer 9090.", valid_from=late)
    assert _ask(_new("The port is 9090.", valid_from=early), gone).verdict == "supersede"
    assert _ask(_new("the port is 8080", valid_from=early), known).verdict == "duplicate"


def test_it_never_takes_one_amount_in_other_words_for_a_change() -> None:
    for old, new in (
        ("The limit is 1,000 rows.", "The limit is 1000 rows."),
        ("The timeout is 60 seconds.", "The timeout is 1 minute."),
        ("The timeout is 60s.", "The timeout is 60 seconds."),
        ("CI uses Python 3.11.", "CI uses Python 3.11.4."),
        ("Standup is at 9:30.", "Standup is at 09:30."),
        ("The config is in `config/app.yml`.", "The config is in `/srv/app/config/app.yml`."),
    ):
        assert judge(old, new)[0] != "supersede", (old, new)


def test_it_compares_code_sign_by_sign() -> None:
    assert judge("if (!ready) {", "if (ready) {")[0] == "distinct"
    assert judge('paint("dim", "/");', 'paint("dim", "!");')[0] == "distinct"
    assert judge("if (ready) {", "if  (ready) {")[0] == "duplicate"


def test_it_says_distinct_to_texts_too_long_for_a_proof_unless_they_are_equal() -> None:
    text = "The port is 8080. " * 200
    assert judge(text, text + "More.")[0] == "distinct"
    assert judge(text, text.upper())[0] == "duplicate"


@given(st.text(max_size=200), st.text(max_size=200))
def test_it_answers_any_text_with_a_given_target_or_none(one: str, other: str) -> None:
    verdict = _ask(_new(one), Statement(id="o", content=other))
    assert verdict.verdict in VERDICTS
    assert verdict.target == (None if verdict.verdict == "distinct" else "o")


@given(st.lists(st.sampled_from(PIECES)))
def test_it_never_replaces_a_statement_by_itself(words: list[str]) -> None:
    text = " ".join(words)
    assert judge(text, text)[0] in {"duplicate", "distinct"}


@pytest.mark.parametrize(
    "piece", ["a", "a.", "-", "/a", "a_", "`", "1.", "不", "x:1", "(a", "so, "]
)
def test_it_reads_odd_text_in_time_that_does_not_run_away(piece: str) -> None:
    def work(chars: int) -> None:
        read.cache_clear()
        text = (piece * chars)[:chars]
        judge(text, text[:-1] + "z")

    assert growth(work, 1_000) <= GROWTH_MAX


@pytest.mark.parametrize(
    "filler",
    [
        "Remember that", "Remember:", "Please note:", "Note that", "Please note that", "Note:",
        "Also note that", "For the record,", "For the record:", "For reference,", "FYI,", "FYI:",
        "For future reference:", "Heads up:", "Just a reminder:", "Keep in mind that",
        "Please remember that", "Don't forget that", "By the way,", "Just so you know,",
        "Be aware that", "To be clear,", "One more thing:",
    ],
)  # fmt: skip
def test_it_sees_through_what_only_announces_a_statement(filler: str) -> None:
    for said in ("The staging database listens on port 5433.", "We never deploy on Fridays."):
        announced = f"{filler} {said[0].lower()}{said[1:]}"
        assert judge(announced, said)[0] == "duplicate"
        assert judge(said, announced)[0] == "duplicate"


@pytest.mark.parametrize("said", ["For later versions use Redis.", "For reference data use Redis."])
def test_it_takes_no_part_of_a_statement_for_an_announcement(said: str) -> None:
    assert judge("Versions use Redis.", said)[0] == "distinct"
    assert judge("Data use Redis.", said)[0] == "distinct"
