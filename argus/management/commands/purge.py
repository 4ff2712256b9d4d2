"""`manage.py purge`: show what would go; with `--yes`, remove it for ever and prove it."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from datetime import date
from typing import Any
from uuid import UUID

from django.core.management.base import CommandError, CommandParser
from django.utils import timezone

from argus import purge as whole
from memory import letgo
from memory import purge as record
from memory.access import principal
from memory.acts import record_act
from memory.errors import NotFound, RefusedError
from memory.management.base import (
    EXIT_OK,
    EXIT_PARTIAL,
    EXIT_USAGE,
    ArgusCommand,
    id_number,
    plain_errors,
)
from memory.models import Note, Principal, RawItem
from memory.proof import unfinished
from memory.selection import Selection
from memory.text.clean import strip_invisible
from memory.text.seen import one_line

#: What a proof means by the words of a purge.
LOOKED_FOR = (
    "looked for eight words in a row (24 characters where nobody writes spaces), shorter texts "
    "whole; a word of a longer one by itself: --matching"
)

#: Notes, sessions and rows that are named for a person; `--json` has all.
TOLD_MAX = 20


class Command(ArgusCommand):
    help = (
        "Remove raw items and all that derives from them, for ever. Without --yes it only prints "
        "what would go. Exit 0: gone, and proved; 3: gone, and something is left to do: its words "
        "stand elsewhere, files wait, not all could be looked for, or --forbid had nothing to "
        "forbid. The report says which, and what to do."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--raw", nargs="+", type=id_number, metavar="ID", help="these raw items"
        )
        parser.add_argument(
            "--note", nargs="+", type=UUID, metavar="ID", help="these notes and what they are from"
        )
        parser.add_argument("--session", help="a session of a client, by its id")
        parser.add_argument("--project", help="a project, with those that were merged with it")
        parser.add_argument("--owner", help="all of a person; beside another one: of this person")
        parser.add_argument(
            "--all-owners", action="store_true",
            help="ids and purges of everybody, for whoever may see all; it is on the list of acts",
        )  # fmt: skip
        parser.add_argument(
            "--matching", metavar="REGEX", help="every text that matches, by Postgres' syntax"
        )
        parser.add_argument(
            "--ledger", metavar="NAME", help=f"old rows of a ledger: {', '.join(letgo.LEDGERS)}"
        )
        parser.add_argument(
            "--before", type=day, metavar="DATE", help="of the days before this (UTC)"
        )
        parser.add_argument(
            "--finish", nargs="?", type=id_number, const=0, metavar="ID",
            help="files and proof of a purge that was cut off; without ID, of all",
        )  # fmt: skip
        parser.add_argument("--yes", action="store_true", help="do it; needs --reason")
        parser.add_argument("--reason", default="", help="why; kept for ever")
        parser.add_argument(
            "--forbid", action="store_true", help="what the notes say is never to be learned again"
        )
        parser.add_argument("--dry-run", action="store_true", help="print what would go (default)")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["yes"] and (options["dry_run"] or not options["reason"].strip()):
            raise CommandError("--yes needs --reason, and no --dry-run", returncode=EXIT_USAGE)
        ways = ("raw", "note", "session", "project", "owner", "matching")
        beside = [name for name in (*ways, "forbid") if options[name]]
        if beside and (options["finish"] is not None or options["ledger"] or options["before"]):
            what = "--finish and --ledger say themselves what they are about: no --" + beside[0]
            raise CommandError(what, returncode=EXIT_USAGE)
        with plain_errors(refused=EXIT_USAGE):
            if options["finish"] is not None:
                code = self.finish(options)
            elif options["ledger"] or options["before"]:
                code = self.let_go(options)
            else:
                code = self.purge(options)
        self.leave(code)

    def purge(self, options: dict[str, Any]) -> int:
        """Look; and with --yes, do it."""
        me = principal()
        everyones = self.everyones(me, options)
        asked = Selection(
            raw=tuple(options["raw"] or ()), notes=tuple(options["note"] or ()),
            session=options["session"] or "", project=options["project"] or "",
            owner=options["owner"] or "", matching=options["matching"] or "",
        )  # fmt: skip
        plan = record.plan(asked, by=me, everyones=everyones, counted=not options["yes"])
        if not options["yes"]:
            told = shown(plan, forbid=options["forbid"])
            self.say(told, as_json=options["json"], line=lines(told))
            return EXIT_OK
        done = whole.carry_out(
            plan, by=me, reason=options["reason"], clock=timezone.now, forbid=options["forbid"]
        )
        return self.receipt(done, options)

    def finish(self, options: dict[str, Any]) -> int:
        """The files and the proof of a purge that lacks them, or of all that do: these in one
        object."""
        me = principal()
        mine = whole.mine(me, everyones=self.everyones(me, options))
        if number := options["finish"]:
            if not mine.filter(pk=number).exists():
                raise NotFound(
                    f"no purge {number} of yours that could be finished: --all-owners finishes "
                    "those of others, for whoever may see all"
                )
            return self.receipt(whole.finish(number, clock=timezone.now), options)
        finished = []
        for number in mine.filter(pk__in=unfinished()).values_list("pk", flat=True):
            finished.append(receipt(whole.finish(number, clock=timezone.now)))
            if not options["json"]:
                self.stdout.write(receipt_lines(finished[-1]))
        if options["json"] or not finished:
            self.say({"finished": finished}, as_json=options["json"], line="nothing to finish")
        return EXIT_PARTIAL if any(one["to_do"] for one in finished) else EXIT_OK

    def everyones(self, me: Principal, options: dict[str, Any]) -> bool:
        """Whether this is about everybody's rows: for whoever says so, and may. Naming an owner is
        saying so. Raises RefusedError for one who may not."""
        may = record.may_purge_all(me)
        if options["all_owners"]:
            if not may:
                raise RefusedError("--all-owners is for whoever may see the rows of all owners")
            record_act(me, "see_all", "owners", "purge", now=timezone.now())
        return may and bool(options["all_owners"] or options["owner"])

    def let_go(self, options: dict[str, Any]) -> int:
        """Old rows of a ledger."""
        if not (options["ledger"] and options["before"]):
            raise CommandError("--ledger and --before go together", returncode=EXIT_USAGE)
        name, before, now = options["ledger"], options["before"], timezone.now()
        if options["yes"]:
            told = letgo.let_go(name, before, by=principal(), reason=options["reason"], now=now)
        else:
            told = letgo.look_at(name, before, now=now)
        if told.counts:
            rows = ", ".join(f"{table} {count}" for table, count in told.counts.items())
            did = f"went (purge {told.ledger})" if told.ledger else "would go"
            line = f"{did}: {rows}, of {told.days} days, whose sums stay"
        else:
            line = f"nothing of {name} is older than {before}: nothing goes"
        self.say(asdict(told), as_json=options["json"], line=line)
        return EXIT_OK

    def receipt(self, done: whole.Outcome, options: dict[str, Any]) -> int:
        """Print what was done, and what the proof says of it."""
        told = receipt(done, forbid=options["forbid"])
        self.say(told, as_json=options["json"], line=receipt_lines(told))
        return EXIT_PARTIAL if told["to_do"] else EXIT_OK


def day(text: str) -> date:
    """An argument that is a day."""
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text} is no day: 2026-11-30") from None


def shown(plan: record.Plan, *, forbid: bool = False) -> dict[str, Any]:
    """What would go, as `--json` prints it. `forbid`: what its notes say is to be forbidden."""
    notes = Note.objects.as_pipeline().filter(pk__in=plan.notes).order_by("created_at", "pk")
    items = RawItem.objects.as_pipeline().filter(pk__in=plan.items)
    sessions = items.exclude(session="").order_by("session").values_list("session", flat=True)
    owners = items.order_by("owner__name").values_list("owner__name", flat=True)
    return {
        "dry_run": True,
        "raw_items": list(plan.items),
        "notes": [
            {"note": str(pk), "title": title} for pk, title in notes.values_list("pk", "title")
        ],
        "sessions": list(sessions.distinct()),
        "owners": list(owners.distinct()),
        "rows": dict(plan.counts),
        "named": {table: list(ids) for table, ids in plan.rows.items()},
        "forbidden": sorted(map(str, plan.unwanted(forbid=forbid))),
        "again": len(plan.forbidden),
        "nothing_to_forbid": forbid and not plan.unwanted(forbid=True),
        "files": [str(folder) for folder in whole.folders()],
    }


def lines(told: dict[str, Any]) -> str:
    """The same for a person."""
    made = [
        f"would go, for ever: {len(told['raw_items'])} raw items, {len(told['notes'])} notes",
        f"of {', '.join(told['owners']) or 'nobody'}"
        + (f"; sessions {some(told['sessions'])}" if told["sessions"] else ""),
        f"raw items {some(told['raw_items'])}",
        *(f"   {one['note']}  {one['title']}" for one in told["notes"][:TOLD_MAX]),
        *(f"   {table} {count}" for table, count in told["rows"].items()),
        *(
            [
                f"never learned again: what {len(told['forbidden'])} notes say"
                + (f"; of {told['again']} the raw items stay" if told["again"] else "")
            ]
            if told["forbidden"]
            else []
        ),
        *([f"--forbid forbids nothing: {whole.NO_NOTE}"] if told["nothing_to_forbid"] else []),
        f"files of these notes below {' and '.join(told['files']) or 'no folder'}",
        "nothing was changed: --yes --reason WHY does it",
    ]
    return strip_invisible("\n".join(made))[0]


def some(things: list[Any]) -> str:
    """The first of many."""
    more = f" and {len(things) - TOLD_MAX} more" if len(things) > TOLD_MAX else ""
    told = ", ".join(one_line(str(one)) for one in things[:TOLD_MAX])
    return f"{told or 'none'}{more}"


def receipt(done: whole.Outcome, *, forbid: bool = False) -> dict[str, Any]:
    """What was done, as `--json` prints it. `forbid`: they asked that it be never learned again."""
    return {
        "purge": done.ledger,
        "rows": done.counts,
        "forbidden": done.forbidden,
        "forbidden_before": done.known,
        "to_do": whole.to_do(
            done.proof, forbade_nothing=forbid and not done.forbidden + done.known
        ),
        "files": asdict(done.files),
        "proved": done.proof.proved,
        "state": whole.state(done.proof),
        "elsewhere": done.proof.elsewhere,
        "paths": list(done.paths),
        "scanned": done.proof.scanned,
        "looked_for": LOOKED_FOR,
        "beyond": list(done.beyond),
    }


def receipt_lines(told: dict[str, Any]) -> str:
    """The same for a person."""
    facts = {"forbidden": told["forbidden"], "forbidden before": told["forbidden_before"]}
    forbidden = [f"{word}: {count} statements" for word, count in facts.items() if count]
    seen, files = told["scanned"], told["files"]
    where = [
        f"   {one['place']}{joined(one['column'])}: {one['count']}"
        f"{' by right, another raw item says the same: nothing to do' if one['by_right'] else ''}"
        f"{' (' + some(one['ids']) + ')' if one['ids'] else ''}"
        for one in sorted(told["elsewhere"], key=lambda one: bool(one["by_right"]))
    ]
    looked = (
        f"columns {seen.get('columns', 0)}, rows {seen.get('rows', 0)}, "
        f"files {seen.get('files', 0)}"
    )
    number = sum(one["count"] for one in told["elsewhere"])
    proof = f"{told['state']}: {number}" if number else told["state"]
    if told["proved"]:
        proof = "proved clean"
    made = [
        f"purge {told['purge']}: gone for ever",
        *(f"   {table} {count}" for table, count in told["rows"].items()),
        *forbidden,
        *([f"vault {files['vault']}: {files['removed']} files removed"] if files["vault"] else []),
        *([f"   {files['why']}"] if files["why"] else []),
        f"{proof} (looked at: {looked})",
        f"   {told['looked_for']}",
        *where,
        *(f"   {path}" for path in told["paths"][:TOLD_MAX]),
        *doubts(seen),
        "not reached:",
        *(f"   {one}" for one in told["beyond"]),
        *(["exit 3, as there is something to do:"] if told["to_do"] else []),
        *(f"   {one}" for one in told["to_do"]),
    ]
    return strip_invisible("\n".join(made))[0]


def joined(column: str) -> str:
    """A column behind its table; what stands there for one is no name."""
    return f", {column}" if " " in column else f".{column}" if column else ""


def doubts(seen: dict[str, Any]) -> list[str]:
    """What the proof did not look at, for a person."""
    made = []
    if seen.get("too_short"):
        made.append(
            f"{seen['too_short']} texts of one plain word were not looked for: nothing tells them "
            "from anybody's"
        )
    if seen.get("sampled"):
        made.append("this was a look for a sample of the words")
    if seen.get("pattern"):
        made.append(f"whether the pattern still matches is not known: it {seen['pattern']}")
    return [f"   {one}" for one in made]
