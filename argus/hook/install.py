"""Put the client where hooks find it, and its hooks where clients look for them; and take both out.

All changes are planned before the first byte is written, so that a refusal leaves everything as it
was. Keys go into `~/.argus/env` and, one that may only recall, into the person's own settings of
Claude Code. Knows nothing about what is asked on a terminal or how a report is printed.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from argus.hook import bundle, claude, codex, edits, home, keys, pi, tending
from argus.hook.edits import Edit
from argus.hook.preview import show
from memory.errors import RefusedError

CLIENTS = (claude.NAME, codex.NAME, pi.NAME)

#: What stands in a diff where a key would.
NEW_KEY = "[a new key that may only recall]"
#: How a key is replaced.
ANOTHER_KEY = "`argus-hook install --key-stdin` takes another key"


@dataclass(frozen=True)
class Choices:
    """What the person wants. `clients`: none for the program and its settings alone, as a plugin
    needs them; `key`: "" is enough for a dry run; `mode`: http, command or "" (the better one);
    `trust`: let Codex trust the hooks without a question."""

    clients: tuple[str, ...]
    url: str
    key: str
    mode: str = ""
    dry_run: bool = False
    trust: bool = False


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
        raise RefusedError(
            f"{choices.url} refuses the key: {standing.why}; nothing was changed. {ANOTHER_KEY}"
        )
    if standing.reason in ("address", "key"):
        raise RefusedError(f"{choices.url}: {standing.why}; nothing was changed", reason="address")
    if not standing.reached:
        report.warnings.append(
            f"{choices.url} is away: {standing.why}; what is said meanwhile waits on this machine"
        )
    elif choices.key and (lacking := sorted(set(keys.NEEDS) - set(standing.scopes))):
        report.warnings.append(
            f"the key may not {' or '.join(lacking)}: that will not work. {ANOTHER_KEY}"
        )
    if keys.plain(choices.url):
        report.warnings.append(
            f"{choices.url} is no https: key, prompts and transcripts can be read on their way"
        )
    plan = [_plan(name, choices, standing.reached, report) for name in choices.clients]
    edits.check(plan)
    if choices.dry_run:
        posted = claude.key() if claude.NAME in choices.clients else ""
        known = home.read_env().get(claude.KEY, "")
        report.diffs, report.done = show(plan, (choices.key, known, posted))
        return report
    before = home.read_env()
    values, told = keys.kept(choices.url, choices.key, standing)
    report.done += told
    mine = values.get(keys.FROM, before.get(keys.FROM))
    if not standing.reached and values["ARGUS_KEY"] == choices.key and not mine:
        report.warnings.append(
            f"nobody knows what the key may do, and it is kept in {home.place('env')} as it is:"
            " install again once the server answers, which then makes a smaller one of it"
        )
    _settle(values, report)
    _write(plan, choices, report)
    if claude.NAME in choices.clients:
        _give_back(before, report)
    if codex.NAME in choices.clients:
        _trust(choices.trust, consent, report)
    report.done += _next(choices)
    return report


def _next(choices: Choices) -> list[str]:
    """What the person does now."""
    command = home.place("bin", bundle.SCRIPT)
    told = [f"next: start new sessions of {', '.join(choices.clients)}; open ones go on without"]
    if not choices.clients:
        told = ["next: start a new session; a plugin's hooks find the settings by themselves"]
    return [
        *told,
        f"      {command} status     says whether it works",
        f"      {command} backfill   stores past sessions",
    ]


def _write(plan: list[Edit], choices: Choices, report: Report) -> None:
    """All of the plan; when one file fails, everything becomes what it was."""
    begun: list[tuple[Edit, dict[str, bytes | None]]] = []
    try:
        for edit in plan:
            edit = _keyed(edit, choices, report) if edit.name == claude.NAME else edit
            begun.append((edit, edits.remembered(edit.name)))
            _apply(edit, report)
    except (RefusedError, OSError):
        for edit, kept in reversed(begun):
            # What fails here, too, is told by the first failure.
            with contextlib.suppress(RefusedError, OSError):
                edits.undo(edit, kept)
        raise


def _plan(name: str, choices: Choices, reached: bool, report: Report) -> Edit:
    if name == codex.NAME:
        return codex.plan(codex.wanted(python(), script(), _subagents()))
    if name == pi.NAME:
        return pi.plan(pi.wanted(python(), script()))
    known = home.read_env().get(claude.KEY, "")
    against = _against_http(choices, reached, known)
    if choices.mode == "command" or against:
        if choices.mode == "http":
            report.warnings.append(f"no http hook for the prompt: {against}")
        return claude.plan(_claude())
    # Why only a refusal: a server that is away for a moment is no reason for another key.
    good = known and keys.stand(choices.url, known).accepted is not False
    door = claude.door(choices.url, home.read_env())
    return claude.plan(_claude(door, known if good else NEW_KEY))


def _claude(http: str = "", key: str = "") -> dict[str, dict[str, object]]:
    return claude.wanted(python(), script(), _subagents(), http, key)


def _subagents() -> bool:
    return home.on(home.read_env(), "ARGUS_SUBAGENTS", default=False)


def _against_http(choices: Choices, reached: bool, known: str) -> str:
    """Why the prompt's hook had better be a command; "" when nothing speaks against http."""
    if not home.on(home.read_env(), "ARGUS_RECALL"):
        return "ARGUS_RECALL is off, which only a command reads"
    if not keys.loopback(choices.url):
        return "the server is not on this machine, and an http hook sends a prompt as it is"
    if not reached and not known:
        return "the server is away, and only it can make the key"
    # Why not for a dry run: it writes nothing, and this needs a file.
    if reached and not choices.dry_run and not keys.here(choices.url, choices.key):
        return "the server does not see this machine's files: a tunnel or a container lies between"
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
    if NEW_KEY.encode() not in after:
        return edit
    key = keys.make(choices.url, choices.key, ("recall",), "http hook")
    if key:
        home.write_env({claude.KEY: key})
        report.done.append(f"made a key of its own that may only recall ({keys.prefix(key)})")
        return replace(edit, after=after.replace(NEW_KEY.encode(), key.encode()))
    report.warnings.append(
        "the server makes no small key for the http hook of this one (a key that a key made makes"
        " none); the prompt's hook is a command, or install with the key that made it"
    )
    return claude.plan(_claude())


