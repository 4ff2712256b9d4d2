"""Claude Code transcripts: which rows are turns, and why the others are not.

Knows the client's row types up to 2.1; knows nothing about storing. Record id = the row's uuid
alone: forks and second compactions write old rows again with the same uuid.

A prompt that was taken back with Esc before any answer, and sent again in other words, leaves two
rows with one parent. The first one was withdrawn by the person and never answered, so it is
skipped as `abandoned`; a rewound branch that was answered did happen and is kept. Rows that the
client itself took back (`supersedesUuids`, `retractedMessageUuids`) are skipped as `retracted`.
Both need a look ahead: the part of the file from the offset on is read twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from memory.text.poison import poison
from memory.transcripts.claude_words import own_words
from memory.transcripts.instants import stamp
from memory.transcripts.lines import parse, read_lines, run_past
from memory.transcripts.records import Record, each_record
from memory.transcripts.turns import (
    Item,
    Reading,
    Skip,
    Turn,
    fields,
    named,
    stem_of,
    text_hash,
    texts,
    word,
)

SOURCE = "claude-code"

#: Row types that hold no words of the conversation.
PLUMBING = named(
    "summary ai-title custom-title agent-name agent-setting progress file-history-snapshot "
    "last-prompt mode permission-mode worktree-state relocated pr-link frame-link bridge- "
    "session atis-latch started result tag"
)
#: Attachments that hooks put into the model's context: Argus's own recall text comes back here.
INJECTED = named(
    "hook_success hook_additional_context hook_blocking_error hook_non_blocking_error "
    "hook_cancelled hook_system_message hook_stopped_continuation"
)
#: Attachments of the client itself.
ATTACHED = named(
    "nested_memory file edited_text_file compact_file_reference skill_listing invoked_skills "
    "dynamic_skill agent_listing_delta deferred_tools_delta mcp_instructions_delta "
    "command_permissions todo_reminder task_reminder task_status plan_mode plan_mode_exit "
    "auto_mode date_change total_tokens_reminder budget_usd read_truncation_notice "
    "ultra_effort_enter ultra_effort_exit batching_reminder_sent silent_turn_reminder "
    "diagnostics directory opened_file_in_ide selected_lines_in_ide todo "
    "critical_system_reminder output_style plan_file_reference plan_mode_reentry mcp_resource"
)
SYNTHETIC_MODEL = "<synthetic>"
#: What the client writes where a prompt was queued while the model worked.
_STEERING = b'"queued_command"'


@dataclass
class Ahead:
    """What must be known of the whole stretch before its first row can be judged."""

    lines: int = 0
    subagent: bool = False
    steering: bool = False
    prompts: set[str] = field(default_factory=set)
    retracted: set[str] = field(default_factory=set)
    abandoned: set[str] = field(default_factory=set)


def read(handle: BinaryIO, name: str, offset: int, reading: Reading) -> Iterator[Item]:
    """The turns of one transcript from byte `offset` on, with every other row as a Skip."""
    ahead = look_ahead(handle, offset)
    teller = _Teller(stem_of(name), ahead)
    return each_record(handle, offset, reading, teller.judge, ahead.lines)


def look_ahead(handle: BinaryIO, offset: int) -> Ahead:
    """One pass: whether this is a sub-agent's file, what was taken back, what was withdrawn.

    Of what stands before the offset only the first row is read as a row.
    """
    ahead = Ahead()
    tree = _Tree()
    head = _first(handle)
    ahead.subagent = head is not None and head.get("type") == "agent-setting"
    ahead.lines, ahead.steering = run_past(handle, offset, _STEERING)
    for line in read_lines(handle, offset):
        ahead.steering = ahead.steering or _STEERING in (line.raw or b"")
        row, _, _ = parse(line)
        if not isinstance(row, dict):
            continue
        for key in ("supersedesUuids", "retractedMessageUuids"):
            listed = row.get(key)
            ahead.retracted.update(u for u in listed or [] if isinstance(u, str))
        said = tree.add(row)
        if said is not None:
            ahead.prompts.add(text_hash(said))
    ahead.abandoned = tree.abandoned()
    return ahead


def _first(handle: BinaryIO) -> dict[str, Any] | None:
    """The first row of the file that is an object."""
    for line in read_lines(handle, 0):
        row, _, _ = parse(line)
        if isinstance(row, dict):
            return row
    return None


class _Tree:
    """Who answers whom, in so far as it tells a withdrawn prompt from an answered one."""

    def __init__(self) -> None:
        self.parents: dict[str, str | None] = {}
        self.answered: set[str] = set()
        self.asked: list[tuple[str, str]] = []

    def add(self, row: dict[str, Any]) -> str | None:
        """Take one row in; the person's text when the row is a prompt."""
        uuid = word(row.get("uuid"))
        if not uuid or uuid in self.parents:
            return None
        self.parents[uuid] = word(row.get("parentUuid")) or None
        if row.get("type") == "assistant" and not row.get("isSidechain"):
            place: str | None = uuid
            while place is not None and place not in self.answered:
                self.answered.add(place)
                place = self.parents.get(place)
        elif row.get("type") == "user":
            text, reason, _ = judge_user(row)
            if reason is None:
                parent = self.parents[uuid]
                if parent is not None:
                    self.asked.append((parent, uuid))
                return text
        return None

    def abandoned(self) -> set[str]:
        """Prompts without an answer that have a later prompt with the same parent."""
        last = dict(self.asked)
        return {u for parent, u in self.asked if last[parent] != u and u not in self.answered}


