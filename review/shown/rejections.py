"""What a page shows of a refusal: its list, and one of them with the text it was made from.

Reads: gate_rejection, rejection_decision, episode_turn, raw_item. Bodies are read in
pieces, never whole. Knows nothing about how a refusal is decided (`review.rejections`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

from django.db.models import Count, OuterRef, Q, QuerySet, Subquery, TextField, Value
from django.db.models.functions import Coalesce, Left
from django.http import HttpRequest

from memory import gate
from memory.llm.ports import Candidate, Passage
from memory.models import (
    Episode,
    EpisodeTurn,
    GateRejection,
    Project,
    RawItem,
    RejectionDecision,
)
from memory.querysets import OwnerQuerySet
from memory.web.addresses import at
from memory.web.listing import Choice, Column, Day, Filter, Listed, Words, list_rows
from memory.web.marks import Piece, highlight, short
from memory.web.places import project_choice
from review.grounding import candidate_of, find
from review.rejections import risk, standing, unit_of

#: Days of which refusals are counted by reason.
COUNTED_DAYS = 14

#: Newest refusals among which they are counted, and whose models the filter offers.
# Why: a count of a hundred thousand rows says nothing that one of two thousand does not.
COUNTED_REFUSALS_MAX = 2_000

#: Refusals on a page of the list: each is a card of some lines.
REFUSALS_A_PAGE = 15

#: Characters of a title, and of a content, quote or reason, that the list shows.
TITLE_CHARACTERS_MAX = 120
CONTENT_CHARACTERS_MAX = 400

#: Passages of a unit that are shown beside a refusal.
# Why: an episode has fewer but for the longest; its own page has them all.
PASSAGES_MAX = 60

#: Characters of a passage that are read to look for the quote.
# Why: sixty of these are read at once by a server with little memory.
PASSAGE_CHARACTERS_MAX = 20_000

#: Characters shown around a quote, and half of what is shown of a passage without one.
AROUND_CHARACTERS = 300

#: Reasons of the gate and of the verifier, in the order in which they are looked for.
REASONS = (
    "shape", "rejected", "poison", "grounding", "title", "injection", "secret", "unsupported",
)  # fmt: skip

#: Reasons that are worse than a slip, and the one that a person gave.
COLOURS = {"secret": "bad", "injection": "bad", "poison": "bad", "rejected": "off"}

#: What is said of a refusal for a secret.
SECRET_WAS = "It held a secret, which is kept nowhere: what is left of it is no statement."

#: The shelves of the list: what waits for a decision, each decision, everything.
SHELVES = (
    ("waiting", "To decide"),
    ("accept", "Accepted"),
    ("confirm", "Confirmed"),
    ("forbid", "Forbidden"),
    ("all", "All"),
)


@dataclass(frozen=True)
class Refusal:
    """A refused candidate, and the decision that holds about it."""

    row: GateRejection
    candidate: Candidate
    decision: RejectionDecision | None

    @property
    def pk(self) -> int:
        return self.row.pk

    @property
    def id(self) -> str:
        return str(self.row.pk)

    @property
    def title(self) -> str:
        return short(self.candidate.title.strip() or "(no title)", TITLE_CHARACTERS_MAX)

    @property
    def head(self) -> str:
        return short(self.candidate.content, CONTENT_CHARACTERS_MAX)

    @property
    def quote(self) -> str:
        return short(self.candidate.source_ref, CONTENT_CHARACTERS_MAX)

    @property
    def why(self) -> str:
        return short(self.row.detail, CONTENT_CHARACTERS_MAX)

    @property
    def told(self) -> str:
        """Project and model, as far as there are any."""
        project = self.project.name if self.project else "no project"
        return " · ".join(one for one in (project, self.row.model_real) if one)

    @property
    def source(self) -> str:
        """The address of the page of what it was made from."""
        if self.row.episode_id:
            return at(self.row.episode_id, "episode")
        return at(self.row.raw_item_id, "item") if self.row.raw_item_id else ""

    @property
    def made_from(self) -> str:
        if self.row.episode_id:
            return f"episode {self.row.episode_id}"
        return f"raw item {self.row.raw_item_id}" if self.row.raw_item_id else ""

    @property
    def colour(self) -> str:
        return COLOURS.get(self.row.reason, "warn")

    @property
    def project(self) -> Project | None:
        unit = self.row.episode or self.row.raw_item
        return unit.project if unit else None

    @property
    def waits(self) -> bool:
        """Whether somebody is to decide. What a rejected fact kept out was decided with that."""
        return self.decision is None and self.row.reason != "rejected"

    @property
    def acceptable(self) -> bool:
        return self.decision is None and not self.never

    @property
    def never(self) -> str:
        """Why no word of anybody makes a note of it; nothing when one can."""
        content = self.candidate.content
        if self.row.reason == "secret":
            return SECRET_WAS
        if not content.strip():
            return "It has no content."
        if len(content) > gate.CONTENT_CHARACTERS_MAX:
            return f"A note has {gate.CONTENT_CHARACTERS_MAX:,} characters at most."
        return ""

    @property
    def forbiddable(self) -> bool:
        return self.waits and self.row.reason != "secret" and bool(self.candidate.content.strip())

    @cached_property
    def reads_like(self) -> str:
        """What only a stated reason turns into a note, as far as its own words tell; or nothing."""
        if not self.acceptable:
            return ""
        return risk(self.row, self.candidate, self.candidate.source_ref)

    @property
    def needs_reason(self) -> bool:
        return bool(self.reads_like)

    @property
    def fits(self) -> bool:
        """Whether its title can stay as it is."""
        return 0 < len(self.candidate.title.strip()) <= gate.TITLE_CHARACTERS_MAX

    @property
    def short_title(self) -> str:
        return " ".join(self.candidate.title.split())[: gate.TITLE_CHARACTERS_MAX]


@dataclass(frozen=True)
class Said:
    """A passage of the unit, as pieces: the quote where it stands, else its beginning."""

    item: int
    role: str
    occurred_at: datetime
    start: int | None
    end: int | None
    pieces: tuple[Piece, ...]

    @property
    def query(self) -> str:
        return "" if self.start is None else f"?start={self.start}&end={self.end}"


@dataclass(frozen=True)
class Opened:
    """One refusal with what it was made from and what was decided about it, latest first."""

    refusal: Refusal
    unit: str
    passages: tuple[Said, ...]
    more: bool
    found: bool
    exactly: bool
    history: tuple[RejectionDecision, ...]


@dataclass(frozen=True)
class Lately:
    """Refusals of the last days by reason, most first, and the models that proposed them."""

    reasons: tuple[tuple[str, int], ...]
    models: tuple[str, ...]
    capped: bool


#: What is not read of where a refusal comes from: all but its name and project, bodies above all.
_UNREAD = [
    f"{unit}__{field.name}"
    for unit, model in (("episode", Episode), ("raw_item", RawItem))
    for field in model._meta.concrete_fields
    if field.name not in ("id", "unit_key", "project")
]


def decided(rows: OwnerQuerySet) -> OwnerQuerySet:
    """Refusals with what a page reads of them, and `decided`: the newest action, if any."""
    newest = RejectionDecision.objects.filter(rejection=OuterRef("pk")).order_by("-pk")
    told: OwnerQuerySet = (
        rows.select_related("owner", "episode__project", "raw_item__project")
        .defer(*_UNREAD)
        .annotate(decided=Subquery(newest.values("action")[:1]))
    )
    return told


def list_refusals(request: HttpRequest, rows: OwnerQuerySet, models: Sequence[str]) -> Listed:
    """A page of refusals, latest first, of the shelf that the request names."""
    return list_rows(
        request,
        _on(shelf_of(request), decided(rows)),
        order=("-pk",),
        filters=_filters(models),
        columns=COLUMNS,
        title="rejections",
        page_rows=REFUSALS_A_PAGE,
        keep=("shelf",),
    )


def shelf_of(request: HttpRequest) -> str:
    wanted = request.GET.get("shelf", "")
    return wanted if wanted in dict(SHELVES) else SHELVES[0][0]


def waiting(rows: OwnerQuerySet) -> OwnerQuerySet:
    """Refusals that nobody has decided about."""
    found: OwnerQuerySet = _on("waiting", decided(rows))
    return found


def refusals(rows: Sequence[GateRejection]) -> list[Refusal]:
    """These rows with their decisions: at most one query more, however many there are."""
    # Of those of a list it is known already whether there is one.
    decided = standing(row.pk for row in rows if getattr(row, "decided", "") not in (None, "undo"))
    return [Refusal(row, candidate_of(row.candidate), decided.get(row.pk)) for row in rows]


def lately(rows: OwnerQuerySet, *, now: datetime) -> Lately:
    """Counts of the newest refusals, as far as they are of the last days."""
    newest = rows.order_by("-pk").values("pk")[:COUNTED_REFUSALS_MAX]
    since = now - timedelta(days=COUNTED_DAYS)
    counted: Counter[str] = Counter()
    models: Counter[str] = Counter()
    found = rows.model.objects.as_pipeline().filter(pk__in=newest, created_at__gte=since)
    groups = found.order_by().values_list("reason", "model_real").annotate(refused=Count("pk"))
    for reason, model, refused in groups:
        counted[reason] += refused
        models[model] += refused
    return Lately(
        reasons=tuple(sorted(counted.items(), key=lambda one: (-one[1], one[0]))),
        models=tuple(sorted(model for model in models if model)),
        capped=counted.total() >= COUNTED_REFUSALS_MAX,
    )


def opened(row: GateRejection) -> Opened:
    """One refusal with the passages of its unit and the quote marked in them."""
    (refusal,) = refusals([row])
    passages, more = _passages(row)
    hit = find(refusal.candidate.source_ref, passages, refusal.candidate)
    grounded = hit if isinstance(hit, gate.Grounded) else None
    exact = isinstance(gate.ground(refusal.candidate, passages), gate.Grounded)
    decisions = RejectionDecision.objects.filter(rejection=row).select_related("principal")
    return Opened(
        refusal=refusal,
        unit=unit_of(row),
        passages=tuple(_said(passage, grounded) for passage in passages),
        more=more,
        found=grounded is not None,
        exactly=exact,
        history=tuple(decisions.order_by("-pk")[:PASSAGES_MAX]),
    )


def _passages(row: GateRejection) -> tuple[list[Passage], bool]:
    """The beginnings of the unit's raw items, and whether there are more of them."""
    columns = ("pk", "role", "said", "occurred_at", "kind")
    items: QuerySet[Any] = RawItem.objects.as_pipeline().filter(pk=row.raw_item_id)
    if row.episode_id:
        turns = EpisodeTurn.objects.filter(episode=row.episode_id).order_by("position")
        ids = list(turns.values_list("raw_item", flat=True)[: PASSAGES_MAX + 1])
        items = RawItem.objects.as_pipeline().filter(pk__in=ids).order_by("occurred_at", "pk")
    rows = list(items.annotate(said=Left("body", PASSAGE_CHARACTERS_MAX)).values_list(*columns))
    return [Passage(*one) for one in rows[:PASSAGES_MAX]], len(rows) > PASSAGES_MAX


