"""The feed: one note at a time, rated, pinned or retired; and the ledger of what came up."""

from __future__ import annotations

from datetime import timedelta
from random import SystemRandom
from typing import Any
from uuid import UUID

from django.http import Http404, HttpResponse, HttpResponseBase
from django.urls import reverse
from django.utils import timezone

from memory import keeping
from memory.errors import NotFound
from memory.web.page import HtmxHttpRequest, action, answer, number, page, show
from memory.web.viewer import Viewer
from review import feed as verbs
from review import spaced
from review.models import Card
from review.shown.draws import BY, list_draws

#: What each act on a card needs, and what it says afterwards.
ACTS = {
    "pin": ("look", "Pinned: it comes first in your contexts."),
    "unpin": ("look", "Not pinned any more."),
    "forget": ("look", "Out of repetition: it comes up by chance again."),
    "retire": ("decide", "Retired. It can be restored on its own page."),
}


@page("look")
def feed(request: HtmxHttpRequest, viewer: Viewer) -> HttpResponse:
    """The card on the table, or the way to the first one."""
    return show(request, "review/feed.html", {"title": "Feed", **_table(viewer)})


@action("look")
def next_card(request: HtmxHttpRequest, viewer: Viewer) -> HttpResponse:
    """Draw the next card."""
    seen = number(request.POST.get("after", ""))
    pinned = request.POST.get("of") == "pinned"
    _draw(viewer, after=seen, pinned=pinned)
    return _card(request, viewer)


@action("look")
def rate(request: HtmxHttpRequest, viewer: Viewer, pk: UUID) -> HttpResponse:
    """Say how well one knew the note, and see the next one."""
    now = timezone.now()
    rating, drawn = (number(request.POST.get(name, "")) or 0 for name in ("rating", "draw"))
    card = verbs.rate(pk, rating, drawn=drawn, by=viewer.principal, now=now)
    _draw(viewer, after=drawn)
    due = (card.due_at - now) / timedelta(days=1)
    when = f"in {due:.0f} d" if due >= 1 else f"in {max(due * 24 * 60, 1):.0f} min"
    return _card(request, viewer, said=f"{spaced.RATINGS[rating].capitalize()}: again {when}.")


@action("look")
def act(request: HtmxHttpRequest, viewer: Viewer, pk: UUID, verb: str) -> HttpResponse:
    """Pin, unpin or retire the note, or take it out of repetition."""
    needed, said = ACTS.get(verb, ("", ""))
    if not needed or not viewer.may(needed):
        raise Http404
    by, now = viewer.principal, timezone.now()
    if verb == "pin":
        keeping.pin(pk, by=by, now=now)
    elif verb == "unpin":
        keeping.unpin(pk, by=by, now=now)
    elif verb == "forget":
        verbs.forget(pk, by=by, now=now)
    else:
        keeping.retire_note(pk, by=by, now=now, reason=request.POST.get("reason", ""))
        _draw(viewer)
    return _card(request, viewer, said=said)


@page("look")
def draws(request: HtmxHttpRequest, viewer: Viewer) -> HttpResponseBase:
    """What came up, by what, and how likely that was; one's own draws alone."""
    listed = list_draws(request, viewer.principal)
    if listed.export:
        return listed.export
    return show(request, "review/draws.html", {"title": "Draws", "listed": listed})


def _draw(viewer: Viewer, *, after: int | None = None, pinned: bool = False) -> None:
    """The next card, where there is one: an empty table says so by itself."""
    try:
        verbs.next_card(
            by=viewer.principal,
            now=timezone.now(),
            random=SystemRandom(),
            after=after,
            pinned=pinned,
        )
    except NotFound:
        if pinned:
            raise


def _table(viewer: Viewer) -> dict[str, Any]:
    """The card and what stands beside it."""
    now = timezone.now()
    by = viewer.principal
    up = verbs.pool(by, now=now, mates=viewer.mates)
    due = len(verbs.due(by, now=now, up=up, most=verbs.DUE_COUNTED_MAX + 1))
    shown = verbs.on_table(by, now=now, up=up, mates=viewer.mates)
    return {
        "shown": shown,
        "by": BY.get(shown.draw.drawn_by, "") if shown else "",
        "odds": 1 / shown.why.probability if shown and shown.why.probability else 0.0,
        "due": due,
        "due_more": due > verbs.DUE_COUNTED_MAX,
        "cards": due > 0 or Card.objects.filter(principal=by).exists(),
        "any": shown is not None or up.exists(),
    }


def _card(request: HtmxHttpRequest, viewer: Viewer, *, said: str = "") -> HttpResponse:
    to = reverse("admin:feed")
    return answer(request, "review/_card.html", _table(viewer), to=to, said=said)
