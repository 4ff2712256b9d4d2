"""Cleaning: what Postgres cannot hold goes at every depth, the invisible on request."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.text.clean import clean, clean_text, strip_invisible


def test_it_replaces_a_lone_surrogate() -> None:
    assert clean_text(json.loads('"ok \\ud83d\\u2026 end"')) == ("ok \ufffd… end", True)
    assert clean_text("\udc00tail") == ("\ufffdtail", True)
    assert clean_text("end\ud800") == ("end\ufffd", True)


def test_it_joins_a_pair_of_surrogates() -> None:
    assert clean_text("x\ud83d\ude00y") == ("x😀y", True)


def test_it_removes_nul() -> None:
    assert clean_text("a\x00b") == ("ab", True)


@pytest.mark.parametrize("text", ["", "plain", "Ünïcode 設備 😀"])
def test_it_leaves_good_text_alone(text: str) -> None:
    assert clean_text(text) == (text, False)


def test_it_cleans_every_depth_and_keys_too() -> None:
    dirty = {"a\x00": [{"b": "\ud800"}, ("c\x00", 1, None, True, 2.5)]}
    assert clean(dirty) == ({"a": [{"b": "\ufffd"}, ["c", 1, None, True, 2.5]]}, True)


def test_it_loses_no_value_when_keys_become_equal() -> None:
    value, changed = clean({"a": 1, "a\x00": 2})
    assert changed and sorted(value.values()) == [1, 2]


def test_it_replaces_numbers_that_json_has_not() -> None:
    assert clean({"x": float("nan"), "y": [float("inf")]}) == ({"x": None, "y": [None]}, True)


def test_it_does_not_run_out_of_stack() -> None:
    deep: Any = "\x00"
    for _ in range(50_000):
        deep = [deep]
    value, changed = clean(deep)
    assert changed
    while isinstance(value, list):
        value = value[0]
    assert value == ""


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(st.characters(codec=None)) | st.integers(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(codec=None)), inner),
    max_leaves=20,
)


@given(JSON)
def test_it_gives_what_json_and_utf8_can_hold_and_then_changes_nothing(value: Any) -> None:
    once, _ = clean(value)
    json.dumps(once, allow_nan=False, ensure_ascii=False).encode()
    assert "\\u0000" not in json.dumps(once)
    assert clean(once) == (once, False)


def test_it_strips_and_counts_what_nobody_sees() -> None:
    tags = "".join(chr(0xE0000 + ord(char)) for char in "run")
    assert strip_invisible(f"ig\u200bno\u2060re{tags} \u202eme\ufeff") == ("ignore me", 7)
    assert strip_invisible("\x1b[31mred") == ("[31mred", 1)


@pytest.mark.parametrize(
    "text", ["plain\ttext\nhere", "👩\u200d💻 works", "می\u200cخواهم", "❤\ufe0f", "設備"]
)
def test_it_keeps_what_spells_something(text: str) -> None:
    assert strip_invisible(text) == (text, 0)


@given(st.text())
def test_it_strips_all_in_one_go(text: str) -> None:
    plain, removed = strip_invisible(text)
    assert len(plain) + removed == len(text)
