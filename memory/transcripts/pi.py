"""pi sessions, versions 1 to 3: which entries are turns, and why the others are not.

Knows the entry types; knows nothing about storing. Record id = the message's own instant in ms +
role + hash of the text: the extension's event, the file, a fork and a migrated file (which gives
every entry a new random id) share these and nothing else. All branches of the tree happened, so
all are kept. Instants, not file order, tell the time: a fork holds entries older than its header.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import PurePath, PurePosixPath, PureWindowsPath
from typing import Any, BinaryIO

from memory.text.patterns import late
from memory.text.poison import poison
from memory.transcripts.instants import instant, stamp
from memory.transcripts.lines import parse, read_lines
from memory.transcripts.records import Record, each_record
from memory.transcripts.turns import Item, Reading, Skip, Turn, fields, text_hash, texts, word

SOURCE = "pi"

#: Entries without words of the conversation.
PLUMBING = frozenset(("label", "session_info", "model_change", "thinking_level_change", "session"))
#: What extensions put in: Argus's own recall text is a custom_message.
INJECTED = frozenset(("custom", "custom_message"))
DIGESTS = frozenset(("compaction", "branch_summary"))
_ROLES = {
    "toolResult": "tool",
    "bashExecution": "shell",
    "custom": "injected",
    "hookMessage": "injected",
    "branchSummary": "digest",
    "compactionSummary": "digest",
}

#: Lines looked at for the header.
# Why: a broken first line must not hide it, and a file without one must not be read twice.
HEADER_LINES_MAX = 20

_SKILL = late(r"(?s)^\s*<skill\b[^>]*>.*?(?:</skill>|\Z)\s*")
_EXPANDED = late(r"(?s)^\s*(?:---\n|# ).*\n[ \t]*User: ")


@dataclass
class Header:
    """What the session's header says; a file without one is named after itself."""

    session: str
    cwd: str = ""
    marks: dict[str, Any] = field(default_factory=dict)


def read(handle: BinaryIO, name: str, offset: int, reading: Reading) -> Iterator[Item]:
    """The turns of one session file from byte `offset` on, with every other entry as a Skip."""
    header = read_header(handle, name)
    reading.session = header.session
    teller = _Teller(header)
    return each_record(handle, offset, reading, teller.judge)


def read_header(handle: BinaryIO, name: str) -> Header:
    """The first parsable header, else one made of the file's name (`<instant>_<uuid>`)."""
    for line in read_lines(handle, 0):
        if line.number > HEADER_LINES_MAX:
            break
        row, _, _ = parse(line)
        if isinstance(row, dict) and row.get("type") == "session" and word(row.get("id")):
            marks: dict[str, Any] = {"version": row.get("version", 1)}
            parent = word(row.get("parentSession")) or word(row.get("branchedFrom"))
            if parent:
                marks["forked_from"] = _session_of(parent)
            return Header(row["id"], word(row.get("cwd")), marks)
    return Header(_session_of(name))


def _session_of(path: str) -> str:
    plain = PureWindowsPath(path) if "\\" in path else PurePosixPath(path)
    return PurePath(plain.name).stem.split("_")[-1]


class _Teller:
    """Judges entries in file order."""

    def __init__(self, header: Header) -> None:
        self.header = header
        self.seen: set[str] = set()

    def judge(self, record: Record) -> Iterator[Item]:
        entry = record.row
        message = fields(entry.get("message"))
        text, reason, marks = judge_entry(entry)
        role = word(message.get("role"))
        when = entry.get("timestamp")
        if instant(message.get("timestamp"))[0] is not None:
            when = message["timestamp"]
        identity = identify(when, role, text)
        if reason is None and identity in self.seen:
            reason = "duplicate"
        if reason is not None:
            yield Skip(reason, record.line.number)
            return
        self.seen.add(identity)
        metadata = {**self.header.marks, **marks}
        if record.sanitised:
            metadata["sanitised"] = True
        yield Turn(
            source=SOURCE,
            kind="turn",
            role=role,
            body=text,
            session=self.header.session,
            cwd=self.header.cwd,
            record_id=identity,
            occurred_at=stamp(when, metadata),
            metadata=metadata,
            locator=record.locator,
        )


def identify(moment: Any, role: str, text: str) -> str:
    """The record id of one message: ms since 1970, role, hash of the text."""
    when, _ = instant(moment)
    ms = str(round(when.timestamp() * 1000)) if when else "?"
    return "/".join((ms, role, text_hash(text)))


def judge_entry(entry: dict[str, Any]) -> tuple[str, str | None, dict[str, Any]]:
    """(text, reason, marks) of one entry: reason None means that it is a turn."""
    kind = word(entry.get("type"))
    if kind in PLUMBING:
        return "", "plumbing", {}
    if kind in INJECTED:
        return "", "injected", {}
    if kind in DIGESTS:
        return "", "digest", {}
    if kind != "message":
        return "", "unknown:" + (kind or "?"), {}
    message = fields(entry.get("message"))
    role = word(message.get("role"))
    if role in _ROLES:
        return "", _ROLES[role], {}
    if role == "user":
        return _user(message)
    if role == "assistant":
        return _assistant(message)
    return "", "unknown:message/" + (role or "?"), {}


def _user(message: dict[str, Any]) -> tuple[str, str | None, dict[str, Any]]:
    blocks = [block for block in texts(message.get("content")) if block.strip()]
    if not blocks:
        pictures = isinstance(message.get("content"), list) and bool(message["content"])
        return "", "image" if pictures else "empty", {}
    text = "\n\n".join(blocks)
    if _SKILL.match(text):
        asked = _SKILL.sub("", text, count=1).strip()
        return (asked, None, {"form": "skill"}) if asked else ("", "harness", {})
    # An older expansion has no tag: the skill's body stands before the person's arguments.
    return text, None, {"derived": "skill"} if _EXPANDED.match(text) else {}


def _assistant(message: dict[str, Any]) -> tuple[str, str | None, dict[str, Any]]:
    content = message.get("content")
    blocks = [block for block in texts(content) if block.strip()]
    stop = word(message.get("stopReason"))
    if not blocks:
        if stop == "error":
            return "", "poison", {}
        kinds = {word(b.get("type")) for b in content or () if isinstance(b, dict)}
        return "", "tool" if "toolCall" in kinds else "thinking" if kinds else "empty", {}
    text = "\n\n".join(blocks)
    if poison(text, "assistant") == "api_error":
        return "", "poison", {}
    marks: dict[str, Any] = {"model": message["model"]} if word(message.get("model")) else {}
    if stop in ("aborted", "error"):
        marks["aborted"] = True
    return text, None, marks


def sniff(row: dict[str, Any]) -> bool:
    """Whether an object looks like an entry of this client."""
    kind = word(row.get("type"))
    if kind == "session":
        return "id" in row and "timestamp" in row
    if kind == "message":
        return bool(word(fields(row.get("message")).get("role"))) and "sessionId" not in row
    own = kind in PLUMBING or kind in INJECTED or kind in DIGESTS
    return own and "parentId" in row and "sessionId" not in row
