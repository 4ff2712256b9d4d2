"""Codex rollouts: one copy of every visible text, whichever way the version wrote it.

Knows the channels by which versions 0.2x to 0.17x wrote the same words (bare items, response
items, `user_message`/`agent_message` events, `item_completed` events); knows nothing about
storing. Record id = thread + turn + role + hash of the text; without a turn id, the instant.

A prompt stands in up to three channels and their item ids differ, so the choice is made per turn:
`item_completed`, else the event, else the response item without its injected parts. Items that
know no turn (older versions) follow the whole file. An answer is taken from the response item,
else from `item_completed`, else from the event. What a channel repeats is skipped as `mirror`; a
response item that no better channel of its file repeats is skipped as `unmirrored`, so that it
shows in the report.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from memory.text.poison import poison
from memory.transcripts.codex_words import one_text, own_words
from memory.transcripts.instants import stamp
from memory.transcripts.lines import parse, read_lines
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

SOURCE = "codex"

ENVELOPES = named("session_meta response_item event_msg turn_context compacted world_state")
#: Line types that never hold a turn; `compacted` holds copies of the whole history.
PLUMBING = named(
    "world_state inter_agent_communication inter_agent_communication_metadata "
    "token_usage_record thread_settings_applied"
)
_TOOLS = tuple(
    named(
        "function_call custom_tool_call local_shell_call web_search_call tool_search "
        "image_generation tool_call tool_result function_result mcp_tool_call patch_apply "
        "exec_command web_search view_image dynamic_tool"
    )
)
_EVENTS = named(
    "token_count task_started turn_started task_complete turn_complete turn_aborted "
    "thread_rolled_back context_compacted entered_review_mode exited_review_mode "
    "thread_name_updated thread_goal_updated error undo_completed thread_settings_applied "
    "guardian_assessment plan_update turn.completed"
)
_STARTS = frozenset(("task_started", "turn_started"))
# Only lines with one of these can change what the look ahead learns: tool output is not parsed.
_MARKS = (
    b'"role"',
    b'"user_message"',
    b'"item_completed"',
    b'"session_meta"',
    b'"instructions"',
    b'"turn_context"',
    b'"task_started"',
    b'"turn_started"',
    b'"compacted"',
    b'"thread_rolled_back"',
)


@dataclass
class Ahead:
    """What must be known of the whole file before its first line can be judged."""

    thread: str = ""
    meta: dict[str, Any] = field(default_factory=dict)
    completed: set[str] = field(default_factory=set)
    completed_from: int | None = None
    evented: set[str] = field(default_factory=set)
    events: set[str] = field(default_factory=set)
    answered: set[str] = field(default_factory=set)
    answers: set[str] = field(default_factory=set)
    spoken: set[str] = field(default_factory=set)
    announced: set[str] = field(default_factory=set)
    digests: list[str] = field(default_factory=list)
    undone: list[tuple[int, int]] = field(default_factory=list)
    turn: str = ""
    cwd: str = ""
    model: str = ""


def read(handle: BinaryIO, name: str, offset: int, reading: Reading) -> Iterator[Item]:
    """The turns of one rollout from byte `offset` on, with every other line as a Skip."""
    ahead = look_ahead(handle, offset)
    teller = _Teller(ahead.thread or thread_of(name), ahead)
    reading.session = teller.thread
    return each_record(handle, offset, reading, teller.judge)


def thread_of(name: str) -> str:
    """The thread id that a rollout's file name ends with, else the name without its suffix."""
    stem = stem_of(name)
    tail = "-".join(stem.split("-")[-5:])
    return tail if stem.startswith("rollout-") and len(tail) == 36 else stem


