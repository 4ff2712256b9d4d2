"""Browser bookmarks in the Netscape HTML format, as a stream.

Knows the format with its unclosed tags; knows nothing about storing. One bookmark is one document
whose body is title, address and description. Record id = hash of the address: the same page in
two folders or two exports is one thing (the first one wins).
"""

from __future__ import annotations

import codecs
import hashlib
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any, BinaryIO, Optional

from memory.text.clean import clean_text
from memory.transcripts.instants import stamp
from memory.transcripts.turns import Item, Reading, Skip, Turn

SOURCE = "bookmark"

#: Bytes read at once.
PIECE_BYTES = 64 * 1024

#: Addresses that name no page.
_NO_PAGES = ("javascript:", "data:", "place:", "about:", "chrome:", "file:", "blob:")

_Attributes = list[tuple[str, Optional[str]]]


def recognises(head: str) -> bool:
    """Whether the first characters of an HTML file look like such an export."""
    return "netscape-bookmark-file" in head.lower()


def read(handle: BinaryIO, name: str, offset: int, reading: Reading) -> Iterator[Item]:
    """The bookmarks of one export; the file is rewritten as a whole, so `offset` is always 0."""
    handle.seek(0)
    decode = codecs.getincrementaldecoder("utf-8-sig")("replace").decode
    parser = _Parser()
    seen: set[str] = set()
    while True:
        piece = handle.read(PIECE_BYTES)
        parser.feed(decode(piece, not piece))
        if not piece:
            parser.close()
            parser.finish()
        for mark in parser.take():
            yield reading.count(_document(mark, seen))
        if not piece:
            reading.lines = parser.getpos()[0]
            reading.offset = handle.tell()
            return


class _Parser(HTMLParser):
    """Collects one bookmark after the other; folders are a stack."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.folders: list[str] = []
        self.named = ""
        self.state = ""
        self.text: list[str] = []
        self.current: dict[str, Any] | None = None
        self.done: list[dict[str, Any]] = []

    def handle_starttag(self, tag: str, attrs: _Attributes) -> None:
        if tag == "dt":
            self.finish()
            self.state = "dt"
        elif tag in ("h1", "h3"):
            self.finish()
            self._open(tag)
        elif tag == "dl":
            self.finish()
            self.folders.append(self.named)
            self.named = ""
        elif tag == "a" and self.state == "dt":
            # Only the first link after <DT>: a link inside a description is its text.
            values = {key: value or "" for key, value in attrs}
            self.current = {"values": values, "line": self.getpos()[0], "folders": self._path()}
            self._open("a")
        elif tag == "dd":
            self._close()
            self._open("dd")

    def handle_endtag(self, tag: str) -> None:
        if tag == self.state and tag in ("a", "h1", "h3"):
            self._close()
        elif tag == "dl":
            self.finish()
            if self.folders:
                self.folders.pop()

    def handle_data(self, data: str) -> None:
        if self.state in ("a", "dd", "h3"):
            self.text.append(data)

    def finish(self) -> None:
        """The bookmark that was being read is complete."""
        self._close()
        if self.current is not None:
            self.done.append(self.current)
            self.current = None

    def take(self) -> list[dict[str, Any]]:
        """The bookmarks that are complete by now."""
        done, self.done = self.done, []
        return done

    def _path(self) -> list[str]:
        return [folder for folder in self.folders if folder]

    def _open(self, state: str) -> None:
        self.state, self.text = state, []

    def _close(self) -> None:
        text = "".join(self.text).strip()
        if self.state == "h3":
            self.named = text
        elif self.state == "a" and self.current is not None:
            self.current["title"] = text
        elif self.state == "dd" and self.current is not None:
            self.current["description"] = text
        self._open("")


def _document(mark: dict[str, Any], seen: set[str]) -> Item:
    values, line = mark["values"], mark["line"]
    address = values.get("href", "").strip()
    if not address or address.lower().startswith(_NO_PAGES):
        return Skip("no page", line)
    identity = hashlib.sha256(address.encode("utf-8", "replace")).hexdigest()
    if identity in seen:
        return Skip("duplicate", line)
    seen.add(identity)
    title = mark.get("title") or address
    parts = [title, address] if title != address else [address]
    described = mark.get("description", "")
    body, changed = clean_text("\n".join(parts) + ("\n\n" + described if described else ""))
    metadata: dict[str, Any] = {"url": clean_text(address)[0], "title": clean_text(title)[0]}
    if mark["folders"]:
        metadata["folder"] = clean_text("/".join(mark["folders"]))[0]
    tags = [tag.strip() for tag in values.get("tags", "").split(",") if tag.strip()]
    if tags:
        metadata["tags"] = [clean_text(tag)[0] for tag in tags]
    if values.get("private") == "1":
        metadata["private"] = True
    if changed:
        metadata["sanitised"] = True
    return Turn(
        source=SOURCE,
        kind="document",
        role="user",
        body=body,
        record_id=identity,
        occurred_at=stamp(values.get("add_date"), metadata),
        metadata=metadata,
        locator={"line": line},
    )
