"""Claude Code: where its settings are and what stands in them for us.

On the fast path of a plugin's hook (`installed`): what starts slowly is imported where it is used.
"""

from __future__ import annotations

import os
import sys
import time

from argus.hook import home
from argus.hook.peek import peek
from argus.hook.quickjson import parse

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

#: Where the prompt is posted, on the server.
_DOOR = "/hook/claude/UserPromptSubmit"
_BEARER = "Bearer "

#: Days for which a plugin that nobody hears of counts as one that runs.
# Why: a session a month is the least of who still uses it; the settings know nothing of a plugin
# whose folder is named on the command line.
SEEN_DAYS = 30
#: Bytes of the note that a plugin's hook leaves: a day and a path.
NOTE_BYTES_MAX = 8_192

#: Bytes of settings that a plugin's hook reads.
SETTINGS_BYTES_MAX = 1_000_000


def folder() -> str:
    """Where Claude Code keeps its things."""
    return os.environ.get("CLAUDE_CONFIG_DIR") or os.path.join(os.path.expanduser("~"), ".claude")


def settings() -> str:
    """The person's own settings: the one file that no repository shares."""
    return os.path.join(folder(), "settings.json")


def installed(event: str = "") -> bool:
    """Whether the settings hold our hook of this event, so that the plugin's has nothing to do.

    "": whether they hold one of any event.
    """
    try:
        found = peek(settings(), SETTINGS_BYTES_MAX)
        value = parse(found[0].lstrip("\ufeff")) if found else None
    except (OSError, ValueError):
        # Claude takes no hook from such a file, either.
        return False
    events = value.get("hooks") if isinstance(value, dict) else None
    for name in [event] if event else list(EVENTS):
        groups = events.get(name) if isinstance(events, dict) else None
        for group in groups if isinstance(groups, list) else ():
            inner = group.get("hooks") if isinstance(group, dict) else None
            for handler in inner if isinstance(inner, list) else ():
                if isinstance(handler, dict) and _runs(handler, name):
                    return True
    return False


def _runs(handler: dict[str, object], event: str) -> bool:
    """Whether a handler is ours, as `wiring.ours` has it, told without what starts slowly."""
    url, line = handler.get("url"), handler.get("command")
    if handler.get("type") == "http" and isinstance(url, str):
        return url.partition("?")[0].endswith(_DOOR)
    if not isinstance(line, str):
        return False
    verb = {**EVENTS, **SUBAGENTS}.get(event, ("", 0))[0]
    script, sign, rest = line.partition("/.argus/lib/argus-hook")
    return bool(sign) and " -I -S " in script and rest.lstrip("'").startswith(f" {verb} --client ")


def ran_as_plugin() -> None:
    """Note, once a day, that a plugin ran and where it lies; silent where that cannot be."""
    root, sign, rest = sys.argv[0].rpartition("/lib/")
    if not (root.startswith("/") and sign and rest == "argus-hook"):
        return
    note = f"{time.strftime('%Y-%m-%d', time.gmtime())} {root}\n"
    path = home.place("hook", "plugin")
    try:
        found = peek(path, NOTE_BYTES_MAX)
        if found is None or found[0] != note:
            home.private("hook")
            home.write(path, note.encode("utf-8", "surrogateescape"))
    except (OSError, ValueError):
        pass


def plugin_seen() -> tuple[str, str, bool]:
    """The day on which a plugin ran last, where it lies, and whether it counts as running still;
    ("", "", False) when none ever ran."""
    try:
        found = peek(home.place("hook", "plugin"), NOTE_BYTES_MAX)
        day, _, root = found[0].rstrip("\n").partition(" ") if found else ("", "", "")
        then = time.mktime(time.strptime(day, "%Y-%m-%d")) if day else 0.0
    except (OSError, ValueError, OverflowError):
        return "", "", False
    fresh = time.time() - then < SEEN_DAYS * 86_400
    return day, root, fresh and os.path.exists(os.path.join(root, "run.sh"))


def door(url: str, settings: dict[str, str]) -> str:
    """Where the prompt is posted; what a command reads in `~/.argus/env` stands in the address."""
    floor = settings.get("ARGUS_RECALL_FLOOR", "")
    return url.rstrip("/") + _DOOR + (f"?floor={floor}" if floor else "")


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
    from argus.hook import wiring

    return wiring.plan(NAME, settings(), handlers)


def removal() -> Edit:
    """The change that takes our hooks out again. Raises RefusedError."""
    from argus.hook import wiring

    return wiring.removal(NAME, settings())
