"""The client as a plugin of Claude Code: a folder that is a marketplace with one plugin in it.

`python -m argus.plugin FOLDER` writes it from a checkout. Knows nothing about what the hooks do;
where the person's own settings hold our hooks too, those of the plugin do nothing
(`argus.hook.claude.installed`).
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tomllib
from typing import Any

from argus.hook import bundle, claude

NAME = "argus"

#: Which Python the plugin's hooks run.
# Why a shell: a plugin is copied to machines that nobody knows. Real places come first, since what
# is on the path may be a version manager's shim, slower than the hook; macOS's own waits for an
# installer where there is none, so that the path's name comes last.
_RUN = b"""#!/bin/sh
here=$(dirname "$0")
for python in /usr/bin/python3 /usr/local/bin/python3 /opt/homebrew/bin/python3; do
    [ "$python" = /usr/bin/python3 ] && [ "$(uname)" = Darwin ] && continue
    [ -x "$python" ] && break
    python=python3
done
if [ ! -f "$here/lib/argus-hook" ] || ! command -v "$python" >/dev/null 2>&1; then
    [ "$1" != context ] || echo "argus-hook: no Python or no client here: nothing is kept" >&2
    exit 0
fi
"$python" -I -S "$here/lib/argus-hook" "$@"
exit 0
"""


def plugin(target: str, version: str) -> None:
    """Write the plugin into the folder `target`; an older one there is replaced. Raises OSError."""
    if os.path.isdir(os.path.join(target, "lib")) and os.path.isdir(
        os.path.join(target, ".claude-plugin")
    ):
        shutil.rmtree(target)
    elif os.path.isdir(target) and os.listdir(target):
        raise FileExistsError(f"{target} holds something else than the plugin")
    author = {"name": "Argus"}
    about = "The memory of coding agents that a person can audit."
    described = {"name": NAME, "version": version, "description": about, "author": author}
    market = {
        "name": NAME,
        "description": about,
        "owner": author,
        "plugins": [{"name": NAME, "source": "./", "description": about}],
    }
    _write(target, ".claude-plugin/plugin.json", described)
    _write(target, ".claude-plugin/marketplace.json", market)
    _write(target, "hooks/hooks.json", {"description": about, "hooks": hooks()})
    run = os.path.join(target, "run.sh")
    with open(run, "wb") as handle:
        handle.write(_RUN)
    os.chmod(run, 0o755)
    bundle.unpack(os.path.join(target, "lib"))


def hooks() -> dict[str, Any]:
    """The plugin's hooks: the same events and verbs as the settings', by the plugin's own path."""
    return {
        event: [
            {
                "hooks": [
                    {
                        "type": "command",
                        "command": f'sh "${{CLAUDE_PLUGIN_ROOT}}/run.sh" {verb}'
                        # Why the end: without its file the shell says 127 at every prompt.
                        f" --client {claude.NAME} --via plugin || exit 0",
                        "timeout": seconds,
                    }
                ]
            }
        ]
        for event, (verb, seconds) in claude.EVENTS.items()
    }


def _write(target: str, name: str, value: dict[str, Any]) -> None:
    path = os.path.join(target, *name.split("/"))
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as handle:
        handle.write(json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def main() -> int:
    """`python -m argus.plugin FOLDER`: this checkout's version, and which build of the client."""
    with open(os.path.join(os.path.dirname(__file__), "..", "pyproject.toml"), "rb") as handle:
        version = tomllib.load(handle)["project"]["version"]
    plugin(sys.argv[1], f"{version}+{bundle.digest()[:12]}")
    print(sys.argv[1])
    return 0


if __name__ == "__main__":
    sys.exit(main())
