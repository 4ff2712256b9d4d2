"""What would go for ever, and the button that does it; purges that were, and what their proofs say.

Nobody but superusers, and whoever was given the permission `memory.purge` by name, is told that
there is such a page.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import UUID

from django.http import HttpResponse, QueryDict
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils import timezone

from argus import purge as whole
from memory import proof
from memory import purge as record
from memory.acts import REASON_CHARACTERS_MAX
from memory.errors import Conflict, RefusedError
from memory.models import Note, PurgeLedger, PurgeProof, RawItem
from memory.selection import Selection
from memory.text.clean import clean_text
from memory.text.identity import sha256
from memory.web.page import HtmxHttpRequest, action, answer, number, page, show
from memory.web.viewer import Viewer

#: What a person types to say that they mean it.
WORD = "purge"

#: Raw items that are purged by a page, at most.
# Why: a browser waits for it and for its proof. Who gives up, or a proxy that does, stops nothing:
# the server goes on to the end, and a server that dies then leaves a purge that `finish` finds.
ITEMS_MAX = 5_000

#: Notes, items and purges that are listed.
LISTED_MAX = 50

#: What a page may ask for, by the name of its field.
FIELDS = ("note", "raw", "session", "project")


@page("purge")
def purge(request: HtmxHttpRequest, viewer: Viewer) -> HttpResponse:
    """What of `?note=`, `?raw=`, `?session=` or `?project=` would go; the last purges."""
    told: dict[str, Any] = {"title": "Purge", "past": _past(viewer), "all": viewer.all_owners}
    if any(request.GET.get(name) for name in FIELDS):
        told |= _reach(request.GET, viewer)
    if (done := number(request.GET.get("done", ""))) is not None:
        told |= _done(get_object_or_404(_mine(viewer), pk=done), whole.folders())
    return show(request, "argus/purge.html", told)


@action("purge")
def do(request: HtmxHttpRequest, viewer: Viewer) -> HttpResponse:
    """Do it, when the word was typed and what goes is what was shown."""
    given = request.POST
    if given.get("word", "").strip().lower() != WORD:
        raise RefusedError(f"type the word {WORD} to say that you mean it")
    asked, everyones = _selection(given), viewer.all_owners
    reached = record.reach(asked, by=viewer.principal, everyones=everyones)
    if len(reached.items) > ITEMS_MAX:
        raise RefusedError(f"more than {ITEMS_MAX} raw items: manage.py purge does it")
    plan = record.plan(asked, by=viewer.principal, everyones=everyones, counted=False)
    if not given.get("seen") == seen(reached) == seen(plan):
        raise Conflict("what would go is not what you were shown any more: look again")
    done = whole.carry_out(
        plan, by=viewer.principal, reason=given.get("reason", ""), clock=timezone.now,
        forbid=given.get("forbid") == "on",
    )  # fmt: skip
    return _answered(request, done)


@action("purge")
def finish(request: HtmxHttpRequest, viewer: Viewer, pk: int) -> HttpResponse:
    """The files and the proof of a purge that lacks them; or its proof once more."""
    get_object_or_404(_mine(viewer), pk=pk)
    return _answered(request, whole.finish(pk, clock=timezone.now))


def seen(what: record.Reach | record.Plan) -> str:
    """What somebody was shown, for what they send."""
    ids = [*sorted(what.items), *sorted(map(str, what.notes))]
    return sha256(" ".join(map(str, ids)))


def _answered(request: HtmxHttpRequest, done: whole.Outcome) -> HttpResponse:
    ledger = PurgeLedger.objects.get(pk=done.ledger)
    said = "Gone, and proved." if done.proved else "Gone; look what its proof says."
    forbade_nothing = request.POST.get("forbid") == "on" and not done.forbidden + done.known
    if forbade_nothing:
        said += " Nothing was forbidden: no note came of it."
    to = f"{reverse('admin:purge')}?done={done.ledger}"
    to_do = whole.to_do(done.proof, forbade_nothing=forbade_nothing)
    told = _done(ledger) | {
        "paths": done.paths, "to_do": to_do, "beyond": done.beyond, "why": done.files.why,
    }  # fmt: skip
    return answer(request, "argus/_purge_done.html", told, to=to, said=said)


def _reach(given: QueryDict, viewer: Viewer) -> dict[str, Any]:
    """A look that locks nothing and reads no text of the record: whoever opens a page may open it
    again, and what quotes it elsewhere takes a while to find."""
    asked = _selection(given)
    reached = record.reach(asked, by=viewer.principal, everyones=viewer.all_owners)
    notes = Note.objects.as_pipeline().filter(pk__in=reached.notes).defer("embedding")
    items = RawItem.objects.as_pipeline().filter(pk__in=reached.items).select_related("owner")
    return {
        "plan": reached,
        "seen": seen(reached),
        "asked": {name: given[name] for name in FIELDS if given.get(name)},
        "notes": notes.order_by("created_at", "pk")[:LISTED_MAX],
        "items": items.order_by("pk")[:LISTED_MAX],
        "listed_max": LISTED_MAX,
        "folders": whole.folders(),
        "word": WORD,
        "no_note": "" if reached.notes else whole.NO_NOTE,
        "too_many": len(reached.items) > ITEMS_MAX,
        "reason_max": REASON_CHARACTERS_MAX,
    }


def _done(ledger: PurgeLedger, folders: tuple[Path, ...] = ()) -> dict[str, Any]:
    """`folders`: where files that the proof counts are looked for, by what it kept of them."""
    shown = whole.latest(ledger)
    return {
        "purge": ledger,
        "proof": shown,
        "state": whole.state(shown),
        "to_do": whole.to_do(shown) if shown else [],
        "paths": proof.named(shown, folders) if shown else [],
        "counts": sorted(ledger.counts.get("tables", {}).items()),
        "beyond": whole.BEYOND,
    }


def _mine(viewer: Viewer) -> Any:
    return whole.mine(viewer.principal, everyones=viewer.all_owners)


def _past(viewer: Viewer) -> list[tuple[PurgeLedger, str]]:
    rows = list(_mine(viewer)[:LISTED_MAX])
    proofs = PurgeProof.objects.filter(ledger__in=rows).order_by("ledger", "-pk")
    newest = {proof.ledger_id: proof for proof in proofs.distinct("ledger")}
    return [(row, whole.state(newest.get(row.pk))) for row in rows]


def _selection(given: QueryDict) -> Selection:
    """What the address or the form says. Raises RefusedError for what is no id."""
    raw, note = given.get("raw", ""), given.get("note", "")
    numbers = [number(one) for one in raw.split()]
    if None in numbers:
        raise RefusedError("the numbers of raw items are numbers, with spaces between them")
    try:
        notes = tuple(UUID(one) for one in note.split())
    except ValueError as error:
        raise RefusedError("the id of a note is no such thing") from error
    return Selection(
        raw=tuple(one for one in numbers if one is not None),
        notes=notes,
        session=clean_text(given.get("session", ""))[0],
        project=clean_text(given.get("project", ""))[0],
    )
