"""Every pattern that reads foreign text: its time grows with the text and not faster."""

# ruff: noqa: E501 - the signs stand in two lines
from __future__ import annotations

import importlib
import pkgutil
import re
import time
from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest

from memory.text.patterns import Late

PACKAGES = ("memory.text", "memory.transcripts", "memory.llm.extractive", "memory.llm.rules")
MODULES = ("argus.logs", "memory.llm.remote.replies", "memory.llm.remote.client")

#: Characters of a hostile text, and seconds of the processor that one reading may take.
# Why: linear costs a few milliseconds, quadratic seconds, more never ends.
CHARS = 20_000
SECONDS_MAX = 1.0

#: The same of a first text: what reads it in less is not read again, at full length.
# Why: an eighth of the time for nearly all of the thirty thousand readings. A quadratic one that is
# over the limit takes a 64th of it here.
CHARS_FIRST = 2_500
SECONDS_FIRST_MAX = SECONDS_MAX / 100

UNITS = (
    "1", ".", " ", "\n", "`", "<", "=", "a", "A", "-", "_", "/", "你", '"', "(", "[", ")", ">", "&", "!", "?",
    "a ", "a.", "a-", "a/", "a@", "aA", "1,", "1.", "<a", "> ", " \n", "a..", "a(", "&l", "\u200b",
)  # fmt: skip
#: What a pattern may need before or behind a run to look at all of it.
FRAMES = (("", ""), ("x", "!"), ("# x", "y"), ("x: y", 'z"'))


def found(value: Any, name: str, depth: int = 0) -> Iterator[tuple[str, re.Pattern[Any]]]:
    """The patterns in a module's name: itself, or in its tables and dataclasses."""
    if isinstance(value, Late):
        value = value.compiled
    if isinstance(value, re.Pattern):
        yield name, value
    elif depth < 4 and isinstance(value, (tuple, list, set, frozenset)):
        for index, item in enumerate(value):
            yield from found(item, f"{name}[{index}]", depth + 1)
    elif depth < 4 and isinstance(value, dict):
        for key, item in value.items():
            yield from found(item, f"{name}[{key!r}]", depth + 1)
    elif depth < 4 and isinstance(getattr(value, "pattern", None), (re.Pattern, Late)):
        yield from found(value.pattern, f"{name}.pattern", depth + 1)


def patterns() -> dict[re.Pattern[Any], str]:
    """Each pattern once, under the first name it has."""
    names = list(MODULES)
    for package in PACKAGES:
        path = importlib.import_module(package).__path__
        names += [info.name for info in pkgutil.iter_modules(path, f"{package}.")]
    table: dict[re.Pattern[Any], str] = {}
    for module in names:
        for name, value in vars(importlib.import_module(module)).items():
            for label, pattern in found(value, f"{module}.{name}"):
                table.setdefault(pattern, label)
    return table


PATTERNS = patterns()


def seconds(pattern: re.Pattern[Any], way: str, text: Any) -> float:
    """Processor seconds of one reading."""
    if isinstance(pattern.pattern, bytes):
        text = text.encode()
    begun = time.process_time()
    if way == "sub":
        pattern.sub(text[:0], text)
    else:
        getattr(pattern, way)(text)
    return time.process_time() - begun


def test_it_finds_the_patterns_of_tables_and_rules_too() -> None:
    names = " ".join(PATTERNS.values())
    assert len(PATTERNS) > 200
    for part in (".TOKEN_ANCHORS", "phrases.ORDERS", "cues.", "lexemes._TOKEN"):
        assert part in names


@pytest.mark.parametrize("pattern", PATTERNS, ids=PATTERNS.values())
def test_its_time_does_not_run_away(pattern: re.Pattern[Any]) -> None:
    for way, unit, (head, tail) in product(("search", "fullmatch", "sub"), UNITS, FRAMES):
        first, whole = (head + unit * (size // len(unit)) + tail for size in (CHARS_FIRST, CHARS))
        if seconds(pattern, way, first) > SECONDS_FIRST_MAX:
            spent = min(seconds(pattern, way, whole) for _ in range(2))
            assert spent < SECONDS_MAX, f"{way} of {head!r} {unit!r} {tail!r}"
