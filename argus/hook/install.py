"""Put the client where hooks find it, and its hooks where clients look for them; and take both out.

All changes are planned before the first byte is written, so that a refusal leaves everything as it
was. Keys go into `~/.argus/env` and, one that may only recall, into the person's own settings of
Claude Code. Knows nothing about what is asked on a terminal or how a report is printed.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from argus.hook import bundle, claude, codex, edits, home, keys, pi, tending
from argus.hook.edits import Edit
from memory.errors import RefusedError

CLIENTS = (claude.NAME, codex.NAME, pi.NAME)

#: What stands in a diff where a key would.
NEW_KEY = "[a new key that may only recall]"


@dataclass(frozen=True)
class Choices:
    """What the person wants. `mode`: http, command or "" (the better one); `trust`: Codex's."""

    clients: tuple[str, ...]
    url: str
    key: str
    mode: str = ""
    dry_run: bool = False
    trust: bool = True


@dataclass
class Report:
    """What was done (or would be), line by line; `diffs`: of each file."""

    done: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    diffs: list[str] = field(default_factory=list)
    changed: bool = False


def present() -> tuple[str, ...]:
    """The clients of this machine: those whose folder or program is there."""
    folders = {claude.NAME: claude.folder(), codex.NAME: codex.folder(), pi.NAME: pi.folder()}
    return tuple(n for n in CLIENTS if os.path.isdir(folders[n]) or shutil.which(n))


def python() -> str:
    """This Python by its own path."""
    # Why not the name on the path: a version manager's shim takes longer than the hook.
    return os.path.realpath(sys.executable)


def script() -> str:
    """What hooks run."""
    return home.place("lib", bundle.SCRIPT)


def install(choices: Choices, consent: Callable[[str], bool]) -> Report:
    """Install for these clients. `consent` answers a yes-or-no question. Raises RefusedError."""
    report = Report()
    standing = keys.stand(choices.url, choices.key)
    if standing.accepted is False:
        raise RefusedError(f"{choices.url} refuses the key: {standing.why}; nothing was changed")
    if standing.why.partition(" ")[0] in ("address", "key"):
        raise RefusedError(f"{choices.url}: {standing.why}; nothing was changed", reason="address")
    if not standing.reached:
        report.warnings.append(
            f"{choices.url} is away: {standing.why}; what is said meanwhile waits on this machine"
        )
    elif standing.scopes and standing.scopes != ("capture", "recall"):
        report.warnings.append(f"the key may only {' and '.join(standing.scopes)}")
    plan = [_plan(name, choices, standing.reached, report) for name in choices.clients]
    values = {"ARGUS_URL": choices.url, "ARGUS_KEY": choices.key}
    edits.check(plan)
    if choices.dry_run:
        posted = claude.key() if claude.NAME in choices.clients else ""
        known = home.read_env().get(claude.KEY, "")
        _show(plan, report, (choices.key, known, posted))
        return report
    _settle(values, report)
    _write(plan, choices, report)
    if codex.NAME in choices.clients:
        _trust(choices.trust, consent, report)
    return report


def _write(plan: list[Edit], choices: Choices, report: Report) -> None:
    """All of the plan; when one file refuses, those before it become what they were."""
    written: list[Edit] = []
    try:
        for edit in plan:
            edit = _keyed(edit, choices, report) if edit.name == claude.NAME else edit
            _apply(edit, report)
            written.append(edit)
    except RefusedError:
        for edit in written:
            if edit.changed:
                edits.revert(replace(edit, before=edit.after, after=edit.before))
        raise


def _plan(name: str, choices: Choices, reached: bool, report: Report) -> Edit:
    if name == codex.NAME:
        return codex.plan(codex.wanted(python(), script()))
    if name == pi.NAME:
        return pi.plan(pi.wanted(python(), script()))
    known = home.read_env().get(claude.KEY, "")
    against = _against_http(choices, reached or bool(known))
    if choices.mode == "command" or against:
        if choices.mode == "http":
            report.warnings.append(f"no http hook for the prompt: {against}")
        return claude.plan(_claude())
    # Why only a refusal: a server that is away for a moment is no reason for another key.
    good = known and keys.stand(choices.url, known).accepted is not False
    door = claude.door(choices.url, home.read_env())
    return claude.plan(_claude(door, known if good else NEW_KEY))


def _claude(http: str = "", key: str = "") -> dict[str, dict[str, object]]:
    subagents = home.on(home.read_env(), "ARGUS_SUBAGENTS", False)
    return claude.wanted(python(), script(), subagents, http, key)


def _against_http(choices: Choices, reached: bool) -> str:
    """Why the prompt's hook had better be a command; "" when nothing speaks against http."""
    if not home.on(home.read_env(), "ARGUS_RECALL"):
        return "ARGUS_RECALL is off, which only a command reads"
    if not keys.loopback(choices.url):
        return "the server is not on this machine, and an http hook sends a prompt as it is"
    if not reached:
        return "the server is away, and only it can make the key"
    place = os.path.dirname(os.path.realpath(claude.settings()))
    while True:
        if os.path.exists(os.path.join(place, ".git")):
            return f"{claude.settings()} lies in a repository, which would share the key"
        if os.path.dirname(place) == place:
            return ""
        place = os.path.dirname(place)