def look_ahead(handle: BinaryIO, offset: int) -> Ahead:
    """One pass over the file: header, channels per turn, undone turns, the state at `offset`."""
    ahead = Ahead()
    turn = cwd = model = ""
    passed = False
    starts: list[int] = []
    for line in read_lines(handle, 0):
        if line.start >= offset and not passed:
            passed = True
            ahead.turn, ahead.cwd, ahead.model = turn, cwd, model
        raw = line.raw or b""
        if not any(mark in raw for mark in _MARKS):
            continue
        row, _, _ = parse(line)
        if not isinstance(row, dict):
            continue
        kind, payload = word(row.get("type")), fields(row.get("payload"))
        bare = not kind and "instructions" in row and bool(word(row.get("id")))
        if (kind == "session_meta" or bare) and not ahead.meta:
            ahead.meta = row if bare else payload
            ahead.thread = word(ahead.meta.get("id")) or word(ahead.meta.get("session_id"))
            cwd = word(ahead.meta.get("cwd"))
        elif kind == "turn_context":
            turn = word(payload.get("turn_id")) or turn
            cwd, model = word(payload.get("cwd")) or cwd, word(payload.get("model")) or model
        elif kind == "event_msg" and word(payload.get("type")) in _STARTS:
            turn = word(payload.get("turn_id")) or turn
            starts.append(line.start)
        elif kind == "compacted":
            ahead.digests.append(word(payload.get("message")).rstrip())
        elif payload.get("type") == "thread_rolled_back":
            _undo(ahead, starts, payload, line.start)
        else:
            _channel(ahead, row, payload, turn, line.start)
    return ahead


def _undo(ahead: Ahead, starts: list[int], payload: dict[str, Any], end: int) -> None:
    count = payload.get("num_turns")
    if isinstance(count, int) and count > 0 and starts:
        ahead.undone.append((starts[-count] if count <= len(starts) else starts[0], end))
        del starts[-count:]


def _channel(
    ahead: Ahead, row: dict[str, Any], payload: dict[str, Any], turn: str, at: int
) -> None:
    """Note which channel told which turn."""
    kind, inner = row.get("type"), payload.get("type")
    if kind == "event_msg" and inner == "item_completed":
        item = fields(payload.get("item"))
        if item.get("type") == "UserMessage":
            ahead.completed.add(word(payload.get("turn_id")) or turn)
            ahead.completed_from = at if ahead.completed_from is None else ahead.completed_from
        elif item.get("type") == "AgentMessage":
            ahead.spoken.add(word(payload.get("turn_id")) or turn)
            ahead.announced.add(word(item.get("id")))
    elif kind == "event_msg" and inner == "user_message":
        ahead.evented.add(turn)
        ahead.events.add(text_hash(word(payload.get("message")).strip()))
    elif kind == "response_item" and payload.get("role") == "assistant":
        ahead.answered.add(_turn_of(payload) or turn)
        ahead.answers.add(text_hash(_said(payload).strip()))


def _turn_of(payload: dict[str, Any]) -> str:
    passed = fields(payload.get("internal_chat_message_metadata_passthrough"))
    return word(passed.get("turn_id"))


def _said(payload: dict[str, Any]) -> str:
    blocks = texts(payload.get("content"), ("output_text", "text", "Text"))
    return "\n\n".join(block for block in blocks if block.strip())


