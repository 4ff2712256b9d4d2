"""How: hostile text by hypothesis, before an eye of the tests' own and a CommonMark parser."""

from __future__ import annotations

import re
import unicodedata
from time import process_time

import pytest
from hypothesis import example, given, settings
from markdown_it import MarkdownIt
from markdown_it.token import Token

from exporter.inert import LANGUAGES, body, inert, lines_of, one_line, quote, verbatim
from memory.text.region import HEADING, MARKER
from tests.exporter.captured import TEXTS, active

#: More than usual, and none too slow: what shares the machine is not our matter.
MANY = settings(max_examples=200, deadline=None)

PARSER = MarkdownIt("commonmark", {"html": True}).enable("table")


def tokens(text: str) -> list[Token]:
    """Every token that CommonMark with tables finds, at every depth."""
    found: list[Token] = []
    queue = PARSER.parse(text)
    while queue:
        one = queue.pop(0)
        found.append(one)
        queue = [*(one.children or []), *queue]
    return found


def shown(text: str) -> str:
    """What a reader sees of a text."""
    kinds = ("text", "text_special", "code_inline")
    return "".join(one.content for one in tokens(text) if one.type in kinds)


@MANY
@given(TEXTS)
def test_it_leaves_nothing_active_in_a_body(text: str) -> None:
    assert active("\n".join(body(text))) == []


@MANY
@given(TEXTS)
def test_it_leaves_nothing_active_in_a_quote(text: str) -> None:
    lines = quote(text)
    assert all(re.match(r">(?: |\Z)", line) for line in lines)
    assert active("\n".join(line[2:] for line in lines)) == []
    assert active("\n".join(lines)) == []


@MANY
@given(TEXTS)
def test_it_leaves_nothing_active_in_a_title(text: str) -> None:
    line = verbatim(one_line(text))
    assert "\n" not in line
    assert active(f"# {line}") == []


@MANY
@given(TEXTS)
@example("```js\n" + MARKER + "\n" + HEADING)
@example("Notes\n---")
@example("- a\n  ===")
def test_a_parser_finds_no_html_no_picture_no_other_link_and_no_heading_of_ours(text: str) -> None:
    for one in tokens("\n".join(body(text))):
        assert one.type not in ("html_block", "html_inline", "image")
        if one.type == "link_open":
            assert str(one.attrs["href"]).startswith(("http://", "https://"))
        if one.type == "heading_open":
            assert one.tag in ("h3", "h4", "h5", "h6")
        if one.type == "fence":
            assert one.info in {"", "text"} | LANGUAGES
            assert "<%" not in one.content


@MANY
@given(TEXTS)
def test_a_parser_finds_nothing_but_a_quote_in_a_quote(text: str) -> None:
    found = PARSER.parse("\n".join(["said", "", *quote(text), "", "## Related"]))
    assert [one.type for one in found if one.level == 0] == [
        "paragraph_open", "paragraph_close", "blockquote_open", "blockquote_close",
        "heading_open", "heading_close",
    ]  # fmt: skip
    for one in tokens("\n".join(quote(text))):
        assert one.type not in ("html_block", "html_inline", "image", "fence", "heading_open")


@MANY
@given(TEXTS)
def test_nothing_of_a_body_reaches_what_follows(text: str) -> None:
    found = PARSER.parse("\n".join([*body(text), "", "## Evidence", "", "end"]))
    assert [(one.type, one.level, one.content) for one in found[-6:]] == [
        ("heading_open", 0, ""), ("inline", 1, "Evidence"), ("heading_close", 0, ""),
        ("paragraph_open", 0, ""), ("inline", 1, "end"), ("paragraph_close", 0, ""),
    ]  # fmt: skip


@MANY
@given(TEXTS)
@example("```js\n" + MARKER + "  \nx\n```")
@example("~~~\n  " + MARKER + "\r\n~~~")
@example("```\n  x " + MARKER + "y")
@example("`" + MARKER + "`")
def test_no_line_is_the_marker_or_the_heading_before_it(text: str) -> None:
    for line in [*body(text), *quote(text)]:
        assert MARKER not in line
        assert line == line.rstrip()
    assert MARKER not in "\n".join(inert(line) for line in lines_of(text))


