"""What a page shows of refusals: the list of them. One with its text is `review.shown.rejection`.

Reads: gate_rejection, rejection_decision, episode, raw_item, project. Knows nothing about how a
refusal is decided (`review.rejections`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

from django.db import connection
from django.db.models import BooleanField, Q, TextField
from django.db.models.expressions import RawSQL
from django.http import HttpRequest

from memory import gate
from memory.llm.ports import Candidate
from memory.models import GateRejection, RejectionDecision
from memory.querysets import OwnerQuerySet, condition
from memory.web.addresses import at
from memory.web.listing import Choice, Column, Day, Filter, Listed, Words, list_rows
from memory.web.marks import short
from memory.web.places import project_choice
from review.grounding import candidate_of
from review.rejections import risk, standing

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


# Why SQL, here and below: querysets of these take longer to put together than to ask; and what is
# told of a row is looked up for those of the page, where joins would come before the cut.

#: Of a refusal the last that was decided, the key of its episode, and the name of the project of
#: what it was made of.
NEWEST = """
SELECT d.action FROM memory_rejectiondecision d WHERE d.rejection_id = memory_gaterejection.id
ORDER BY d.id DESC LIMIT 1
"""
UNIT = "SELECT e.unit_key FROM memory_episode e WHERE e.id = memory_gaterejection.episode_id"
PLACE = """
SELECT p.name FROM memory_project p WHERE p.id = CASE
    WHEN memory_gaterejection.episode_id IS NULL
    THEN (SELECT i.project_id FROM memory_rawitem i WHERE i.id = memory_gaterejection.raw_item_id)
    ELSE (SELECT e.project_id FROM memory_episode e WHERE e.id = memory_gaterejection.episode_id)
    END
"""

#: Whether nobody decided about a refusal, or took back what was decided last.
# Why not by NEWEST: the planner takes a comparison with it for rare, and sorts all that wait.
UNDECIDED = """
NOT EXISTS (
    SELECT 1 FROM memory_rejectiondecision d
    WHERE d.rejection_id = memory_gaterejection.id AND d.action <> 'undo' AND NOT EXISTS (
        SELECT 1 FROM memory_rejectiondecision newer
        WHERE newer.rejection_id = d.rejection_id AND newer.id > d.id))
"""

#: The newest refusals, as far as they are of the last days, by reason and model. Parameters: how
#: many, since when.
LATELY = """
SELECT reason, model_real, count(*) FROM (
    SELECT reason, model_real, created_at FROM memory_gaterejection
    WHERE {seen} ORDER BY id DESC LIMIT %s
) newest WHERE created_at >= %s GROUP BY 1, 2
"""


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
        return " · ".join(one for one in (self.place or "no project", self.row.model_real) if one)

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
    def place(self) -> str:
        """The name of its project, of a row of `decided`; nothing when it is of none."""
        return self.row.place or ""  # type: ignore[attr-defined]  # Read by `decided`.

    @property
    def unit(self) -> str:
        """The name of the unit that it was made of, of a row of `decided`."""
        return _unit(self.row)

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
class Lately:
    """Refusals of the last days by reason, most first, and the models that proposed them."""

    reasons: tuple[tuple[str, int], ...]
    models: tuple[str, ...]
    capped: bool


def decided(rows: OwnerQuerySet) -> OwnerQuerySet:
    """Refusals with their owner, the newest action if any (`decided`), and what they were made of:
    the key of its episode (`unit_key`), the name of its project (`place`)."""
    told: OwnerQuerySet = rows.select_related("owner").annotate(
        decided=_sql(NEWEST), unit_key=_sql(UNIT), place=_sql(PLACE)
    )
    return told


def _sql(text: str) -> RawSQL:
    return RawSQL(text, (), TextField())


def _unit(row: Any) -> str:
    return row.unit_key if row.episode_id else f"item:{row.raw_item_id}"


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
    seen, given = condition(rows)
    since = now - timedelta(days=COUNTED_DAYS)
    counted: Counter[str] = Counter()
    models: Counter[str] = Counter()
    with connection.cursor() as cursor:
        cursor.execute(LATELY.format(seen=seen), [*given, COUNTED_REFUSALS_MAX, since])
        for reason, model, refused in cursor.fetchall():
            counted[reason] += refused
            models[model] += refused
    return Lately(
        reasons=tuple(sorted(counted.items(), key=lambda one: (-one[1], one[0]))),
        models=tuple(sorted(model for model in models if model)),
        capped=counted.total() >= COUNTED_REFUSALS_MAX,
    )


def _on(shelf: str, rows: Any) -> Any:
    if shelf == "waiting":
        return rows.filter(RawSQL(UNDECIDED, (), BooleanField())).exclude(reason="rejected")
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
    Column("unit", _unit),
    Column("project", lambda row: row.place),
    Column("model", lambda row: row.model_real),
    Column("prompt_version", lambda row: row.prompt_version),
    Column("decided", lambda row: row.decided if row.decided != "undo" else None),
    Column("created_at", lambda row: row.created_at),
)
