"""Take the hooks out of the clients again, and the client off this machine with the last of them.

Settings, offsets and what is still unsent stay unless the person wants them gone too: a second
installation goes on where this one ended. What was never to be captured stays so in any case.
Never touches what the server keeps in the same folder.
"""

from __future__ import annotations

import os
import shlex
import shutil

from argus.hook import claude, codex, edits, home, keys, pi
from argus.hook.edits import Edit
from argus.hook.install import CLIENTS, Report
from argus.hook.sessions import OFF
from argus.hook.status import look, unsent
from memory.errors import RefusedError

#: What of `~/.argus` goes with the last client, and what more with `--purge`.
PROGRAM = ("lib", "builds", "bin")
KEPT = ("env", "log", "backup")


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
        _tell_plugin(purge, report)
    if not any(look(name).state != "absent" for name in CLIENTS):
        _leave(purge, report)
    return report


def _tell_plugin(purge: bool, report: Report) -> None:
    """A plugin is Claude Code's to remove; until then what it needs stays."""
    if purge:
        # Why: the note is ours, and nobody who purges waits until it is old.
        _remove(home.place("hook", "plugin"))
    found = look(claude.NAME)
    if found.state == "installed":
        report.done.append(
            f"{claude.NAME} runs us {found.path}: remove it there; until then {home.place()} stays"
            f" (if nobody uses it, remove {home.place('hook', 'plugin')} and uninstall again)"
        )


def _removal(name: str) -> Edit:
    return claude.removal() if name == claude.NAME else pi.removal()


def _revoke(report: Report) -> None:
    known = home.read_env()
    key = known.get(claude.KEY, "")
    if not key:
        return
    if keys.revoke(known.get("ARGUS_URL", home.URL), key):
        report.done.append(f"the key of the http hook ({keys.prefix(key)}) is revoked")
    else:
        report.warnings.append(
            f"the server is away: revoke the http hook's key there by {keys.by_hand(key)}"
        )
    home.write_env({claude.KEY: ""})


def _leave(purge: bool, report: Report) -> None:
    """Nobody runs the client any more."""
    # Why: what is said until a next installation is nobody's to catch up on.
    _remove(home.place("hook", "since"))
    if purge:
        _end_key(report)
    gone = [name for name in PROGRAM if _remove(home.place(name))]
    if purge:
        gone += [name for name in KEPT if _remove(home.place(name))]
        gone += _forget(report)
    else:
        _tell_stays(report)
    if gone:
        report.changed = True
        report.done.append(f"removed: {', '.join(home.place(name) for name in gone)}")


def _tell_stays(report: Report) -> None:
    """What is left, what that means, and how it goes."""
    backup = home.place("backup")
    if os.path.isdir(backup) and not os.listdir(backup):
        os.rmdir(backup)
    stays = [home.place(name) for name in (*KEPT, "hook") if os.path.exists(home.place(name))]
    if not stays:
        return
    report.done.append(f"stays: {', '.join(stays)}")
    key = home.read_env().get("ARGUS_KEY", "")
    if key:
        report.done.append(
            f"the key {keys.prefix(key)} in {home.place('env')} is still in force; on the server"
            f" {keys.by_hand(key)} ends that"
        )
    if home.place("hook") in stays:
        report.done.append(
            f"{home.place('hook')} says how far each session was read and which are never captured,"
            " and holds what was not sent: a later installation goes by it"
        )
    report.done.append(f"to take what stays: rm -r {' '.join(map(shlex.quote, stays))}")


def _end_key(report: Report) -> None:
    """A key that an installation made goes with its settings; the person's own is theirs."""
    known = home.read_env()
    key = known.get("ARGUS_KEY", "")
    if not key:
        return
    if known.get(keys.FROM) and keys.revoke(known.get("ARGUS_URL", home.URL), key):
        report.done.append(f"the key of this machine ({keys.prefix(key)}) is revoked")
    else:
        report.warnings.append(
            f"the key {keys.prefix(key)} is still in force: on the server {keys.by_hand(key)} ends"
            " that"
        )


def _forget(report: Report) -> list[str]:
    """Remove what is known of sessions, but for the marks of those that are never captured."""
    top, marks = home.place("hook"), 0
    for place, folders, names in os.walk(top, topdown=False):
        for name in names:
            if place.startswith(home.place("hook", "sessions")) and name.endswith(OFF):
                marks += 1
            else:
                os.unlink(os.path.join(place, name))
        for path in (os.path.join(place, name) for name in folders):
            if os.path.islink(path):
                os.unlink(path)
            elif not os.listdir(path):
                os.rmdir(path)
    if marks:
        report.done.append(
            f"stays: {home.place('hook', 'sessions')}, {marks} sessions that ran while Argus was"
            " off and are never captured; without these marks a later backfill would take them"
        )
        return []
    return ["hook"] if _remove(top) else []


def _remove(path: str) -> bool:
    if os.path.islink(path) or os.path.isfile(path):
        os.unlink(path)
        return True
    if not os.path.isdir(path):
        return False
    shutil.rmtree(path)
    return True
