"""How: whole pages of hostile values, read back by a YAML parser, by hand and by an eye."""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from exporter.document import (
    SOURCES_TOLD_MAX,
    TAGS_TOLD_MAX,
    UNTITLED,
    Face,
    Link,
    Quote,
    heading,
    link,
    note_page,
    tags,
)
from exporter.found import parts
from exporter.names import stem
from memory.attribution import NAME_CHARACTERS_MAX
from memory.gate import TITLE_CHARACTERS_MAX
from memory.text.region import HEADING, MARKER, identity
from tests.exporter.captured import TEXTS, active
from tests.exporter.vaults import front

MANY = settings(max_examples=100, deadline=None)

AT = datetime(2026, 11, 29, 18, 0, 5, tzinfo=UTC)
ID = "0f8fad5b-d9cb-469f-a165-70867728950e"

FACE = Face(
    argus_id=ID,
    title="Staging listens on port 8443",
    project="shop",
    level="note",
    kind="semantic",
    importance=0.5,
    confidence=0.8,
    tags=("ports", "staging"),
    created=AT,
    valid_from=AT,
    valid_to=None,
    sources=("session 7", "docs/ports.md"),
    content="Staging listens on port **8443**.",
    quotes=(Quote("staging is on 8443", "7", AT, "user", "claude-code"),),
)

TIMES = st.sampled_from(
    [AT, AT.replace(microsecond=7), datetime(1970, 1, 1, tzinfo=timezone(timedelta(hours=-5)))]
)
SHARES = st.floats(0, 1)
QUOTES = st.builds(Quote, TEXTS, st.just("s [[1]]"), TIMES, TEXTS, st.just("<% x %>"))
FACES = st.builds(
    Face,
    argus_id=st.just(ID),
    title=TEXTS,
    project=TEXTS,
    level=st.sampled_from(["note", "L0", "L1", "L2"]),
    kind=st.sampled_from(["semantic", "episodic", "procedural"]),
    importance=SHARES,
    confidence=SHARES,
    tags=st.lists(TEXTS, max_size=2).map(tuple),
    created=TIMES,
    valid_from=TIMES,
    valid_to=st.none() | TIMES,
    sources=st.lists(TEXTS, max_size=2).map(tuple),
    content=TEXTS,
    quotes=st.lists(QUOTES, max_size=2).map(tuple),
)

#: The titles of the cases, and others of their kind.
TITLES = [
    "Q3 Review\nconfidential: true\n---\n# x", "- list", "? a", "[x]", "{x}", "> quote", "| pipe",
    "! bang", "& and", "@bob", "*star", "% per", "`tick`", "yes", "no", "null", "~", "true", "on",
    "2026-01-01", "2026-01-01T00:00:00Z", "1e3", "0x1F", "0o17", "1_000", ".inf", ".nan", "1:30:45",
    "Fwd: hints", "a #b", "a: b", "key: [x", "'single'", '"double"', "back\\slash", "tab\there",
    "---", "...", "--- x", "<<", "=", "!!str x", "&a *a", "C# basics", "x^2", "", " ", "\u200b",
    "\u202eevil", "\ud83d\ude00", "\ud800", "😀", "a\u2028b", "nel\x85", "nul\x00", "\ufeffbom",
    "e\u0301", "<% tp.x %>", "\\<% x %>", "%%", MARKER, HEADING, "[[x]]", "![[x]]", "x" * 3000,
]  # fmt: skip


@pytest.mark.parametrize("title", TITLES)
def test_a_title_comes_back_from_the_front_matter_as_the_text_it_was(title: str) -> None:
    data = note_page(replace(FACE, title=title, tags=(title,), sources=(title,), project=title))
    found = front(data)
    assert found is not None and list(found) == [
        "argus_id", "project", "level", "kind", "importance", "confidence", "tags", "aliases",
        "created", "valid_from", "valid_to", "sources", "evidence",
    ]  # fmt: skip
    line = found["aliases"][0]
    assert line == heading(title) and "\n" not in line and line.strip()
    if title.strip() and title.isascii() and title.isprintable():
        assert " ".join(title.split()) == line
    assert all(type(found[key]) is str for key in ("project", "created", "valid_from"))
    assert found["sources"] == ["" if heading(title) == UNTITLED else line]
    assert identity(data) == ID


