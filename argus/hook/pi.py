"""pi: where its extensions are, and the one that hands its events to us."""

from __future__ import annotations

import json
import os
import re

from argus.hook import bundle, edits
from argus.hook.edits import Edit
from memory.errors import RefusedError

NAME = "pi"

#: What makes a file of that name ours.
_MARK = b"Argus for pi (made by `argus-hook install"


def folder() -> str:
    """Where pi keeps its things."""
    given = os.environ.get("PI_CODING_AGENT_DIR")
    return os.path.expanduser(given or os.path.join("~", ".pi", "agent"))


def extension() -> str:
    """Where our extension lies."""
    return os.path.join(folder(), "extensions", "argus.ts")


def wanted(python: str, script: str) -> bytes:
    """The extension's text with the paths of this machine in it."""
    text = bundle.files()["argus/hook/pi_extension.ts"].decode()
    for place, path in (("@PYTHON@", python), ("@SCRIPT@", script)):
        text = text.replace(f'"{place}"', json.dumps(path))
    return text.encode()


def plan(text: bytes) -> Edit:
    """The change that puts the extension there. Raises RefusedError where another one lies."""
    before = edits.read(extension())
    _check(before)
    return Edit(NAME, extension(), before, text, None)


def removal() -> Edit:
    """The change that takes the extension out. Raises RefusedError where another one lies."""
    before = edits.read(extension())
    known = edits.untouched(NAME, extension(), before)
    if known:
        return Edit(NAME, extension(), before, known.base)
    if before is not None and not ours(before):
        return Edit(NAME, extension(), before, before)
    return Edit(NAME, extension(), before, None)


def ours(data: bytes) -> bool:
    """Whether a file of that name is our extension, of this version or an older one."""
    return _MARK in data


def programs(data: bytes) -> list[str]:
    """The Python and the script that an installed extension runs."""
    found = re.findall(
        r'^const (?:PYTHON|SCRIPT) = (".*");$', data.decode("utf-8", "replace"), re.M
    )
    return [json.loads(word) for word in found]


def _check(before: bytes | None) -> None:
    if before is not None and not ours(before):
        raise RefusedError(
            f"{extension()} is not Argus's; give it another name, then install again"
        )
