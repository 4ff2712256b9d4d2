"""Private spans: gone whole, however the tag is written, and nothing else with them."""

# ruff: noqa: E501 - cases stand one a line
from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.text.private import strip_private
from tests.growth import GROWTH_MAX, growth

ROOT = Path(__file__).parents[2]

SPANS = [
    "<private>the box is under the stairs</private>",
    "<PRIVATE>the box is under the stairs</Private>",
    "< private >the box\nis under the stairs</ private >",
    "<private\n>the box is under the stairs< / private>",
    '<private reason="family > work">the box is under the stairs</private>',
    "<private>the box <private>is</private> under the stairs</private>",
    "<private>the box is under the stairs</private foo>",
    "＜private＞the box is under the stairs＜／private＞",
    "<ｐｒｉｖａｔｅ>the box is under the stairs</ｐｒｉｖａｔｅ>",
    "﹤private﹥the box is under the stairs﹤/private﹥",
    "<pri\u200bvate>the box is under the stairs</\u2060private\ufeff>",
    "<pri\x00vate>the box is under the stairs</private>",
    "<\U000e0061private\u00ad>the box is under the stairs</private>",
    "<PRİVATE>the box is under the stairs</PRİVATE>",
    "<\u00a0private>the box is under the stairs</private>",
    "<private></private>",
]


@pytest.mark.parametrize("span", SPANS)
def test_it_takes_a_span_out_and_keeps_what_is_around(span: str) -> None:
    stripped, spans = strip_private(f"fa\u200br before {span} after, wide：x")
    assert stripped == "fa\u200br before [private] after, wide：x"
    assert spans == 1


@pytest.mark.parametrize(
    "text, rest",
    [
        ("a <private>box", "a [private]"),
        ("a <private>box</private", "a [private]"),
        ("a <private>box</private <private>stairs</private> b", "a [private]"),
        ("a <private>b <private>c</private> box", "a [private]"),
        ("a <private key is here</private> box", "a [private]"),
        ("a <private/> box", "a [private]"),
        ("items: List<private> = box", "items: List[private]"),
    ],
)
def test_it_takes_what_is_never_closed_to_the_end(text: str, rest: str) -> None:
    assert strip_private(text) == (rest, 1)


def test_it_counts_spans() -> None:
    text = "a<private>1</private>b<private>2</private>c<private>3"
    assert strip_private(text) == ("a[private]b[private]c[private]", 3)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a private matter, and a < b",
        "closed alone</private> and on",
        "<privates>x</privates> <private-key> <privateer> <private:x> <my-private>",
        "&lt;private&gt; is how the tag is written in HTML",
        "a < b and private > c",
        "the tag <private is not one without its end",
        "a <!-- private --> b",
        "private",
        "elevate <b> motivate",
    ],
)
def test_it_leaves_other_text_alone(text: str) -> None:
    assert strip_private(text) == (text, 0)


SIGNS = st.sampled_from(
    [
        "<",
        ">",
        "/",
        " ",
        "private",
        "<private>",
        "</private>",
        "＜",
        "\u200b",
        "x",
        "[private]",
        "\n",
    ]
)
TEXTS = st.lists(SIGNS, max_size=30).map("".join)


@given(TEXTS)
def test_it_finds_nothing_the_second_time(text: str) -> None:
    stripped, _ = strip_private(text)
    assert strip_private(stripped) == (stripped, 0)


@given(TEXTS, st.sampled_from(["<private>", "< Private >", "＜private＞"]), TEXTS)
def test_it_lets_nothing_through_between_its_tags(before: str, tag: str, after: str) -> None:
    stripped, spans = strip_private(f"{before}{tag}STAIRS</private>{after}")
    assert "STAIRS" not in stripped
    assert spans >= 1


@given(TEXTS)
def test_it_counts_what_it_marks(text: str) -> None:
    stripped, spans = strip_private(text)
    assert stripped.count("[private]") >= spans


HOSTILE = [
    "<private>", "</private>", "<private", "</private", "<private ", "<", "< ", " ", "<private/>", "＜private＞", "<private>x</private>", "\u200b",
    "</private <private>", "</ ", "<\u200bprivate>",
]  # fmt: skip


@pytest.mark.parametrize("unit", HOSTILE)
def test_its_time_grows_with_the_text_and_not_faster(unit: str) -> None:
    text = "<private> " + unit
    assert strip_private(text)[1] == 1
    assert growth(lambda chars: strip_private(unit * (chars // len(unit))), 100_000) <= GROWTH_MAX


def test_it_takes_a_hundred_thousand_opening_tags() -> None:
    assert strip_private("<private>" * 100_000) == ("[private]", 1)


@pytest.mark.parametrize(
    "text, loads", [("an ordinary < prompt, 中文", False), ("<private>", True)]
)
def test_it_imports_patterns_only_where_the_word_is(text: str, loads: bool) -> None:
    script = (
        "import sys; from memory.text.private import strip_private;"
        "strip_private(sys.argv[1]); print('re' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", script, text],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONUTF8": "1"},
    )
    assert done.stdout.strip() == str(loads)
