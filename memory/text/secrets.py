"""Secrets taken out of text before it is hashed, stored, logged or sent anywhere.

A named secret becomes `[redacted:NAME]`, what stands around it stays. `redact` is the one door; the
rules are tables in `memory.text.secret_rules`, and the judgement what an assigned value is lies
here. Knows nothing about who asks: hook, capture, gate and model port use the same rules.

What is left alone on purpose: documented example keys, placeholders (<your-key>, xxxx, $VAR, ****),
code that names a secret without holding one, and prose about passwords. No entropy measure runs on
plain sentences.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from memory.text.secret_rules import (
    ASSIGNMENT,
    BENIGN_TAIL,
    PLACE_ANCHORS,
    PLACEHOLDER,
    TOKEN_ANCHORS,
    Rule,
)

#: Passes over a text until nothing changes.
# Why: one redaction can lay bare the edge of the next; the text of a second call must not change.
# Calibrate: the property test of idempotence finds a text that needs more.
PASSES_MAX = 4

#: Characters from which a value without digits, but with many changes of case, is no word.
# Why: camelCase names of 20 characters change case three times, random letters ten times.
# Calibrate: run over a code base; identifiers must not be redacted.
RANDOM_CHARS_MIN = 20
CASE_CHANGES_MIN = 6

#: Changes of case from which the word after "Authorization: Basic" is base64 and no word.
# Why: credentials in base64 need not hold a digit.
# Calibrate: prose about headers ("Bearer tokenValue") must stay.
HEADER_CASE_CHANGES_MIN = 3

#: The shortest word in which a token with a head of its own is looked for: xoxb- and ten more.
_LONG = re.compile(r"\S{15,}")

_MARK = "[redacted:"
_CASE_CHANGE = re.compile(r"[a-z](?=[A-Z])|[A-Z](?=[a-z])")
_REFERENCE = re.compile(r"\A[A-Za-z_]\w*(?:(?:\.|::|->)[A-Za-z_]\w*)+$")
_NAME = re.compile(r"\A[A-Za-z][A-Za-z_\-]*$")
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_PATH = re.compile(r"(?:\.{0,2}|~)/|[A-Za-z]:\\|https?:")
_MATERIAL = re.compile(r"[A-Za-z0-9+/=]{16}")
_SESSION = re.compile(r"(?i)(?:sess|sid|auth|token|jwt)[\w.\-]{0,20}=[^\s;]{6}")
_DIGIT = re.compile(r"\d")
_ALPHA = re.compile(r"[A-Za-z]")
_SIGN = re.compile(r"[!@#$%^*+=~?]")
_KNOWN = """
sha1 sha256 sha512 md5 base64 base32 utf8 utf-8 oauth2 oauth2.0 argon2 argon2id bcrypt int32 int64
uint8 rs256 hs256 es256 ed25519 x509 pkcs8 pkcs12 http2 ipv4 ipv6 aes256 aes-256 aes128 rfc6750
rfc7519
"""
_ALGORITHMS = frozenset(_KNOWN.split())


@dataclass(frozen=True)
class Redacted:
    """A text without its secrets, and how many of each name there were."""

    text: str
    counts: dict[str, int]


def redact(text: str) -> Redacted:
    """Return the text with each known secret as `[redacted:NAME]`, counted by name. Idempotent."""
    counts: dict[str, int] = {}
    for _ in range(PASSES_MAX):
        fresh = _pass(text, counts)
        if fresh == text:
            break
        text = fresh
    return Redacted(text, counts)


def _pass(text: str, counts: dict[str, int]) -> str:
    # Why: looking for a literal costs 0.1 us where a pattern costs ten, and most turns hold none.
    low = text.lower()
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
        text = _apply(rule, text, counts)
    return text


def _apply(rule: Rule, text: str, counts: dict[str, int]) -> str:
    def replace(match: re.Match[str]) -> str:
        found = match.group()
        group = match.lastgroup or "value"
        value = match.group(group)
        if _MARK in found or not value or not _holds(rule, match, value):
            return found
        counts[rule.name] = counts.get(rule.name, 0) + 1
        start, end = match.start(group) - match.start(), match.end(group) - match.start()
        return f"{found[:start]}{_MARK}{rule.name}]{found[end:]}"

    return rule.pattern.sub(replace, text)


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
    if rule.check == "case":
        return bool(_DIGIT.search(value)) and (value != value.lower() or "_" not in value[6:])
    return rule.check == "shape" or _random(value)


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
