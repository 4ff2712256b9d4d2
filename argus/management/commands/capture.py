"""`manage.py capture PATH...`, by the rules of those whose sessions lie on this machine."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from argus.hook import locate, optout, sessions
from argus.hook.events import safe
from memory.files import Rule
from memory.management.commands import capture
from memory.transcripts import Turn

#: Client of each transcript's source.
CLIENTS = {source: client for client, source in locate.SOURCES.items()}


class MachineRules:
    """The rules as one run of the command meets them: a session's first folder counts as well."""

    def __init__(self) -> None:
        self.roots: dict[tuple[str, str], str] = {}

    def __call__(self, turn: Turn) -> Turn | None:
        """The turn as its folder's `.argus.json` has it; None where that, or the folder in which
        its session began, or ARGUS_DISABLED when it ran, keeps it out."""
        client = CLIENTS.get(turn.source)
        if client and turn.session and sessions.disabled(client, safe(turn.session)):
            return None
        root = self.roots.setdefault((turn.source, turn.session), turn.cwd)
        rules = look(turn.cwd or root)
        if not (rules.capture and look(root).capture):
            return None
        return replace(turn, project=rules.project) if rules.project else turn


@cache
def look(folder: str) -> optout.Rules:
    """The rules of a folder. Not those of `~/.argus/env`: they are for hooks, and this was asked
    for by name."""
    return optout.look(folder, {})


class Command(capture.Command):
    def rule(self) -> Rule:
        return MachineRules()
