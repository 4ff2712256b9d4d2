"""The ledger of recalls for people: a list to look through, and one recall with all its numbers.

Reads: injection, impact, feedback, note, raw_item. Writes nothing. What a recall was about is told
of what the viewer may see alone: of the rest there is an id and its numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import F, Func, IntegerField
from django.http import HttpRequest

from memory.errors import NotFound
from memory.models import Injection
from memory.web.charts import Lengths, lengths
from memory.web.listing import Choice, Column, Day, Filter, Listed, Words, list_rows
from memory.web.places import project_choice, projects_offered
from memory.web.viewer import Viewer
from recall.gates import ask
from recall.shown.hits import HitTold, describe, first_hits, hits_of, key_of, source_of

#: Recalls among which words are looked for.
# Why: no index holds what was asked; the latest twenty thousand are read in a tenth of a second.
# Calibrate: milliseconds of a search that finds nothing, with the ledger full.
SEARCHED_MAX = 20_000


MODES = ("prompt", "context", "query", "open")

#: What a recall came to: its word for people, and the colour of its tag.
OUTCOMES: Mapping[str, tuple[str, str]] = {
    "injected": ("injected", "ok"),
    "answered": ("answered", "ok"),
    "opened": ("opened", "ok"),
    "gated": ("gated", "off"),
    "below_floor": ("below the floor", "off"),
    "no_hits": ("no hits", "off"),
    "too_long": ("too long", "warn"),
    "skipped": ("skipped", "bad"),
}
GATES = ("system_turn", "too_short")
USED = (("yes", "used"), ("no", "not used"), ("open", "not checked"))


@dataclass(frozen=True)
class Told:
    """One recall for its page: the row, its hits, floors by source, milliseconds by step."""

    row: Injection
    hits: tuple[HitTold, ...]
    gate_detail: str
    floors: tuple[tuple[str, Mapping[str, Any]], ...]
    steps: Lengths
    options: Mapping[str, Any]
    impact: Any = None
    own: bool = True
    # Hits that are not told of.
    more: int = 0

    @property
    def total(self) -> Any:
        return _table(self.row.timings).get("total")


class _Many(Func):
    """How many elements a list of JSON has; none where it is no list."""

    template = (
        "(CASE jsonb_typeof(%(expressions)s)"
        " WHEN 'array' THEN jsonb_array_length(%(expressions)s) ELSE 0 END)"
    )
    output_field = IntegerField()


class _Long(Func):
    """How many elements an array has."""

    function = "cardinality"
    output_field = IntegerField()


COLUMNS = (
    Column("id", lambda row: row.pk),
    Column("at", lambda row: row.created_at),
    Column("mode", lambda row: row.mode),
    Column("outcome", lambda row: row.outcome),
    Column("gate", lambda row: row.gate),
    Column("query", lambda row: row.query),
    Column("project", lambda row: row.project.name if row.project else None),
    Column("session", lambda row: row.session),
    Column("sent", lambda row: row.sent),
    Column("weighed", lambda row: row.weighed),
    Column("omitted", lambda row: row.omitted),
    Column("characters", lambda row: row.characters),
    Column("milliseconds", lambda row: _table(row.timings).get("total")),
    Column("used", lambda row: row.used),
    Column("notes", lambda row: " ".join(map(str, row.note_ids))),
)


def list_injections(request: HttpRequest, viewer: Viewer) -> Listed:
    """A page of recalls as the request asks for it, latest first."""
    rows = (
        viewer.rows(Injection.objects.all())
        .select_related("project", "owner")
        .defer("hits", "floors", "options")
        .annotate(sent=_Long("note_ids") + _Long("turn_ids"), used=F("impact__used"))
    )
    if request.GET.get("format"):
        rows = rows.annotate(weighed=_Many("hits"))
    listed = list_rows(
        request,
        rows,
        order=("-pk",),
        filters=_filters(),
        columns=COLUMNS,
        title="injections",
    )
    # Of the rows of the page alone: hits are long, and a sort would read those of every row.
    shown = viewer.rows(Injection.objects.all()).filter(pk__in=[row.pk for row in listed.rows])
    many = dict(shown.annotate(weighed=_Many("hits")).values_list("pk", "weighed"))
    for row in listed.rows:
        row.weighed = many.get(row.pk, 0)
    return listed


def tell(pk: int, viewer: Viewer, *, whole: bool = False) -> Told:
    """One recall with its numbers; `whole`: with every hit that it keeps. Raises NotFound when it
    is not the viewer's to see."""
    row = _seen(pk, viewer)
    timings, floors = _table(row.timings), _table(row.floors)
    steps = {name: spent for name, spent in timings.items() if isinstance(spent, int | float)}
    steps = {"total": steps.pop("total", 0.0), **steps}
    kept = hits_of(row)
    shown = kept if whole else first_hits(kept)
    return Told(
        row=row,
        hits=tuple(describe(shown, viewer, among=kept)),
        gate_detail=ask(row.query).detail if row.gate else "",
        floors=tuple((name, floors[name]) for name in ("note", "turn") if name in floors),
        steps=lengths(steps, label="Milliseconds by step"),
        options=_flat(_table(row.options)),
        impact=getattr(row, "impact", None),
        own=row.owner_id == viewer.principal.pk,
        more=len(kept) - len(shown),
    )