class _Teller:
    """Judges rows in file order; remembers uuids and the worktree."""

    def __init__(self, stem: str, ahead: Ahead) -> None:
        self.stem = stem
        self.ahead = ahead
        self.seen: set[str] = set()
        self.worktree: dict[str, str] = {}

    def judge(self, record: Record) -> Iterator[Item]:
        row = record.row
        text, reason, marks = self._words(row)
        uuid = word(row.get("uuid"))
        if reason is None and uuid:
            reason = self._again(uuid)
        if reason is None and not text.strip():
            reason = "empty"
        if reason is not None:
            yield Skip(reason, record.line.number)
            return
        role = "assistant" if row.get("type") == "assistant" else "user"
        metadata = self._metadata(row, marks)
        if record.sanitised:
            metadata["sanitised"] = True
        moment = row.get("timestamp") or fields(row.get("attachment")).get("timestamp")
        yield Turn(
            source=SOURCE,
            kind="turn",
            role=role,
            body=text,
            session=word(row.get("sessionId")) or self.stem,
            cwd=word(row.get("cwd")),
            record_id=uuid or None,
            occurred_at=stamp(moment, metadata),
            metadata=metadata,
            locator=record.locator,
        )

    def _again(self, uuid: str) -> str | None:
        if uuid in self.ahead.retracted:
            return "retracted"
        if uuid in self.ahead.abandoned:
            return "abandoned"
        if uuid in self.seen:
            return "duplicate"
        self.seen.add(uuid)
        return None

    def _words(self, row: dict[str, Any]) -> tuple[str, str | None, dict[str, Any]]:
        kind = word(row.get("type"))
        if not row.get("sessionId") and "session_id" in row and kind in _STREAMED:
            return "", "foreign", {}
        if row.get("isSidechain") or (self.ahead.subagent and kind in _SPOKEN):
            return "", "sidechain", {}
        if kind == "user":
            return judge_user(row)
        if kind == "assistant":
            return judge_assistant(row)
        if kind == "attachment":
            return judge_attachment(fields(row.get("attachment")))
        if kind == "queue-operation":
            return self._steered(row)
        if kind == "worktree-state":
            self._enter(fields(row.get("worktreeSession")))
        return "", _other(kind), {}

    def _steered(self, row: dict[str, Any]) -> tuple[str, str | None, dict[str, Any]]:
        """A message typed while the model worked, as versions before `queued_command` wrote it."""
        if row.get("operation") != "remove" or self.ahead.steering:
            return "", "plumbing", {}
        found = own_words("\n\n".join(texts(row.get("content"))))
        if found.reason or text_hash(found.text) in self.ahead.prompts:
            return "", "plumbing", {}
        return found.text, None, {"queued": True}

    def _enter(self, state: dict[str, Any]) -> None:
        pairs = (("main", "originalCwd"), ("path", "worktreePath"), ("branch", "worktreeBranch"))
        self.worktree = {name: word(state[key]) for name, key in pairs if word(state.get(key))}

    def _metadata(self, row: dict[str, Any], marks: dict[str, Any]) -> dict[str, Any]:
        named = {
            "branch": row.get("gitBranch"),
            "version": row.get("version"),
            "entrypoint": row.get("entrypoint"),
            "model": fields(row.get("message")).get("model"),
        }
        metadata: dict[str, Any] = {k: v for k, v in named.items() if isinstance(v, str) and v}
        metadata.update(marks)
        if self.worktree:
            metadata["worktree"] = dict(self.worktree)
        return metadata


