"""Codex: where its hooks are, what stands in them for us, and the trust that they need.

Codex passes over a hook that its user has not trusted without a word. Trust is a table in
config.toml with the hook's hash; Codex itself tells the hash (`codex app-server`, hooks/list) and
whether it trusts. Only whole tables are appended or taken out: Codex's own writer would change the
line ends of the rest.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterable, Mapping
from typing import Any

from argus.hook import edits, wiring
from argus.hook.edits import Edit
from argus.hook.wiring import Place

NAME = "codex"
#: The name of the change of config.toml.
TRUST = "codex-trust"

#: Which verb each event runs, and its timeout in seconds; SessionEnd's is clamped to 3 by Codex.
EVENTS = {
    "SessionStart": ("context", 5),
    "UserPromptSubmit": ("recall", 5),
    "Stop": ("capture", 10),
    "SessionEnd": ("capture", 3),
    "PreCompact": ("capture", 10),
}
#: What runs too when `ARGUS_SUBAGENTS=true`.
SUBAGENTS = {"SubagentStop": ("capture", 10)}

#: How long Codex may take to tell its hooks.
TELL_SECONDS_MAX = 20

#: Why: only the hooks are asked for; without these it would look for plugins on the network.
_QUIET = ("-c", "features.plugins=false", "-c", "features.apps=false")

_HEADER = re.compile(r'^\[hooks\.state\.("(?:[^"\\]|\\.)*")\][ \t]*\r?$')


def folder() -> str:
    """Where Codex keeps its things."""
    given = os.environ.get("CODEX_HOME")
    # Why: it names its hooks by the real path of this one, and by ~/.codex as it stands.
    return os.path.realpath(given) if given else os.path.join(os.path.expanduser("~"), ".codex")


def hooks() -> str:
    """The person's own hooks."""
    return os.path.join(folder(), "hooks.json")


def config() -> str:
    """The person's own settings, where trust lies."""
    return os.path.join(folder(), "config.toml")


def wanted(python: str, script: str, subagents: bool = False) -> dict[str, dict[str, object]]:
    """Our handler for each event."""
    return {
        event: {
            "type": "command",
            "command": wiring.command(python, script, verb, NAME),
            "timeout": seconds,
        }
        for event, (verb, seconds) in {**EVENTS, **(SUBAGENTS if subagents else {})}.items()
    }


def plan(handlers: Mapping[str, Mapping[str, object]]) -> Edit:
    """The change of hooks.json. Raises RefusedError."""
    return wiring.plan(NAME, hooks(), handlers)


def removal() -> list[Edit]:
    """The changes that take our hooks and their trust out again. Raises RefusedError."""
    edit = wiring.removal(NAME, hooks())
    text, left = (wiring.decode(hooks(), data) for data in (edit.before, edit.after))
    return [edit, _distrusting(text, left)]


def _distrusting(text: str, left: str) -> Edit:
    """config.toml without our trust; where others' hooks move up, their trust moves along."""
    before = edits.read(config())
    known = edits.untouched(TRUST, config(), before)
    moved = shifts(text, left)
    if known and not moved:
        return Edit(TRUST, config(), before, known.base)
    if before is None:
        return Edit(TRUST, config(), None, None)
    toml = before.decode("utf-8", "surrogateescape")
    ours = [key(place) for place in wiring.places(text, NAME)]
    after = rename(without_tables(toml, ours), moved)
    return Edit(TRUST, config(), before, after.encode("utf-8", "surrogateescape"))


def key(place: Place) -> str:
    """The name by which config.toml knows the hook at a place."""
    event, group, number = place
    label = re.sub(r"(?<!^)(?=[A-Z])", "_", event).lower()
    return f"{hooks()}:{label}:{group}:{number}"


def shifts(text: str, left: str) -> dict[str, str]:
    """The old and the new key of each foreign hook that stands elsewhere in `left`."""
    own = wiring.places(text, NAME)
    foreign = [place for place in wiring.handlers(text) if place not in own]
    pairs = zip(foreign, wiring.handlers(left))
    return {key(old): key(new) for old, new in pairs if old != new and old[0] == new[0]}


