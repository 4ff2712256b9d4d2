"""/ui/ask/: a question, and what an agent would get for it, live as one types.

A door over `recall.notes.preview_notes`: nothing that is asked here is on the ledger of recalls.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from django.http import HttpResponse
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from memory.errors import RefusedError
from memory.web.charts import lengths
from memory.web.page import HtmxHttpRequest, fragment, page, show
from memory.web.viewer import Viewer
from recall.gates import PROMPT_CHARACTERS_MAX
from recall.notes import Recalled, Wanted, preview_notes
from recall.search import Past
from recall.shown.hits import describe, first_hits
from recall.shown.injections import OUTCOMES, projects_named
from recall.where import Facts

#: Characters of a project's name and of a path that are read.
PLACE_CHARACTERS_MAX = 4_096


@page("look")
def ask(request: HtmxHttpRequest, viewer: Viewer) -> HttpResponse:
    """The question with what it would bring, or the question alone."""
    given = {
        name: request.GET.get(name, "")[:PLACE_CHARACTERS_MAX]
        for name in ("project", "cwd", "as_of", "only")
    }
    # As much as `gates.ask` reads; more is not said again.
    given["q"] = request.GET.get("q", "")[: 2 * PROMPT_CHARACTERS_MAX]
    context: dict[str, Any] = {"given": given, "most": PROMPT_CHARACTERS_MAX, "outcomes": OUTCOMES}
    if given["q"].strip():
        recalled = _preview(given, viewer)
        whole = recalled.as_json(explain=True)
        weighed = whole.get("weighed", ())
        steps = {"total": recalled.milliseconds, **whole.get("timings", {})}
        context |= {
            "recalled": recalled,
            "hits": describe(first_hits(weighed), viewer, among=weighed),
            "weighed": len(recalled.weighed),
            "floors": [(source, dict(one)) for source, one in recalled.floors_told.items()],
            "steps": lengths(steps, label="Milliseconds by step"),
            "degraded": recalled.searched.degraded.items() if recalled.searched else (),
        }
    if request.htmx:
        return fragment(request, "recall/_answer.html", context)
    return show(
        request, "recall/ask.html", context | {"title": "Ask", "projects": projects_named()}
    )


def _preview(given: dict[str, str], viewer: Viewer) -> Recalled:
    now = timezone.now()
    return preview_notes(
        given["q"],
        principal=viewer.principal,
        now=now,
        cwd=given["cwd"],
        facts=Facts(project=given["project"]),
        wanted=Wanted(
            project=given["project"] if given["only"] else "",
            past=Past.asked(as_of=_moment(given["as_of"]), known_at=None, now=now),
        ),
    )


def _moment(text: str) -> datetime | None:
    """A moment as a form sends it, in UTC where it names no zone. Raises RefusedError."""
    if not text.strip():
        return None
    try:
        moment = parse_datetime(text.strip())
    except ValueError:
        moment = None
    if moment is None:
        raise RefusedError(f"{text[:40]!r} is no moment: 2026-08-01T12:00")
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
