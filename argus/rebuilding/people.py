"""What people did, done again: by the verbs that did it, as who did it, at the time when they did.

Reads: the schema `was`. Writes: what the verbs write, in a throwaway database. Knows nothing about
the stages.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from django.db import connection

from argus.rebuilding.chronicle import Event
from argus.rebuilding.record import FRESH_FROM, ask
from argus.undo import undo_run
from memory import keeping, redistill
from memory.acts import through
from memory.edits import edit_note
from memory.errors import NotFound, RefusedError
from memory.making import load
from memory.models import (
    GateRejection,
    Group,
    PathRule,
    Principal,
    Project,
    ProjectAlias,
    Proposal,
)
from review import holds, rejections
from review.grounding import Words, borne_out, candidate_of

#: Whose things an act may be about, by its kind of thing: queries of `named`, the references.
OWNERS = {
    "note": "SELECT DISTINCT owner_id FROM was.memory_note WHERE id = ANY(%(named)s::uuid[])",
    "verdict": "SELECT DISTINCT n.owner_id FROM was.memory_dedupverdict v JOIN was.memory_note n"
    " ON n.id IN (v.note_id, v.target_id) WHERE v.id = ANY(%(named)s::bigint[])",
    "unit": "SELECT DISTINCT owner_id FROM was.memory_episode WHERE unit_key = ANY(%(named)s)",
}


def act(event: Event) -> None:
    """Do it again. Raises what the verb raises."""
    kind, verb = event.detail["kind"], event.detail["verb"]
    if kind == "project":
        _registry(event, forward=True)
        return
    if verb in ("edit", "redistill") and not told(event):
        # A purge took what it was about, and with it what it says of itself.
        return
    by = Principal.objects.filter(pk=event.detail["by"]).first()
    if by is None:
        raise NotFound(f"no principal {event.detail['by']}")
    if kind == "verdict":
        _number_verdict(int(event.subject), told(event))
    with through(event.detail["door"]), _allowed(event, by):
        _VERBS[kind, verb](event, by)


def disband() -> None:
    """Take everybody out of their teams: who is together today says nothing about then."""
    Principal.groups.through.objects.all().delete()


@contextmanager
def _allowed(event: Event, by: Principal) -> Iterator[None]:
    """Inside, `by` is in a team with those whose things this act names, and with nobody else: that
    is what it was allowed then, and of whom nothing was touched is not touched now."""
    acts = ask(
        "SELECT kind, reference FROM was.memory_act WHERE created_at = %(at)s"
        " AND principal_id = %(by)s",
        at=event.at,
        by=by.pk,
    )
    named: dict[str, list[str]] = {kind: [] for kind in OWNERS}
    for kind, reference in acts:
        named.setdefault(kind, []).append(reference)
    owners = {
        owner for kind, query in OWNERS.items() for (owner,) in ask(query, named=named[kind])
    } - {by.pk}
    if owners:
        # With a number of its own: those of the house are taken.
        team, _ = Group.objects.get_or_create(pk=FRESH_FROM, defaults={"name": "then"})
        team.members.set([by.pk, *owners])
    try:
        yield
    finally:
        if owners:
            disband()


def _number_verdict(number: int, said: Mapping[str, Any]) -> None:
    """A verdict that nobody told the number of gets the one by which a person decided it: by its
    notes, which the act names."""
    ask(
        "UPDATE memory_dedupverdict SET id = %(number)s WHERE id = ("
        " SELECT max(id) FROM memory_dedupverdict v WHERE v.note_id = %(note)s::uuid"
        " AND v.target_id = %(target)s::uuid AND v.id >= %(fresh)s)"
        " AND NOT EXISTS (SELECT FROM memory_dedupverdict WHERE id = %(number)s)",
        number=number,
        note=said.get("note"),
        target=said.get("target"),
        fresh=FRESH_FROM,
    )


def undo_registry(events: Sequence[Event]) -> None:
    """The registry of projects as it was before people changed it."""
    for event in reversed(events):
        if event.kind == "act" and event.detail["kind"] == "project":
            _registry(event, forward=False)


def told(event: Event) -> Mapping[str, Any]:
    """What an act says of itself."""
    detail = event.detail["detail"]
    loaded: Mapping[str, Any] = json.loads(detail) if isinstance(detail, str) else detail
    return loaded


def _registry(event: Event, *, forward: bool) -> None:
    verb, project, said = event.detail["verb"], int(event.subject), told(event)
    there = forward == (verb in ("alias", "path", "merge"))
    if verb in ("merge", "unmerge"):
        into = said.get("into") if there else None
        Project.objects.filter(pk=project).update(merged_into=into)
    elif verb in ("alias", "unalias"):
        ProjectAlias.objects.filter(name=said["name"]).delete()
        if there:
            ProjectAlias.objects.create(name=said["name"], project_id=project)
    else:
        PathRule.objects.filter(prefix=said["prefix"]).delete()
        if there:
            PathRule.objects.create(prefix=said["prefix"], project_id=project)


def _decided(verb: Callable[..., Any]) -> Callable[[Event, Principal], None]:
    """A verb about what has a number: a verdict, a refusal."""

    def again(event: Event, by: Principal) -> None:
        verb(int(event.subject), by=by, now=event.at, reason=event.detail["reason"])

    return again


def _kept(verb: Callable[..., Any]) -> Callable[[Event, Principal], None]:
    """A verb about a note as it is."""

    def again(event: Event, by: Principal) -> None:
        verb(UUID(event.subject), by=by, now=event.at, reason=event.detail["reason"])

    return again


def _pinned(verb: Callable[..., Any]) -> Callable[[Event, Principal], None]:
    def again(event: Event, by: Principal) -> None:
        verb(UUID(event.subject), by=by, now=event.at)

    return again


def _edit(event: Event, by: Principal) -> None:
    """With the words of the raw item that the edit wrote, which gets the number that it had."""
    item = int(told(event)["raw_item"])
    with connection.cursor() as cursor:
        cursor.execute("SELECT body FROM was.memory_rawitem WHERE id = %s", [item])
        row = cursor.fetchone()
        if row is None:
            raise NotFound(f"raw item {item} is gone")
        cursor.execute(
            "SELECT setval(pg_get_serial_sequence('memory_rawitem', 'id'), %s, false)", [item]
        )
    title, _, content = str(row[0]).partition("\n")
    edit_note(
        UUID(event.subject),
        title=title,
        content=content,
        by=by,
        now=event.at,
        reason=event.detail["reason"],
    )


def _accept(event: Event, by: Principal) -> None:
    """With the title and the words of the record that the person named: the note has them."""
    rejection = int(event.subject)
    with connection.cursor() as cursor:
        cursor.execute(
            'SELECT n.title, e.raw_item_id, e.start, e."end", e.quote'
            " FROM was.memory_rejectiondecision d"
            " JOIN was.memory_note n ON n.id = d.note_id"
            " JOIN was.memory_evidence e ON e.note_id = n.id AND e.raw_item_id IS NOT NULL"
            " WHERE d.rejection_id = %s AND d.created_at = %s AND d.action = 'accept'"
            " ORDER BY e.created_at, e.id LIMIT 1",
            [rejection, event.at],
        )
        row = cursor.fetchone()
    words = _words(rejection, *row) if row else Words()
    rejections.accept(rejection, by=by, now=event.at, reason=event.detail["reason"], words=words)


def _words(rejection: int, title: str, item: int, start: int, end: int, quote: str) -> Words:
    """What a person must have named for the evidence that the note has."""
    row = GateRejection.objects.as_pipeline().select_related("episode").filter(pk=rejection).first()
    unit = load(rejections.unit_of(row)) if row else None
    named = Words(quote, item, title)
    if row is None or unit is None:
        return named
    for words in (Words(title=title), named, Words(item=item, title=title)):
        try:
            found = borne_out(candidate_of(row.candidate), unit.passages, words)
        except RefusedError:
            continue
        if (found.passage.item_id, found.start, found.end) == (item, start, end):
            return words
    return named


def _redistill(event: Event, by: Principal) -> None:
    """What a person applied is a proposal; it was open until then."""
    proposal = int(told(event)["proposal"])
    Proposal.objects.as_pipeline().filter(pk=proposal).update(
        status="open", decided_by=None, decided_at=None
    )
    row = Proposal.objects.as_pipeline().filter(pk=proposal).first()
    if row is None:
        raise NotFound(f"no proposal {proposal}")
    seen = redistill.changes(row, now=event.at).seen
    redistill.apply(proposal, seen=seen, by=by, now=event.at)


_VERBS: dict[tuple[str, str], Callable[[Event, Principal], None]] = {
    ("verdict", "approve"): _decided(holds.approve),
    ("verdict", "reject"): _decided(holds.reject),
    ("verdict", "undo"): _decided(holds.undo),
    ("run", "undo"): _decided(undo_run),
    ("note", "edit"): _edit,
    ("note", "retire"): _kept(keeping.retire_note),
    ("note", "restore"): _kept(keeping.restore_note),
    ("note", "pin"): _pinned(keeping.pin),
    ("note", "unpin"): _pinned(keeping.unpin),
    ("rejection", "accept"): _accept,
    ("rejection", "confirm"): _decided(rejections.confirm),
    ("rejection", "forbid"): _decided(rejections.forbid),
    ("rejection", "undo"): _decided(rejections.undo),
    ("unit", "redistill"): _redistill,
}
