"""The gates before a prompt recall searches at all. Pure: a prompt in, a reason or None out."""

from __future__ import annotations

from dataclasses import dataclass

from memory.text.clean import clean_text
from memory.text.fence import unwrap
from memory.text.poison import harness
from memory.text.words import meaningful

#: Meaningful tokens below which a prompt is not searched for; CJK counts by characters.
# Why: "ok, go on" matches everything a little and nothing well.
# Calibrate: injections with fewer tokens that people marked useful.
PROMPT_TOKENS_MIN = 5

#: Characters of a prompt that are searched for.
# Why: what is asked stands at the start or is short; a pasted log is not a question.
PROMPT_CHARACTERS_MAX = 4_000


@dataclass(frozen=True)
class Asked:
    """A prompt ready to search with, and the gate that refused it ("" when none did)."""

    text: str
    gate: str = ""
    detail: str = ""


def ask(prompt: str) -> Asked:
    """Clean the prompt and pass it through the gates: system turn, then substance."""
    text, _ = clean_text(prompt)
    text, _ = unwrap(text)
    text = text.strip()
    if what := harness(text):
        return Asked(text[:PROMPT_CHARACTERS_MAX], "system_turn", what)
    text = text[:PROMPT_CHARACTERS_MAX]
    if (tokens := meaningful(text)) < PROMPT_TOKENS_MIN:
        return Asked(text, "too_short", f"{tokens} meaningful tokens, {PROMPT_TOKENS_MIN} needed")
    return Asked(text)
