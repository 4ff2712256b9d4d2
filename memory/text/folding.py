"""Text as an eye reads it, character by character: full-width signs as ASCII, the unseen away.

Imports nothing, and costs nothing on text that has neither: the client folds every prompt. Knows
nothing about what is looked for in the folded text.
"""

from __future__ import annotations

#: First and last of each run of characters that show nothing.
# C0 and C1 controls but for tab, line breaks and NEL; soft hyphen, joiners, fillers, bidi controls,
# invisible operators, variation selectors, interlinear marks, musical controls, and the whole plane
# of tags.
# fmt: off
INVISIBLE = (
    "\x00\x08", "\x0e\x1f", "\x7f\x84", "\x86\x9f", "\u00ad\u00ad", "\u034f\u034f", "\u061c\u061c",
    "\u115f\u1160", "\u17b4\u17b5", "\u180b\u180f", "\u200b\u200f", "\u202a\u202e", "\u2060\u206f",
    "\u3164\u3164", "\ufe00\ufe0f", "\ufeff\ufeff", "\uffa0\uffa0", "\ufff9\ufffb",
    "\U0001d173\U0001d17a", "\U000e0000\U000e0fff",
)
# fmt: on

#: Full-width signs stand this far above their ASCII ones; the blank and the small brackets do not.
WIDE_STEP = 0xFEE0
_WIDE = {"\u3000": " ", "\ufe64": "<", "\ufe65": ">"}


def odd(text: str) -> dict[int, str]:
    """What folding makes of the text's odd characters, by code: the table of `str.translate`.

    Empty for a text that reads as it is written. An empty string stands for what goes.
    """
    if text.isascii() and text.isprintable():
        return {}
    # Why by the set: a text of a megabyte has a few hundred different characters.
    table: dict[int, str] = {}
    for sign in set(text):
        if "\uff01" <= sign <= "\uff5e":
            table[ord(sign)] = chr(ord(sign) - WIDE_STEP)
        elif sign in _WIDE:
            table[ord(sign)] = _WIDE[sign]
        elif any(run[0] <= sign <= run[1] for run in INVISIBLE):
            # A joiner spells something in some tongues; who looks for a word does not mind.
            table[ord(sign)] = ""
    return table


def places(text: str, table: dict[int, str]) -> list[int]:
    """Where each character of the folded text stands in the text, and the end of the text."""
    gone = {chr(code) for code, sign in table.items() if not sign}
    return [*(at for at, sign in enumerate(text) if sign not in gone), len(text)]
