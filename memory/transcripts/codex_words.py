"""Which words of a Codex user message are the person's own.

Knows what the client and its extensions put into the user's slot; knows nothing about files.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from memory.text.patterns import late
from memory.transcripts.turns import fields, texts, word

#: A text item that begins so was put there by the client (compared without case).
_INJECTED = (
    "# agents.md instructions",
    "<user_instructions>",
    "<environment_context",
    "<skill>",
    "<skill ",
    "<user_shell_command",
    "<turn_aborted",
    "<subagent_notification",
    "<codex_internal_context",
    "<goal_context",
    "<hook_prompt",
    "<recommended_plugins",
    "<additional_context",
    "<security_context",
    "<permissions instructions",
    "<model_switch>",
    "<collaboration_mode",
    "<personality_spec",
    "<cross-session-message",
    "warning: the maximum number of unified exec",
    "warning: apply_patch was requested via",
    "warning: your account was flagged",
)
_DIGEST = "another language model started to solve this problem and produced a summary"
_REQUEST = late(r"(?m)^## My request for Codex:[ \t]*$")
_PREAMBLE = "# context from my ide setup"

#: How newer versions name a content item that a person wrote.
_OWN_KIND = "user.text"


class Words(NamedTuple):
    """The person's text, or the reason why there is none."""

    text: str
    reason: str | None = None


def own_words(payload: dict[str, Any]) -> Words:
    """The person's words of one message: each content item is judged alone, the rest is kept.

    Where the client says itself who wrote which item, that is believed before any wording.
    """
    items = texts(payload.get("content"), ("input_text", "text", "Text", "output_text"))
    passed = fields(payload.get("internal_chat_message_metadata_passthrough"))
    kinds = passed.get("content_item_kinds") or payload.get("content_item_kinds")
    named = kinds if isinstance(kinds, list) and len(kinds) == len(items) else []
    kept: list[str] = []
    reasons: list[str] = []
    for place, item in enumerate(items):
        if named and word(named[place]) not in ("", "unknown", _OWN_KIND):
            reasons.append("harness")
            continue
        found = one_text(item)
        if found.reason is None:
            kept.append(found.text)
        else:
            reasons.append(found.reason)
    if kept:
        return Words("\n\n".join(kept))
    said = [reason for reason in reasons if reason != "empty"]
    return Words("", said[0] if said else "empty" if items else "image")


def one_text(text: str) -> Words:
    """One text item; what follows an editor's preamble is the person's."""
    lead = text.lstrip()
    low = lead[:200].casefold()
    if not lead:
        return Words("", "empty")
    if low.startswith(_DIGEST):
        return Words("", "digest")
    if low.startswith(_INJECTED):
        return Words("", "harness")
    if low.startswith(_PREAMBLE):
        heading = _REQUEST.search(text)
        asked = text[heading.end() :].strip() if heading else ""
        return Words(asked) if asked else Words("", "harness")
    return Words(text)