class _Teller:
    """Judges lines in file order; keeps the current turn, directory and model."""

    def __init__(self, thread: str, ahead: Ahead) -> None:
        self.thread = thread
        self.ahead = ahead
        self.turn, self.cwd, self.model = ahead.turn, ahead.cwd, ahead.model
        self.cwd = self.cwd or word(ahead.meta.get("cwd"))
        self.sidechain = _is_sidechain(ahead.meta)
        self.seen: set[str] = set()

    def judge(self, record: Record) -> Iterator[Item]:
        row = record.row
        role, text, reason, turn = self._words(row, record.line.start)
        if reason is None and self.sidechain:
            reason = "sidechain"
        if reason is None and not text.strip():
            reason = "empty"
        if reason is None and role == "assistant" and poison(text, role) == "api_error":
            reason = "poison"
        moment = row.get("timestamp") or row.get("created_at")
        identity = "/".join((self.thread, turn or word(moment), role, text_hash(text)))
        if reason is None and identity in self.seen:
            reason = "mirror"
        if reason is not None:
            yield Skip(reason, record.line.number)
            return
        self.seen.add(identity)
        metadata = self._metadata(row, turn, role, record)
        yield Turn(
            source=SOURCE,
            kind="turn",
            role=role,
            body=text,
            session=self.thread,
            cwd=self.cwd,
            record_id=identity,
            occurred_at=stamp(moment, metadata),
            metadata=metadata,
            locator=record.locator,
        )

    def _words(self, row: dict[str, Any], at: int) -> tuple[str, str, str | None, str]:
        """(role, text, reason, turn id) of one line."""
        kind, payload = word(row.get("type")), fields(row.get("payload"))
        if kind == "response_item":
            if payload.get("role") == "assistant" and self._is_digest(row, payload):
                return "", "", "digest", ""
            return self._item(payload)
        if kind == "event_msg":
            return self._event(payload, at)
        if kind in ("", "message") and word(row.get("role")):
            return self._bare(row)
        if kind == "turn_context":
            self.turn = word(payload.get("turn_id")) or self.turn
            self.cwd = word(payload.get("cwd")) or self.cwd
            self.model = word(payload.get("model")) or self.model
        elif kind == "compacted":
            return "", "", "digest", ""
        elif kind.startswith(_TOOLS):
            return "", "", "tool", ""
        elif kind and kind != "session_meta" and kind not in PLUMBING:
            return "", "", "unknown:" + kind, ""
        return "", "", "plumbing", ""

    def _is_digest(self, row: dict[str, Any], payload: dict[str, Any]) -> bool:
        """Whether an answer was given to the client that compacts, and never shown."""
        ahead = self.ahead
        if word(payload.get("id")) in ahead.announced:
            return False
        # What is shown is retained from a source; the digest's line has no such mark, and it is
        # written some milliseconds before the line that makes it the history.
        marks = row.get("metadata")
        if ahead.announced and isinstance(marks, dict) and marks:
            return "retained_source" not in marks
        text = _said(payload).strip()
        return bool(text) and any(digest.endswith("\n" + text) for digest in ahead.digests)

    def _item(self, payload: dict[str, Any]) -> tuple[str, str, str | None, str]:
        inner, role = word(payload.get("type")), word(payload.get("role"))
        if inner in ("message", "") and role:
            turn = _turn_of(payload)
            if role == "assistant":
                return role, _said(payload), None, turn or self.turn
            if role != "user":
                return "", "", "injected" if role == "developer" else "harness", ""
            text, reason = own_words(payload)
            return role, text, reason or self._repeated(text, turn), turn or self.turn
        if inner.startswith(("compaction", "context_compaction")):
            return "", "", "digest", ""
        if inner.startswith("reasoning"):
            return "", "", "thinking", ""
        if inner == "agent_message":
            return "", "", "sidechain", ""
        if inner in ("ghost_snapshot", "other"):
            return "", "", "plumbing", ""
        if inner.startswith(_TOOLS):
            return "", "", "tool", ""
        return "", "", "unknown:response_item/" + (inner or "?"), ""

    def _repeated(self, text: str, turn: str) -> str | None:
        """Why a prompt in a response item is not the copy to keep, or None."""
        ahead = self.ahead
        if turn:
            told = turn in ahead.completed or turn in ahead.evented
            # Some versions write the event before the line that opens its turn.
            return "mirror" if told or text_hash(text.strip()) in ahead.events else None
        if self.turn and self.turn in ahead.completed:
            return "mirror"
        if ahead.events:
            return "mirror" if text_hash(text.strip()) in ahead.events else "unmirrored"
        return None

    def _event(self, payload: dict[str, Any], at: int) -> tuple[str, str, str | None, str]:
        inner = word(payload.get("type"))
        ahead, turn = self.ahead, word(payload.get("turn_id")) or self.turn
        if inner in _STARTS:
            self.turn = turn
        if inner == "item_completed":
            return self._completed(fields(payload.get("item")), turn)
        if inner == "user_message":
            text, reason = one_text(word(payload.get("message")))
            if word(payload.get("kind")) in ("environment_context", "user_instructions"):
                reason = "harness"
            later = ahead.completed_from is not None and at >= ahead.completed_from
            if turn in ahead.completed if turn else later:
                reason = reason or "mirror"
            return "user", text, reason, turn
        if inner == "agent_message":
            text = word(payload.get("message"))
            told = turn in ahead.answered or turn in ahead.spoken if turn else bool(ahead.answers)
            same = text_hash(text.strip()) in ahead.answers
            return "assistant", text, "mirror" if told or same else None, turn
        if inner.startswith("agent_reasoning"):
            return "", "", "thinking", ""
        if inner in _EVENTS or inner.startswith(("collab_", "account/")):
            return "", "", "plumbing", ""
        if inner.startswith(_TOOLS):
            return "", "", "tool", ""
        return "", "", "unknown:event_msg/" + (inner or "?"), ""

    def _completed(self, item: dict[str, Any], turn: str) -> tuple[str, str, str | None, str]:
        kind = word(item.get("type"))
        if kind == "UserMessage":
            text, reason = own_words(item)
            return "user", text, reason, turn
        if kind == "AgentMessage":
            return "assistant", _said(item), "mirror" if turn in self.ahead.answered else None, turn
        return "", "", "thinking" if kind == "Reasoning" else "tool", ""

    def _bare(self, row: dict[str, Any]) -> tuple[str, str, str | None, str]:
        """Lines of 2025 without an envelope, and drifted ones with `message` for `content`."""
        role = word(row.get("role"))
        payload = row if row.get("content") is not None else {**row, "content": row.get("message")}
        self.model = word(row.get("model")) or self.model
        if role == "assistant":
            return role, _said(payload), None, ""
        if role != "user":
            return "", "", "injected" if role == "developer" else "harness", ""
        text, reason = own_words(payload)
        return role, text, reason, ""

    def _metadata(
        self, row: dict[str, Any], turn: str, role: str, record: Record
    ) -> dict[str, Any]:
        git = fields(self.ahead.meta.get("git"))
        phase = word(fields(row.get("payload")).get("phase"))
        named = {
            "branch": git.get("branch"),
            "repo": git.get("repository_url"),
            "version": self.ahead.meta.get("cli_version"),
            "entrypoint": self.ahead.meta.get("originator"),
            "model": self.model,
            "turn_id": turn,
            "phase": phase if role == "assistant" else "",
            "forked_from": self.ahead.meta.get("forked_from_id"),
        }
        metadata: dict[str, Any] = {k: v for k, v in named.items() if isinstance(v, str) and v}
        if record.sanitised:
            metadata["sanitised"] = True
        if any(start <= record.line.start < end for start, end in self.ahead.undone):
            metadata["rolled_back"] = True
        return metadata


def _is_sidechain(meta: dict[str, Any]) -> bool:
    """A sub-agent's own thread: its words are not the person's."""
    source = meta.get("source")
    if isinstance(source, dict) and ("subagent" in source or "sub_agent" in source):
        return True
    return word(meta.get("thread_source")) in ("subagent", "memory_consolidation")


def sniff(row: dict[str, Any]) -> bool:
    """Whether an object looks like a line of this client."""
    if word(row.get("type")) in ENVELOPES and isinstance(row.get("payload"), dict):
        return True
    if "type" not in row and "instructions" in row and "id" in row:
        return True
    bare = row.get("type") in (None, "message") and word(row.get("role")) in ("user", "assistant")
    return bare and "uuid" not in row and ("timestamp" in row or "created_at" in row)