def tell_hit(pk: int, note: UUID, viewer: Viewer) -> tuple[Injection, HitTold]:
    """The row of a recall, and what its page tells of one note. Raises NotFound as `tell`."""
    row = _seen(pk, viewer)
    kept = hits_of(row)
    for hit in kept:
        if source_of(hit) == "note" and key_of(hit) == str(note):
            return row, describe([hit], viewer, among=kept)[0]
    raise NotFound(f"injection {pk} had nothing to do with note {note}")


def _seen(pk: int, viewer: Viewer) -> Injection:
    rows = viewer.rows(Injection.objects.all()).select_related("project", "owner", "impact")
    row: Injection | None = rows.filter(pk=pk).first()
    if row is None:
        raise NotFound(f"no injection {pk}")
    return row


def _table(kept: Any) -> Mapping[str, Any]:
    """Names and values of a row; none where a row of another shape has something else there."""
    return kept if isinstance(kept, Mapping) else {}


def _flat(options: Mapping[str, Any]) -> dict[str, Any]:
    """What was asked for beside the words, as names and values on one level."""
    told: dict[str, Any] = {}
    for name, value in options.items():
        inner = value if isinstance(value, Mapping) else {"": value}
        for more, one in inner.items():
            shown = ", ".join(map(str, one)) if isinstance(one, list) else one
            if shown not in (None, "", [], False):
                told[f"{name} {more}".strip().replace("_", " ")] = shown
    return told


def _filters() -> list[Filter]:
    return [
        Words("q", "Search questions", _search),
        Choice("mode", "Mode", [(one, one) for one in MODES]),
        Choice("outcome", "Outcome", [(one, word) for one, (word, _) in OUTCOMES.items()]),
        Choice("gate", "Gate", [(one, one.replace("_", " ")) for one in GATES]),
        project_choice(),
        Choice("used", "Used", USED, _used),
        Words("session", "Session", lambda rows, text: rows.filter(session=text)),
        Words("note", "Note (its id)", _of_note),
        Day("since", "Since", "created_at__gte"),
        Day("until", "Until", "created_at__lt"),
    ]


def _search(rows: Any, text: str) -> Any:
    latest = rows.order_by("-pk").values("pk")[:SEARCHED_MAX]
    return rows.filter(pk__in=latest, query__icontains=text)


def _used(rows: Any, value: str) -> Any:
    if value == "open":
        return rows.filter(impact=None, outcome="injected")
    return rows.filter(impact__used=value == "yes")


def _of_note(rows: Any, text: str) -> Any:
    try:
        return rows.filter(note_ids__contains=[UUID(text)])
    except ValueError:
        return rows.none()


def projects_named() -> list[str]:
    """Names of projects that one can ask from."""
    return [name for _, name in projects_offered()]
