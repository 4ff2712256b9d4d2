"""/ui/review/: the queue of holds, one at a time or as a list; approve, reject, undo, edit.

A door: finds, calls one verb of `review.holds`, renders. Knows nothing about what a verdict does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.http import HttpResponse, HttpResponseBase, QueryDict
from django.urls import reverse
from django.utils import timezone

from memory.errors import NotFound
from memory.models import DedupVerdict
from memory.web.page import HtmxHttpRequest, action, answer, fragment, number, page, show
from memory.web.viewer import Viewer
from review import holds as verbs
from review.shown import holds as shown
from review.shown.holds_list import list_holds

#: Where a decision leads: on to the next hold, or to the same one as it is now.
NEXT, SAME = "next", "same"


@page("look")
def holds(request: HtmxHttpRequest, viewer: Viewer) -> HttpResponseBase:
    """The oldest hold, the one after or before another, or the list."""
    given, rows = request.GET, shown.seen_by(viewer)
    if given.get("view") == "list":
        return _list(request, viewer, rows)
    before, after = _anchor(rows, given.get("before")), _anchor(rows, given.get("after"))
    if before is None and after is None:
        ids = shown.queue(rows)
        first = next(iter(verbs.tell(ids[:1])), None)
        return _card(request, viewer, _told(viewer, rows, first, then=NEXT, ids=ids))
    # At the first one there is none before: it stays.
    earlier = before and (shown.previous_hold(rows, before) or before)
    row = earlier or shown.next_hold(rows, after)
    return _card(request, viewer, _told(viewer, rows, row, then=NEXT))


@page("look")
def hold(request: HtmxHttpRequest, viewer: Viewer, pk: int) -> HttpResponse:
    """One verdict, whatever became of it."""
    rows = shown.seen_by(viewer)
    return _card(request, viewer, _told(viewer, rows, _found(rows, pk), then=SAME))


@action("decide")
def decide(request: HtmxHttpRequest, viewer: Viewer, pk: int, verb: str) -> HttpResponse:
    """Approve, reject or undo one verdict."""
    if verb not in verbs.VERBS:
        raise NotFound(f"nothing is called {verb}")
    given = request.POST
    row = verbs.VERBS[verb](
        pk,
        by=viewer.principal,
        now=timezone.now(),
        reason=given.get("reason", ""),
        seen=_seen(given),
    )
    return _decided(request, viewer, row, said=f"Verdict {pk} is now {row.status}.", verb=verb)


@action("decide")
def edit_approve(request: HtmxHttpRequest, viewer: Viewer, pk: int) -> HttpResponse:
    """Approve one verdict with other words for the note that stays."""
    given = request.POST
    row = verbs.edit_approve(
        pk,
        title=given.get("title", ""),
        content=given.get("content", ""),
        by=viewer.principal,
        now=timezone.now(),
        reason=given.get("reason", ""),
        seen=_seen(given),
    )
    return _decided(request, viewer, row, said=f"Verdict {pk} is approved as edited.")


@action("decide")
def bulk(request: HtmxHttpRequest, viewer: Viewer) -> HttpResponse:
    """Many at once: first what would change, then, when that was confirmed, the doing of it."""
    given = request.POST
    verb, chosen = given.get("verb", ""), _chosen(given.getlist("chosen"))
    verbs.check_many(verb, chosen)
    found = {row.pk: row for row in shown.find_all(shown.seen_by(viewer), list(chosen))}
    told: dict[str, Any] = {"title": f"{verb.capitalize()} many", "verb": verb}
    if not given.get("sure"):
        rows = [shown.change(found[pk], verb, seen) for pk, seen in chosen.items() if pk in found]
        told["rows"] = sorted(rows, key=lambda one: not one.ready)
        told["changing"] = sum(1 for one in rows if one.ready)
        told["missing"] = len(chosen) - len(found)
        return show(request, "review/holds_bulk.html", told)
    done = verbs.decide_many(
        verb, chosen, by=viewer.principal, now=timezone.now(), reason=given.get("reason", "")
    )
    told["done"] = [found[pk] for pk in done.done if pk in found]
    told["failed"] = [(found.get(pk), pk, why) for pk, why in done.failed.items()]
    return show(request, "review/holds_done.html", told, status=200 if done.done else 409)


def _list(request: HtmxHttpRequest, viewer: Viewer, rows: shown.Verdicts) -> HttpResponseBase:
    listed = list_holds(request, rows)
    if listed.export:
        return listed.export
    told = {"title": "Review", "listed": listed, "here": request.GET.get("status", "any")}
    told["called"] = shown.called_off(viewer, timezone.now())
    return show(request, "review/holds_list.html", told)


def _decided(
    request: HtmxHttpRequest, viewer: Viewer, row: DedupVerdict, *, said: str, verb: str = ""
) -> HttpResponse:
    """On to the next hold, or back to the one that was undone or looked at alone."""
    alone = request.POST.get("then") == SAME
    stay = alone or verb == "undo"
    to = f"{reverse('admin:review')}?after={row.pk}"
    if stay:
        to = reverse("admin:review-hold", args=[row.pk])
    if not request.htmx:
        return answer(request, "", to=to, said=said)
    rows = shown.seen_by(viewer)
    # Past the last one, what was skipped comes up again.
    at = _found(rows, row.pk) if stay else shown.next_hold(rows, row) or shown.next_hold(rows)
    told = _told(viewer, rows, at, then=SAME if alone else NEXT)
    if not alone:
        # The line above the queue: a decision retires notes, and an undo brings them back.
        told |= {"beside": True, "called": shown.called_off(viewer, timezone.now())}
    return answer(request, "review/_hold.html", told, to=to, said=said)


def _card(request: HtmxHttpRequest, viewer: Viewer, told: dict[str, Any]) -> HttpResponse:
    if request.htmx and not request.htmx.history_restore_request:
        return fragment(request, "review/_hold.html", told)
    if told["then"] == NEXT:
        told["called"] = shown.called_off(viewer, timezone.now())
    return show(request, "review/holds.html", {"title": "Review", **told})


def _told(
    viewer: Viewer,
    rows: shown.Verdicts,
    row: DedupVerdict | None,
    *,
    then: str,
    ids: Sequence[int] | None = None,
) -> dict[str, Any]:
    """What the card's templates read; without a hold, what there is to say instead."""
    told: dict[str, Any] = {"then": then, "hold": row and shown.card(viewer, row, rows, ids)}
    if row is None:
        told["waiting"] = shown.counted(shown.waiting(rows))
        told["quiet"] = shown.quiet(rows, timezone.now())
    if viewer.can_decide and not (row and told["hold"].undoable):
        told["last"] = verbs.latest(viewer.principal, mates=viewer.mates)
    return told


def _found(rows: shown.Verdicts, pk: int) -> DedupVerdict:
    row = shown.find(rows, pk)
    if row is None:
        raise NotFound(f"no verdict {pk}")
    return row


def _anchor(rows: shown.Verdicts, given: str | None) -> DedupVerdict | None:
    """The verdict that `after` or `before` names; None for nonsense and for what is not seen."""
    pk = number(given or "")
    return None if pk is None else shown.find(rows, pk)


def _seen(given: QueryDict) -> int | None:
    return number(given.get("seen", ""))


def _chosen(given: Sequence[str]) -> dict[int, int | None]:
    """Ids with the newest decision seen of each, from "id:seen" of a list's boxes."""
    pairs = (one.partition(":") for one in given)
    numbers = ((number(pk), number(seen)) for pk, _, seen in pairs)
    return {pk: seen for pk, seen in numbers if pk is not None}
