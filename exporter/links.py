"""Where the links of files lead that lie in the vault: what an editor made of them, and which notes
a hub held.

Reads: the vault. Knows nothing about notes.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from exporter import document
from exporter.folder import Folder
from exporter.found import Found, Scan, parts, sha256
from exporter.moves import Log


def aimed(scan: Scan, log: Log, folder: Folder | None) -> Scan:
    """The files, those known again of which an editor changed nothing but where links lead.

    Obsidian does that in every page that links to one which somebody moves or renames in it.
    """
    moved = _moved(scan, log)
    if folder is None or not moved:
        return scan
    files = dict(scan.files)
    for path, one in scan.files.items():
        if one.key is None or not log.knows(one.key) or log.clean(one):
            continue
        ours = document.aim(parts(folder.read(path) or b"")[0], moved)
        before = replace(one, managed=sha256(ours), size=len(ours), aimed=True)
        if log.clean(before):
            files[path] = before
    return replace(scan, files=files)


def _moved(scan: Scan, log: Log) -> dict[str, str]:
    """Where links to pages led that lie elsewhere now; an editor may name them without folders."""
    moved: dict[str, str] = {}
    for path, one in scan.files.items():
        last = log.last.get(one.key or "")
        if last is not None and last.stands and last.path != path and last.path not in scan.files:
            home, here = last.path.removesuffix(".md"), path.removesuffix(".md")
            moved |= {here: home, here.rpartition("/")[2]: home}
    return moved


def members(
    scan: Scan, log: Log, folder: Folder | None, gone: Collection[str]
) -> dict[str, list[str]]:
    """The pages that hubs which are gone linked to, by key."""
    hubs = [one for one in scan.files.values() if (one.key or "").startswith("hub:")]
    hubs = [one for one in hubs if one.key in gone]
    if folder is None or not hubs:
        return {}
    by_path = {last.path.removesuffix(".md"): key for key, last in log.last.items() if last.stands}
    return {one.key or "": _members(one, by_path, folder) for one in hubs}


def _members(hub: Found, by_path: dict[str, str], folder: Folder) -> list[str]:
    ours = parts(folder.read(hub.path) or b"")[0]
    return [by_path[target] for target in document.targets(ours) if target in by_path]
