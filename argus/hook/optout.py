"""Where the person said no: ARGUS_DISABLED, `.argus.json` at or above a folder, `~/.argus/env`.

Off is off: what one file at or above a folder switches off, no file below it switches on, so that a
repository cannot overrule the person's word for a whole tree. The project's name is that of the
nearest file that gives one. A file that is there and cannot be read as rules switches everything
off: somebody wanted something there, and silence harms nobody. A stranger's file (neither this
user's nor root's) can switch off and not name a project. On the fast path. Knows nothing about what
is switched.
"""

from __future__ import annotations

import os

from argus.hook.home import on, read_env
from argus.hook.peek import peek
from argus.hook.quickjson import parse

# Why not typing's: importing it takes longer than a whole start of Python.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

NAME = ".argus.json"

#: Bytes of such a file. What is longer is no such file.
RULES_BYTES_MAX = 16_384
#: Characters of a project's name, as the server has it.
PROJECT_CHARACTERS_MAX = 200
#: Characters of a path, as Linux has it.
PATH_CHARACTERS_MAX = 4_096

_CACHE: dict[str, Rules] = {}
#: Folders remembered: a child reads one session, seldom more than some folders.
_CACHE_FOLDERS_MAX = 1_000


class Rules:
    """What holds in a folder. `why` names the file that could not be read, "" when all could."""

    __slots__ = ("enabled", "capture", "recall", "project", "why")

    def __init__(
        self,
        enabled: bool = True,
        capture: bool = True,
        recall: bool = True,
        project: str = "",
        why: str = "",
    ) -> None:
        self.enabled = enabled
        #: Off as well when `enabled` is.
        self.capture = capture and enabled
        self.recall = recall and enabled
        self.project = project
        self.why = why


def disabled(environ: Mapping[str, str] | None = None) -> bool:
    """Whether ARGUS_DISABLED says so; "", 0, false, no and off do not."""
    given = os.environ if environ is None else environ
    return on({"disabled": given.get("ARGUS_DISABLED", "")}, "disabled", default=False)


def rules(folder: str) -> Rules:
    """The rules at this folder: its files from here to the root, then `~/.argus/env`. Cached."""
    known = _CACHE.get(folder)
    if known is None:
        if len(_CACHE) >= _CACHE_FOLDERS_MAX:
            _CACHE.clear()
        known = _CACHE[folder] = look(folder, read_env())
    return known


def look(folder: str, settings: dict[str, str]) -> Rules:
    """As `rules`, with these settings and from the disk."""
    capture, recall = on(settings, "ARGUS_CAPTURE"), on(settings, "ARGUS_RECALL")
    enabled, project, why = True, "", ""
    for place in above(folder):
        path = os.path.join(place, NAME)
        try:
            found = peek(path, RULES_BYTES_MAX + 1)
            if found is None:
                continue
            given = _checked(found[0])
        except (OSError, ValueError) as error:
            enabled, why = False, why or f"{path} switches Argus off there: {error}"
            continue
        enabled = enabled and given.get("enabled", True) is True
        capture = capture and given.get("capture", True) is True
        recall = recall and given.get("recall", True) is True
        named = given.get("project", "")
        if isinstance(named, str) and not project and found[1] in (os.getuid(), 0):
            project = _name(named)
    return Rules(enabled, capture, recall, project, why)


def above(folder: str) -> list[str]:
    """The folder and those above it, nearest first; none for what cannot be an absolute path.

    As it is named and as it really is: a link into a tree is in it, and where it lies, too.
    """
    if not folder.startswith("/") or "\0" in folder or len(folder) > PATH_CHARACTERS_MAX:
        return []
    found: list[str] = []
    try:
        starts = (folder, os.path.realpath(folder))
    except (OSError, ValueError):
        return []
    for start in starts:
        place = os.path.normpath(start)
        while place not in found:
            found.append(place)
            place = os.path.dirname(place)
    return found


def _checked(text: str) -> dict[str, object]:
    """The file's settings. Raises ValueError when they are none."""
    if len(text) > RULES_BYTES_MAX:
        raise ValueError("too long")
    given = parse(text.lstrip("\ufeff"))
    if not isinstance(given, dict):
        raise ValueError("no JSON object")
    for name in ("enabled", "capture", "recall"):
        if not isinstance(given.get(name, True), bool):
            raise ValueError(f'"{name}" is neither true nor false')
    if not isinstance(given.get("project") or "", str):
        raise ValueError('"project" is no text')
    return given


def _name(text: str) -> str:
    plain = "".join(sign if sign.isprintable() else " " for sign in text)
    return " ".join(plain.split())[:PROJECT_CHARACTERS_MAX]
