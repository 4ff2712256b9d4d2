"""`manage.py person list | add | role | join | leave | remove`: who may log in, as what."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from django.core.management.base import CommandParser
from django.utils import timezone

from memory import people
from memory.access import principal
from memory.management.base import EXIT_USAGE, ArgusCommand, plain_errors
from memory.roles import ROLES


class Command(ArgusCommand):
    help = "List people, let one log in, change roles and teams, or end one's access."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        action = self.actions(parser)
        action("list", help="who may log in, as what")
        add = action("add", help="a person, whose password is shown once")
        add.add_argument("name")
        add.add_argument("--role", default="reader", help=f"of {', '.join(ROLES)}; commas between")
        add.add_argument("--principal", default="", help="one that has keys or rows already")
        add.add_argument("--team", action="append", default=[], help="sees team rows with these")
        add.add_argument("--superuser", action="store_true", help="may do everything")
        add.add_argument("--password-stdin", action="store_true", help="read it from a pipe")
        role = action("role", help="these roles and no others")
        role.add_argument("name")
        role.add_argument("roles", nargs="*", metavar="ROLE")
        for verb, text in (("join", "sees and settles"), ("leave", "no longer sees or settles")):
            team = action(verb, help=f"{text} what these teams share")
            team.add_argument("name", help="of a person, or of a principal without a login")
            team.add_argument("teams", nargs="+", metavar="TEAM")
        remove = action("remove", help="no login and no key any more; what they did stays")
        remove.add_argument("name")
        remove.add_argument("--keep-keys", action="store_true", help="leave their keys in force")

    def handle(self, *args: Any, **options: Any) -> None:
        with plain_errors(refused=EXIT_USAGE):
            report, line = getattr(self, f"_{options['action']}")(options)
        self.say(report, as_json=options["json"], line=line)

    def _list(self, options: dict[str, Any]) -> tuple[dict[str, Any], str]:
        found = people.listed()
        lines = [
            f"{one.name:<16} {_may(one):<28} for {one.principal or 'nobody':<12}"
            f" last login {one.last_login or 'never'}" + ("" if one.active else "  (removed)")
            for one in found
        ]
        return {"people": [vars(one) for one in found]}, "\n".join(lines) or "nobody yet"

    def _add(self, options: dict[str, Any]) -> tuple[dict[str, Any], str]:
        # Why stdin and no option: what is typed on a command line stands in its history.
        told = sys.stdin.readline().rstrip("\n") if options["password_stdin"] else ""
        one, password = people.add(
            options["name"],
            [role.strip() for role in options["role"].split(",") if role.strip()],
            by=principal(),
            now=timezone.now(),
            principal=options["principal"],
            teams=options["team"],
            superuser=options["superuser"],
            password=told,
        )
        line = f"{one.name} may log in as {_may(one)}, for the principal {one.principal}"
        shown = f"\npassword  {password}\nshown this once" if password else ""
        return {**vars(one), "password": password or None}, line + shown

    def _role(self, options: dict[str, Any]) -> tuple[dict[str, Any], str]:
        one = people.set_roles(
            options["name"], options["roles"], by=principal(), now=timezone.now()
        )
        return vars(one), f"{one.name} is {_may(one)} now"

    def _join(self, options: dict[str, Any]) -> tuple[dict[str, Any], str]:
        return self._regrouped(options, people.join)

    def _leave(self, options: dict[str, Any]) -> tuple[dict[str, Any], str]:
        return self._regrouped(options, people.leave)

    def _regrouped(
        self, options: dict[str, Any], verb: Callable[..., list[str]]
    ) -> tuple[dict[str, Any], str]:
        teams = verb(options["name"], options["teams"], by=principal(), now=timezone.now())
        line = f"{options['name']} is in {', '.join(teams) or 'no team'} now"
        return {"name": options["name"], "teams": teams}, line

    def _remove(self, options: dict[str, Any]) -> tuple[dict[str, Any], str]:
        fell = people.remove(
            options["name"], by=principal(), now=timezone.now(), keep_keys=options["keep_keys"]
        )
        line = f"{options['name']} logs in no more; {fell} keys revoked"
        return {"removed": options["name"], "keys_revoked": fell}, line


def _may(one: people.Person) -> str:
    return "superuser" if one.superuser else ", ".join(one.roles) or "nothing"
