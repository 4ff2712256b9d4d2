"""Is the client working? The status as checks, each with what to do.

Decides over what `status` found; asks and changes nothing itself.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from argus.hook import codex, home, keys
from argus.hook.commands import EXIT_AWAY, EXIT_OK, EXIT_REFUSED
from argus.hook.status import in_here, waits

#: From here on what waits unsent is told as a trouble.
# Why: a day's work of one person is a few megabytes; more means that nobody takes it.
UNSENT_BYTES_FINE = 20_000_000

#: The command that takes a key, whatever is kept.
ANOTHER_KEY = "argus-hook install --key-stdin"


@dataclass(frozen=True)
class Row:
    """One finding. `state`: ok, warn or fail; `away`: trying later may help."""

    name: str
    state: str
    what: str
    fix: str = ""
    away: bool = False


def examine(found: dict[str, Any]) -> list[Row]:
    """All rows over what `status.status` found."""
    return [
        *_server(found),
        *_env(),
        *_folder(),
        *_here(found),
        *_build(found),
        *_clients(found),
        *_trust(found),
        *_unsent(found),
    ]


def exit_code(rows: list[Row]) -> int:
    """0: nothing failed. 75: what failed is away. 1: something is wrong. Pure."""
    failed = [row for row in rows if row.state == "fail"]
    if not failed:
        return EXIT_OK
    return EXIT_AWAY if all(row.away for row in failed) else EXIT_REFUSED


def _server(found: dict[str, Any]) -> Iterator[Row]:
    server = found["server"]
    if not server["reached"]:
        fix = "Start it (`make up`), or mend ARGUS_URL in ~/.argus/env."
        yield Row("server", "fail", f"{found['url']}: {server['why']}", fix, away=True)
        return
    yield Row("server", "ok", f"{found['url']} answers")
    if keys.plain(found["url"]):
        what = "http:// to another machine: key and transcripts can be read on their way"
        yield Row("wire", "warn", what, "Serve it by https, or reach it through a tunnel.")
    if not found["key"]:
        yield Row("key", "fail", "no ARGUS_KEY in ~/.argus/env", f"Run {ANOTHER_KEY}.")
    elif not server["accepted"]:
        fix = f"Make one on the server, then run {ANOTHER_KEY}."
        yield Row("key", "fail", server["why"], fix)
    else:
        missing = [s for s in ("capture", "recall") if s not in server["scopes"]]
        if missing:
            what = f"the key may not {' or '.join(missing)}"
            fix = f"Make one with both scopes, then run {ANOTHER_KEY}."
            yield Row("key", "warn", what, fix)
        else:
            yield Row("key", "ok", "may capture and recall")


def _env() -> Iterator[Row]:
    path = home.place("env")
    try:
        mode = os.stat(path).st_mode
    except OSError:
        yield Row("settings", "fail", f"{path} is not there", "Run argus-hook install.")
        return
    if stat.S_IMODE(mode) & 0o077:
        yield Row("settings", "fail", f"{path} is readable by others", f"chmod 600 {path}")
    else:
        yield Row("settings", "ok", path)


def _folder() -> Iterator[Row]:
    """Whoever writes there runs as this user at the next event."""
    open_to = []
    for name in ("", "lib", "bin", "builds", "hook"):
        path = home.place(name).rstrip("/")
        if os.path.exists(path):
            status = os.stat(path)
            if status.st_mode & 0o022 or status.st_uid not in (os.getuid(), 0):
                open_to.append(path)
    if open_to:
        what = f"others may write to {', '.join(open_to)}"
        yield Row("folder", "fail", what, f"chmod go-w {' '.join(open_to)} (and see whose it is)")


def _here(found: dict[str, Any]) -> Iterator[Row]:
    here = found["here"]
    fine = here["capture"] and here["recall"]
    fix = "" if fine else "That is as its files say; mend or remove them when it is not meant."
    yield Row("here", "ok" if fine else "warn", in_here(here), fix)


def _build(found: dict[str, Any]) -> Iterator[Row]:
    if not found["build"]:
        yield Row("client", "fail", "not unpacked", "Run argus-hook install.")
    elif found["server_build"] not in ("", found["build"]):
        fix = "Fetch it from the server's /hook/ page and install again."
        yield Row("client", "warn", "the server hands out another build", fix)
    else:
        yield Row("client", "ok", f"build {found['build'][:12]}")


def _clients(found: dict[str, Any]) -> Iterator[Row]:
    states = [one["state"] for one in found["clients"]]
    if set(states) == {"absent"}:
        yield Row("hooks", "fail", "no client has our hooks", "Run argus-hook install.")
    for one in found["clients"]:
        if one["state"] == "absent":
            continue
        if one["problems"]:
            worst = "warn" if one["state"] == "installed" else "fail"
            for problem in one["problems"]:
                what, _, fix = problem.partition(": ")
                yield Row(one["client"], worst, what, fix or "Mend the file, then install again.")
        else:
            yield Row(one["client"], "ok", one["path"])


def _trust(found: dict[str, Any]) -> Iterator[Row]:
    wired = [one for one in found["clients"] if one["client"] == codex.NAME]
    if wired[0]["state"] in ("absent", "broken"):
        return
    told = codex.own(codex.ask())
    if not told:
        yield Row("codex", "warn", "Codex does not say whether it trusts the hooks", "See /hooks.")
    elif not all(hook.get("trustStatus") == "trusted" for hook in told):
        fix = "Run argus-hook install --client codex --trust, or trust them by /hooks in Codex."
        yield Row("codex", "fail", "Codex does not trust the hooks and passes over them", fix)
    else:
        yield Row("codex", "ok", "trusts the hooks")


def _unsent(found: dict[str, Any]) -> Iterator[Row]:
    waiting = found["unsent"]
    what = waits(waiting["files"], waiting["bytes"])
    much = waiting["bytes"] > UNSENT_BYTES_FINE
    yield Row("unsent", "warn" if much else "ok", what, "Run argus-hook flush." if much else "")
