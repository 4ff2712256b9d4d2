"""The commands that a person types: parses the words, calls one verb, prints its report.

Knows nothing about how a verb does its work. Exit codes: 0 done, 1 refused or failed, 2 words that
nobody understands, 75 the server is away.
"""

from __future__ import annotations

import argparse
import getpass
import json
import os
import sys
from dataclasses import asdict
from typing import Any

from argus.hook import home
from memory.errors import ArgusError

EXIT_OK, EXIT_REFUSED, EXIT_AWAY = 0, 1, 75

_CLIENTS = ("claude", "codex", "pi")


def run(arguments: list[str]) -> int:
    """Run one command; the exit code."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.verb is None:
        parser.print_help()
        return EXIT_OK
    try:
        code: int = options.run(options)
        return code
    except (ArgusError, OSError) as error:
        print(f"argus-hook: {error}", file=sys.stderr)
        return EXIT_REFUSED
    except KeyboardInterrupt:
        print("argus-hook: stopped", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="argus-hook", description="Argus on this machine: hooks of coding agents."
    )
    verbs = parser.add_subparsers(dest="verb", metavar="COMMAND")

    install = verbs.add_parser("install", help="put the hooks into the clients' settings")
    _clients(install, "none")
    install.add_argument("--url", help=f"the server's address (default {home.URL})")
    install.add_argument("--key-stdin", action="store_true", help="read the key from stdin")
    install.add_argument("--mode", choices=("http", "command"), help="Claude Code's prompt hook")
    install.add_argument("--dry-run", action="store_true", help="show the diff, write nothing")
    install.add_argument("--trust", action="store_true", help="let Codex trust the hooks, unasked")
    _json(install, _install)

    uninstall = verbs.add_parser("uninstall", help="take them out again")
    _clients(uninstall)
    uninstall.add_argument("--purge", action="store_true", help="settings, offsets and spool too")
    uninstall.add_argument("--yes", action="store_true", help="purge what was never sent as well")
    _json(uninstall, _uninstall)

    _json(verbs.add_parser("status", help="what stands on this machine"), _status)
    _json(verbs.add_parser("doctor", help="is it working, and what to do"), _doctor)

    backfill = verbs.add_parser("backfill", help="store past sessions")
    backfill.add_argument("paths", nargs="*", metavar="DIR", help="default: the clients' folders")
    backfill.add_argument("--since", metavar="DATE", help="only turns from this day on (ISO)")
    backfill.add_argument("--project", help="put everything under this project")
    backfill.add_argument("--dry-run", action="store_true", help="count, send nothing")
    _json(backfill, _backfill)

    flush = verbs.add_parser("flush", help="send what waits")
    flush.add_argument("--seconds", type=float, default=600.0, help="how long to try")
    _json(flush, _flush)
    _json(verbs.add_parser("spool", help="what waits"), _spool)

    for verb in ("capture", "recall", "context"):
        hook = verbs.add_parser(verb, help="what hooks run; reads the event from stdin")
        hook.add_argument("--client", choices=_CLIENTS, required=True)
        hook.add_argument("--via", choices=("settings", "plugin"), default="settings")
        hook.set_defaults(run=_hook)
    return parser


def _clients(parser: argparse.ArgumentParser, *more: str) -> None:
    none = "; none: settings and program alone, for a plugin" if more else ""
    parser.add_argument(
        "--client",
        choices=(*_CLIENTS, "all", *more),
        default="all",
        help=f"default: all that are found on this machine{none}",
    )


def _json(parser: argparse.ArgumentParser, verb: Any) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=verb)


def _install(options: argparse.Namespace) -> int:
    from argus.hook.install import Choices, install, present

    named = () if options.client == "none" else (options.client,)
    found = present() if options.client == "all" else named
    if not found and options.client == "all":
        return _refused("no client is found here; name one by --client claude, codex or pi")
    url, key = _where(options)
    if not key and not options.dry_run:
        return _refused(
            "a key is needed: type it when asked, or give it by --key-stdin or in the variable"
            " ARGUS_KEY. On the server `manage.py createkey --scope capture,recall` makes one"
        )
    choices = Choices(
        clients=found,
        url=url,
        key=key,
        mode=options.mode or "",
        dry_run=options.dry_run,
        trust=options.trust,
    )
    report = install(choices, _consent)
    return _told(report, options.json, "nothing changed")


def _where(options: argparse.Namespace) -> tuple[str, str]:
    """Address and key: from the words, the settings, or the person, who is asked for no address
    where the usual one answers."""
    known = home.read_env()
    asks = sys.stdin is not None and sys.stdin.isatty() and not options.key_stdin
    url = options.url or known.get("ARGUS_URL", "")
    if asks:
        url = url or _found() or input(f"Address of the server [{home.URL}]: ").strip()
    url = (url or home.URL).rstrip("/")
    if options.key_stdin:
        return url, sys.stdin.readline().strip()
    key = os.environ.get("ARGUS_KEY", "") or known.get("ARGUS_KEY", "")
    asks = asks and not options.dry_run
    if asks and key == known.get("ARGUS_KEY"):
        key = _unless_refused(url, key)
    if not key and asks:
        key = getpass.getpass("Key that may capture and recall (not shown): ").strip()
    return url, key


def _found() -> str:
    """The usual address when Argus answers there, else ""; says so either way."""
    from argus.hook import keys

    standing = keys.stand(home.URL, "")
    if standing.reached:
        print(f"Argus answers at {home.URL}")
        return home.URL
    print(f"No Argus answers at {home.URL}: {standing.why}")
    return ""


def _unless_refused(url: str, key: str) -> str:
    """The key that was kept, or "", said aloud, when the server knows it no more."""
    from argus.hook import keys

    standing = keys.stand(url, key)
    if standing.accepted is not False:
        return key
    print(f"{url} refuses the key of {home.place('env')}: {standing.why}")
    return ""


def _refused(why: str) -> int:
    print(f"argus-hook: {why}", file=sys.stderr)
    return EXIT_REFUSED


def _consent(question: str) -> bool:
    if sys.stdin is None or not sys.stdin.isatty():
        print(f"argus-hook: {question} no (nobody to ask; --trust says yes)", file=sys.stderr)
        return False
    return input(f"{question} [y/N] ").strip().lower() in ("y", "yes")


def _uninstall(options: argparse.Namespace) -> int:
    from argus.hook.install import CLIENTS
    from argus.hook.uninstall import uninstall

    clients = CLIENTS if options.client == "all" else (options.client,)
    report = uninstall(clients, purge=options.purge, yes=options.yes)
    return _told(report, options.json, "nothing of ours was found")


def _told(report: Any, as_json: bool, nothing: str) -> int:
    if as_json:
        print(json.dumps(asdict(report)))
        return EXIT_OK
    # What is wrong comes first: a server that is away explains the rest.
    for line in report.warnings:
        print(f"argus-hook: {line}", file=sys.stderr, flush=True)
    for line in report.done or [nothing]:
        print(line)
    for text in report.diffs:
        sys.stdout.write(f"\n{text}")
    return EXIT_OK


def _status(options: argparse.Namespace) -> int:
    from argus.hook.status import lines, status

    found = status()
    print(json.dumps(found) if options.json else "\n".join(lines(found)))
    return EXIT_OK


def _doctor(options: argparse.Namespace) -> int:
    from argus.hook.doctor import examine, exit_code
    from argus.hook.status import status

    rows = examine(status())
    if options.json:
        print(json.dumps({"rows": [asdict(row) for row in rows], "exit": exit_code(rows)}))
        return exit_code(rows)
    for row in rows:
        print(f"{row.state:<5} {row.name:<9} {row.what}")
        if row.fix and row.state != "ok":
            print(f"{'':<15} {row.fix}")
    return exit_code(rows)


def _backfill(options: argparse.Namespace) -> int:
    from argus.hook.backfill import command

    return command(options)


def _flush(options: argparse.Namespace) -> int:
    from argus.hook.deliver import flush
    from argus.hook.status import waits

    report = flush(options.seconds)
    if options.json:
        print(json.dumps(asdict(report)))
    else:
        sent = f"{report.sent} batches were sent" if report.sent else "nothing was sent"
        why = f" ({report.why})" if report.why else ""
        print(f"{sent}{why}; {waits(report.left, report.bytes)}")
    return EXIT_AWAY if report.left else EXIT_OK


def _spool(options: argparse.Namespace) -> int:
    from argus.hook.status import unsent, waits

    found = unsent()
    print(json.dumps(found) if options.json else waits(found["files"], found["bytes"]))
    return EXIT_OK


def _hook(options: argparse.Namespace) -> int:
    from argus.hook.main import hook

    return hook(options.verb, ["--client", options.client, "--via", options.via])