@MANY
@given(TEXTS)
def test_it_is_one_kind_of_text_whatever_came(text: str) -> None:
    made = "\n".join([*body(text), *quote(text), one_line(text)])
    made.encode()
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e]", made)
    assert unicodedata.is_normalized("NFC", one_line(text))
    assert lines_of("\n".join(lines_of(text))) == lines_of(text)
    assert one_line(one_line(text)) == one_line(text)


@pytest.mark.parametrize(
    "said",
    [
        "[[x]] and ![[y]] and <b>bold</b>", r"a\[b \\ \` C:\Users\new", "__init__ a*b*c 5 * 3 *x*",
        "%% hidden %%", "#tag C# issue #12", "$HOME and $PATH", "`code [[x]]` and `unclosed",
        "a ``b`c`` d", "&lt; &amp; &", "[ ] task", "obsidian://open", "^note", "x^2", "~~~dataview",
        "```js", "`= this.file`", "`a|b`", "<% tp %>", "---", "===", "# not a heading", "a_b_c _d_",
        "https://x.y/a_b#c", "[text](http://x.y)", "![x](http://x.y)", "\\", "`", "`` ` ``",
    ],
)  # fmt: skip
def test_a_quote_shows_word_for_word_what_was_said(said: str) -> None:
    plain = re.sub(r"(?<!`)(`{1,2})(?!`)(.+?)(?<!`)\1(?!`)", lambda m: m[2].strip(), said)
    plain = said if re.match(r"`(?:=|a\|)", said) else plain
    if said.startswith("[text]"):
        plain = "text"
    assert shown("\n".join(quote(said))) == plain


@pytest.mark.parametrize(
    ("said", "made"),
    [
        ("# Setup\n\nRun **it**:\n\n1. one\n2. two", "### Setup\n\nRun **it**:\n\n1. one\n2. two"),
        ("Use [the docs](https://x.y/z?a=1#b).", "Use [the docs](https://x.y/z?a=1#b)."),
        ("| a | b |\n|---|---|\n| 1 | 2 |", "| a | b |\n|---|---|\n| 1 | 2 |"),
        ("above\n\n---\n\nbelow", "above\n\n---\n\nbelow"),
        ("Call `f(x[0])` with C#.", "Call `f(x[0])` with C#."),
        ("```python\nx[[0]] = '#a'\n```", "```python\nx[[0]] = '#a'\n```"),
        ("1. do\n   ```sh\n   [[ -f x ]]\n     y\n   ```", "1. do\n```sh\n[[ -f x ]]\n  y\n```"),
        ("~~~js\na\n```\n~~~", "````js\na\n```\n````"),
        ("```dataview\nLIST\n```", "```text\nLIST\n```"),
        ("```js\nnever closed", "```js\nnever closed\n```"),
        ("```erb\n<%= x %>\n```", "```erb\n< %= x %>\n```"),
        (f"```js\n{MARKER}\n```", f"```js\n{MARKER.replace('%%', '% %')}\n```"),
        ("see [[x]] #y", "see \\[\\[x]] \\#y"),
    ],
)  # fmt: skip
def test_a_body_keeps_what_is_markdown_and_shows_what_is_more(said: str, made: str) -> None:
    assert "\n".join(body(said)) == made


@pytest.mark.parametrize(
    "piece",
    ["[", "[a](http://x", "`", "``", "` `` ```", "`a|b` ", "%", "~", "# ", " #", " ", "\t", "> ",
     "\\", "\\`", "<%", "&#", "&a", "*", "_", ":", "://", "a:", "http://", "^", "$", "=", "-",
     "[[a|", "]]", "```\n", "    ```js\n", "\n\n", "\u200b", "e\u0301", "|", "obsidian:", "INPUT["],
)  # fmt: skip
def test_no_text_takes_long(piece: str) -> None:
    for text in (piece * 60_000, "# " + piece * 60_000 + "x", piece * 30_000 + "x" * 60_000):
        begun = process_time()
        body(text)
        quote(text)
        one_line(text)
        assert process_time() - begun < 8