def _keyed(edit: Edit, choices: Choices, report: Report) -> Edit:
    """Claude's change with the key that it needs; without one the prompt's hook is a command."""
    after = edit.after or b""
    known = home.read_env().get(claude.KEY, "")
    if NEW_KEY.encode() in after:
        key = keys.small(choices.url, choices.key)
        if key:
            home.write_env({claude.KEY: key})
            return replace(edit, after=after.replace(NEW_KEY.encode(), key.encode()))
        report.warnings.append("the server makes no small key; the prompt's hook is a command")
        return claude.plan(_claude())
    if known and known.encode() not in after:
        keys.revoke(choices.url, known)
        home.write_env({claude.KEY: ""})
    return edit


def _settle(values: dict[str, str], report: Report) -> None:
    """The client itself: its folder, its short command, its settings."""
    home.private()
    lib = home.place("lib")
    if not current(lib):
        bundle.unpack(lib)
        report.changed = True
        report.done.append(f"{lib}: the client, build {bundle.digest()[:12]}")
    # From now on: what was said before is a matter of backfill.
    tending.installed()
    line = f"#!/bin/sh\nexec '{quoted(python())}' -I -S '{quoted(script())}' \"$@\"\n".encode()
    short = home.place("bin", bundle.SCRIPT)
    if edits.read(short) != line:
        os.makedirs(os.path.dirname(short), exist_ok=True)
        home.write(short, line)
        os.chmod(short, 0o755)
        report.changed = True
        report.done.append(f"{short}: the command for you")
    known = home.read_env()
    fresh = {name: value for name, value in values.items() if known.get(name) != value}
    if fresh:
        home.write_env(fresh)
        report.changed = True
        report.done.append(f"{home.place('env')}: {', '.join(sorted(fresh))}")


def quoted(path: str) -> str:
    """A path for between two single quotes of a shell."""
    return path.replace("'", "'\"'\"'")


def current(lib: str) -> bool:
    """Whether the folder holds this build, compiled for this Python."""
    known = edits.read(os.path.join(lib, bundle.DIGEST))
    tag = sys.implementation.cache_tag
    compiled = os.path.join(lib, "argus", "hook", "__pycache__", f"main.{tag}.pyc")
    return known == bundle.digest().encode() + b"\n" and os.path.exists(compiled)


def _apply(edit: Edit, report: Report) -> None:
    if not edit.changed:
        report.done.append(f"{edit.path}: unchanged")
        return
    edits.apply(edit)
    report.changed = True
    report.done.append(f"{edit.path}: hooks of {edit.name}")
    _warn_of_readers(edit, report)


def _warn_of_readers(edit: Edit, report: Report) -> None:
    if edit.name == claude.NAME and claude.key():
        mode = os.stat(edit.path).st_mode
        if mode & 0o077:
            report.warnings.append(
                f"{edit.path} is readable by others (mode {mode & 0o777:o}) and holds a key that"
                " may recall; chmod 600 it, or install with --mode command"
            )


def _trust(wanted: bool, consent: Callable[[str], bool], report: Report) -> None:
    """Codex runs no hook that its user has not trusted; say so, or do it the way Codex does."""
    by_hand = "Codex runs the hooks once you trust them: start codex, type /hooks, trust all."
    known = codex.own(codex.ask())
    if all(hook.get("trustStatus") == "trusted" for hook in known) and known:
        report.done.append(f"{codex.config()}: Codex trusts the hooks")
        return
    question = f"Codex must trust {len(codex.EVENTS)} hooks that run {script()}; record that now?"
    if not wanted or not known or not consent(question):
        report.warnings.append(by_hand)
        return
    edit = codex.trusting({hook["key"]: hook["currentHash"] for hook in known})
    edits.check([edit])
    edits.apply(edit)
    report.changed = True
    after = codex.own(codex.ask())
    if after and all(hook.get("trustStatus") == "trusted" for hook in after):
        report.done.append(f"{codex.config()}: Codex trusts the hooks")
        return
    edits.revert(replace(edit, before=edit.after, after=edit.before))
    report.warnings.append(f"{codex.config()} is written in a way that hides our entry. {by_hand}")


def _show(plan: list[Edit], report: Report, secrets: tuple[str, ...]) -> None:
    for edit in plan:
        report.diffs.append(edits.diff(edit, secrets))
        state = "would change" if edit.changed else "unchanged"
        report.done.append(f"{edit.path}: {state}")
    if not current(home.place("lib")):
        report.done.append(f"{home.place('lib')}: would be unpacked")
    if any(edit.name == codex.NAME for edit in plan):
        report.done.append(f"{codex.config()}: Codex would be asked to trust the hooks")
