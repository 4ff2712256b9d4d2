"""Episodes: the list of them, the timeline of one, and distilling it again.

Shows `memory.shown.episodes`, changes by `memory.redistill`.
"""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse, HttpResponseBase
from django.urls import reverse
from django.utils import timezone

from memory import passes
from memory import redistill as again
from memory.errors import NotFound
from memory.models import Episode, StageRun
from memory.runs import OPEN
from memory.shown import episodes as shown
from memory.shown.episodes_list import ENDS, list_episodes
from memory.web.marks import diff_words
from memory.web.page import HtmxHttpRequest, action, answer, fragment, number, page, show
from memory.web.viewer import Viewer

#: The last run that asked the distiller again about a unit.
# Why SQL: of most episodes there is none, and the queryset takes longer to put together.
ASKED = """
SELECT * FROM memory_stagerun WHERE stage = %s AND progress->>'unit' = %s
ORDER BY started_at DESC, id DESC LIMIT 1
"""

#: What is folded away, and fetched when it is opened.
FOLDED = ("attributions", "calls")

#: What the page fetches alone: that, and where distilling again stands while it changes.
FETCHED = ("again", *FOLDED)

#: Digits of a turn's place in an episode.
FROM_DIGITS_MAX = 8


@page("look")
def episodes(request: HtmxHttpRequest, viewer: Viewer) -> HttpResponseBase:
    """All episodes, latest first."""
    listed = list_episodes(request, viewer.rows(Episode.objects.all()))
    if listed.export:
        return listed.export
    context = {"title": "Episodes", "listed": listed, "ends": ENDS}
    return show(request, "memory/episodes.html", context)


@page("look")
def episode(request: HtmxHttpRequest, viewer: Viewer, pk: int) -> HttpResponse:
    """The timeline of one, with `part` what of it is folded away; for htmx that part alone."""
    part = request.GET.get("part")
    if request.htmx and part in FETCHED:
        one = shown.found(pk, viewer.rows)
        return fragment(request, f"memory/_{part}.html", _part(part, one, viewer))
    first = number(request.GET.get("from", ""), digits=FROM_DIGITS_MAX) or 0
    line = shown.timeline(pk, sight=viewer.rows, first=first)
    context = {"title": f"Episode {pk}", "line": line, "ends": ENDS, **_again(line.episode, viewer)}
    if part in FOLDED:
        context |= _part(part, line.episode, viewer)
    return show(request, "memory/episode.html", context)


def _part(part: str, one: Episode, viewer: Viewer) -> dict[str, Any]:
    if part == "again":
        return _again(one, viewer)
    if part == "calls":
        return {"calls": shown.calls(one, viewer.rows)}
    return {"attributions": shown.attributions(one)}


def _again(one: Episode, viewer: Viewer) -> dict[str, Any]:
    """Where distilling again stands: a run, a proposal with its changes, or neither."""
    now = timezone.now()
    asked = next(iter(StageRun.objects.raw(ASKED, [again.STAGE, one.unit_key])), None)
    proposal = again.open_proposal(one.unit_key)
    changes = again.changes(proposal, now=now) if proposal else None
    reader = None if viewer.can_operate else viewer.principal
    return {
        "one": one,
        "asked": passes.looks([asked], now=now, reader=reader)[0] if asked else None,
        "asking": asked is not None and asked.status in OPEN,
        "proposal": proposal,
        "changes": changes,
        # As everywhere: what the gate refused is its owner's alone, whoever sees the episode.
        "refused": proposal.refused if proposal and _refusals_of(one, viewer) else [],
        "come": [_side_by_side(new) for new in changes.come] if changes else [],
        "replaced": {new.replaces.pk for new in changes.come if new.replaces} if changes else set(),
    }


def _refusals_of(one: Episode, viewer: Viewer) -> bool:
    return viewer.all_owners or one.owner_id == viewer.principal.pk


def _side_by_side(new: again.Proposed) -> dict[str, Any]:
    old = new.replaces
    before, after = diff_words(old.content if old else "", new.note.content)
    return {"new": new, "before": before if old else None, "after": after}


@action("decide")
def redistill(request: HtmxHttpRequest, viewer: Viewer, pk: int) -> HttpResponse:
    """Ask the distiller again, in the background."""
    again.start(pk, by=viewer.principal, now=timezone.now())
    return _answer(request, viewer, pk, "Asked again. Nothing changes before you apply it.")


@action("decide")
def apply(request: HtmxHttpRequest, viewer: Viewer, pk: int) -> HttpResponse:
    """Do what the proposal says, as it was shown."""
    proposal = _proposal(request, viewer, pk)
    seen = request.POST.get("seen", "")
    done = again.apply(proposal, seen=seen, by=viewer.principal, now=timezone.now())
    told = f"Applied: {len(done.come)} new, {len(done.go)} retired, {len(done.back)} back."
    return _answer(request, viewer, pk, "Nothing had to change." if done.nothing else told)


@action("decide")
def drop(request: HtmxHttpRequest, viewer: Viewer, pk: int) -> HttpResponse:
    """Leave everything as it is."""
    again.drop(_proposal(request, viewer, pk), by=viewer.principal, now=timezone.now())
    return _answer(request, viewer, pk, "Dropped. The notes are what they were.")


def _proposal(request: HtmxHttpRequest, viewer: Viewer, pk: int) -> int:
    """The id of the proposal that this episode's form is about."""
    one = viewer.rows(Episode.objects.all()).filter(pk=pk).first()
    if one is None:
        raise NotFound(f"no episode {pk}")
    proposal = number(request.POST.get("proposal", ""))
    # That of another episode is decided at its own address, where its changes are shown.
    if proposal is None or not again.is_of(proposal, one.unit_key):
        raise NotFound(f"no such proposal for episode {pk}")
    return proposal


def _answer(request: HtmxHttpRequest, viewer: Viewer, pk: int, said: str) -> HttpResponse:
    one = Episode.objects.as_pipeline().get(pk=pk)
    to = reverse("admin:episode", args=[pk])
    return answer(request, "memory/_again.html", _again(one, viewer), to=f"{to}#again", said=said)
