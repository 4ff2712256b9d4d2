"""How: replies as models write them, each with what must be read from it, or that nothing is."""

from __future__ import annotations

import contextlib
import json

import pytest

from memory.errors import ContentError
from memory.llm.remote.replies import (
    CANDIDATES_MAX,
    REPLY_CHARS_MAX,
    read_candidates,
    read_notes,
    read_object,
)
from tests.growth import GROWTH_MAX, growth

NOTE = {
    "title": "Queue on Postgres",
    "content": "The queue runs on Postgres.",
    "source_ref": "runs on Postgres",
}
GOOD = json.dumps({"notes": [NOTE]})


@pytest.mark.parametrize(
    "reply",
    [
        GOOD,
        f"```json\n{GOOD}\n```",
        f"```\n{GOOD}\n```\nExplanation: I extracted {{one}} fact.",
        f"Based on {{travel}}, here: {GOOD} Hope this helps {{x}}!",
        f'<think>I could say {{}} or {{"notes": []}}, hmm.</think>\n{GOOD}',
        f'<think>a</think>\n<think>b {{"notes": [] }}</think>{GOOD}',
        f'no opening tag, {{"notes": []}} perhaps</think>{GOOD}',
        f'<think>never closed {{"notes": []}}, so the answer is {GOOD}',
        f'{{"thought": "first"}} {GOOD}',
        f'{{"result": {GOOD}}}',
        f'Schema: {{"properties": {{"notes": {{"type": "array"}}}}}} Answer: {GOOD}',
        f'{GOOD}\n{{"notes": []}}',
        json.dumps([NOTE]),
        f"Here is the list: {json.dumps([NOTE])}",
    ],
)
def test_it_finds_the_notes_in_whatever_they_are_wrapped_in(reply: str) -> None:
    assert read_notes(reply) == [NOTE]


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "  \n",
        "null",
        "```json\nnull\n```",
        '{"notes": []}',
        '{"notes": null}',
        "[]",
        "{}",
        "No notes.",
        "No observations to record.",
        "There are no durable facts in this session.",
        "Nothing worth remembering here.",
        "<think>Let me look. Only greetings.</think>",
        '<think>hm {"notes": [1]}</think>{"notes": []}',
    ],
)
def test_it_takes_every_way_of_saying_nothing_as_no_notes(reply: str) -> None:
    assert read_notes(reply) == []


@pytest.mark.parametrize(
    "reply",
    [
        GOOD[:-10],
        f"```json\n{GOOD[:-3]}",
        "No, I cannot help with that request.",
        "I'm sorry, but I can't assist.",
        "The session was about a queue.",
        '{"answer": 42}',
        '{"notes": "many"}',
        '{"notes": [{"content": "std::map<std::string, int> m{{"a",1}};"}]}',
        '<think>It says {"notes": [ {"title": "x"} ] } but wait, that is wrong because',
        "<think>",
        "{" * 5000,
        '{"a":' * 3000,
    ],
)
def test_it_reads_nothing_rather_than_half_an_answer(reply: str) -> None:
    with pytest.raises(ContentError) as caught:
        read_notes(reply)
    assert caught.value.raw == reply


@pytest.mark.parametrize(
    "content",
    [
        "Use ```json fences``` in docs",
        'Strip <think> and </think> from {"notes": []} replies',
        'std::map<std::string, int> m{{"a",1}};',
        "Text with { and } and [ ] in it",
    ],
)
def test_it_leaves_values_alone_that_look_like_wrapping(content: str) -> None:
    reply = json.dumps({"notes": [NOTE | {"content": content}]})
    for wrapped in (reply, f"```json\n{reply}\n```", f"Here: {reply}"):
        assert read_candidates(wrapped)[0].content == content


def test_it_accepts_line_breaks_and_tabs_inside_strings() -> None:
    reply = '{"notes": [{"title": "t", "content": "a\n\tb", "source_ref": "a\n\tb"}]}'
    assert read_candidates(reply)[0].source_ref == "a\n\tb"


def test_it_does_not_let_a_bad_entry_spoil_its_siblings() -> None:
    entries = [NOTE, 7, "a bare fact", {"content": None}, {"title": ["x"], "importance": "high"}]
    candidates = read_candidates(json.dumps({"notes": entries}))
    assert candidates[0].source_ref == NOTE["source_ref"]
    # The others are there for the gate to refuse: none of them has evidence.
    assert [c.source_ref for c in candidates[1:]] == ["", "", "", ""]
    assert candidates[2].content == "a bare fact"


@pytest.mark.parametrize(
    ("given", "read"),
    [
        (0.7, 0.7), ("0.8", 0.8), (9, 1.0), (-1, 0.0), ("high", 0.5), (None, 0.5), (True, 0.5),
        ([1], 0.5), ("NaN", 0.5), (10**400, 0.5),
    ],
)  # fmt: skip
def test_it_keeps_importance_between_0_and_1(given: object, read: float) -> None:
    reply = json.dumps({"notes": [NOTE | {"importance": given}]})
    assert read_candidates(reply)[0].importance == read


def test_it_cleans_words_titles_and_surrogates() -> None:
    entry = NOTE | {
        "title": "two\nlines",
        "keywords": "a, b ,a",
        "tags": ["x", 3, "", "y" * 500],
        "content": "cut \ud83d here\x00",
        "unknown": {"deep": 1},
        "memory_kind": "eternal",
    }
    candidate = read_candidates(json.dumps({"notes": [entry]}))[0]
    assert candidate.title == "two lines"
    assert candidate.keywords == ("a", "b")
    assert [len(tag) for tag in candidate.tags] == [1, 60]
    assert candidate.content == "cut \ufffd here"
    assert candidate.memory_kind == "semantic"


def test_it_caps_the_candidates_of_one_answer() -> None:
    assert len(read_candidates(json.dumps({"notes": [NOTE] * 50}))) == CANDIDATES_MAX


def test_it_finds_the_object_that_has_the_wanted_key() -> None:
    reply = 'I think {"reason": 1} so ```{"verdict": "refine", "target": 2}```'
    assert read_object(reply, "verdict") == {"verdict": "refine", "target": 2}
    with pytest.raises(ContentError):
        read_object(reply, "verdict", int)


@pytest.mark.parametrize(
    "unit",
    ["\n", " ", "`", "\n`", "json ", "(", "{", "[", "[ ", '{"a":', "<think>", "</think>",
     " <think></think>", "no ", "no notes ", "nothing "],
)  # fmt: skip
@pytest.mark.parametrize("tail", ["", "x", "{}"])
def test_its_time_grows_with_the_reply_and_not_faster(unit: str, tail: str) -> None:
    def work(chars: int) -> None:
        with contextlib.suppress(ContentError):
            read_notes(unit * (chars // len(unit)) + tail)

    assert growth(work, 25_000) <= GROWTH_MAX


def test_it_does_not_read_a_reply_without_end() -> None:
    with pytest.raises(ContentError):
        read_notes("\n" * (REPLY_CHARS_MAX + 1))


@pytest.mark.parametrize("around", ["\n\n{}\n", "```json\n\n{}\n\n```", '"{}."', "` {} `", "({})"])
@pytest.mark.parametrize("nothing", ["", "null", "{}", "[ ]", "No new facts", "None", "n/a"])
def test_it_takes_nothing_for_nothing_whatever_stands_around_it(around: str, nothing: str) -> None:
    assert read_notes(around.format(nothing)) == []
