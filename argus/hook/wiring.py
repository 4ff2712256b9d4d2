"""Our hooks in a client's JSON of hooks, as Claude Code and Codex both write it.

Puts our handlers in, finds them again, takes them out, and leaves everybody else's where and as
they stand. Reads files and plans their change, and writes none. Knows nothing about what a hook
does.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from argus.hook import edits, jsontext
from argus.hook.bundle import SCRIPT
from argus.hook.edits import Edit
from argus.hook.jsontext import Broken
from argus.hook.main import HOOKS
from memory.errors import RefusedError

#: Where one of our handlers stands: event, number of its group, number in the group.
Place = tuple[str, int, int]

_BOM = b"\xef\xbb\xbf"

#: How a command line ends.
# Why: a Python that finds no script says 2, by which clients erase the person's prompt.
_END = ["||", "exit", "0"]


def command(python: str, script: str, verb: str, client: str) -> str:
    """A command line for a shell: Python by its own path, without site and user folders; what
    goes wrong in it, even a kill, ends with 0."""
    words = [_quote(python), "-I", "-S", _quote(script), verb, "--client", client]
    return " ".join(words + _END)


def _quote(word: str) -> str:
    # Why always: one look for every machine, and a home with blanks is no surprise.
    return "'" + word.replace("'", "'\"'\"'") + "'"


def ours(handler: Any, client: str) -> bool:
    """Whether a handler is one of ours, of this version or an older one."""
    if not isinstance(handler, dict):
        return False
    url = handler.get("url")
    if handler.get("type") == "http" and isinstance(url, str):
        return url.partition("?")[0].endswith(f"/hook/{client}/UserPromptSubmit")
    words = split(handler)
    # Why so exact: a person's own line may well mention our script, and is left alone.
    if len(words) not in (4, 7) or words[-2:] != ["--client", client] or words[-3] not in HOOKS:
        return False
    between = words[1:-4] in ([], ["-I", "-S"])
    return between and words[-4].endswith((f"/lib/{SCRIPT}", f"/bin/{SCRIPT}"))


def split(handler: Mapping[str, Any]) -> list[str]:
    """The words of a handler's command line, without the end that ours have; [] for none."""
    try:
        words = shlex.split(str(handler.get("command", "")))
    except ValueError:
        return []
    return words[: -len(_END)] if words[-len(_END) :] == _END else words


def plan(name: str, path: str, handlers: Mapping[str, Mapping[str, object]]) -> Edit:
    """The change of a client's file that puts these handlers in. Raises RefusedError."""
    before = edits.read(path)
    text = decode(path, before)
    try:
        base = strip(text, name)
        after = merge(text, handlers, name)
    except Broken as error:
        raise placed(path, error) from error
    clean = before if base == text else encode(path, base, before)
    return Edit(name, path, before, encode(path, after, before), clean)


def removal(name: str, path: str) -> Edit:
    """The change that takes our handlers out again. Raises RefusedError."""
    before = edits.read(path)
    known = edits.untouched(name, path, before)
    if known or before is None:
        return Edit(name, path, before, known.base if known else None)
    text = decode(path, before)
    record = edits.record(name)
    try:
        base = decode(path, record.base) if record and record.base else None
        after = strip(text, name, base)
    except Broken as error:
        raise placed(path, error) from error
    if after == text:
        return Edit(name, path, before, before)
    made = record is not None and record.base is None
    gone = made and jsontext.parse(after).value == {}
    return Edit(name, path, before, None if gone else encode(path, after, before))


def decode(path: str, data: bytes | None) -> str:
    """A JSON file's text; `{}` for one that is missing or empty. Raises RefusedError, with line."""
    try:
        text = (data or b"").removeprefix(_BOM).decode("utf-8")
    except UnicodeDecodeError as error:
        before = error.object[: error.start].decode("utf-8")
        raise placed(path, Broken("no UTF-8", before, len(before))) from error
    if not text.strip():
        return "{}\n"
    try:
        root = jsontext.parse(text)
        if root.members is None:
            raise Broken("an object {...} is expected", text, root.start)
    except Broken as error:
        raise placed(path, error) from error
    return text


def encode(path: str, text: str, data: bytes | None) -> bytes:
    """The bytes of an edited text, with the mark that the file began with. Raises RefusedError."""
    mark = _BOM if (data or b"").startswith(_BOM) else b""
    try:
        return mark + text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise RefusedError(f"{path}: a path in it is no UTF-8") from error


def placed(path: str, error: Broken) -> RefusedError:
    """The same trouble with the file's name before it."""
    return RefusedError(f"{path}, {error}", reason="broken")


def places(text: str, client: str) -> dict[Place, dict[str, Any]]:
    """Our handlers by where they stand."""
    found: dict[Place, dict[str, Any]] = {}
    for place, handler in handlers(text).items():
        if ours(handler, client):
            found[place] = handler
    return found


def handlers(text: str) -> dict[Place, Any]:
    """Every handler of the file by where it stands."""
    node = jsontext.find(text, ["hooks"])
    events = node.value if node and node.members is not None else {}
    found: dict[Place, Any] = {}
    for event, groups in events.items():
        for at, group in enumerate(groups if isinstance(groups, list) else ()):
            inner = group.get("hooks") if isinstance(group, dict) else None
            for number, handler in enumerate(inner if isinstance(inner, list) else ()):
                found[(event, at, number)] = handler
    return found


def merge(text: str, wanted: Mapping[str, Mapping[str, Any]], client: str) -> str:
    """The text with exactly one handler of ours for each event of `wanted`. Raises Broken."""
    for event, handler in wanted.items():
        standing = [place for place in places(text, client) if place[0] == event]
        for place in reversed(standing[1:]):
            text = _take_out(text, place)
        if not standing:
            text = jsontext.append(text, ["hooks", event], {"hooks": [dict(handler)]})
        elif places(text, client)[standing[0]] != handler:
            _, group, number = standing[0]
            text = jsontext.put(text, ["hooks", event, group, "hooks", number], dict(handler))
    for place in reversed([place for place in places(text, client) if place[0] not in wanted]):
        text = _take_out(text, place)
    return text


def strip(text: str, client: str, base: str | None = None) -> str:
    """The text without our handlers; what is empty then goes too, unless `base` has it empty."""
    events = {place[0] for place in places(text, client)}
    for place in reversed(list(places(text, client))):
        text = _take_out(text, place)
    for event in sorted(events):
        text = prune(text, ["hooks", event], base)
    return prune(text, ["hooks"], base) if events else text


def prune(text: str, path: list[str], base: str | None) -> str:
    """Take the object or array at `path` out when it is empty and was not there before us."""
    node = jsontext.find(text, path)
    if node is None or node.value not in ({}, []):
        return text
    was = jsontext.find(base, path) if base is not None else None
    return text if was is not None else jsontext.take_out(text, path)


def _take_out(text: str, place: Place) -> str:
    event, group, number = place
    node = jsontext.find(text, ["hooks", event, group, "hooks"])
    alone = node is not None and len(node.items or ()) == 1
    path: list[str | int] = ["hooks", event, group]
    return jsontext.take_out(text, path if alone else [*path, "hooks", number])
