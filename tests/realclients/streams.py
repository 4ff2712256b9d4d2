"""What a model says, in the three protocols that coding clients speak.

Pure: a step of a script and the body of a request become the bytes of a reply. Knows nothing about
sockets, scripts or clients. Ids are new in every reply, since clients and importers tell by them
what they have seen.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

Body = dict[str, Any]

#: How each client's shell tool takes a command, by the tool's name; the first that is offered.
SHELLS: dict[str, Callable[[str], Body]] = {
    "Bash": lambda line: {"command": line, "description": "as the script says"},
    "bash": lambda line: {"command": line},
    "exec_command": lambda line: {"cmd": line},
    "shell_command": lambda line: {"command": line},
    "shell": lambda line: {"command": ["bash", "-lc", line]},
}


@dataclass(frozen=True)
class Step:
    """One reply. `shell` is a command for the client's own shell tool, `tool` any tool by name.

    `status` other than 200 is an error of the API, for `times` requests (-1: for good). `only` is
    a text that the request must hold; without it the step is for a request that offers tools.
    `seconds` pass before anything is sent. `tokens` is what the prompt is said to have cost.
    """

    text: str = ""
    shell: str = ""
    tool: tuple[str, Body] | None = None
    namespace: str = ""
    thought: str = ""
    status: int = 200
    message: str = "as the script says"
    times: int = 1
    only: str = ""
    seconds: float = 0.0
    tokens: int = 1_000


@dataclass(frozen=True)
class Reply:
    """Status, headers and the pieces of a body; `stream` when they are server-sent events."""

    pieces: list[bytes]
    status: int = 200
    stream: bool = False
    headers: dict[str, str] = field(default_factory=dict)


def tools(body: Body) -> list[str]:
    """The names of the tools that a request offers."""
    offered = [tool for tool in body.get("tools") or [] if isinstance(tool, dict)]
    return [
        t.get("name") or t.get("function", {}).get("name") or t.get("type", "") for t in offered
    ]


def document(value: object, status: int = 200) -> Reply:
    return Reply([json.dumps(value).encode()], status)


def messages(body: Body, step: Step) -> Reply:
    """Anthropic's Messages."""
    if step.status != 200:
        kind = {400: "invalid_request_error", 401: "authentication_error", 429: "rate_limit_error"}
        error = {"type": kind.get(step.status, "api_error"), "message": step.message}
        return document({"type": "error", "error": error, "request_id": "req_1"}, step.status)
    blocks: list[Body] = []
    if step.thought:
        blocks.append({"type": "thinking", "thinking": step.thought, "signature": "c2lnbmVk"})
    if step.text:
        blocks.append({"type": "text", "text": step.text})
    if call := _call(body, step):
        blocks.append({"type": "tool_use", "id": _new("toolu_"), "name": call[0], "input": call[1]})
    end = {"stop_reason": "tool_use" if call else "end_turn", "stop_sequence": None}
    whole = {
        "id": _new("msg_"), "type": "message", "role": "assistant", "model": body.get("model"),
        "usage": {"input_tokens": step.tokens, "output_tokens": 20,
                  "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0},
    }  # fmt: skip
    if not body.get("stream"):
        return document({**whole, "content": blocks, **end})
    empty: Body = {**whole, "content": [], "stop_reason": None, "stop_sequence": None}
    events: list[Body] = [{"type": "message_start", "message": empty}]
    for index, block in enumerate(blocks):
        start, deltas = _opened(block)
        events.append({"type": "content_block_start", "index": index, "content_block": start})
        events += [{"type": "content_block_delta", "index": index, "delta": d} for d in deltas]
        events.append({"type": "content_block_stop", "index": index})
    events.append({"type": "message_delta", "delta": end, "usage": {"output_tokens": 20}})
    events.append({"type": "message_stop"})
    return _named(events)


def _opened(block: Body) -> tuple[Body, list[Body]]:
    """A block as it begins, and what is added to it."""
    if block["type"] == "text":
        return {"type": "text", "text": ""}, [{"type": "text_delta", "text": block["text"]}]
    if block["type"] == "thinking":
        thought = {"type": "thinking_delta", "thinking": block["thinking"]}
        signed = {"type": "signature_delta", "signature": block["signature"]}
        return {"type": "thinking", "thinking": "", "signature": ""}, [thought, signed]
    given = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
    return {**block, "input": {}}, [given]


def responses(body: Body, step: Step) -> Reply:
    """OpenAI's Responses."""
    if step.status != 200:
        return _refused(step)
    items: list[Body] = []
    if step.text:
        said = {"type": "output_text", "text": step.text, "annotations": []}
        items.append({"type": "message", "id": _new("msg_"), "role": "assistant",
                      "status": "completed", "content": [said]})  # fmt: skip
    if call := _call(body, step):
        given = json.dumps(call[1])
        made = {"type": "function_call", "id": _new("fc_"), "call_id": _new("call_"),
                "name": call[0], "arguments": given, "status": "completed"}  # fmt: skip
        items.append(made | ({"namespace": step.namespace} if step.namespace else {}))
    begun: Body = {
        "id": _new("resp_"), "object": "response", "created_at": 1, "status": "in_progress",
        "model": body.get("model"), "output": [], "usage": None,
    }  # fmt: skip
    usage = {
        "input_tokens": step.tokens, "output_tokens": 20, "total_tokens": step.tokens + 20,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 0},
    }  # fmt: skip
    done = {**begun, "status": "completed", "output": items, "usage": usage}
    if not body.get("stream"):
        return document(done)
    events: list[Body] = [{"type": "response.created", "response": begun}]
    for index, item in enumerate(items):
        text = item["type"] == "message"
        nothing: Body = {"content": []} if text else {"arguments": ""}
        hollow = {**item, "status": "in_progress", **nothing}
        place = {"output_index": index}
        events.append({"type": "response.output_item.added", **place, "item": hollow})
        if text:
            delta = {"item_id": item["id"], "content_index": 0, "delta": step.text}
            events.append({"type": "response.output_text.delta", **place, **delta})
        events.append({"type": "response.output_item.done", **place, "item": item})
    events.append({"type": "response.completed", "response": done})
    return _named([{"sequence_number": n, **event} for n, event in enumerate(events)])


