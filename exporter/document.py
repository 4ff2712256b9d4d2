"""A note as the bytes of its file: our part of it.

The file: front matter, title, body, `## Evidence`, `## Related`, the hubs it is in, and a last line
below which everything is a person's. Ours ends with that line; nothing of ours before it can be
mistaken for it. The same values always give the same bytes.
Knows nothing about where files lie, which notes there are, or the database.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from io import StringIO
from itertools import chain

import yaml

from exporter.inert import body, one_line, quote, verbatim
from memory.text.region import FIELD, FRONT_BYTES_MAX, HEADING, MARKER

#: Of what these modules make of the same values.
# Why: an export that finds nothing changed is done without rendering; this tells it that the
# rendering itself did change.
VERSION = 1

#: What a page without a title is called.
UNTITLED = "untitled"

#: Sources and tags that a page names.
# Why: a list that is read; of a project's page thousands of sessions are the sources.
SOURCES_TOLD_MAX = 100
TAGS_TOLD_MAX = 100

#: Their bytes together.
# Why: a file is known as ours by a front matter that ends within `region.FRONT_BYTES_MAX`; YAML
# may spell a character in two and a half times its bytes. Titles and names of projects are short
# by themselves.
SOURCES_BYTES_MAX = 12_000
TAGS_BYTES_MAX = 3_000

assert 2.5 * (SOURCES_BYTES_MAX + TAGS_BYTES_MAX) < FRONT_BYTES_MAX - 20_000

Value = str | int | float | None | Sequence[str]


@dataclass(frozen=True)
class Quote:
    """Words that bear a note out, and whose they are."""

    text: str
    session: str
    at: datetime
    role: str
    source: str


@dataclass(frozen=True)
class Link:
    """A page of the vault: its path without `.md`, its title, how near it is (cosine)."""

    target: str
    title: str
    score: float | None = None


@dataclass(frozen=True)
class Face:
    """What a note's page shows of it."""

    argus_id: str
    title: str
    project: str
    level: str
    kind: str
    importance: float
    confidence: float
    tags: tuple[str, ...]
    created: datetime
    valid_from: datetime
    valid_to: datetime | None
    sources: tuple[str, ...]
    content: str
    quotes: tuple[Quote, ...]


def note_page(face: Face, *, related: Sequence[Link] = (), hubs: Sequence[Link] = ()) -> bytes:
    """The page of a note, up to and with the marker line."""
    values: dict[str, Value] = {
        FIELD: face.argus_id,
        "project": face.project,
        "level": face.level,
        "kind": face.kind,
        "importance": face.importance,
        "confidence": face.confidence,
        "tags": within(tags(face.tags), TAGS_TOLD_MAX, TAGS_BYTES_MAX),
        "aliases": [heading(face.title)],
        "created": instant(face.created),
        "valid_from": instant(face.valid_from),
        "valid_to": instant(face.valid_to) if face.valid_to else None,
        "sources": within(face.sources, SOURCES_TOLD_MAX, SOURCES_BYTES_MAX, more="and {} more"),
        "evidence": len(face.quotes),
    }
    told = body(face.content)
    lines = ["", *told] if told else []
    if face.quotes:
        lines += ["", "## Evidence"]
        for one in face.quotes:
            lines += ["", _said(one), "", *quote(one.text)]
    if related:
        lines += ["", "## Related", "", *map(listed, related)]
    if hubs:
        lines += ["", f"Hub: {', '.join(map(link, hubs))}"]
    return page(values, face.title, lines)


def page(values: Mapping[str, Value], title: str, lines: Iterable[str]) -> bytes:
    """Any page of ours: front matter, title, these lines (already inert, each part of them after
    an empty line), and the marker line."""
    text = "\n".join([f"# {verbatim(heading(title))}", *lines, "", HEADING, MARKER, ""])
    return (_front(values) + text).encode()


def link(one: Link) -> str:
    """The wikilink to a page under its title, whatever the title."""
    return f"[[{one.target}|{_linked(one.title)}]]"


def listed(one: Link) -> str:
    """A line of a list: the link, and how near it is."""
    score = "" if one.score is None else f" ({one.score:.2f})"
    return f"- {link(one)}{score}"


def heading(title: str) -> str:
    """The title as one line, not escaped; UNTITLED for one that shows nothing."""
    return one_line(title) or UNTITLED


def within(texts: Iterable[str], most: int, bytes_max: int, *, more: str = "") -> list[str]:
    """The first of these texts, at most so many and so many bytes together; `more` says how many
    are left out."""
    every = [one_line(text) for text in texts]
    told: list[str] = []
    for text in every[:most]:
        bytes_max -= len(text.encode())
        if bytes_max < 0:
            break
        told.append(text)
    if more and len(told) < len(every):
        told.append(more.format(len(every) - len(told)))
    return told


def instant(at: datetime) -> str:
    """An aware time in UTC, to the second or as exact as it is, with Z."""
    return at.astimezone(UTC).replace(tzinfo=None).isoformat() + "Z"


def tags(names: Iterable[str]) -> list[str]:
    """The tags as Obsidian has them: letters, digits, `_`, `-`, `/`, not digits alone; each once,
    whatever its case."""
    found: dict[str, str] = {}
    for name in names:
        if made := _tag(name):
            found.setdefault(made.casefold(), made)
    return list(found.values())


@lru_cache(maxsize=4096)
def _tag(name: str) -> str:
    told = _SHARP.sub("sharp", one_line(name)).replace("++", "pp")
    kept = "".join(sign if _tags(sign) else "-" for sign in told)
    steps = (_DASHES.sub("-", step).strip("-") for step in kept.split("/"))
    made = "/".join(step for step in steps if step)
    return f"n{made}" if made and not _NAMED.search(made) else made


