"""The client's one entrance: hooks by the shortest way, everything else by the parser of commands.

A hook costs the person nothing: it exits 0 whatever happens, prints one JSON object or nothing, and
what went wrong stands in the log. Knows nothing about what a verb does.
"""

from __future__ import annotations

import os

#: Verbs that clients run on every prompt.
HOOKS = ("recall", "context", "capture")


def main(arguments: list[str]) -> int:
    """Run one verb; the exit code."""
    # Why for all: whatever is kept is the person's alone, whatever their shell says.
    os.umask(0o077)
    if arguments and arguments[0] in HOOKS and not {"-h", "--help"} & set(arguments):
        return hook(arguments[0], arguments[1:])
    from argus.hook.commands import run

    return run(arguments)


def hook(verb: str, arguments: list[str]) -> int:
    """Run the verb of a hook: `--client NAME`, and `--via plugin` where a plugin runs it."""
    from argus.hook.home import Planted

    given = dict(zip(arguments[::2], arguments[1::2]))
    client, via = given.get("--client", "claude"), given.get("--via", "settings")
    try:
        if verb == "capture":
            from argus.hook.capture import capture

            capture(client, via)
        else:
            from argus.hook import inject

            (inject.recall if verb == "recall" else inject.context)(client, via)
    except Planted:
        # Why silent: a log would be written there.
        pass
    except (Exception, KeyboardInterrupt) as error:
        # Why all of them: whatever is wrong with us, the person's prompt goes on.
        from argus.hook.trouble import log

        log(f"{verb}: {type(error).__name__}: {error}")
    return 0
