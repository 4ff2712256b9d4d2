"""Where the client keeps its things, and the file with its settings.

`~/.argus/env` alone says where the server is and with which key: a variable of the environment can
be set by a repository's settings, and would send a key and a transcript to whoever wrote them.
On the fast path: imports nothing that starts slowly. Knows nothing about what is kept.
"""

from __future__ import annotations

import os
import sys

from argus.hook.peek import peek

#: Where the server is when nothing says otherwise.
URL = "http://127.0.0.1:8765"

#: What the file may hold, in the order in which it is written.
NAMES = (
    "ARGUS_URL",
    "ARGUS_KEY",
    "ARGUS_KEY_FROM",
    "ARGUS_RECALL_KEY",
    "ARGUS_RECALL_FLOOR",
    "ARGUS_CAPTURE",
    "ARGUS_RECALL",
    "ARGUS_SUBAGENTS",
)


#: The end of the path of the script that hooks run.
_SCRIPT = "/.argus/lib/argus-hook"

#: Bytes of the settings.
ENV_BYTES_MAX = 65_536


class Planted(Exception):
    """HOME is not the person's: a repository may have set it."""


def place(*parts: str) -> str:
    """A path below `~/.argus`: the one whose program runs, else the one in HOME.

    Why the program's own: a repository's settings can set HOME, too.
    """
    if installed():
        return os.path.join(sys.argv[0][: -len(_SCRIPT)], ".argus", *parts)
    return os.path.join(os.path.expanduser("~"), ".argus", *parts)


def installed() -> bool:
    """Whether the program that runs is the one of a `~/.argus`, and needs no HOME."""
    return sys.argv[0].startswith("/") and sys.argv[0].endswith(_SCRIPT)


def installer() -> str:
    """What the person types to install: a plugin has no command on the path."""
    lib, slash, name = sys.argv[0].rpartition("/lib/")
    if installed() or not slash or name != "argus-hook":
        return "argus-hook install"
    return f"sh '{lib}/run.sh' install --client none"


def own(repository: str) -> None:
    """Raise Planted when HOME is no place of the person's: at or inside of this repository, or of
    the project that a plugin's client names; also when it is no absolute path.

    Its limit: a HOME that leads elsewhere is believed. Who can set one can set LD_PRELOAD as well,
    and nothing in a process stops that.
    """
    if installed():
        return
    home = os.path.expanduser("~")
    if not home.startswith("/"):
        raise Planted
    for folder in (repository, os.environ.get("CLAUDE_PROJECT_DIR", "")):
        if folder.startswith("/") and _inside(home, folder) and not _registered(home):
            raise Planted


def _inside(path: str, folder: str) -> bool:
    top = os.path.realpath(folder)
    # Why not the root: no repository is there, but everybody's home.
    return top != "/" and (os.path.realpath(path) + "/").startswith(top + "/")


def _registered(home: str) -> bool:
    """Whether it is the home that the system knows, which may well be a repository."""
    import pwd

    try:
        return os.path.realpath(pwd.getpwuid(os.getuid()).pw_dir) == os.path.realpath(home)
    except (KeyError, OSError):
        return False


def private(*parts: str) -> str:
    """A folder below `~/.argus` for this user alone, made when missing. Raises OSError."""
    path = place(*parts)
    if not os.path.isdir(path):
        os.makedirs(path, mode=0o700, exist_ok=True)
    return path


def write(path: str, data: bytes, mode: int = 0o600) -> None:
    """Write a file so that a reader finds the old one or the new one. Raises OSError."""
    draft = f"{path}.{os.getpid()}.new"
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    try:
        with os.fdopen(descriptor, "wb") as handle:
            handle.write(data)
            handle.flush()
            os.fsync(handle.fileno())
        os.rename(draft, path)
    except OSError:
        os.unlink(draft)
        raise


def read_env() -> dict[str, str]:
    """The settings of `~/.argus/env`; none when it is missing or somebody else's."""
    try:
        found = peek(place("env"), ENV_BYTES_MAX)
    except OSError:
        return {}
    return parse(found[0]) if found and found[1] == os.getuid() else {}


def parse(text: str) -> dict[str, str]:
    """NAME=VALUE lines; `export` before and quotes around are allowed, # begins a comment line."""
    values = {}
    for line in text.split("\n"):
        name, sign, value = line.strip().partition("=")
        name = name.strip()
        if name.startswith("export "):
            name = name[len("export ") :].strip()
        if not sign or not name or name.startswith("#"):
            continue
        value = value.strip()
        if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"":
            value = value[1:-1]
        values[name] = value
    return values


def write_env(changes: dict[str, str]) -> None:
    """Set these values in `~/.argus/env`; "" takes a name out. Other lines stay. Raises OSError."""
    private()
    path = place("env")
    kept = []
    if os.path.exists(path):
        with open(path, encoding="utf-8", errors="surrogateescape") as handle:
            kept = handle.read().splitlines()
    lines = [line for line in kept if not set(parse(line)) & set(changes)]
    order = [name for name in NAMES if name in changes] + sorted(set(changes) - set(NAMES))
    lines += [f"{name}={changes[name]}" for name in order if changes[name]]
    write(path, "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape"))


def on(values: dict[str, str], name: str, default: bool = True) -> bool:
    """Whether a yes-or-no setting is on."""
    value = values.get(name, "").strip().lower()
    return default if not value else value not in ("0", "false", "no", "off")
