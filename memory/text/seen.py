"""Text as an eye is to see it: each character that hides or turns text has a mark in its place.

For pages and terminals alike. Pure. Knows nothing about HTML, or about whose text it is.
"""

from __future__ import annotations

import re

#: Controls of C0 and C1 but tab and newline; what turns or hides text: zero-width, bidi, tags,
#: invisible operators, line and paragraph separators.
UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e007f]"
    "|(?<![^\x00-\x7f\u200b-\u200f])[\u200c\u200d]|[\u200c\u200d](?![^\x00-\x7f\u200b-\u200f])"
)

#: U+2400, at which the pictures of C0 controls begin; that of DEL is not among them.
PICTURES, DELETE, DELETE_PICTURE = 0x2400, 0x7F, "\u2421"


def visible(text: str) -> str:
    """The text with a visible mark for each character that hides or turns text: \u27e8U+202E\u27e9.

    Newlines and tabs stay, a carriage return before a newline goes. So do joiners between two
    characters that are not ASCII, where Persian and emoji need them.
    """
    return UNSEEN.sub(_mark, text.replace("\r\n", "\n"))


def _mark(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < 0x20:
        return chr(PICTURES + code)
    return DELETE_PICTURE if code == DELETE else f"\u27e8U+{code:04X}\u27e9"


def one_line(text: str) -> str:
    """As `visible`, with spaces for newlines and tabs: a name of somebody's, in a line of ours."""
    return visible(" ".join(text.split()))
