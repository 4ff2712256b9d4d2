"""JSON on a prompt's path, where importing `json` would cost more than everything else together.

Why: `json` compiles patterns and imports `re`, which doubles the time of a start (28 ms against
14); the parser and the quoting below it are C modules that cost nothing. On a Python without them
`json` itself is used. Knows nothing about what the values mean.
"""

from __future__ import annotations

# Why not typing's: importing it takes longer than a whole start of Python.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

#: Digits of a whole number that are read as one.
# Why: reading takes time by the square of them, and newer Pythons refuse thousands.
INTEGER_DIGITS_MAX = 40


class _Options:
    """What the C scanner asks of whoever makes one."""

    strict = False
    object_hook = None
    parse_float = float

    def __init__(self, pairs: Callable[[list[Any]], object] | None = None) -> None:
        self.memo: dict[str, str] = {}
        self.object_pairs_hook = pairs

    @staticmethod
    def parse_int(digits: str) -> int:
        return int(digits) if len(digits) <= INTEGER_DIGITS_MAX else 0

    @staticmethod
    def parse_constant(name: str) -> None:
        """NaN and the infinities are no JSON, and nothing that we read needs them."""
        return None


class _Twice(ValueError):
    """A key stands in an object twice."""


def _once(pairs: list[Any]) -> object:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise _Twice("a key stands there twice")
    return made


try:
    from _json import encode_basestring_ascii as quote
    from _json import make_scanner

    # Its type is told as a class that takes one of its own.
    _scan = make_scanner(_Options())  # type: ignore[arg-type]
    _scan_once = make_scanner(_Options(_once))  # type: ignore[arg-type]
except (ImportError, AttributeError, TypeError):
    import json

    quote = json.dumps
    _scan = json.JSONDecoder(strict=False).scan_once  # type: ignore[attr-defined]
    _scan_once = json.JSONDecoder(strict=False, object_pairs_hook=_once).scan_once  # type: ignore[attr-defined]


def parse(text: str, whole: bool = True, once: bool = False) -> object:
    """The value that the text holds; with `whole` False something may follow it.

    Raises ValueError for anything that is no JSON, also for what is nested too deeply, and with
    `once` for an object with a key that stands in it twice.
    """
    start = len(text) - len(text.lstrip(" \t\r\n"))
    try:
        value, end = (_scan_once if once else _scan)(text, start)
    except _Twice:
        raise
    except (ValueError, StopIteration, RecursionError, SystemError):
        # Why SystemError: for broken JSON the scanner of 3.10 and 3.11 raises what `json.decoder`
        # defines, and without that module it raises nothing that is known.
        raise ValueError("it is no JSON, or not whole") from None
    if whole and text[end:].strip(" \t\r\n"):
        raise ValueError("no JSON: something follows the value")
    return value


def dump(value: object) -> str:
    """The value as JSON in ASCII: lone surrogates are escaped, never written."""
    if value is None or value is True or value is False:
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, str):
        return str(quote(value))
    if isinstance(value, (int, float)):
        text = repr(value)
        return "null" if text in ("nan", "inf", "-inf") else text
    if isinstance(value, dict):
        pairs = (f"{quote(str(name))}:{dump(item)}" for name, item in value.items())
        return "{" + ",".join(pairs) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(dump(item) for item in value) + "]"
    raise TypeError(f"{type(value).__name__} is no JSON")
