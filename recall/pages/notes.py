"""/ui/notes/ and /ui/notes/{id}: find notes; one note with all that is known of it, and what a
person does to it.

A door: finds, calls one verb, renders. Knows nothing about what a verb does.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.http import HttpResponse, HttpResponseBase
from django.urls import NoReverseMatch, reverse
from django.utils import timezone

from memory import edits, keeping
from memory.acts import REASON_CHARACTERS_MAX
from memory.errors import NotFound
from memory.gate import CONTENT_CHARACTERS_MAX, TITLE_CHARACTERS_MAX
from memory.models import Injection, Note, RawItem
from memory.outside import files_of
from memory.text.seen import visible
from memory.web.page import HtmxHttpRequest, action, answer, fragment, page, show
from memory.web.viewer import Viewer
from recall.feedback import feedback_of, give_feedback
from recall.reader import reader
from recall.shown import note as shown
from recall.shown.note import Neighbourhood, borne_out, neighbourhood
from recall.shown.notes import STATE_NAMES, STATE_TAGS, list_notes, told_rows
from recall.shown.trace import Trace, acts_on, history, trace
from recall.states import STATE_COLUMNS, STATES, stale, state

#: What of the page of a note is fetched when somebody comes to it.
# Why: each costs as much as half of the rest, and stands below it.
PARTS = ("neighbours", "trace")

#: What may be said of a note, as a button says it.
SAY = (("useful", "Useful"), ("wrong", "Wrong"), ("outdated", "Outdated"), ("never", "Never again"))


@page("look")
def notes(request: HtmxHttpRequest, viewer: Viewer) -> HttpResponseBase:
    """The list, or what a search of it finds."""
    now = timezone.now()
    told = list_notes(
        request,
        viewer.rows(Note.objects.all()),
        principal=viewer.principal,
        everybody=viewer.all_owners,
        now=now,
    )
    if told.listed.export:
        return told.listed.export
    rows = told_rows(told.listed.rows, principal=viewer.principal, now=now)
    context = {"title": "Notes", "listed": told.listed, "told": told, "rows": rows}
    return show(request, "recall/notes.html", context)


@page("look")
def note(request: HtmxHttpRequest, viewer: Viewer, pk: UUID) -> HttpResponse:
    """One note, with `part` one of PARTS as well; for htmx that part alone."""
    row = _found(viewer, pk)
    part = request.GET.get("part")
    told: dict[str, Any] = {"note": row}
    if part in PARTS:
        told[part] = _part(part, row, viewer)
        if request.htmx:
            return fragment(request, f"recall/_note_{part}.html", told)
    return show(request, "recall/note.html", told | _whole(viewer, row))


@action("decide")
def edit(request: HtmxHttpRequest, viewer: Viewer, pk: UUID) -> HttpResponse:
    """Other words for it: a new note takes its place."""
    given = request.POST
    made = edits.edit_note(
        pk,
        title=given.get("title", ""),
        content=given.get("content", ""),
        by=viewer.principal,
        now=timezone.now(),
        reason=given.get("reason", ""),
    )
    said = "This note now stands in place of the one you edited."
    return _answer(request, viewer, made.pk, said)


@action("decide")
def retire(request: HtmxHttpRequest, viewer: Viewer, pk: UUID) -> HttpResponse:
    """Out of what is recalled."""
    reason = request.POST.get("reason", "")
    keeping.retire_note(pk, by=viewer.principal, now=timezone.now(), reason=reason)
    return _answer(request, viewer, pk, "Retired: no agent is told this note any more.")


@action("decide")
def restore(request: HtmxHttpRequest, viewer: Viewer, pk: UUID) -> HttpResponse:
    """Back among the living."""
    reason = request.POST.get("reason", "")
    keeping.restore_note(pk, by=viewer.principal, now=timezone.now(), reason=reason)
    return _answer(request, viewer, pk, "Restored: it is recalled again.")


@action("look")
def pin(request: HtmxHttpRequest, viewer: Viewer, pk: UUID) -> HttpResponse:
    """First in one's own contexts."""
    keeping.pin(pk, by=viewer.principal, now=timezone.now())
    return _pin(request, pk, pinned=True, said="Pinned: first in your contexts.")


