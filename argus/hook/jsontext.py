"""Edits of JSON text that leave every other byte as it was: order, indentation, line ends, blanks.

Strict JSON: the clients that we met pass over a settings file with comments or a comma too many as
if it were not there, so that such a file is refused with the line rather than written to. Knows
nothing about hooks or files.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from memory.errors import RefusedError

#: How deep values may lie in each other.
# Why: a settings file is a few levels deep; a hostile one must not end in a RecursionError.
DEPTH_MAX = 100

_BLANKS = " \t\r\n"


class Broken(RefusedError):
    """The text is not what was expected at this line and column (both from 1)."""

    def __init__(self, what: str, text: str, at: int) -> None:
        self.line = text.count("\n", 0, at) + 1
        self.column = at - text.rfind("\n", 0, at)
        super().__init__(f"line {self.line}, column {self.column}: {what}", reason="broken")


class Node:
    """One value and where it stands: `text[start:end]`. Members are (key, key's start, value)."""

    __slots__ = ("end", "items", "members", "plain", "start")

    def __init__(self, start: int) -> None:
        self.start = start
        self.end = start
        self.members: list[tuple[str, int, Node]] | None = None
        self.items: list[Node] | None = None
        self.plain: Any = None

    @property
    def value(self) -> Any:
        """The value as Python has it; of keys that stand twice the last one counts."""
        if self.members is not None:
            return {key: node.value for key, _, node in self.members}
        if self.items is not None:
            return [node.value for node in self.items]
        return self.plain

    @property
    def spans(self) -> list[tuple[int, int]]:
        """Where each member or element stands."""
        if self.members is not None:
            return [(start, node.end) for _, start, node in self.members]
        return [(node.start, node.end) for node in self.items or ()]


def parse(text: str) -> Node:
    """The whole text as one value. Raises Broken."""
    node = _value(text, _skip(text, 0), 0)
    rest = _skip(text, node.end)
    if rest < len(text):
        raise Broken(_strange(text, rest, "nothing more"), text, rest)
    return node


def find(text: str, path: Sequence[str | int]) -> Node | None:
    """The value at a path of keys and indices, or None. Raises Broken."""
    node = parse(text)
    for step in path:
        child = _child(text, node, step)
        if child is None:
            return None
        node = child
    return node


def put(text: str, path: Sequence[str | int], value: Any) -> str:
    """Set the value at `path`, making the objects on the way. Raises Broken."""
    node = parse(text)
    for depth, key in enumerate(path):
        if isinstance(key, str):
            _expect(text, node, node.members is not None, path[:depth], "an object")
        child = _child(text, node, key)
        if child is None:
            for name in reversed(path[depth + 1 :]):
                value = {name: value}
            return _add(text, node, str(key), value)
        node = child
    tall = "\n" in text[node.start : node.end] or "\n" in text and not node.spans
    rendered = _Style(text).render(value, _margin(text, node.start), tall)
    return text[: node.start] + rendered + text[node.end :]


def append(text: str, path: Sequence[str | int], value: Any) -> str:
    """Put an element at the end of the array at `path`, which is made when missing."""
    node = find(text, path)
    if node is None:
        return put(text, path, [value])
    _expect(text, node, node.items is not None, path, "an array")
    return _add(text, node, None, value)


def take_out(text: str, path: Sequence[str | int]) -> str:
    """Remove the member or element at `path` with its comma; nothing happens when it is missing."""
    box = find(text, path[:-1])
    if box is None or _child(text, box, path[-1]) is None:
        return text
    spans = box.spans
    if box.members is not None:
        index = [key for key, _, _ in box.members].index(str(path[-1]))
    else:
        index = int(path[-1])
    if len(spans) == 1:
        return text[: box.start + 1] + text[box.end - 1 :]
    if index == len(spans) - 1:
        return text[: spans[index - 1][1]] + text[spans[index][1] :]
    return text[: spans[index][0]] + text[spans[index + 1][0] :]


def _child(text: str, node: Node, step: str | int) -> Node | None:
    if isinstance(step, int):
        items = node.items or []
        return items[step] if step < len(items) else None
    found = [(at, value) for key, at, value in node.members or () if key == step]
    if len(found) > 1:
        # Why refused: clients differ in which of the two counts.
        raise Broken(f'"{step}" stands here a second time; keep one of them', text, found[1][0])
    return found[0][1] if found else None


def _expect(text: str, node: Node, is_so: bool, path: Sequence[str | int], what: str) -> None:
    if not is_so:
        name = ".".join(map(str, path)) or "the whole"
        raise Broken(f"{name} must be {what}; mend it or take it out", text, node.start)


def _add(text: str, box: Node, key: str | None, value: Any) -> str:
    """Behind the last of `box`, in the manner of what stands there."""
    style = _Style(text)
    spans = box.spans
    if spans:
        gap = text[spans[-2][1] if len(spans) > 1 else box.start + 1 : spans[-1][0]]
        at = spans[-1][1]
        if "\n" in gap:
            margin = _margin(text, spans[-1][0])
            piece = "," + style.newline + margin + style.member(key, value, margin, True)
        else:
            piece = style.comma + style.member(key, value, "", False)
        return text[:at] + piece + text[at:]
    head, tail = text[: box.start + 1], text[box.end - 1 :]
    if "\n" not in text.strip(_BLANKS) and text.strip(_BLANKS) not in ("{}", "[]"):
        return head + style.member(key, value, "", False) + tail
    outer = _margin(text, box.start)
    margin = outer + style.unit
    body = style.member(key, value, margin, True)
    return head + style.newline + margin + body + style.newline + outer + tail


def _margin(text: str, at: int) -> str:
    """The blanks that the line of `at` begins with."""
    line = text[text.rfind("\n", 0, at) + 1 :]
    return line[: len(line) - len(line.lstrip(" \t"))]


class _Style:
    """How a text is laid out, guessed from its first member."""

    def __init__(self, text: str) -> None:
        self.newline = "\r\n" if "\r\n" in text else "\n"
        self.unit = "  "
        self.comma, self.colon = ", ", ": "
        root = parse(text)
        if not root.members:
            return
        _, start, node = root.members[0]
        if "\n" in text[root.start : start]:
            self.unit = _margin(text, start)[len(_margin(text, root.start)) :] or self.unit
        if not text[start : node.start].endswith((" ", "\t", "\n")):
            self.comma, self.colon = ",", ":"

    def member(self, key: str | None, value: Any, margin: str, tall: bool) -> str:
        body = self.render(value, margin, tall)
        return body if key is None else json.dumps(key, ensure_ascii=False) + self.colon + body

    def render(self, value: Any, margin: str, tall: bool) -> str:
        if not tall:
            return json.dumps(value, ensure_ascii=False, separators=(self.comma, self.colon))
        separators = (",", self.colon)
        plain = json.dumps(value, ensure_ascii=False, indent=self.unit, separators=separators)
        return plain.replace("\n", self.newline + margin)


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in _BLANKS:
        at += 1
    return at


def _value(text: str, at: int, depth: int) -> Node:
    node = Node(at)
    opening = text[at : at + 1]
    if depth > DEPTH_MAX:
        raise Broken(f"values lie deeper than {DEPTH_MAX} in each other", text, at)
    if opening == "{":
        node.members = []
        node.end = _members(text, at + 1, depth, node.members)
    elif opening == "[":
        node.items = []
        node.end = _items(text, at + 1, depth, node.items)
    else:
        node.plain, node.end = _scalar(text, at)
    return node


def _members(text: str, at: int, depth: int, members: list[tuple[str, int, Node]]) -> int:
    at = _skip(text, at)
    while text[at : at + 1] != "}" or members:
        if text[at : at + 1] != '"':
            raise Broken(_strange(text, at, 'a key in "..."'), text, at)
        key, end = _scalar(text, at)
        colon = _skip(text, end)
        if text[colon : colon + 1] != ":":
            raise Broken(_strange(text, colon, '":"'), text, colon)
        node = _value(text, _skip(text, colon + 1), depth + 1)
        members.append((key, at, node))
        at, over = _next(text, node.end, "}")
        if over:
            return at
    return at + 1


def _items(text: str, at: int, depth: int, items: list[Node]) -> int:
    at = _skip(text, at)
    while text[at : at + 1] != "]" or items:
        items.append(_value(text, at, depth + 1))
        at, over = _next(text, items[-1].end, "]")
        if over:
            return at
    return at + 1


def _next(text: str, at: int, closing: str) -> tuple[int, bool]:
    """Past a comma to what follows, or past the closing bracket (then True)."""
    at = _skip(text, at)
    sign = text[at : at + 1]
    if sign == closing:
        return at + 1, True
    if sign != ",":
        raise Broken(_strange(text, at, f'"," or "{closing}"'), text, at)
    after = _skip(text, at + 1)
    if text[after : after + 1] == closing:
        raise Broken(f'a comma before "{closing}"; take it out', text, at)
    return after, False


_DECODER = json.JSONDecoder()


def _scalar(text: str, at: int) -> tuple[Any, int]:
    if text[at : at + 1] not in tuple('"-0123456789tfn'):
        raise Broken(_strange(text, at, "a value"), text, at)
    try:
        return _DECODER.raw_decode(text, at)
    except json.JSONDecodeError as error:
        raise Broken(error.msg, text, min(error.pos, len(text))) from error
    except ValueError as error:
        raise Broken("a number with too many digits", text, at) from error


def _strange(text: str, at: int, expected: str) -> str:
    if text.startswith(("//", "/*"), at):
        return "a comment; the client does not read a file that has one, take it out"
    if at >= len(text):
        return f"the text ends where {expected} is expected"
    return f"{text[at]!r} where {expected} is expected"