def trusting(hashes: Mapping[str, str]) -> Edit:
    """The change of config.toml by which Codex trusts these hooks (key: hash). Raises Locked."""
    before = edits.read(config())
    toml = (before or b"").decode("utf-8", "surrogateescape")
    clean = without_tables(toml, hashes)
    kept = {name: value for name, value in trusted(toml).items() if name in hashes}
    after = toml if kept == dict(hashes) else with_tables(clean, hashes)
    base = before if clean == toml else clean.encode("utf-8", "surrogateescape")
    return Edit(TRUST, config(), before, after.encode("utf-8", "surrogateescape"), base)


def with_tables(toml: str, hashes: Mapping[str, str]) -> str:
    """The text with one table of trust for each hook at its end."""
    newline = "\r\n" if "\r\n" in toml else "\n"
    if toml and not toml.endswith("\n"):
        toml += newline
    for name, value in hashes.items():
        title = f"[hooks.state.{json.dumps(name, ensure_ascii=False)}]"
        lines = [title, f'trusted_hash = "{value}"', "enabled = true"]
        toml += (newline if toml else "") + "".join(line + newline for line in lines)
    return toml


def without_tables(toml: str, names: Iterable[str]) -> str:
    """The text without the tables of trust of these hooks; every other byte stays."""
    doomed = set(names)
    kept: list[str] = []
    inside = False
    for line in toml.split("\n"):
        if line.startswith("["):
            header = _HEADER.match(line)
            inside = header is not None and json.loads(header.group(1)) in doomed
            if inside:
                # The blank line that with_tables puts before each.
                if kept and not kept[-1].strip():
                    kept.pop()
                continue
        if not (inside and line.startswith(("trusted_hash", "enabled"))):
            kept.append(line)
    return "\n".join(kept)


def trusted(toml: str) -> dict[str, str]:
    """The hash in each table of trust."""
    found: dict[str, str] = {}
    name = ""
    for line in toml.split("\n"):
        header = _HEADER.match(line)
        if header:
            name = json.loads(header.group(1))
        elif line.startswith("["):
            name = ""
        elif name and line.startswith("trusted_hash"):
            found[name] = line.partition("=")[2].strip().strip('"')
    return found


def rename(toml: str, moved: Mapping[str, str]) -> str:
    """The text with the tables of trust of moved hooks under their new keys."""
    lines = toml.split("\n")
    for at, line in enumerate(lines):
        header = _HEADER.match(line)
        name = json.loads(header.group(1)) if header else ""
        if header and name in moved:
            new = json.dumps(moved[name], ensure_ascii=False)
            lines[at] = line.replace(header.group(1), new, 1)
    return "\n".join(lines)


def ask() -> list[dict[str, Any]] | None:
    """The hooks as Codex itself sees them (key, currentHash, trustStatus); None: it cannot say."""
    binary = shutil.which("codex")
    if not binary:
        return None
    client = {"clientInfo": {"name": "argus-hook", "version": "1"}}
    messages = [
        {"id": 1, "method": "initialize", "params": client},
        {"method": "initialized"},
        {"id": 2, "method": "hooks/list", "params": {"cwds": [folder()]}},
    ]
    try:
        process = subprocess.Popen(
            [binary, "app-server", *_QUIET],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=folder(),
            start_new_session=True,
            # Why: what it writes is its own, and not for us to close to others.
            umask=0o022,
        )
    except OSError:
        return None
    timer = threading.Timer(TELL_SECONDS_MAX, _end, [process])
    timer.start()
    try:
        return _converse(process, messages)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    finally:
        timer.cancel()
        _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    # Why the group: what is on the path may be a wrapper whose child would stay behind.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for stream in (process.stdin, process.stdout):
        if stream:
            with contextlib.suppress(OSError):
                stream.close()


def _converse(process: subprocess.Popen[bytes], messages: list[Any]) -> list[dict[str, Any]] | None:
    assert process.stdin and process.stdout
    for message in messages:
        process.stdin.write(json.dumps(message).encode() + b"\n")
    process.stdin.flush()
    for line in process.stdout:
        reply = json.loads(line)
        if reply.get("id") == 2:
            return [hook for entry in reply["result"]["data"] for hook in entry["hooks"]]
    return None


def own(hooks_told: list[dict[str, Any]] | None) -> list[dict[str, Any]]:
    """Those of the hooks that Codex told which are ours in the person's own file."""
    text = wiring.decode(hooks(), edits.read(hooks()))
    keys = {key(place) for place in wiring.places(text, NAME)}
    return [hook for hook in hooks_told or () if hook.get("key") in keys]
