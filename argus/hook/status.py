"""What stands on this machine: each client's hooks, what is unsent, what went wrong last.

Reads, asks the server at most a few cheap questions, changes nothing.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from typing import Any

from argus.hook import (
    bundle,
    claude,
    codex,
    edits,
    home,
    keys,
    optout,
    pi,
    sessions,
    spool,
    tally,
    trouble,
    wiring,
)
from argus.hook.locate import names
from argus.hook.outbox import ASIDE
from memory.errors import RefusedError


@dataclass(frozen=True)
class Look:
    """One client. `state`: absent, installed, partial or broken; `problems`: what to mend."""

    client: str
    state: str
    path: str
    problems: tuple[str, ...] = ()


def status(*, ask_server: bool = True) -> dict[str, Any]:
    """Everything as one value for people (through `lines`) and programs."""
    known = home.read_env()
    url = known.get("ARGUS_URL", home.URL)
    standing = keys.stand(url, known.get("ARGUS_KEY", "")) if ask_server else None
    read = [sessions.written(*one) for one in sessions.every()]
    build = (edits.read(home.place("lib", bundle.DIGEST)) or b"").decode("ascii", "replace").strip()
    return {
        "url": url,
        "key": "ARGUS_KEY" in known,
        "server": asdict(standing) if standing else None,
        "build": build,
        "server_build": keys.build(url) if standing and standing.reached else "",
        "here": here(known),
        "clients": [asdict(look(name)) for name in (claude.NAME, codex.NAME, pi.NAME)],
        "capture": home.on(known, "ARGUS_CAPTURE"),
        "recall": home.on(known, "ARGUS_RECALL"),
        "sessions": len(read),
        "last_read": trouble.stamp(max(read)) if read else "",
        "kept_out": _kept_out(),
        "sent": tally.sent(),
        "unsent": unsent(),
        "refused": len(names(home.place("hook", ASIDE))),
        "skipped_recalls": _rows("skipped"),
        "misses": _rows("misses"),
        "last_trouble": _last(home.place("log", "argus-hook.log")),
    }


def here(known: dict[str, str]) -> dict[str, Any]:
    """What holds in the folder where the person stands, and which files say so."""
    folder = os.getcwd()
    rules = optout.look(folder, known)
    by = [_placed(path) for path in rules.by]
    named = [name for name in ("ARGUS_CAPTURE", "ARGUS_RECALL") if not home.on(known, name)]
    by += [f"{' and '.join(named)} in {home.place('env')}"] if named else []
    off = optout.disabled()
    by += ["ARGUS_DISABLED in this shell"] if off else []
    return {
        "folder": folder,
        "capture": rules.capture and not off,
        "recall": rules.recall and not off,
        "project": rules.project,
        "by": by,
    }


def _placed(path: str) -> str:
    """The file, with line and column where it is broken."""
    try:
        wiring.decode(path, edits.read(path))
        optout.check(path)
    except (RefusedError, ValueError, OSError) as error:
        told = str(error)
        return told if told.startswith(path) else f"{path} (broken: {told})"
    return path


def look(name: str) -> Look:
    """How one client is wired."""
    try:
        return _look_pi() if name == pi.NAME else _look_hooks(name)
    except RefusedError as error:
        path = claude.settings() if name == claude.NAME else codex.hooks()
        return Look(name, "broken", path, (str(error),))


def _look_hooks(name: str) -> Look:
    path = claude.settings() if name == claude.NAME else codex.hooks()
    client = claude if name == claude.NAME else codex
    subagents = home.on(home.read_env(), "ARGUS_SUBAGENTS", default=False)
    events = {**client.EVENTS, **(client.SUBAGENTS if subagents else {})}
    data = edits.read(path)
    text = wiring.decode(path, data)
    ours = wiring.places(text, name)
    if not ours:
        return _look_plugin(json.loads(text)) if name == claude.NAME else Look(name, "absent", path)
    problems = []
    missing = [event for event in events if event not in {place[0] for place in ours}]
    if missing:
        problems.append(f"no hook for {', '.join(missing)}: run argus-hook install")
    for program in sorted({word for handler in ours.values() for word in _programs(handler)}):
        if not os.path.exists(program):
            problems.append(f"{program} is gone: run argus-hook install")
    if json.loads(text).get("disableAllHooks"):
        problems.append("disableAllHooks is on: no hook of any kind runs")
    problems += _behind(ours)
    return Look(name, "partial" if missing else "installed", path, tuple(problems))


def _look_plugin(settings: dict[str, Any]) -> Look:
    """Whether Claude Code runs our plugin, as its settings say, or as the plugin noted itself."""
    plugins = settings.get("enabledPlugins")
    named = plugins if isinstance(plugins, dict) else {}
    said = [on is True for name, on in named.items() if name.startswith("argus@")]
    day, root, runs = claude.plugin_seen()
    seen = f", last seen {day} in {root}" if day else ""
    if any(said) or (runs and not said):
        return Look(claude.NAME, "installed", f"as a plugin{seen}")
    was = f" (a plugin{seen})" if seen else ""
    return Look(claude.NAME, "absent", f"{claude.settings()}{was}")


def _programs(handler: dict[str, Any]) -> list[str]:
    return [word for word in wiring.split(handler)[:-3] if os.path.isabs(word)]


def _behind(ours: dict[wiring.Place, dict[str, Any]]) -> list[str]:
    """What of `~/.argus/env` the http hook does not know yet, having been written before."""
    known = home.read_env()
    wanted = claude.door(known.get("ARGUS_URL", home.URL), known)
    urls = {str(handler["url"]) for handler in ours.values() if handler.get("type") == "http"}
    if not urls:
        return []
    if not home.on(known, "ARGUS_RECALL"):
        return ["ARGUS_RECALL is off but the prompt is still posted: run argus-hook install"]
    return (
        [] if urls == {wanted} else ["the http hook is not as ~/.argus/env: run argus-hook install"]
    )


def _look_pi() -> Look:
    path = pi.extension()
    data = edits.read(path)
    if data is None or not pi.ours(data):
        return Look(pi.NAME, "absent", path)
    gone = [program for program in pi.programs(data) if not os.path.exists(program)]
    problems = tuple(f"{program} is gone: run argus-hook install" for program in gone)
    return Look(pi.NAME, "installed", path, problems)


def unsent() -> dict[str, int]:
    """What waits in the spool: files and their bytes."""
    files, size = spool.totals()
    return {"files": files, "bytes": size}


def waits(files: int, size: int) -> str:
    """What is unsent, as a sentence."""
    if not files:
        return "nothing waits"
    batches = "1 batch waits" if files == 1 else f"{files} batches wait"
    return f"{batches} ({size} bytes); sent with the next event, or by argus-hook flush"


def lines(found: dict[str, Any]) -> list[str]:
    """The same for a person."""
    server = found["server"] or {"reached": False, "why": "not asked", "accepted": None}
    stands = "answers" if server["reached"] else f"away: {server['why']}"
    told = [f"server     {found['url']} {stands}"]
    if not found["key"]:
        told.append("key        none in ~/.argus/env")
    elif server["accepted"] is False:
        told.append(f"key        refused: {server['why']}")
    elif server["accepted"]:
        may = ", ".join(server["scopes"]) or "nothing here"
        told.append(f"key        {server['prefix']} may {may}")
    if found["build"]:
        theirs = found["server_build"]
        same = "" if theirs in ("", found["build"]) else f", the server has {theirs[:12]}"
        told.append(f"client     build {found['build'][:12]}{same}")
    for one in found["clients"]:
        told.append(f"{one['client']:<10} {one['state']}: {one['path']}")
        told += [f"           {problem}" for problem in one["problems"]]
    for name in ("capture", "recall"):
        if not found[name]:
            told.append(f"{name:<10} off in ~/.argus/env")
    told.append(f"{'this folder':<10} {in_here(found['here'])}")
    waiting = found["unsent"]
    read = f", the last one read {found['last_read']}" if found["last_read"] else ""
    told.append(f"sessions   {found['sessions']} known{read}")
    if found["kept_out"]:
        told.append(f"           {_counted(found['kept_out'], 'session')} kept out for good")
    told.append(f"sent       {_sent(found['sent'])}")
    told.append(f"unsent     {waits(waiting['files'], waiting['bytes'])}")
    if found["refused"]:
        posts = _counted(found["refused"], "post")
        told.append(f"refused    {posts} kept in {home.place('hook', ASIDE)}: the log says why")
    if found["skipped_recalls"] or found["misses"]:
        told.append(f"skipped    {found['skipped_recalls']} recalls wait to be reported")
        told.append(f"missed     {found['misses']} transcripts wait to be reported")
    if found["last_trouble"]:
        told.append(_trouble(found))
    return told


def in_here(here: dict[str, Any]) -> str:
    """What holds in the folder, as a sentence."""
    both = {(True, True): "on", (True, False): "recall is off", (False, True): "capture is off"}
    state = both.get((here["capture"], here["recall"]), "off")
    by = f", by {'; '.join(here['by'])}" if here["by"] else ""
    named = f", project {here['project']}" if here["project"] else ""
    return f"{here['folder']}: {state}{by}{named}"


def _sent(sent: dict[str, Any]) -> str:
    """What went to the server since this machine counts, and what was taken out before."""
    if not sent["last"]:
        return "nothing yet"
    taken = ", ".join(f"{name} {count}" for name, count in sorted(sent["redacted"].items()))
    return (
        f"{sent['items']} items since {sent['since']}, the last {sent['last']};"
        f" redacted before: {taken or 'nothing'}"
    )


def _trouble(found: dict[str, Any]) -> str:
    """The last line of the log, and whether that is over."""
    when, _, what = found["last_trouble"].partition(" ")
    server = found["server"] or {}
    well = server.get("reached") and server.get("accepted") and not found["unsent"]["files"]
    over = ""
    if well and found["sent"]["last"] > when:
        over = f", over since {found['sent']['last']}"
    elif well:
        over = ", and the server answers now"
    return f"last trouble ({when}{over}): {what}"


def _counted(count: int, what: str) -> str:
    return f"1 {what} is" if count == 1 else f"{count} {what}s are"


def _kept_out() -> int:
    """Sessions that ran while Argus was off, and are never captured."""
    top = home.place("hook", "sessions")
    every = (name for client in names(top) for name in names(os.path.join(top, client)))
    return sum(name.endswith(sessions.OFF) for name in every)


def _rows(name: str) -> int:
    """Lines of a journal, and of the part of it that was taken and not settled yet."""
    parts = (edits.read(home.place("hook", name + end)) or b"" for end in (".jsonl", ".taken"))
    return sum(data.count(b"\n") for data in parts)


def _last(path: str) -> str:
    data = edits.read(path) or b""
    rows = data[-2000:].decode("utf-8", "replace").strip().split("\n")
    return rows[-1]
