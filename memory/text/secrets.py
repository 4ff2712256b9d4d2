"""Secrets taken out of text before it is hashed, stored, logged or sent anywhere.

A named secret becomes `[redacted:NAME]`, what stands around it stays. `redact` is the one door; the
rules are tables in `memory.text.secret_rules`, and the judgement what an assigned value is lies
here. Knows nothing about who asks: hook, capture, gate and model port use the same rules.

What is left alone on purpose: documented example keys, placeholders (<your-key>, xxxx, $VAR, ****),
code that names a secret without holding one, and prose about passwords. No entropy measure runs on
plain sentences.
"""

from __future__ import annotations

from memory.text.clean import visible
from memory.text.patterns import late
from memory.text.secret_rules import (
    ASSIGNMENT,
    BENIGN_TAIL,
    PLACE_ANCHORS,
    PLACEHOLDER,
    TOKEN_ANCHORS,
    WORD_CHARS_MIN,
    Rule,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Sequence

#: Passes over a text until nothing changes.
# Why: one redaction can lay bare the edge of the next; the text of a second call must not change.
# Calibrate: the property test of idempotence finds a text that needs more.
PASSES_MAX = 8

#: Characters from which a value without digits, but with many changes of case, is no word.
# Why: camelCase names of 20 characters change case three times, random letters ten times.
# Calibrate: run over a code base; identifiers must not be redacted.
RANDOM_CHARS_MIN = 20
CASE_CHANGES_MIN = 6

#: Characters of a part with digits that still makes a compound of prose: the 12 of 12-character.
# Why: names of standards and versions are short.
# Calibrate: the benign set of the tests, and a month of turns that speak of tokens.
WORD_WITH_DIGITS_CHARS_MAX = 4

#: Changes of case from which the word after "Authorization: Basic" is base64 and no word.
# Why: credentials in base64 need not hold a digit.
# Calibrate: prose about headers ("Bearer tokenValue") must stay.
HEADER_CASE_CHANGES_MIN = 3

_LONG = late(rf"\S{{{WORD_CHARS_MIN},}}")

_MARK = "[redacted:"
_WIDE = late("[\uff01-\uff5e\u3000]")
_NARROW = {0xFF01 + step: 0x21 + step for step in range(94)} | {0x3000: 0x20}
_CASE_CHANGE = late(r"[a-z](?=[A-Z])|[A-Z](?=[a-z])")
_REFERENCE = late(r"\A[A-Za-z_]\w*(?:(?:\.|::|->)[A-Za-z_]\w*)+$")
_NAME = late(r"\A[A-Za-z][A-Za-z_\-]*$")
_DATE = late(r"\d{4}-\d\d-\d\d")
_PATH = late(r"(?:\.{0,2}|~)/|[A-Za-z]:\\|https?:")
_MATERIAL = late(r"[A-Za-z0-9+/=]{16}")
_SESSION = late(r"(?i)(?:sess|sid|auth|token|jwt)[\w.\-]{0,20}=[^\s;]{6}")
_DIGIT = late(r"\d")
_ALPHA = late(r"[A-Za-z]")
_SIGN = late(r"[!@#$%^*+=~?]")
_JOINT = late(r"[-_./:]+")
_ADDRESS = late(r"[\w.+\-]{1,64}@[\w\-]{1,64}\.[\w.\-]{1,64}$")
_OUTCOMES = frozenset(
    ["passed", "failed", "failure", "success", "skipped", "pending", "unknown", "partial", "ignore"]
)
_KNOWN = """
sha1 sha256 sha512 md5 base64 base32 utf8 utf-8 oauth2 oauth2.0 argon2 argon2id bcrypt int32 int64
uint8 rs256 hs256 es256 ed25519 x509 pkcs8 pkcs12 http2 ipv4 ipv6 aes256 aes-256 aes128 rfc6750
rfc7519
"""
_ALGORITHMS = frozenset(_KNOWN.split())


class Redacted:
    """A text without its secrets, and how many of each name there were."""

    __slots__ = ("text", "counts")

    def __init__(self, text: str, counts: dict[str, int]) -> None:
        self.text = text
        self.counts = counts


def redact(text: str) -> Redacted:
    """Return the text with each known secret as `[redacted:NAME]`, counted by name. Idempotent.

    Read without characters that show nothing and with full-width signs as ASCII; what is no secret
    keeps them.
    """
    counts: dict[str, int] = {}
    for _ in range(PASSES_MAX):
        fresh = _pass(text, counts)
        if fresh == text:
            break
        text = fresh
    return Redacted(text, counts)


def _seen(text: str) -> tuple[str, Sequence[int] | None]:
    """The text as it is read, and where each of its characters stands; None when it is the text."""
    if text.isascii():
        return text, None
    seen, places = visible(text)
    wide = seen.translate(_NARROW) if _WIDE.search(seen) else seen
    return wide, None if wide == text else places


def _pass(text: str, counts: dict[str, int]) -> str:
    seen, places = _seen(text)
    # Why: looking for a literal costs 0.1 us where a pattern costs ten, and most turns hold none.
    low = seen.lower()
    rules = [
        rule
        for gate, rows in PLACE_ANCHORS.items()
        if gate in low
        for anchor, rule in rows
        if anchor in low
    ]
    long = " ".join(_LONG.findall(low))
    if long:
        rules += [rule for anchor, rule in TOKEN_ANCHORS if anchor in long]
    if ASSIGNMENT in rules:
        # Why: a token with a name of its own is counted under it, whatever it is assigned to.
        rules = [rule for rule in rules if rule is not ASSIGNMENT] + [ASSIGNMENT]
    for rule in dict.fromkeys(rules):
        spans = _found(rule, seen)
        if not spans:
            continue
        counts[rule.name] = counts.get(rule.name, 0) + len(spans)
        text = _replaced(text, rule.name, spans, places)
        seen, places = _seen(text)
    return text


def _found(rule: Rule, seen: str) -> list[tuple[int, int]]:
    spans = []
    for match in rule.pattern.finditer(seen):
        group = "value"
        if rule is ASSIGNMENT:
            group = "bare" if match.group("quoted") is None else "quoted"
        value = match.group(group)
        if value and _MARK not in match.group() and _holds(rule, match, value):
            spans.append(match.span(group))
    return spans


def _replaced(
    text: str, name: str, spans: list[tuple[int, int]], places: Sequence[int] | None
) -> str:
    kept: list[str] = []
    last = 0
    for start, end in spans:
        if places is not None:
            # What shows nothing inside a secret goes with it.
            start, end = places[start], places[end - 1] + 1
        kept.append(f"{text[last:start]}{_MARK}{name}]")
        last = end
    return "".join([*kept, text[last:]])


def _holds(rule: Rule, match: re.Match[str], value: str) -> bool:
    """Say whether what a rule's pattern found is a secret."""
    if rule is ASSIGNMENT:
        return _assigned(match, value)
    if rule.check == "pem":
        return bool(_MATERIAL.search(value))
    if rule.check == "sure":
        return True
    if _variable(value):
        return False
    if rule.check == "filled":
        return True
    if PLACEHOLDER.search(value):
        return False
    if rule.check == "cookie":
        return _random(value) or bool(_SESSION.search(value))
    if rule.check == "header":
        return _random(value) or len(_CASE_CHANGE.findall(value)) >= HEADER_CASE_CHANGES_MIN
    if rule.check in ("chosen", "typed", "named"):
        return _chosen(value, rule.check)
    if rule.check == "case":
        return bool(_DIGIT.search(value)) and (value != value.lower() or "_" not in value[6:])
    return rule.check == "shape" or _random(value)


def _chosen(value: str, check: str) -> bool:
    """Say whether a value looks like a password that a person chose, and not like a word of prose.

    Letters among digits or signs; `typed` behind a name and a colon takes digits alone as well,
    `named` (a key in quotes) also letters alone, unless they say how something went.
    """
    value = value.rstrip(".,;:!?\"'`”」)") or value
    if _harmless(value) or _ADDRESS.match(value):
        return False
    parts = [part for part in _JOINT.split(value.lower()) if part]
    if check == "named" and value.lower() not in _OUTCOMES and len(value) >= 6:
        return True
    if check == "typed" and value.isdigit():
        return len(value) >= 6
    if not _ALPHA.search(value):
        return False
    if _SIGN.search(value):
        return not _REFERENCE.match(value)
    if not _DIGIT.search(value) or any(part in _ALGORITHMS for part in parts):
        return False
    # Why: 12-character, k8s-managed, access_token_v2 are words; hunter2-prod and x7Kq9-22 are none.
    worded = any(len(part) >= 4 and part.isalpha() for part in parts)
    return not (
        worded and all(part.isalpha() or len(part) <= WORD_WITH_DIGITS_CHARS_MAX for part in parts)
    )


def _variable(value: str) -> bool:
    return value[0] in "$<{%*" or not value.strip("xX.*•")


def _assigned(match: re.Match[str], value: str) -> bool:
    """Judge `NAME = value`: how sure it must look depends on the name, the sign and the quotes."""
    key, tail = match.group("key"), match.group("tail")
    if BENIGN_TAIL.match(tail) or _harmless(value) or value.lower().strip("_-") == key.lower():
        return False
    human = (
        key.lower().lstrip("_").startswith(("pass", "pwd", "kennwort")) or "secret" in key.lower()
    )
    if match.lastgroup == "quoted":
        if " " in value:
            return key.lower() == "passphrase"
        return human or (len(value) >= 8 and _random(value))
    if match.string[match.end() : match.end() + 1] in ("(", "[") or _REFERENCE.match(value):
        return False
    if match.group("sign").strip() == "=" and key.isupper():
        return human or (len(value) >= 8 and not _NAME.match(value)) or _random(value)
    if human:
        return bool(_ALPHA.search(value) and (_DIGIT.search(value) or _SIGN.search(value)))
    return len(value) >= 8 and _random(value)


def _harmless(value: str) -> bool:
    return bool(
        _variable(value)
        or PLACEHOLDER.search(value)
        or _PATH.match(value)
        or _DATE.match(value)
        or value.lower().rstrip(".!?:") in _ALGORITHMS
    )


def _random(value: str) -> bool:
    """Say whether a value looks made by a machine: digits among letters, padding, wild case."""
    if not _ALPHA.search(value):
        return False
    if _DIGIT.search(value) or value.endswith("="):
        return True
    return len(value) >= RANDOM_CHARS_MIN and len(_CASE_CHANGE.findall(value)) >= CASE_CHANGES_MIN