@action("look")
def unpin(request: HtmxHttpRequest, viewer: Viewer, pk: UUID) -> HttpResponse:
    """One's own pin away."""
    keeping.unpin(pk, by=viewer.principal, now=timezone.now())
    return _pin(request, pk, pinned=False, said="Not pinned any more.")


@action("look")
def feedback(request: HtmxHttpRequest, viewer: Viewer, pk: UUID) -> HttpResponse:
    """What it was worth to oneself; `never` silences it for one's own agents."""
    given = request.POST
    said = give_feedback(
        pk,
        given.get("verdict", ""),
        principal=viewer.principal,
        now=timezone.now(),
        project=given.get("project") or None,
        reason=given.get("reason", ""),
    )
    words = "Taken back." if said.verdict == "withdrawn" else f"Noted: {said.verdict}."
    row = _found(viewer, pk)
    told = {"note": row, **_feedback(viewer, row)}
    to = reverse("admin:note", args=[pk])
    return answer(request, "recall/_note_feedback.html", told, to=to, said=words)


def _found(viewer: Viewer, pk: UUID) -> Note:
    found = shown.found(pk, viewer.rows(Note.objects.all()), by=viewer.principal)
    if found is None:
        raise NotFound(f"no note {pk}")
    return found


def _part(part: str, row: Note, viewer: Viewer) -> Neighbourhood | Trace:
    seen = viewer.rows(Note.objects.all())
    if part == "neighbours":
        return neighbourhood(row, live=seen.live(timezone.now()))
    return trace(
        row,
        notes=seen,
        injections=viewer.rows(Injection.objects.all()),
        files=files_of(row.pk, viewer.principal),
    )


def _whole(viewer: Viewer, row: Note) -> dict[str, Any]:
    """Everything that the page of a note shows at once."""
    mine = viewer.rows(Note.objects.all())
    steps = history(row, notes=mine)
    return {
        "title": visible(row.title),
        **_head(viewer, row),
        **_feedback(viewer, row),
        "evidence": borne_out(row, items=viewer.rows(RawItem.objects.all()), notes=mine),
        "steps": steps,
        "acts": acts_on(row, steps, principal=viewer.principal),
        "purge": _purge(row),
    }


def _head(viewer: Viewer, row: Note) -> dict[str, Any]:
    """What it says, whether it holds, and what may be done to it."""
    name = _state(row)
    replaced: Any = None
    if row.deleted_at is not None:
        who = reader(viewer.principal, None)
        replaced = stale([{"id": row.pk}], who=who, now=timezone.now())[0]["replaced_by"]
    return {
        "state": name,
        "state_name": STATE_NAMES.get(name, name),
        "state_tag": STATE_TAGS.get(name, "warn"),
        "means": STATES[name],
        "replaced_by": replaced,
        "pinned": row.pinned,  # type: ignore[attr-defined]  # Read by `_found`.
        "may_decide": viewer.can_decide and viewer.may_settle(row),
        "title_max": TITLE_CHARACTERS_MAX,
        "content_max": CONTENT_CHARACTERS_MAX,
        "reason_max": REASON_CHARACTERS_MAX,
    }


def _feedback(viewer: Viewer, row: Note) -> dict[str, Any]:
    held = feedback_of([row.pk], principal=viewer.principal).get(row.pk, [])
    return {"held": held, "say": SAY, "reason_max": REASON_CHARACTERS_MAX}


def _state(row: Note) -> str:
    return state({name: getattr(row, name) for name in STATE_COLUMNS}, timezone.now())


def _purge(row: Note) -> str:
    """Where it is purged; nothing until there is such a page."""
    try:
        return f"{reverse('admin:purge')}?note={row.pk}"
    except NoReverseMatch:
        return ""


def _answer(request: HtmxHttpRequest, viewer: Viewer, pk: UUID, said: str) -> HttpResponse:
    row = _found(viewer, pk)
    told = {"note": row, **(_whole(viewer, row) if request.htmx else {})}
    to = reverse("admin:note", args=[pk])
    return answer(request, "recall/_note.html", told, to=to, said=said)


def _pin(request: HtmxHttpRequest, pk: UUID, *, pinned: bool, said: str) -> HttpResponse:
    to = reverse("admin:note", args=[pk])
    return answer(request, "recall/_note_pin.html", {"pk": pk, "pinned": pinned}, to=to, said=said)
