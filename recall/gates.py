"""The gates before a prompt recall searches at all. Pure: a prompt in, a reason or None out."""

from __future__ import annotations

from dataclasses import dataclass

from memory.text.clean import clean_text
from memory.text.fence import unwrap
from memory.text.poison import harness
from memory.text.private import MARK, strip_private
from memory.text.secrets import redact
from memory.text.stopwords import STOP_WORDS
from memory.text.words import meaningful, words

#: Meaningful tokens below which a prompt is not searched for; CJK counts by characters.
# Why: "ok, go on" matches everything a little and nothing well.
# Calibrate: injections with fewer tokens that people marked useful.
PROMPT_TOKENS_MIN = 5

#: Words of matter from which on the function words around them count as tokens, too.
# Why: "which port does the staging database use" holds four words of matter and is a whole
# question; "yes please go ahead and do it" holds two and asks nothing.
# Calibrate: prompts of three and four words of matter, by what people marked useful.
MATTER_WORDS_MIN = 3

#: The same for a prompt that ends as a question.
# Why: "how do we deploy this service?" holds two words of matter, and they are what is asked for.
# Calibrate: as MATTER_WORDS_MIN.
MATTER_WORDS_OF_A_QUESTION_MIN = 2

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
    text, _ = unwrap(without_private(clean_text(prompt)[0]))
    what = harness(text.strip())
    # Redacted before it is cut: half a secret looks like none.
    text = redact(text.strip()[: 2 * PROMPT_CHARACTERS_MAX]).text[:PROMPT_CHARACTERS_MAX]
    if what:
        return Asked(text, "system_turn", what)
    if (tokens := substance(text)) < PROMPT_TOKENS_MIN:
        return Asked(text, "too_short", f"{tokens} meaningful tokens, {PROMPT_TOKENS_MIN} needed")
    return Asked(text)


def substance(text: str) -> int:
    """How many tokens a prompt has to search with; function words count beside enough matter."""
    matter = meaningful(text)
    asks = text.endswith(("?", "？"))
    enough = MATTER_WORDS_OF_A_QUESTION_MIN if asks else MATTER_WORDS_MIN
    if not enough <= matter < PROMPT_TOKENS_MIN:
        return matter
    # A question mark asks, too: "how is it released?" is whole.
    return matter + len(STOP_WORDS.intersection(words(text))) + asks


def without_private(text: str) -> str:
    """The text without its private spans; the mark that stands for one is nothing to search for."""
    text, spans = strip_private(text)
    return text.replace(MARK, " ") if spans else text