@MANY
@given(FACES)
def test_every_value_comes_back_as_it_was_and_of_its_type(face: Face) -> None:
    data = note_page(face)
    found = front(data)
    assert found is not None and found == yaml.safe_load(data.decode().split("---\n")[1])
    assert found == {
        "argus_id": ID,
        "project": found["project"],
        "level": face.level,
        "kind": face.kind,
        "importance": face.importance,
        "confidence": face.confidence,
        "tags": tags(face.tags),
        "aliases": [heading(face.title)],
        "created": found["created"],
        "valid_from": found["valid_from"],
        "valid_to": found["valid_to"],
        "sources": found["sources"],
        "evidence": len(face.quotes),
    }
    assert type(found["importance"]) is float and type(found["evidence"]) is int
    for key in ("created", "valid_from", "valid_to"):
        at = getattr(face, key)
        assert found[key] is None if at is None else found[key].endswith("Z")
        assert at is None or datetime.fromisoformat(found[key]) == at
    assert len(found["sources"]) == len(face.sources)


@MANY
@given(FACES)
def test_every_text_of_the_front_matter_is_quoted_on_one_line(face: Face) -> None:
    head = note_page(face).decode().split("\n---\n", 1)[0]
    bare = r"(?:null|-?\d+(?:\.\d+)?(?:e[+-]?\d+)?|\[\]|)"
    for line in head.split("\n")[1:]:
        assert re.fullmatch(rf'(?:[a-z_]+: ?|- )(?:"(?:[^"\\]|\\.)*"|{bare})', line), line
    assert "<%" not in head


@MANY
@given(FACES)
def test_nothing_captured_is_active_on_a_page(face: Face) -> None:
    managed = note_page(face).decode()
    assert managed.startswith("---\n") and managed.endswith(f"\n\n{HEADING}\n{MARKER}\n")
    own = managed.split("\n---\n", 1)[1].removesuffix(f"{MARKER}\n")
    assert active(own) == []
    assert managed.split("\n").count(MARKER) == 1


@MANY
@given(FACES)
def test_a_page_is_clean_bytes_and_always_the_same(face: Face) -> None:
    data = note_page(face)
    assert data == note_page(replace(face))
    assert not re.search(rb"[\x00-\x08\x0b-\x1f\x7f]", data)
    lines = data.decode().split("\n")
    assert lines[-1] == "" and lines[-2] == MARKER
    assert all(line == line.rstrip() for line in lines)


@MANY
@given(FACES, st.one_of(st.binary(max_size=60), TEXTS.map(lambda t: t.encode("utf-8", "replace"))))
def test_a_page_and_a_persons_words_come_apart_as_they_were_put_together(
    face: Face, region: bytes
) -> None:
    managed = note_page(face)
    for words in (region, MARKER.encode() + b"\n" + region, b"\r\n" + region, b""):
        assert parts(managed + words) == (managed, words)
    if MARKER.encode() not in region and not region.startswith(BOM_UTF8):
        assert parts(region) == (region.replace(b"\r\n", b"\n"), b"")


def test_what_an_editor_does_to_every_file_changes_nothing() -> None:
    managed = note_page(FACE)
    windows = managed.replace(b"\n", b"\r\n")
    assert parts(managed[:-1]) == parts(windows[:-2]) == (managed, b"")
    assert parts(BOM_UTF8 + windows + b"Mine.\r\n") == (managed, b"Mine.\r\n")


def test_a_front_matter_ends_where_files_of_ours_are_known_by_it() -> None:
    many = tuple(f"{number} " + '\U0001f600"' * 60 for number in range(2000))
    title, project = "\U0001f600" * TITLE_CHARACTERS_MAX, "\U0001f600" * NAME_CHARACTERS_MAX
    face = replace(FACE, sources=many, tags=many, title=title, project=project)
    data = note_page(face)
    values = front(data)
    assert identity(data) == ID and values is not None
    assert list(values["sources"][:2]) == list(many[:2])
    told = len(values["sources"]) - 1
    assert 10 < told <= SOURCES_TOLD_MAX and values["sources"][-1] == f"and {2000 - told} more"
    assert 10 < len(values["tags"]) <= TAGS_TOLD_MAX
    few = front(note_page(replace(FACE, sources=many[:3])))
    assert few is not None and few["sources"] == list(many[:3])


