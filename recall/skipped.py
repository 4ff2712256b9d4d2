"""Skipped recalls: what a client gave up because the server was away or slow, told afterwards.

Writes: injection (outcome skipped), the only audit of what never reached us. Verify: one row an id
of the client, however often and by how many at once it is told. No text of a prompt comes here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import transaction

from memory.attribution import Registry
from memory.intake import instant
from memory.models import Injection, Principal, Project
from recall.where import named_by, tidy

#: Recalls told of in one post.
# Why: a day's prompts with the server away; a client with more sends them in several posts.
SKIPPED_MAX = 200

#: Characters kept of a client's, a machine's name and of a reason.
# Why: an odd word must not cost the rest of the post; it is cut, not refused.
WORD_CHARACTERS_MAX = 200


@dataclass(frozen=True)
class Skipped:
    """One recall that a client gave up, by its own id for it."""

    id: UUID
    mode: str
    at: datetime | None = None
    session: str = ""
    cwd: str = ""
    client: str = ""
    machine: str = ""
    reason: str = ""
    milliseconds: int = 0


@dataclass(frozen=True)
class Noted:
    """How many were noted now, and how many had been before."""

    recorded: int
    known: int


@transaction.atomic
def note_skipped(told: Sequence[Skipped], *, principal: Principal, now: datetime) -> Noted:
    """Write a row for each of these that has none yet; the clock of a client is believed as
    capture believes it."""
    # One post at a time for each principal, so that the count is true; the database's own
    # constraint stands behind it.
    Principal.objects.select_for_update(no_key=True).get(pk=principal.pk)
    by_id = {str(one.id): one for one in told}
    rows = Injection.objects.visible_to(principal).filter(owner=principal, outcome="skipped")
    known = set(rows.filter(options__id__in=list(by_id)).values_list("options__id", flat=True))
    fresh = [one for name, one in by_id.items() if name not in known]
    registry, projects = Registry.load(), dict(Project.objects.values_list("name", "pk"))
    Injection.objects.bulk_create(
        [_row(one, registry, projects, principal=principal, now=now) for one in fresh]
    )
    return Noted(recorded=len(fresh), known=len(told) - len(fresh))


def _row(
    one: Skipped,
    registry: Registry,
    projects: dict[str, int],
    *,
    principal: Principal,
    now: datetime,
) -> Injection:
    at, clock = instant(one.at, now=now)
    session, cwd = tidy(one.session), tidy(one.cwd)
    said = {name: tidy(getattr(one, name)) for name in ("client", "machine", "reason")}
    said["clock"] = clock
    return Injection(
        owner=principal,
        mode=one.mode,
        outcome="skipped",
        session=session,
        cwd=cwd,
        project_id=projects.get(named_by(registry, cwd) or ""),
        options={
            "id": str(one.id),
            **{k: text[:WORD_CHARACTERS_MAX] for k, text in said.items() if text},
        },
        timings={"total": one.milliseconds},
        created_at=at,
    )
