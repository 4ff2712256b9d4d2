"""Take the hooks out of the clients again, and the client off this machine with the last of them.

Settings, offsets and what is still unsent stay unless the person wants them gone too: a second
installation goes on where this one ended. Never touches what the server keeps in the same folder.
"""

from __future__ import annotations

import os
import shutil

from argus.hook import claude, codex, edits, home, keys, pi
from argus.hook.edits import Edit
from argus.hook.install import CLIENTS, Report
from argus.hook.status import look, unsent
from memory.errors import RefusedError

#: What of `~/.argus` goes with the last client, and what more with `--purge`.
PROGRAM = ("lib", "builds", "bin")
KEPT = ("env", "hook", "log", "backup")


def uninstall(clients: tuple[str, ...], *, purge: bool = False, yes: bool = False) -> Report:
    """Take these clients' hooks out. Raises RefusedError before anything is changed."""
    report = Report()
    waiting = unsent()
    if purge and waiting["files"] and not yes:
        raise RefusedError(
            f"{waiting['files']} batches ({waiting['bytes']} bytes) were never sent and would be"
            " lost; run argus-hook flush first, or give --yes"
        )
    plan: list[Edit] = []
    for name in clients:
        plan += codex.removal() if name == codex.NAME else [_removal(name)]
    edits.check(plan)
    for edit in plan:
        edits.revert(edit)
        if edit.changed:
            report.changed = True
            report.done.append(f"{edit.path}: {'removed' if edit.after is None else 'ours is out'}")
    if claude.NAME in clients:
        _revoke(report)
    if not any(look(name).state != "absent" for name in CLIENTS):
        _leave(purge, report)
    return report


def _removal(name: str) -> Edit:
    return claude.removal() if name == claude.NAME else pi.removal()


def _revoke(report: Report) -> None:
    known = home.read_env()
    key = known.get(claude.KEY, "")
    if not key:
        return
    if keys.revoke(known.get("ARGUS_URL", home.URL), key):
        report.done.append("the key of the http hook is revoked")
    else:
        report.warnings.append(
            "the server is away: revoke the key named 'http hook on ...' there by hand"
        )
    home.write_env({claude.KEY: ""})


def _leave(purge: bool, report: Report) -> None:
    """Nobody runs the client any more."""
    # Why: what is said until a next installation is nobody's to catch up on.
    _remove(home.place("hook", "since"))
    gone = [name for name in PROGRAM + (KEPT if purge else ()) if _remove(home.place(name))]
    if not purge:
        backup = home.place("backup")
        if os.path.isdir(backup) and not os.listdir(backup):
            os.rmdir(backup)
        stays = [name for name in KEPT if os.path.exists(home.place(name))]
        if stays:
            places = ", ".join(home.place(name) for name in stays)
            report.done.append(f"stays: {places} (--purge takes it too)")
    if gone:
        report.changed = True
        report.done.append(f"removed: {', '.join(home.place(name) for name in gone)}")


def _remove(path: str) -> bool:
    if os.path.islink(path) or os.path.isfile(path):
        os.unlink(path)
        return True
    if not os.path.isdir(path):
        return False
    shutil.rmtree(path)
    return True
