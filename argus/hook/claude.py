"""Claude Code: where its settings are and what stands in them for us.

On the fast path of a plugin's hook (`installed`): what starts slowly is imported where it is used.
"""

from __future__ import annotations

import os

# Why not typing's: importing it takes longer than a whole start of Python.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from argus.hook.edits import Edit

NAME = "claude"

#: Which verb each event runs, and after how many seconds Claude may give it up.
# Why: our own deadlines are far below (a hook that times out costs Claude its SessionEnd hooks),
# and SessionEnd without a number of its own is cancelled after 1.5 s.
EVENTS = {
    "SessionStart": ("context", 5),
    "UserPromptSubmit": ("recall", 5),
    "Stop": ("capture", 10),
    "SessionEnd": ("capture", 5),
    "PreCompact": ("capture", 10),
}
#: What runs too when `ARGUS_SUBAGENTS=true`.
SUBAGENTS = {"SubagentStop": ("capture", 10)}

#: Seconds of the prompt's http hook.
# Why: a server that hangs holds the prompt for all of them.
HTTP_TIMEOUT_SECONDS = 2

#: The name under which the http hook's key is kept; it may recall and nothing else.
KEY = "ARGUS_RECALL_KEY"

_BEARER = "Bearer "


def folder() -> str:
    """Where Claude Code keeps its things."""
    return os.environ.get("CLAUDE_CONFIG_DIR") or os.path.join(os.path.expanduser("~"), ".claude")


def settings() -> str:
    """The person's own settings: the one file that no repository shares."""
    return os.path.join(folder(), "settings.json")


def installed() -> bool:
    """Whether the settings hold our hooks, so that those of the plugin have nothing to do."""
    try:
        with open(settings(), "rb") as handle:
            return b"/.argus/lib/argus-hook" in handle.read()
    except OSError:
        return False


def door(url: str, settings: dict[str, str]) -> str:
    """Where the prompt is posted; what a command reads in `~/.argus/env` stands in the address."""
    floor = settings.get("ARGUS_RECALL_FLOOR", "")
    return url.rstrip("/") + "/hook/claude/UserPromptSubmit" + (f"?floor={floor}" if floor else "")


def key() -> str:
    """The key of the http hook in the settings; "" where there is none."""
    from argus.hook import edits, wiring

    text = wiring.decode(settings(), edits.read(settings()))
    for handler in wiring.places(text, NAME).values():
        headers = handler.get("headers")
        bearer = headers.get("Authorization") if isinstance(headers, dict) else None
        if isinstance(bearer, str) and bearer.startswith(_BEARER):
            return bearer[len(_BEARER) :]
    return ""


def wanted(
    python: str, script: str, subagents: bool, http: str = "", key: str = ""
) -> dict[str, dict[str, object]]:
    """Our handler for each event. `http`: where the prompt is posted, with this key; else it is a
    command, too."""
    from argus.hook.wiring import command

    handlers: dict[str, dict[str, object]] = {}
    for event, (verb, seconds) in {**EVENTS, **(SUBAGENTS if subagents else {})}.items():
        line = command(python, script, verb, NAME)
        handlers[event] = {"type": "command", "command": line, "timeout": seconds}
    if http:
        handlers["UserPromptSubmit"] = {
            "type": "http",
            "url": http,
            "timeout": HTTP_TIMEOUT_SECONDS,
            # Why the key itself and no variable of the settings: Claude hands those to every
            # process that it starts, and what a build prints of its environment is copied around.
            "headers": {
                "Authorization": f"{_BEARER}{key}",
                "X-Argus-Disabled": "$ARGUS_DISABLED",
            },
            "allowedEnvVars": ["ARGUS_DISABLED"],
        }
    return handlers


def plan(handlers: dict[str, dict[str, object]]) -> Edit:
    """The change of the settings. Raises RefusedError."""
    from argus.hook import edits, jsontext, wiring

    path = settings()
    before = edits.read(path)
    text = wiring.decode(path, before)
    try:
        base = wiring.strip(text, NAME)
        after = wiring.merge(text, handlers, NAME)
    except jsontext.Broken as error:
        raise wiring.placed(path, error) from error
    clean = before if base == text else wiring.encode(path, base, before)
    return edits.Edit(NAME, path, before, wiring.encode(path, after, before), clean)


def removal() -> Edit:
    """The change that takes our hooks out again. Raises RefusedError."""
    from argus.hook import edits, jsontext, wiring

    path = settings()
    before = edits.read(path)
    known = edits.untouched(NAME, path, before)
    if known or before is None:
        return edits.Edit(NAME, path, before, known.base if known else None)
    text = wiring.decode(path, before)
    record = edits.record(NAME)
    try:
        base = wiring.decode(path, record.base) if record and record.base else None
        after = wiring.strip(text, NAME, base)
    except jsontext.Broken as error:
        raise wiring.placed(path, error) from error
    if after == text:
        return edits.Edit(NAME, path, before, before)
    made = record is not None and record.base is None
    gone = made and jsontext.parse(after).value == {}
    return edits.Edit(NAME, path, before, None if gone else wiring.encode(path, after, before))