def chat(body: Body, step: Step) -> Reply:
    """OpenAI's Chat Completions."""
    if step.status != 200:
        return _refused(step)
    call = _call(body, step)
    calls = []
    if call:
        function = {"name": call[0], "arguments": json.dumps(call[1])}
        calls.append({"id": _new("call_"), "type": "function", "function": function})
    head = {"id": _new("chatcmpl-"), "created": 1, "model": body.get("model")}
    reason = "tool_calls" if call else "stop"
    usage = {"prompt_tokens": step.tokens, "completion_tokens": 20,
             "total_tokens": step.tokens + 20}  # fmt: skip
    if not body.get("stream"):
        message = {"role": "assistant", "content": step.text} | (
            {"tool_calls": calls} if calls else {}
        )
        choice = {"index": 0, "message": message, "finish_reason": reason}
        return document({**head, "object": "chat.completion", "choices": [choice], "usage": usage})
    deltas: list[tuple[Body, str | None]] = [({"role": "assistant", "content": ""}, None)]
    if step.text:
        deltas.append(({"content": step.text}, None))
    deltas += [({"tool_calls": [{"index": 0, **one}]}, None) for one in calls]
    deltas.append(({}, reason))
    chunks = [
        {**head, "object": "chat.completion.chunk",
         "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
        for delta, finish in deltas
    ]  # fmt: skip
    chunks.append({**head, "object": "chat.completion.chunk", "choices": [], "usage": usage})
    return Reply([*(_data(chunk) for chunk in chunks), b"data: [DONE]\n\n"], stream=True)


def _call(body: Body, step: Step) -> tuple[str, Body] | None:
    """The tool that the step calls, and what it is given."""
    if step.tool or not step.shell:
        return step.tool
    offered = tools(body)
    name = next((name for name in SHELLS if name in offered), "shell")
    return name, SHELLS[name](step.shell)


def _refused(step: Step) -> Reply:
    error = {"message": step.message, "type": "server_error", "code": None}
    return document({"error": error}, step.status)


def _named(events: Iterable[Body]) -> Reply:
    pieces = [b"event: %s\n" % event["type"].encode() + _data(event) for event in events]
    return Reply(pieces, stream=True)


def _data(value: object) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\n\n"


def _new(prefix: str) -> str:
    return prefix + uuid.uuid4().hex[:20]