def _give_back(before: dict[str, str], report: Report) -> None:
    """Revoke the small key that no hook has any more, on the server that made it: `before` are the
    settings as they were."""
    known = before.get(claude.KEY, "")
    if not known or known == claude.key():
        return
    if home.read_env().get(claude.KEY) == known:
        home.write_env({claude.KEY: ""})
    url = before.get("ARGUS_URL", home.URL)
    if not keys.revoke(url, known):
        report.warnings.append(
            f"{url} is away: revoke the http hook's old key there by {keys.by_hand(known)}"
        )


def _settle(values: dict[str, str], report: Report) -> None:
    """The client itself: its folder, its short command, its settings."""
    home.private()
    lib = home.place("lib")
    if not bundle.current(lib):
        bundle.settle(lib)
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
    fresh = {name: value for name, value in values.items() if known.get(name, "") != value}
    if fresh:
        home.write_env(fresh)
        report.changed = True
        report.done.append(f"{home.place('env')}: {', '.join(sorted(filter(fresh.get, fresh)))}")


def quoted(path: str) -> str:
    """A path for between two single quotes of a shell."""
    return path.replace("'", "'\"'\"'")


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
    question = f"Codex must trust {len(known)} hooks that run {script()}; record that now?"
    if not known or not (wanted or consent(question)):
        report.warnings.append(by_hand)
        return
    edit = codex.trusting({hook["key"]: hook["currentHash"] for hook in known})
    kept = edits.remembered(edit.name)
    edits.check([edit])
    edits.apply(edit)
    report.changed = True
    after = codex.own(codex.ask())
    if after and all(hook.get("trustStatus") == "trusted" for hook in after):
        report.done.append(f"{codex.config()}: Codex trusts the hooks")
        return
    edits.undo(edit, kept)
    report.warnings.append(f"{codex.config()} is written in a way that hides our entry. {by_hand}")