@pytest.mark.parametrize("content", ["", "\n \n", "a\n\n\n\r\n \nb"])
@pytest.mark.parametrize("quotes", [(), FACE.quotes, (Quote("", "", AT, "", ""),)])
def test_no_two_empty_lines_follow_each_other(content: str, quotes: tuple[Quote, ...]) -> None:
    assert b"\n\n\n" not in note_page(replace(FACE, content=content, quotes=quotes))


def test_a_page_looks_like_this() -> None:
    face = replace(FACE, tags=("C++", "C#", "a b", "2026", "#x/y", "#", "c++"))
    made = note_page(
        face,
        related=[Link("shop/Ports", "Ports [all]", 0.8149), Link("shop/TLS", "TLS")],
        hubs=[Link("shop/_hubs/Network", "Network")],
    )
    assert made.decode() == (
        f"""---
argus_id: "{ID}"
project: "shop"
level: "note"
kind: "semantic"
importance: 0.5
confidence: 0.8
tags:
- "Cpp"
- "Csharp"
- "a-b"
- "n2026"
- "x/y"
aliases:
- "Staging listens on port 8443"
created: "2026-11-29T18:00:05Z"
valid_from: "2026-11-29T18:00:05Z"
valid_to: null
sources:
- "session 7"
- "docs/ports.md"
evidence: 1
---
# Staging listens on port 8443

Staging listens on port **8443**.

## Evidence

user · 2026-11-29T18:00:05Z · claude-code · session 7

> staging is on 8443

## Related

- [[shop/Ports|Ports (all)]] (0.81)
- [[shop/TLS|TLS]]

Hub: [[shop/_hubs/Network|Network]]

{HEADING}
{MARKER}
"""
    )


#: A wikilink as Obsidian reads it: the target, then what is shown.
WIKILINK = re.compile(r"\[\[([^\[\]|#^]+)\|([^\[\]|]+)\]\]")


@MANY
@given(TEXTS, TEXTS)
def test_a_link_is_one_link_to_its_page_whatever_the_titles(title: str, shown: str) -> None:
    target = f"shop/{stem(title)}"
    made = link(Link(target, shown))
    found = WIKILINK.fullmatch(made)
    assert found and found[1] == target
    assert not re.search(r"[`$<]|%%|\n", found[2]) and found[2].strip()
    # On a line with another one, neither swallows the other.
    assert WIKILINK.findall(f"Hub: {made}, {made}") == [(target, found[2])] * 2


@MANY
@given(st.lists(TEXTS, max_size=6))
def test_tags_are_legal_and_each_is_there_once(names: list[str]) -> None:
    made = tags(names)
    assert made == tags(made)
    assert len({one.casefold() for one in made}) == len(made)
    for one in made:
        assert not re.search(r"[\s#,;:\[\]\"']|//|^[/-]|[/-]$", one)
        assert not re.fullmatch(r"[\d/-]+", one)


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"", None),
        (b"# a\n", None),
        (b"---\nargus_id: x\n", None),
        (b"text\n---\nargus_id: x\n---\n", None),
        (b"---\ntitle: x\n---\nargus_id: y\n", None),
        (b'---\nargus_id: "x"\n---\n', "x"),
        (b"---\r\nargus_id: x\r\n---\r\n", "x"),
        (b"\xef\xbb\xbf---\na: 1\nargus_id: 'hub:1'\n---\n", "hub:1"),
        (b"---\n\xff\xfe: [\nargus_id: x\n---\n", "x"),
    ],
)
def test_a_file_is_known_by_its_front_matter_alone(data: bytes, found: str | None) -> None:
    assert identity(data) == found


@pytest.mark.parametrize("data", [b"", b"---\n[\n---\n", b"---\n- a\n---\n", b"---\n\xff\0\n---\n"])
def test_front_matter_that_is_none_is_none(data: bytes) -> None:
    assert front(data) is None


@MANY
@given(st.binary(max_size=80))
def test_reading_a_file_never_fails(data: bytes) -> None:
    for one in (data, b"---\n" + data, b"---\n" + data + b"\n---\n"):
        identity(one)
        front(one)
        managed, words = parts(one)
        same = one.removeprefix(BOM_UTF8).replace(b"\r\n", b"\n").rstrip(b"\n")
        assert (managed + words).replace(b"\r\n", b"\n").rstrip(b"\n") == same
