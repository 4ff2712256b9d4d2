"""Text that must not become memory: failures that look like answers, harness text, and orders to an
agent.

Three pure judgements. `poison` and `harness` speak of the whole text and read its beginning only;
`instruction` looks everywhere. None is a defence alone: what is recalled is fenced and framed as
data whatever they say. Knows nothing about who stores what; the phrases are tables in
`memory.text.phrases`.

The trade-off of `instruction`: a note that only speaks about injection keeps its place when it
quotes the order (in quotes or backticks) and says what it is about (attack, test, pattern, refuse
...). So an attacker who writes an order in this way passes as well; the fence is what holds then.
In doubt about an unquoted order it refuses.
"""

from __future__ import annotations

import unicodedata

from memory.text.clean import strip_invisible
from memory.text.patterns import late
from memory.text.phrases import (
    ABOUT,
    ERROR_HEADS,
    ERROR_WHOLE,
    GOES_ON,
    HARNESS_BLOCKS,
    HARNESS_HEADS,
    LOOKALIKES,
    NARRATIVE,
    ORDERS,
    REFUSALS,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re

#: Characters of the longest error and the longest refusal.
# Why: an error can carry its JSON body; a refusal of more than a paragraph also answers something.
# Calibrate: the benign set in the tests must keep below 2 %; lower until it does.
ERROR_CHARS_MAX = 4000
REFUSAL_CHARS_MAX = 600

#: Runs of base64 that are decoded, their shortest and longest length.
# Why: an order of six words is 40 characters in base64; a picture is a million.
# Calibrate: time of `instruction` on a megabyte of base64 stays near that of plain text.
ENCODED_RUNS_MAX = 20
_ENCODED = late(r"(?<![A-Za-z0-9+/=])[A-Za-z0-9+/]{40,4000}={0,2}")

#: Hidden characters from which hiding itself is the order.
# Why: a stray joiner happens; a dozen tag characters spell something that nobody was meant to see.
# Calibrate: flags of regions use six tag characters.
HIDDEN_TAGS_MIN = 12
_TAGS = late("[\U000e0020-\U000e007e]+")
_JSON_BODY = late(r"(?s)\{.*\}|<html.*")
_QUOTES = "\"'`“”„‘’«»「」"


def poison(text: str, role: str = "assistant") -> str | None:
    """Return "api_error" or "refusal" if the whole text is one and nothing else, else None.

    What a user types is never poison: people paste errors to ask about them.
    """
    if role == "user" or len(text) > ERROR_CHARS_MAX:
        return None
    bare = text.strip()
    if ERROR_WHOLE.fullmatch(bare) and not NARRATIVE.search(bare):
        return "api_error"
    head = ERROR_HEADS.match(bare)
    if head and not NARRATIVE.search(_JSON_BODY.sub("", bare[head.end() :])):
        return "api_error"
    if len(bare) <= REFUSAL_CHARS_MAX and REFUSALS.match(bare) and not GOES_ON.search(bare):
        return "refusal"
    return None


def harness(text: str) -> str | None:
    """Return the name of the harness text if the whole text is that, else None.

    A tag counts only where it leads; text after the last closing tag is someone's own and saves the
    whole.
    """
    bare = text.strip()
    if not bare or bare[0] not in "<[#CSTAWN":
        return None
    for head, name in HARNESS_HEADS:
        if bare.startswith(head):
            return name
    first: str | None = None
    while bare:
        block = HARNESS_BLOCKS.match(bare)
        if not block:
            return None
        name = (block.group("t") or block.group("a")).lower().split(" ")[0]
        first = first or name
        closing = "</INSTRUCTIONS>" if name == "agents.md" else f"</{name}>"
        end = bare.lower().find(closing.lower(), block.end())
        if name == "command-args" and bare[block.end() : end if end >= 0 else None].strip():
            return None
        bare = "" if end < 0 else bare[end + len(closing) :].lstrip()
    return first


def instruction(text: str) -> str | None:
    """Return the kind of order to an agent that the text holds, else None.

    Read without invisible characters, in compatibility form and with Latin lookalikes made Latin;
    what hid in tag characters or base64 is read, too.
    """
    hidden = "".join(chr(ord(char) - 0xE0000) for run in _TAGS.findall(text) for char in run)
    if len(hidden) >= HIDDEN_TAGS_MIN:
        return "hidden"
    plain, _ = strip_invisible(text)
    if not plain.isascii():
        plain = unicodedata.normalize("NFKC", plain).translate(LOOKALIKES)
    found = _order(plain)
    if found:
        return found
    for index, run in enumerate(_ENCODED.finditer(plain)):
        if index >= ENCODED_RUNS_MAX:
            break
        if _order(_decode(run.group())):
            return "encoded"
    return None


def _order(text: str) -> str | None:
    about = bool(ABOUT.search(text))
    low = text.lower()
    for name, anchors, pattern in ORDERS:
        if not any(anchor in low for anchor in anchors):
            continue
        for match in pattern.finditer(text):
            if not (about and _quoted(text, match)):
                return name
    return None


def _quoted(text: str, match: re.Match[str]) -> bool:
    """Say whether a find stands within quotes or backticks of its own line."""
    line = text.rfind("\n", 0, match.start()) + 1
    before = text[max(line, match.start() - 200) : match.start()]
    after = text[match.end() : match.end() + 200].split("\n")[0]
    opened = any(before.count(quote) % 2 for quote in '"`') or before[-1:] in tuple(_QUOTES)
    return opened and any(quote in after for quote in _QUOTES)


def _decode(run: str) -> str:
    # Why here: few texts hold a run that could be base64.
    import binascii

    try:
        return binascii.a2b_base64(run[: len(run) // 4 * 4]).decode()
    except (binascii.Error, UnicodeDecodeError):
        return ""