def _said(passage: Passage, grounded: gate.Grounded | None) -> Said:
    here = grounded if grounded and grounded.passage.item_id == passage.item_id else None
    spans = [(here.start, here.end)] if here else []
    return Said(
        item=passage.item_id,
        role=passage.role or passage.kind,
        occurred_at=passage.occurred_at,
        start=here.start if here else None,
        end=here.end if here else None,
        pieces=tuple(highlight(passage.body, spans, AROUND_CHARACTERS)),
    )


def _on(shelf: str, rows: Any) -> Any:
    if shelf == "waiting":
        last = Coalesce("decided", Value("undo"), output_field=TextField())
        return rows.alias(last=last).filter(last="undo").exclude(reason="rejected")
    if shelf == "all":
        return rows
    # Named first, so that a short list of decisions is read and not all that was ever refused.
    named = RejectionDecision.objects.filter(action=shelf).values("rejection")
    return rows.filter(pk__in=named, decided=shelf)


def _filters(models: Sequence[str]) -> list[Filter]:
    return [
        Words("q", "Search", _search),
        Choice("reason", "Reason", [(one, one) for one in REASONS]),
        project_choice("episode__project", "raw_item__project"),
        Choice(
            "model", "Model", [(m, m) for m in models], lambda rows, m: rows.filter(model_real=m)
        ),
        Day("since", "Since", "created_at__gte"),
        Day("until", "Until", "created_at__lt"),
    ]


def _search(rows: Any, text: str) -> Any:
    said = Q(candidate__title__icontains=text) | Q(candidate__content__icontains=text)
    return rows.filter(said | Q(candidate__source_ref__icontains=text) | Q(detail__icontains=text))


def _text(name: str) -> Column:
    return Column(name, lambda row: row.candidate.get(name))


COLUMNS = (
    Column("rejection", lambda row: row.pk),
    Column("reason", lambda row: row.reason),
    Column("detail", lambda row: row.detail),
    _text("title"),
    _text("content"),
    Column("quote", lambda row: row.candidate.get("source_ref")),
    Column("unit", unit_of),
    # Of a refusal only its project is read here, which needs neither its texts nor its decision.
    Column("project", lambda row: getattr(Refusal(row, None, None).project, "name", None)),  # type: ignore[arg-type]
    Column("model", lambda row: row.model_real),
    Column("prompt_version", lambda row: row.prompt_version),
    Column("decided", lambda row: row.decided if row.decided != "undo" else None),
    Column("created_at", lambda row: row.created_at),
)