_SPOKEN = frozenset(("user", "assistant", "attachment", "queue-operation"))
_STREAMED = frozenset(("user", "assistant", "system", "result", "stream_event"))


def judge_user(row: dict[str, Any]) -> tuple[str, str | None, dict[str, Any]]:
    """(text, reason, marks) of a user row: reason None means that a person wrote the text."""
    if row.get("isSidechain"):
        return "", "sidechain", {}
    if row.get("isCompactSummary"):
        return "", "digest", {}
    if row.get("isMeta"):
        return "", "harness", {}
    # An absent origin is a person: `-p` writes none.
    origin = word(fields(row.get("origin")).get("kind"))
    if origin and origin != "human":
        return "", "event", {}
    content = fields(row.get("message")).get("content")
    if not isinstance(content, (str, list)):
        return "", "unknown:user", {}
    blocks = texts(content)
    if "toolUseResult" in row and (isinstance(content, str) or not blocks):
        return "", "tool", {}
    if not blocks:
        return "", _wordless(content), {}
    return _own(blocks)


def judge_assistant(row: dict[str, Any]) -> tuple[str, str | None, dict[str, Any]]:
    """(text, reason, marks) of an assistant row: only text blocks, and no error texts."""
    message = fields(row.get("message"))
    if row.get("isApiErrorMessage") or message.get("model") == SYNTHETIC_MODEL:
        return "", "poison", {}
    if message.get("stop_reason") == "refusal":
        return "", "poison", {}
    content = message.get("content")
    if not isinstance(content, (str, list)):
        return "", "unknown:assistant", {}
    blocks = [block for block in texts(content) if block.strip()]
    if not blocks:
        return "", _wordless(content), {}
    text = "\n\n".join(blocks)
    if poison(text, "assistant") == "api_error":
        return "", "poison", {}
    return text, None, {"aborted": True} if row.get("isAbortedMidStream") else {}


def judge_attachment(attachment: dict[str, Any]) -> tuple[str, str | None, dict[str, Any]]:
    """(text, reason, marks) of an attachment: only a person's queued prompt is a turn."""
    kind = word(attachment.get("type"))
    if kind in INJECTED:
        return "", "injected", {}
    if kind in ATTACHED:
        return "", "plumbing", {}
    if kind != "queued_command":
        return "", "unknown:attachment/" + (kind or "?"), {}
    origin = word(fields(attachment.get("origin")).get("kind"))
    if attachment.get("commandMode", "prompt") != "prompt" or attachment.get("isMeta"):
        return "", "event", {}
    if origin and origin != "human":
        return "", "event", {}
    blocks = texts(attachment.get("prompt"))
    if not blocks:
        return "", _wordless(attachment.get("prompt")), {}
    text, reason, marks = _own(blocks)
    return text, reason, {**marks, "queued": True}


def _own(blocks: list[str]) -> tuple[str, str | None, dict[str, Any]]:
    """The person's part of several blocks; the first reason counts when nothing is left."""
    judged = [own_words(block) for block in blocks]
    kept = [found for found in judged if found.reason is None]
    if not kept:
        reasons = [found.reason for found in judged if found.reason != "empty"]
        # A block that was nothing but a reminder is empty once it is stripped.
        stripped = any(block.strip() for block in blocks)
        return "", reasons[0] if reasons else "harness" if stripped else "empty", {}
    forms = [found.form for found in kept if found.form]
    return "\n\n".join(f.text for f in kept), None, {"form": forms[0]} if forms else {}


def _wordless(content: Any) -> str:
    kinds = {word(b.get("type")) for b in content or () if isinstance(b, dict)}
    if kinds & {"tool_result", "tool_use", "server_tool_use", "web_search_tool_result"}:
        return "tool"
    if kinds & {"thinking", "redacted_thinking"}:
        return "thinking"
    return "image" if kinds & {"image", "document"} else "empty"


def _other(kind: str) -> str:
    if kind == "system":
        return "system"
    if kind in ("tool_use", "tool_result"):
        return "tool"
    return "plumbing" if kind in PLUMBING else "unknown:" + (kind or "?")


def sniff(row: dict[str, Any]) -> bool:
    """Whether an object looks like a row of this client."""
    kind = word(row.get("type"))
    if kind in ("user", "assistant"):
        return isinstance(row.get("message"), dict) and ("sessionId" in row or "uuid" in row)
    if kind == "summary":
        return "leafUuid" in row
    return "sessionId" in row and (kind in PLUMBING or kind in _SPOKEN or kind == "system")
