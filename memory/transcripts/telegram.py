"""Telegram Desktop exports (`result.json`), one chat or all of them, as a stream.

Knows the export's layout; knows nothing about storing. One chat is one session, one message one
turn; record id = chat id + message id. Everybody in a chat is a person, so the role is `user`;
who spoke stands in the metadata.

`date_unixtime` is the instant. Without it only `date` is there, a local time of a zone that the
file does not name: it is read in the zone given (UTC unless said) and marked `assumed_zone`.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from datetime import timezone, tzinfo
from typing import Any, BinaryIO

from memory.text.clean import clean
from memory.transcripts.instants import stamp
from memory.transcripts.turns import BadLine, Item, Reading, Skip, Turn, word

SOURCE = "telegram"

#: Bytes read at a time.
PIECE_BYTES = 256 * 1024
#: Characters of one message object above which the rest of the file is given up.
MESSAGE_CHARACTERS_MAX = 16 * 1024 * 1024

#: Characters that the key before a list of messages may take, blanks included.
KEY_CHARACTERS_MAX = 64

#: Braces that the scalars before it may hold.
HEADER_BRACES_MAX = 50

_MESSAGES = re.compile(r'"messages"\s*:\s*\[')
_CHATS = re.compile(
    r'"type"\s*:\s*"(?:personal_chat|bot_chat|saved_messages|replies|verify_codes'
    r'|(?:private|public)_(?:super)?(?:group|channel))"'
)
_GAP = re.compile(r"[\s,]*")


def recognises(head: str) -> bool:
    """Whether the first characters of a JSON file look like such an export."""
    if _CHATS.search(head):
        return True
    return '"chats"' in head and '"messages"' in head or '"personal_information"' in head


def read(
    handle: BinaryIO, name: str, offset: int, reading: Reading, zone: tzinfo = timezone.utc
) -> Iterator[Item]:
    """The messages of an export; it is one JSON document, so `offset` is always 0."""
    handle.seek(0)
    text = _Window(handle)
    count = 0
    while True:
        chat = _next_chat(text)
        if chat is None:
            reading.offset = handle.tell()
            return
        for message, problem in _messages(text):
            count += 1
            reading.lines += 1
            if problem:
                yield reading.count(BadLine(text.line(), problem, reading.path))
                reading.offset = handle.tell()
                return
            yield reading.count(_turn(chat, message, name, count, zone))


class _Window:
    """The part of the document at hand, as text, and how far it has been read."""

    def __init__(self, handle: BinaryIO) -> None:
        self.handle = handle
        self.decode = codecs.getincrementaldecoder("utf-8-sig")("replace").decode
        self.text = ""
        self.place = 0
        self.lines_gone = 1

    def more(self) -> bool:
        """Drop what was read and take the next piece in; False at the end of the file."""
        piece = self.handle.read(PIECE_BYTES)
        self.lines_gone += self.text.count("\n", 0, self.place)
        self.text = self.text[self.place :] + self.decode(piece, not piece)
        self.place = 0
        return bool(piece)

    def line(self) -> int:
        return self.lines_gone + self.text.count("\n", 0, self.place)


def _next_chat(text: _Window) -> dict[str, Any] | None:
    """The scalars that stand before the next list of messages; None at the end."""
    header = ""
    while True:
        found = _MESSAGES.search(text.text, text.place)
        if found:
            header += text.text[text.place : found.start()]
            text.place = found.end()
            break
        # Keep the tail: the key may be cut in two by the end of a piece.
        end = max(text.place, len(text.text) - KEY_CHARACTERS_MAX)
        header = (header + text.text[text.place : end])[-PIECE_BYTES:]
        text.place = end
        if not text.more():
            return None
    return _scalars(header)


def _scalars(header: str) -> dict[str, Any]:
    """The object that is still open at the end of `header`; {} when there is none to be found."""
    opening = len(header)
    # A chat's own name may hold braces: try further to the left.
    for _ in range(HEADER_BRACES_MAX):
        opening = header.rfind("{", 0, opening)
        if opening < 0:
            break
        try:
            found = json.loads(header[opening:].rstrip().rstrip(",") + "}")
        except ValueError:
            continue
        if isinstance(found, dict):
            return found
    return {}


def _messages(text: _Window) -> Iterator[tuple[Any, str | None]]:
    """Objects of one list, one by one, until its closing bracket."""
    decode = json.JSONDecoder().raw_decode
    while True:
        gap = _GAP.match(text.text, text.place)
        text.place = gap.end() if gap else text.place
        if text.place == len(text.text):
            if not text.more():
                yield None, "the file ends in the middle of a list"
                return
            continue
        if text.text[text.place] == "]":
            text.place += 1
            return
        try:
            message, text.place = decode(text.text, text.place)
        except RecursionError:
            yield None, "nested too deep"
            return
        except ValueError as problem:
            if len(text.text) - text.place > MESSAGE_CHARACTERS_MAX or not text.more():
                yield None, f"not JSON: {problem}"
                return
            continue
        yield message, None


def _turn(chat: dict[str, Any], message: Any, name: str, count: int, zone: tzinfo) -> Item:
    cleaned, changed = clean(message)
    if not isinstance(cleaned, dict):
        return Skip("unknown:message", count)
    if cleaned.get("type") != "message":
        kind = word(cleaned.get("type"))
        return Skip("service" if kind == "service" else "unknown:" + (kind or "?"), count)
    body = plain(cleaned.get("text"))
    if not body.strip():
        return Skip("image" if "photo" in cleaned or "file" in cleaned else "empty", count)
    session = f"telegram:{chat.get('id') or name}"
    metadata = _metadata(chat, cleaned)
    if changed:
        metadata["sanitised"] = True
    moment = cleaned.get("date_unixtime")
    if not moment:
        moment = cleaned.get("date")
        metadata["assumed_zone"] = str(zone)
    number = cleaned.get("id")
    return Turn(
        source=SOURCE,
        kind="turn",
        role="user",
        body=body,
        session=session,
        record_id=None if number is None else "{}/{}".format(chat.get("id") or name, number),
        occurred_at=stamp(moment, metadata, zone),
        metadata=metadata,
        locator={"message": number, "position": count},
    )


def plain(text: Any) -> str:
    """The words of a message's text: a string, or a list of strings and entities."""
    if isinstance(text, str):
        return text
    parts: list[str] = []
    for part in text if isinstance(text, list) else []:
        if isinstance(part, str):
            parts.append(part)
        elif isinstance(part, dict):
            said, link = word(part.get("text")), word(part.get("href"))
            parts.append(f"{said} ({link})" if link and link != said else said)
    return "".join(parts)


def _metadata(chat: dict[str, Any], message: dict[str, Any]) -> dict[str, Any]:
    named = {
        "chat": chat.get("name") or chat.get("type"),
        "sender": message.get("from") or "deleted account",
        "sender_id": message.get("from_id"),
        "reply_to": message.get("reply_to_message_id"),
        "forwarded_from": message.get("forwarded_from"),
        "edited": message.get("edited_unixtime") or message.get("edited"),
    }
    return {key: value for key, value in named.items() if isinstance(value, (str, int)) and value}
