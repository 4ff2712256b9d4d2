"""Captured text as Markdown in which nothing runs, links, embeds, tags or hides.

What was captured is data. In a vault it would be read by Obsidian and by whatever plug-ins its
owner has: wikilinks, embeds, pictures from anywhere, HTML, comments, tags, tasks, formulas,
Dataview, Templater, links that open programs. Here each of them becomes the characters it is made
of, with what Markdown itself has for it (a backslash, an entity); ordinary Markdown stays.

No renderer's judgement is relied on where it matters: code blocks are written anew, flush left, in
a fence that nothing in them can close; what is kept as code within a line begins and ends on that
line, and no other backtick is left; `<%`, which Templater looks for in code, too, stands nowhere.
Knows nothing about notes or files.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from memory.text.clean import clean_text, strip_invisible
from memory.text.region import MARKER

#: Languages a code block may say it is in; any other becomes `text`.
# Why a list: plug-ins run blocks by their language (dataview, dataviewjs, tasks, query, button,
# mermaid, leaflet, and whatever comes next), and nobody knows them all.
_NAMES = """
ada applescript asm assembly astro awk bash bat batch bazel bibtex c c# c++ cfg clojure cmake
cmd cobol coffee conf console cpp crystal cs csharp css csv cuda cython d dart delphi diff
django docker dockerfile dos dotenv ebnf elisp elixir elm env erb erlang f# fish fortran fsharp
gdscript gherkin git gitignore glsl gnuplot go golang gradle graphql groovy haml handlebars
haskell hcl hlsl html http ini java javascript jinja jinja2 jq js json json5 jsonc jsonl jsx
julia just justfile kotlin kt latex less lisp llvm log lua make makefile markdown matlab md
mysql nasm ndjson nginx nim nix objc objective-c ocaml octave pascal patch perl pgsql php
plaintext plain plpgsql po postgres postgresql powershell prisma prolog properties proto
protobuf ps1 psql pug puppet pwsh py python python3 pycon r racket rake rb reg regex rego rst
ruby rs rust sass scala scheme scss sed sh shell sol solidity sparql sql sqlite starlark stylus
sv svelte svg swift systemverilog tcl terraform tex text tf toml ts tsx twig txt typescript
vb vba verilog vhdl vim viml vue wasm wat xml yaml yml zig zsh
"""
LANGUAGES = frozenset(_NAMES.split())

# Every sign that ends a line for somebody, ends it for everybody.
_BREAKS = re.compile("\r\n|[\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_CONTROLS = re.compile("[\x00-\x08\x0e-\x1f\x7f]")
_TIDY = re.compile(r"[!-~]+(?: [!-~]+)*\Z")

_PUNCTUATION = r"!-/:-@\[-`{-~"
_ADDRESS = r"https?://[A-Za-z0-9._~/?\#@!&'*+,;=:%-]+"

# Each pattern begins with the few signs that may mean something: what it is then told by looking
# back, since a search for one of a set of signs is ten times as fast as one for many patterns.
_PAIR = rf"(?<=\\)(?P<pair>[{_PUNCTUATION}])"
_CODE = r"(?<=`)(?<!``)(?P<code>(?P<tick>`?)(?!`)(?P<inner>[^\n]+?)(?<!`)`(?P=tick)(?!`))"
_SIGNS = rf"""
    (?<=\[)(?<![\[!\]]\[)(?P<link>(?P<shown>[^\[\]\\`<>\n]+)\]\((?P<to>{_ADDRESS})\))
  | (?<=<)(?P<angle>)
  | (?P<sign>(?<=[`\[$]) | (?<=[\#^])(?<![A-Za-z0-9].) | (?<=%%)
      | (?<=~)(?=~~) | (?<=~~)(?=~) | (?<=~~~)
      | (?<=:)(?=//)(?<!(?<![\w+.-])http:)(?<!(?<![\w+.-])https:)
      | (?<=:)(?=:) | (?<=obsidian:) | (?<=javascript:) | (?<=vbscript:))
"""
# Word for word: what Markdown would take away or make bold is shown, too.
_WORDS = rf"""
    (?<=\\)(?P<slash>)(?=[{_PUNCTUATION}])
  | (?<=&)(?P<entity>)(?=\#?\w{{1,32}};)
  | (?P<mark>(?<=\*)(?:(?<!\s\*)|(?!\s)) | (?<=_)(?:(?<![^\W_]_)|(?![^\W_])))
"""


def _any(signs: str, *parts: str) -> re.Pattern[str]:
    return re.compile(f"[{signs}](?:{'|'.join(parts)})", re.VERBOSE | re.IGNORECASE)


_FEW, _MORE = r"\\`\[<$\#^%~:", r"\\`\[<$\#^%~:*_&"
_MARKDOWN = _any(_FEW, _PAIR, _CODE, _SIGNS)
_VERBATIM = _any(_MORE, _CODE, _WORDS, _SIGNS)
_SHOWN = _any(_MORE, _WORDS, _SIGNS)

# Inline code that plug-ins run: Dataview's `= …` and `$= …`, Meta Bind's `INPUT[…]` and its kin.
_RUNS = re.compile(r"\s*(?:\$?=|[A-Z-]{2,24}\[)")
# A table cuts its cells before it looks for code; Templater, and who looks for our marker, do not
# look for code at all.
_CUTS = re.compile(r"\||<%|%%")

_HEADING = re.compile(r"(#{1,6})(?:[ \t]+|\Z)")
_UNDERLINE = re.compile(r"([ \t>]*)(=+|-+)[ \t]*\Z")
_RULE = re.compile(r"-{3,}\Z")
_FENCE = re.compile(r"([ \t]*)(?:(`{3,})([^`]*)|(~{3,})(.*))\Z")
_LANGUAGE = re.compile(r"[\w+#-]+")
_TEMPLATE = re.compile(r"<(?=%)")
_INDENT = re.compile(r"[ \t]+")

#: How much lower a heading of captured text stands: below our own.
HEADING_STEP = 2


def lines_of(text: str) -> list[str]:
    """The text's lines: one line break for all of them, no control characters, nothing unseen, no
    blanks at the ends of lines, no empty lines first or last."""
    text, _ = clean_text(text)
    text = _BREAKS.sub("\n", text)
    if text.isascii():
        text = _CONTROLS.sub("", text)
    else:
        text, _ = strip_invisible(text)
        text = unicodedata.normalize("NFC", text)
    lines = [line.rstrip() for line in text.split("\n")]
    while lines and not lines[-1]:
        lines.pop()
    first = next((at for at, line in enumerate(lines) if line), 0)
    return lines[first:]


def one_line(text: str) -> str:
    """The text as one line of visible characters in NFC, not escaped; "" if it has none."""
    return text if _TIDY.match(text) else " ".join(" ".join(lines_of(text)).split())


def inert(line: str) -> str:
    """One line of Markdown, made inert. What is code within it stays code."""
    return _MARKDOWN.sub(_kept, line)


def verbatim(line: str) -> str:
    """One line shown word for word: no Markdown of it but code within the line."""
    return _VERBATIM.sub(_kept, line)


def quote(text: str) -> list[str]:
    """The text word for word as the lines of a block quote."""
    return [_quoted(line) for line in lines_of(text)] or [">"]


def body(text: str) -> list[str]:
    """The text as lines of Markdown, made inert: no heading of it as high as ours, every code block
    closed."""
    kept: list[str] = []
    lines = iter(lines_of(text))
    for line in lines:
        if fence := _FENCE.match(line):
            kept += _block(fence, lines)
        elif heading := _HEADING.match(line):
            level = min(len(heading[1]) + HEADING_STEP, 6)
            kept.append(f"{'#' * level} {inert(_unclosed(line[heading.end() :]))}".rstrip())
        elif under := _UNDERLINE.match(line):
            alone = _RULE.match(line) and not (kept and kept[-1])
            kept.append(line if alone else f"{under[1]}\\{under[2]}")
        elif line or kept[-1]:
            kept.append(inert(line))
    return kept


def _block(fence: re.Match[str], lines: Iterator[str]) -> list[str]:
    """A code block anew: flush left, in a fence longer than any in it. Takes the lines to its end
    from the iterator."""
    indent, mark = fence[1], fence[2] or fence[4]
    found = _LANGUAGE.match((fence[3] or fence[5] or "").strip().lower())
    language = found.group() if found else ""
    end = re.compile(rf"[ \t]*{mark[0]}{{{len(mark)},}}\Z")
    inside: list[str] = []
    for line in lines:
        if end.match(line):
            break
        inside.append(_TEMPLATE.sub("< ", _dedent(line, len(indent))))
    inside = [line.replace("%%", "% %") if MARKER in line else line for line in inside]
    longest = max((len(run) for line in inside for run in re.findall(r"`{3,}", line)), default=2)
    bar = "`" * (longest + 1)
    named = language if language in LANGUAGES else "text" if language else ""
    return [bar + named, *inside, bar]


def _unclosed(text: str) -> str:
    """A heading's text without the signs that may close it."""
    kept = text.rstrip("#")
    return kept.rstrip() if not kept or kept[-1] in " \t" else text


def _dedent(line: str, columns: int) -> str:
    blank = _INDENT.match(line)
    return line[min(columns, blank.end()) :] if blank else line


def _quoted(line: str) -> str:
    if not line:
        return ">"
    if under := _UNDERLINE.match(line):
        return f"> {under[1]}\\{under[2]}"
    if (blank := _INDENT.match(line)) and len(blank.group().expandtabs(4)) >= 4:
        # Four blanks would make it a code block, in which every backslash shows.
        line = "\u00a0" * len(blank.group().expandtabs(4)) + line[blank.end() :]
    return "> " + verbatim(line)


def _kept(match: re.Match[str]) -> str:
    """What stands for one sign, by its kind."""
    kind, found = match.lastgroup, match.group()
    if kind == "code":
        inner = match["inner"]
        return _SHOWN.sub(_kept, found) if _RUNS.match(inner) or _CUTS.search(inner) else found
    if kind == "link":
        if "%%" in match["to"]:
            return "\\[" + _SHOWN.sub(_kept, found[1:])
        return f"[{match.re.sub(_kept, match['shown'])}]({match['to']})"
    if kind == "angle" or found == "\\<":
        return "&lt;"
    if kind == "entity":
        return "&amp;"
    if kind == "slash":
        return "\\\\"
    if kind == "pair":
        return found
    return "\\" + found
