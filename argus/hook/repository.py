"""What git knows about a folder, read from its files: no process is started, nothing is written.

Root of the working tree, common folder of all worktrees, branch and the remote's address without a
name or password in it. On the fast path. Knows nothing about projects.
"""

from __future__ import annotations

import os

from argus.hook.peek import peek

#: Bytes of `.git`, HEAD and commondir, and of a configuration.
LINE_BYTES_MAX = 8_192
CONFIG_BYTES_MAX = 131_072
#: Folders that are looked through from one upwards.
FOLDERS_MAX = 64


def facts(folder: str) -> dict[str, str]:
    """git_root, git_common_dir, branch and repo of this folder, as far as there are any.

    Paths are absolute and without links, as git answers them; {} outside of a repository. A folder
    that is gone is looked for from the one above it. Never raises.
    """
    if not folder.startswith("/") or "\0" in folder:
        return {}
    try:
        return _found(os.path.realpath(folder))
    except (OSError, ValueError):
        return {}


def _found(place: str) -> dict[str, str]:
    for _ in range(FOLDERS_MAX):
        git = os.path.join(place, ".git")
        inner = git if os.path.isdir(git) else _pointed(git)
        if inner and os.path.exists(os.path.join(inner, "HEAD")):
            return _told(inner, place)
        if _bare(place):
            return _told(place, "")
        upper = os.path.dirname(place)
        if upper == place:
            break
        place = upper
    return {}


def _told(inner: str, root: str) -> dict[str, str]:
    """Facts of a repository whose own folder is `inner`."""
    named = _line(os.path.join(inner, "commondir"))
    common = os.path.realpath(os.path.join(inner, named)) if named else os.path.realpath(inner)
    head = _line(os.path.join(inner, "HEAD"))
    branch = head[len("ref: refs/heads/") :] if head.startswith("ref: refs/heads/") else ""
    told = {
        "git_root": root,
        "git_common_dir": common,
        # Where branches lie in a table HEAD names one that cannot be.
        "branch": "" if branch == ".invalid" else branch,
        "repo": remote(_text(os.path.join(common, "config"), CONFIG_BYTES_MAX)),
    }
    return {name: value for name, value in told.items() if value}


def _bare(place: str) -> bool:
    """Whether the folder is a repository itself, or inside of `.git`."""
    if not os.path.isfile(os.path.join(place, "HEAD")):
        return False
    return all(os.path.isdir(os.path.join(place, name)) for name in ("objects", "refs"))


def _pointed(path: str) -> str:
    """The folder that a `.git` file names (a worktree's, a submodule's), or ""."""
    line = _line(path)
    if not line.startswith("gitdir:"):
        return ""
    return os.path.normpath(os.path.join(os.path.dirname(path), line[len("gitdir:") :].strip()))


def _line(path: str) -> str:
    return _text(path, LINE_BYTES_MAX).split("\n", 1)[0].strip()


def _text(path: str, most: int) -> str:
    try:
        found = peek(path, most)
    except OSError:
        return ""
    return found[0] if found else ""


def remote(config: str) -> str:
    """The address of `origin`, else of the first remote, in a configuration's text."""
    addresses: dict[str, str] = {}
    name = ""
    for line in config.split("\n"):
        line = line.strip()
        if line.startswith("["):
            section, _, line = line[1:].partition("]")
            kind, _, quoted = section.partition(" ")
            name = quoted.strip().strip('"') if kind.lower() == "remote" else ""
            line = line.strip()
        word, sign, value = line.partition("=")
        if name and sign and word.strip().lower() == "url":
            addresses.setdefault(name, _unquoted(value))
    address = addresses.get("origin") or next(iter(addresses.values()), "")
    return without_credentials(address)


def _unquoted(value: str) -> str:
    value = value.strip()
    if value[:1] == '"':
        return value[1:].partition('"')[0]
    for sign in ("#", ";"):
        value = value.partition(f" {sign}")[0]
    return value.strip()


def without_credentials(address: str) -> str:
    """The address without user, password, query and fragment; `git@host:path` stays as it is."""
    scheme, mark, rest = address.partition("://")
    if not mark:
        user, at, place = address.partition("@")
        return place if at and ":" in user else address
    rest = rest.partition("?")[0].partition("#")[0]
    authority, slash, path = rest.partition("/")
    return f"{scheme}://{authority.rpartition('@')[2]}{slash}{path}"
