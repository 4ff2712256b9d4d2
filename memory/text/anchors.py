"""Whether a text may hold a secret, told by literals alone.

The question of the prompt's hook, which must not pay for a pattern: yes whenever
`memory.text.secrets.redact` would take something out, no for nearly all that people write. Reads
the literals of the rules' tables and compiles nothing. Knows nothing about what a secret looks
like.
"""

from __future__ import annotations

from memory.text.folding import odd
from memory.text.secret_rules import ASSIGNMENT, PLACE_ANCHORS, TOKEN_ANCHORS, WORD_CHARS_MIN, Rule

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

# Letters that patterns take for i, s and k, and str.lower does not, or the other way round.
_STRANGE = "\u0130\u0131\u017f\u212a"

#: Characters behind the name of a secret in which its sign stands.
# Why: the longest name goes on for 7 behind its anchor, then come 24 of a tail and 14 of quotes,
# brackets, blanks and the sign; lower case can make two of one.
SIGN_CHARS_MAX = 100
_SIGNS = ("=", ":", "%3d", "%3a")

_SPOKEN = frozenset(
    ["password", "passwd", "passphrase", "passwort", "kennwort", "secret", "token", "pwd"]
)
_VERBS = ("is", "was", "will be", "set to", "to", "ist", "lautet")

#: What else must be in the text, one of each, for anchors that are words of every day.
_ALSO: dict[str, tuple[tuple[str, ...], ...]] = {
    "://": (("@",),),
    "</": (("<password", "<passwd", "<secret", "<token", "<api", "<client"),),
    "machine": (("login",), ("password",)),
    "login": (("-p",),),
    "mysql": (("-p",),),
    "http": (("-u ", "-u=", "--user", "-a ", "-a="),),
    "passe": (("de passe", "-passe"),),
}

#: Characters of the shortest word that is the value, for rules named by words of every day.
_VALUE_CHARS = {"api_key": 32, "aws_secret_key": 20, "discord_token": 57}

#: Characters of the shortest word that is such a token, where its head stands in many words.
_WORD_CHARS = {"sk": 34, "sk-": 23, "pat": 55, "key-": 36, "-us": 35, ":aa": 41}
#: Anchors that do not begin their token: what stands before them says nothing.
_INNER = frozenset(["_v1_", ":aa", ".atlasv1.", "8q~", "-us"])


def may_hold_secret(text: str) -> bool:
    """Return False only where `redact` would leave the text as it is."""
    if not text.isascii() and (odd(text) or any(sign in text for sign in _STRANGE)):
        # Why: to say more, the text would have to be read as redact reads it.
        return True
    low = text.lower()
    for gate, rows in PLACE_ANCHORS.items():
        if gate in low and any(anchor in low and _may(rule, anchor, low) for anchor, rule in rows):
            return True
    words = [word for word in low.split() if len(word) >= WORD_CHARS_MIN]
    long = " ".join(words)
    return bool(long) and any(
        anchor in long and any(_leads(anchor, word) for word in words)
        for anchor, _ in TOKEN_ANCHORS
    )


def _may(rule: Rule, anchor: str, low: str) -> bool:
    """Say whether the rule can find anything, when its anchor is in the text."""
    if rule is ASSIGNMENT:
        return any(
            sign in behind for behind in _behind(anchor, low, SIGN_CHARS_MAX) for sign in _SIGNS
        )
    if rule.name == "password" and anchor in _SPOKEN:
        return any(
            behind[:1].isspace() and behind.lstrip().startswith(_VERBS)
            for behind in _behind(anchor, low, 12)
        )
    if rule.name in _VALUE_CHARS:
        return any(len(word) >= _VALUE_CHARS[rule.name] for word in low.split())
    return all(any(word in low for word in words) for words in _ALSO.get(anchor, ()))


def _behind(anchor: str, low: str, chars: int) -> Iterator[str]:
    """What stands behind each place of the anchor."""
    at = low.find(anchor)
    while at >= 0:
        at += len(anchor)
        yield low[at : at + chars]
        at = low.find(anchor, at)


def _leads(anchor: str, word: str) -> bool:
    """Say whether the word is long enough, and the anchor stands where a token can begin."""
    if len(word) < _WORD_CHARS.get(anchor, 0):
        return False
    if anchor in _INNER:
        return anchor in word
    at = word.find(anchor)
    while at >= 0:
        before = word[at - 1 : at] if at else ""
        if not (before.isascii() and (before.isalnum() or before == "_")):
            return True
        at = word.find(anchor, at + 1)
    return False
