"""Feedback: what somebody says about a note that recall gave. Which notes that silences is resolved
by `recall.reader`.

Reads: note, injection, project. Writes: feedback, one row for everything said; the newest row of a
principal for a note and a place (a project, or everywhere) is what holds, for that principal alone.
Audits: act.
Feedback never changes a note's confidence and never retires one: a person's edit or review does.
Verify: a note with `never` is in no block, no context and no answer for who said so, and no link
leads to it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from itertools import takewhile
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Q, QuerySet

from memory.acts import record_act, tidy_reason
from memory.attribution import Registry, attribute, family, merges, project_rows
from memory.errors import Conflict, NotFound, RefusedError
from memory.models import Feedback, Injection, Note, Principal, Project
from memory.models.note import FEEDBACKS
from memory.text.clean import clean_text
from recall.where import where

#: Standing feedback that is listed.
FEEDBACK_LISTED_MAX = 50


@dataclass(frozen=True)
class Said:
    """What holds of one principal's feedback for one note and one place (`project` None:
    everywhere). `fresh`: a row was written for it just now."""

    note: UUID
    verdict: str
    project: str | None
    reason: str
    injection: int | None
    created_at: datetime
    fresh: bool = False

    def as_json(self) -> dict[str, Any]:
        return {
            "note": str(self.note),
            "verdict": self.verdict,
            "project": self.project,
            "reason": self.reason,
            "injection": self.injection,
            "created_at": self.created_at.isoformat(),
            "fresh": self.fresh,
        }


def give_feedback(
    note_id: UUID,
    verdict: str,
    *,
    principal: Principal,
    now: datetime,
    project: str | None = None,
    cwd: str = "",
    injection: int | None = None,
    reason: str = "",
) -> Said:
    """Say `useful`, `wrong`, `outdated` or `never` of a note, or take it back with `withdrawn`.

    It holds in `project`, a name or an alias of the registry; without one in the project of the
    folder `cwd`, which is entered when it is new, as capture does; without either everywhere. Words
    for different places stand side by side. The same word with nothing new to it writes no row.
    `injection` is the recall that gave the note.

    Raises NotFound for a note the principal cannot see, an unknown project or somebody else's
    injection, Conflict when there is nothing to take back, RefusedError for the rest.
    """
    if verdict not in FEEDBACKS:
        raise RefusedError(f"unknown verdict {verdict!r}: allowed are {', '.join(FEEDBACKS)}")
    reason = tidy_reason(reason)
    if not Note.objects.visible_to(principal).filter(pk=note_id).exists():
        raise NotFound(f"no note {note_id}")
    _check(injection, note_id, principal)
    with transaction.atomic():
        # One at a time for each principal: the order of ids is then the order of what was said.
        Principal.objects.select_for_update(no_key=True).get(pk=principal.pk)
        place = _place(project, cwd, principal)
        of_place = Q(project__in=family(place)) if place else Q(project=None)
        rows = list(_rows(principal).filter(of_place, note=note_id).order_by("-pk"))
        same = takewhile(lambda row: row.verdict == verdict, rows)
        for row in same:
            if injection in (None, row.injection_id) and reason in ("", row.reason):
                return _said(row)
        if verdict == "withdrawn" and not rows:
            raise Conflict(_nothing(note_id, principal))
        row = Feedback.objects.create(
            principal=principal,
            note_id=note_id,
            project_id=place,
            verdict=verdict,
            reason=reason,
            injection_id=injection,
            created_at=now,
        )
        # The words of a reason stay where a purge finds them.
        detail = {"injection": injection, "project": place}
        record_act(principal, verdict, "note", note_id, now=now, detail=detail)
    return _said(row, fresh=True)


def feedback_of(notes: Collection[UUID], *, principal: Principal) -> dict[UUID, list[Said]]:
    """What the principal holds of these notes, everywhere first, then by project."""
    found: dict[UUID, list[Said]] = {}
    if not notes:
        return found
    for row in _holding(_rows(principal).filter(note__in=notes).order_by("pk")):
        found.setdefault(row.note_id, []).append(_said(row))
    return {
        note: sorted(words, key=lambda said: said.project or "") for note, words in found.items()
    }


def given(principal: Principal) -> list[tuple[Said, str]]:
    """What the principal holds of any note, latest first, with the note's title ("": the principal
    cannot see the note any more)."""
    rows = _holding(_newest(_rows(principal)).order_by("-pk"))[:FEEDBACK_LISTED_MAX]
    seen = Note.objects.visible_to(principal).filter(pk__in=[row.note_id for row in rows])
    titles = dict(seen.values_list("pk", "title"))
    return [(_said(row), titles.get(row.note_id, "")) for row in rows]


def _rows(principal: Principal) -> QuerySet[Feedback]:
    return Feedback.objects.filter(principal=principal).select_related("project")


def _newest(rows: QuerySet[Feedback]) -> QuerySet[Feedback]:
    """Of each note and place the newest row."""
    newest = rows.order_by("note", "project", "-pk").distinct("note", "project").values("pk")
    return Feedback.objects.filter(pk__in=newest).select_related("project")


def _holding(said: QuerySet[Feedback]) -> list[Feedback]:
    """Of these, in their order, what holds: the newest of each note and place. Places that were
    merged since are one, and what was taken back is none."""
    rows = list(said)
    # Two places can be one only where there are two.
    read_as = merges() if len({row.project_id for row in rows} - {None}) > 1 else {}
    last: dict[tuple[UUID, int | None], int] = {}
    for row in rows:
        here = row.project_id
        place = (row.note_id, here and read_as.get(here, here))
        last[place] = max(last.get(place, 0), row.pk)
    kept = set(last.values())
    return [row for row in rows if row.pk in kept and row.verdict != "withdrawn"]


def _said(row: Feedback, *, fresh: bool = False) -> Said:
    return Said(
        note=row.note_id,
        verdict=row.verdict,
        project=row.project.name if row.project else None,
        reason=row.reason,
        injection=row.injection_id,
        created_at=row.created_at,
        fresh=fresh,
    )


def _place(project: str | None, cwd: str, principal: Principal) -> int | None:
    if project:
        project = clean_text(project)[0]
        name = Registry.load().names.get(project, project)
        row = Project.objects.filter(name=name).values_list("pk", flat=True).first()
        if row is None:
            raise NotFound(f"no project {project}: see `manage.py project list`")
        return row
    if not cwd:
        return None
    here = where(principal=principal, cwd=cwd)
    if here.project is None:
        raise RefusedError("this folder is of no project: name one, or say it for everywhere")
    return here.project_id or project_rows([attribute(Registry.load(), cwd=here.cwd)])[here.project]


def _check(injection: int | None, note_id: UUID, principal: Principal) -> None:
    if injection is None:
        return
    row = Injection.objects.visible_to(principal).filter(pk=injection).first()
    if row is None:
        raise NotFound(f"no injection {injection}")
    # Rows of another shape have no notes among their hits.
    hits = row.hits if isinstance(row.hits, list) else []
    weighed = [hit.get("note") for hit in hits if isinstance(hit, dict)]
    if note_id not in row.note_ids and str(note_id) not in weighed:
        raise RefusedError(f"injection {injection} had nothing to do with note {note_id}")


def _nothing(note_id: UUID, principal: Principal) -> str:
    """Why there is nothing to take back, and where there is."""
    held = feedback_of([note_id], principal=principal).get(note_id, [])
    places = ", ".join(said.project or "everywhere" for said in held)
    there = f": what you said holds in {places}" if places else ""
    return f"you said nothing of note {note_id} here{there}"