def _tags(sign: str) -> bool:
    return sign in "_-/" or unicodedata.category(sign)[0] in "LMN"


# So that C, C# and C++ are three tags.
_SHARP = re.compile(r"(?<=\w)#")
_DASHES = re.compile(r"-{2,}")
_NAMED = re.compile(r"[^\W\d]")


def targets(managed: bytes) -> list[str]:
    """The pages that our part of a page links to, as it names them."""
    return [
        found.decode(errors="replace")
        for line in _OURS.finditer(managed)
        for found in _TARGET.findall(line["links"] or b"")
    ]


def aim(managed: bytes, moved: Mapping[str, str]) -> bytes:
    """Our part of a page with other targets for its links; titles stay."""

    def told(match: re.Match[bytes]) -> bytes:
        target = match.group(1).decode(errors="replace")
        return f"[[{moved[target]}|".encode() if target in moved else match.group()

    return _OURS.sub(lambda line: _TARGET.sub(told, line[0]) if line["links"] else line[0], managed)


# The lines that hold links of ours; before them, so that none is seen in there, whole blocks of
# code: what was captured stands in those as it was. (A bar of code is of backticks alone, and no
# other line begins with it: see `inert`.)
_OURS = re.compile(
    rb"^(?P<bar>`{3,})[^`\n]*\n(?:.*\n)*?(?P=bar)$|^(?P<links>(?:- |Hub: )\[\[.*)$", re.MULTILINE
)
_TARGET = re.compile(rb"\[\[([^\[\]|\n]+)\|")


@lru_cache(maxsize=4096)
def _shown(text: str) -> str:
    return verbatim(one_line(text))


# In the title of a link nothing can be escaped: what would end the link, cut it, or open something
# that swallows it is shown by its look-alike.
_LINKED = re.compile(r"[\[\]|\\`<>$%#](?:(?<![%#])|(?<=%%)|(?<=#)(?<!\S#))")
_ALIKE = {
    "[": "(", "]": ")", "|": "¦", "\\": "＼", "`": "ˋ", "<": "‹", ">": "›", "$": "＄",
    "%": "％", "#": "♯",
}  # fmt: skip


#: Titles kept as links show them.
# Why: a page is linked from about as many pages as it has neighbours.
LINKED_MAX = 32_768


@lru_cache(maxsize=LINKED_MAX)
def _linked(title: str) -> str:
    return _LINKED.sub(_alike, heading(title))


def _alike(match: re.Match[str]) -> str:
    return _ALIKE[match.group()]


def _said(one: Quote) -> str:
    """Who said it, when and where: one line."""
    role, source, session = (_shown(part) for part in (one.role, one.source, one.session))
    words = [role or "unknown", instant(one.at), source, f"session {session}" if session else ""]
    return " · ".join(word for word in words if word)


#: Columns after which a value would go on in the next line.
# Why: each value stays on its line, so that no text of it can be taken for a line of its own.
WIDTH_COLUMNS = 2**31 - 1

# Templater runs `<%` wherever it finds it; in double quotes a character has another spelling.
_SPELT = "\\x3C%"

# What surrounds the values. The tags are left to whoever reads: (plain, quoted).
_EITHER = (True, True)
_OPEN = (
    yaml.StreamStartEvent(encoding=None),
    yaml.DocumentStartEvent(explicit=True),
    yaml.MappingStartEvent(None, None, True, flow_style=False),
)
_CLOSE = (yaml.MappingEndEvent(), yaml.DocumentEndEvent(explicit=False), yaml.StreamEndEvent())
_LIST = yaml.SequenceStartEvent(None, None, True, flow_style=False)
_EMPTY = yaml.SequenceStartEvent(None, None, True, flow_style=True)
_END = yaml.SequenceEndEvent()


def _front(values: Mapping[str, Value]) -> str:
    """The front matter: bare names; every text in double quotes.

    Why quotes always: which bare words are a number, a date or a truth differs from parser to
    parser (`1e3` is text for one and 1000 for the next); a quoted one is text for all.
    Why events: what the dumper's own finding out of tags costs is most of a page.
    """
    stream = StringIO()
    emitter = yaml.CSafeDumper(stream, width=WIDTH_COLUMNS, allow_unicode=True)
    for event in chain(_OPEN, _events(values), _CLOSE):
        emitter.emit(event)
    return f"{stream.getvalue().replace('<%', _SPELT)}---\n"


def _events(values: Mapping[str, Value]) -> Iterator[yaml.Event]:
    for key, value in values.items():
        yield _plain(key)
        if isinstance(value, str):
            yield _quoted(value)
        elif isinstance(value, Sequence):
            yield _LIST if value else _EMPTY
            yield from map(_quoted, value)
            yield _END
        else:
            yield _plain("null" if value is None else _number(value))


def _quoted(text: str) -> yaml.Event:
    """One line whatever the text, so that nothing in it can be a line of the front matter."""
    return yaml.ScalarEvent(None, None, _EITHER, one_line(text), style='"')


@lru_cache(maxsize=1024)
def _plain(word: str) -> yaml.Event:
    return yaml.ScalarEvent(None, None, _EITHER, word)


@lru_cache(maxsize=4096, typed=True)
def _number(value: float) -> str:
    """As YAML reads it back: with a point in it, unless it is whole by type."""
    return str(yaml.safe_dump(value).split("\n")[0])
