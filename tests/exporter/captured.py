"""Captured text as hostile as it comes, and an eye of its own for what would run in a vault.

The eye shares no code with what it checks: it reads Markdown as CommonMark says, by hand, and looks
for Obsidian's and its plug-ins' syntax in what is no code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from hypothesis import strategies as st

from memory.text.region import HEADING, MARKER

PIECES = [
    "[[", "]]", "![[", "[[a|b]]", "![x](http://x.y/z.png)", "[a](http://x.y/?q=1#z)", "[a](b.md)",
    "[a](obsidian://open)", "[a]: http://x.y", "[^1]", "^[foot]", "<b>", "</script>", "<!--",
    "-->", "<", ">", "<%", "%>", "<% tp.file.delete() %>", "%%", "%", "#tag", "#", "# ", "## ",
    "####### ", "obsidian://open?vault=v", "javascript:alert(1)", "file:///etc", "https://a.b/c#d",
    "$", "$$", "$x$", "`", "``", "```", "````", "~~~", "~~~~", "```dataview\n", "```js\n", "```\n",
    "~~~tasks\n", "`= this.x`", "`$= dv.x`", "`INPUT[toggle:x]`", "`code`", "`[[code]]`", "| ",
    "|---|", "---", "===", "-", "- ", "- [ ] ", "1. ", "> ", "> [!note] ", "    ", "  ", "\t",
    "\n", "\n\n", "\r", "\r\n", "\u2028", "\x85", "\x0b", "\\", "\\\\", "\\[", "\\`", "\\<", "*",
    "**", "_", "__init__", "~~", "==", "&", "&lt;", "&#35;", "^", "^id", "!", "::", "{{date}}",
    "due:: 2026-01-01", "[due:: x]", ":::",
    HEADING, MARKER, MARKER + "\n", "## Notes\n", "## Evidence\n", "Notes\n---\n", "word", "C#",
    "é", "e\u0301", "漢字", "😀", "\u202e", "\u200b", "\ufeff", "\x00", "\x1b[0m", "\x7f", "\u1fef",
    "\ud800", "'", '"', ": ", " #", "\nconfidential: true\n", "null", "yes", "2026-01-01", "1e3",
    "0x1F", "- list", "@bob",
]  # fmt: skip

#: Any text; most of it made of what means something to somebody.
TEXTS = st.one_of(
    st.lists(st.sampled_from(PIECES), max_size=12).map("".join),
    st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=3)), max_size=10).map("".join),
    st.text(max_size=40),
)

PUNCTUATION = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"

#: What makes Obsidian or a plug-in do something, outside code.
ACTIVE = {
    "wikilink or embed": r"\[\[",
    "picture": r"!\[",
    "link that is not to the web": r"\[[^\]\n]*\]\((?!https?://)",
    "reference": r"\[[^\]\n]*\]:",
    "footnote": r"\^\[|\[\^",
    "task or callout": r"(?m)^[\s>]*(?:[-*+]|\d+[.)])?\s*\[[^\]\n]{0,1}\]\s|\[!",
    "html": r"<",
    "comment": r"%%",
    "formula": r"\$",
    "field": r"::",
    "tag": r"(?m)(?:^|[^A-Za-z0-9\n])#(?![#\s]|$)",
    "block id": r"(?m)(?:^|\s)\^[A-Za-z0-9-]+$",
    "program": r"(?i)(?:obsidian|javascript|vbscript):",
    "address": r"(?i)\b(?!https?:)[a-z][a-z0-9+.-]*://",
}


def active(text: str) -> list[str]:
    """What in this Markdown would do something, by name."""
    found = [f"template: {text[:80]!r}"] if "<%" in text else []
    plain: list[str] = []
    for kind, part in _blocks(text.split("\n")):
        if kind == "code":
            if not re.fullmatch(r"[a-z0-9+#-]*", part) or part in (
                "dataview", "dataviewjs", "tasks", "query", "mermaid", "button",
            ):  # fmt: skip
                found.append(f"block of {part!r}")
        else:
            plain.append(part)
    # A paragraph ends with an empty line; a span of code may go on over the lines of one.
    for paragraph in "\n".join(plain).split("\n\n"):
        rest, codes = _uncoded(paragraph)
        found += [f"inline {code!r}" for code in codes if re.match(r"\s*\$?=|\s*[A-Z]+\[", code)]
        found += [
            f"{name} in {paragraph!r}" for name, sign in ACTIVE.items() if re.search(sign, rest)
        ]
        # As a table's cells are read: cut before anything is code.
        if "|" in paragraph:
            for row in paragraph.split("\n"):
                for cell in re.split(r"(?<!\\)\|", row):
                    rest, _ = _uncoded(cell)
                    found += [
                        f"{name} in cell {cell!r}"
                        for name, sign in ACTIVE.items()
                        if re.search(sign, rest)
                    ]
    return found


def links(page: str) -> list[str]:
    """What the wikilinks of a page's text lead to; fails for what begins like one and is none."""
    text = "\n".join(part for kind, part in _blocks(page.split("\n")) if kind == "text")
    rest, _ = _uncoded(text)
    found = re.findall(r"\[\[([^\[\]|\n]+)\|([^\[\]|\n]+)\]\]", rest)
    assert rest.count("[[") == len(found) and "![[" not in rest, page
    return [target for target, _ in found]


def _blocks(lines: list[str]) -> Iterator[tuple[str, str]]:
    """("code", language) for each fenced block, ("text", line) for every other line."""
    fence = ""
    for line in lines:
        mark = re.match(r" {0,3}(`{3,}|~{3,})([^\n]*)$", line)
        if fence:
            end = re.match(r" {0,3}(`{3,}|~{3,})\s*$", line)
            if end and end[1][0] == fence[0] and len(end[1]) >= len(fence):
                fence = ""
        elif mark and not (mark[1][0] == "`" and "`" in mark[2]):
            fence = mark[1]
            yield "code", mark[2].strip()
            yield "text", ""
        else:
            yield "text", line
    if fence:
        yield "code", "(never closed)"


def _uncoded(text: str) -> tuple[str, list[str]]:
    """The text without what is escaped and without code, and the code."""
    kept: list[str] = []
    codes: list[str] = []
    at = 0
    while at < len(text):
        if text[at] == "\\" and text[at + 1 : at + 2] and text[at + 1] in PUNCTUATION:
            kept.append("\0" * 2)
            at += 2
        elif text[at] == "`":
            # It matches: one backtick is there.
            run = re.match("`+", text[at:]).group()  # type: ignore[union-attr]
            end = re.search(rf"(?<!`){run}(?!`)", text[at + len(run) :])
            if end:
                codes.append(text[at + len(run) : at + len(run) + end.start()])
                kept.append("\0")
                at += 2 * len(run) + end.start()
            else:
                kept.append(run)
                at += len(run)
        else:
            kept.append(text[at])
            at += 1
    return "".join(kept), codes
