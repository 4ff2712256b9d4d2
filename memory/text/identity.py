"""Keys by which a captured turn is known again.

All pure functions of what was said, when and by whom; the owner is not in them, because the
database makes them unique per owner. Knows nothing about record ids of clients.
"""

from __future__ import annotations

import hashlib
import string
import unicodedata
from datetime import datetime, timezone

from memory.text.stopwords import STOP_WORDS
from memory.text.words import meaningful

#: Meaningful tokens a text needs before another one like it says anything.
# Why: "ok, go on" is said a hundred times in good faith.
# Calibrate: count near keys shared by more than three sessions; they should be pasted text, not
# talk.
NEAR_TOKENS_MIN = 5

#: Characters of a text that are enough to know that it says something.
# Why: counting the tokens of a megabyte to learn that there are five is waste on the path that must
# be fast.
# Calibrate: a text of this length with fewer than five meaningful tokens is a run of one word.
NEAR_HEAD_CHARS = 400

# Operators stay, they are what tells C++ from C# and < from >.
_BARE = dict.fromkeys(
    map(ord, string.whitespace + ".,;:!?\"'()[]{}*_`’‘“”„«»…。、！？「」『』《》—–")
)


def dedup_key(session: str, instant: datetime | None, role: str, body: str) -> str:
    """Return the md5 (hex) of a turn of one session; ValueError for an instant without a zone."""
    return _key(session, instant, role, body)


def copy_key(project: str, instant: datetime | None, role: str, body: str) -> str:
    """Return the md5 (hex) that a turn keeps when its session goes on under a new id.

    Raises ValueError for an instant without a zone.
    """
    return _key("copy:" + project, instant, role, body)


def near_key(body: str) -> str | None:
    """Return the md5 (hex) of a text's bare letters, digits and operators; None if it says little.

    Case, spacing and sentence punctuation do not count.
    """
    if not _says_enough(body[:NEAR_HEAD_CHARS]):
        return None
    if not body.isascii():
        body = unicodedata.normalize("NFKC", body).casefold()
    return _md5(body.lower().translate(_BARE))


def _says_enough(head: str) -> bool:
    # Why: splitting at spaces costs a tenth of the general count and settles all but the dense
    # scripts.
    if len(set(head.lower().split()) - STOP_WORDS) >= NEAR_TOKENS_MIN:
        return True
    return not head.isascii() and meaningful(head) >= NEAR_TOKENS_MIN


def sha256(text: str) -> str:
    """Return the sha256 (hex) of the text in UTF-8."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _key(place: str, instant: datetime | None, role: str, body: str) -> str:
    # Why: the length keeps a place that contains the separator from meaning another turn.
    return _md5(f"{len(place)}:{place}|{_utc(instant)}|{role}|{body}")


def _utc(instant: datetime | None) -> str:
    if instant is None:
        return ""
    if instant.tzinfo is None:
        raise ValueError("an instant needs a time zone")
    return instant.astimezone(timezone.utc).isoformat(timespec="microseconds")


def _md5(text: str) -> str:
    return hashlib.md5(text.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()
