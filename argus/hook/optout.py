"""Where the person said no: ARGUS_DISABLED, `.argus.json` at or above a folder, `~/.argus/env`.

Off is off: what one file at or above a folder switches off, no file below it switches on, so that a
repository cannot overrule the person's word for a whole tree. The project's name is that of the
nearest file that gives one. What holds in a repository's main checkout holds in its worktrees,
wherever those lie. A file that is there and cannot be read as rules switches everything
off: somebody wanted something there, and silence harms nobody. A stranger's file (neither this
user's nor root's) can switch off and not name a project. On the fast path. Knows nothing about what
is switched.
"""

from __future__ import annotations

import os

from argus.hook.home import on, read_env
from argus.hook.peek import peek
from argus.hook.quickjson import parse
from argus.hook.repository import facts

# Why not typing's: importing it takes longer than a whole start of Python.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

NAME = ".argus.json"

#: Bytes of such a file. What is longer is no such file.
RULES_BYTES_MAX = 16_384
#: Characters of a project's name, as the server has it.
PROJECT_CHARACTERS_MAX = 200
#: Bytes of a path, as Linux has it.
PATH_BYTES_MAX = 4_096

#: What such a file may say, and what people write there meaning it.
_SAYS = ("enabled", "capture", "recall", "project")
_MEANT = (*_SAYS, "disabled")

_CACHE: dict[str, Rules] = {}
#: Folders remembered: a child reads one session, seldom more than some folders.
_CACHE_FOLDERS_MAX = 1_000


class Rules:
    """What holds in a folder. `why` names the file that could not be read, "" when all could;
    `by`: the files that switch something off."""

    __slots__ = ("enabled", "capture", "recall", "project", "why", "by")

    def __init__(
        self,
        enabled: bool = True,
        capture: bool = True,
        recall: bool = True,
        project: str = "",
        why: str = "",
        by: tuple[str, ...] = (),
    ) -> None:
        self.enabled = enabled
        #: Off as well when `enabled` is.
        self.capture = capture and enabled
        self.recall = recall and enabled
        self.project = project
        self.why = why
        self.by = by


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
    enabled, project, why, by = True, "", "", []
    for place in _places(folder):
        path = os.path.join(place, NAME)
        try:
            found = peek(path, RULES_BYTES_MAX + 1)
            if found is None:
                continue
            given = _checked(found[0])
        except (OSError, ValueError) as error:
            enabled, why = False, why or f"{path} switches Argus off there: {error}"
            by.append(path)
            continue
        if any(given.get(name, True) is not True for name in _SAYS[:3]):
            by.append(path)
        enabled = enabled and given.get("enabled", True) is True
        capture = capture and given.get("capture", True) is True
        recall = recall and given.get("recall", True) is True
        named = given.get("project", "")
        if isinstance(named, str) and not project and found[1] in (os.getuid(), 0):
            project = _name(named)
    return Rules(enabled, capture, recall, project, why, tuple(by))


def _places(folder: str) -> list[str]:
    """The folders whose files count: this one, those above it, and those of the main checkout."""
    found = above(folder)
    common = facts(folder).get("git_common_dir", "") if found else ""
    return found + [place for place in above(os.path.dirname(common)) if place not in found]


def above(folder: str) -> list[str]:
    """The folder and those above it, nearest first; none for what cannot be an absolute path.

    As it is named and as it really is: a link into a tree is in it, and where it lies, too.
    """
    if not folder.startswith("/") or "\0" in folder or len(folder) > PATH_BYTES_MAX:
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


def check(path: str) -> None:
    """Raise ValueError or OSError for a file that is there and cannot be read as rules."""
    found = peek(path, RULES_BYTES_MAX + 1)
    if found is not None:
        _checked(found[0])


def _checked(text: str) -> dict[str, object]:
    """The file's settings. Raises ValueError when they are none."""
    if len(text) > RULES_BYTES_MAX:
        raise ValueError("too long")
    given = parse(text.lstrip("\ufeff"), once=True)
    if not isinstance(given, dict):
        raise ValueError("no JSON object")
    for name in given:
        meant = [word for word in _MEANT if name not in _SAYS and _near(name.lower(), word)]
        if meant:
            raise ValueError(f'"{name[:40]}" is none of {", ".join(_SAYS)}')
    for name in ("enabled", "capture", "recall"):
        if not isinstance(given.get(name, True), bool):
            raise ValueError(f'"{name}" is neither true nor false')
    if not isinstance(given.get("project") or "", str):
        raise ValueError('"project" is no text')
    return given


def _near(one: str, other: str) -> bool:
    """Whether two words differ by one letter at most: another, one more, one less, two swapped."""
    long, short = (one, other) if len(one) >= len(other) else (other, one)
    if len(long) == len(short):
        apart = [(a, b) for a, b in zip(long, short) if a != b]
        return len(apart) < 2 or (len(apart) == 2 and apart[0] == apart[1][::-1])
    return len(long) == len(short) + 1 and any(
        long[:at] + long[at + 1 :] == short for at in range(len(long))
    )


def _name(text: str) -> str:
    plain = "".join(sign if sign.isprintable() else " " for sign in text)
    return " ".join(plain.split())[:PROJECT_CHARACTERS_MAX]
