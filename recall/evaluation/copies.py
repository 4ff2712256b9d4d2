"""Which rows a copy needs so that one principal's recall works in it as in the original.

What the principal may see, and nothing else: no ledgers, no keys, nobody's private rows. Knows
nothing about where the copy goes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db import models
from django.db.models import QuerySet

from memory.models import (
    Collection,
    DedupVerdict,
    Evidence,
    Feedback,
    Group,
    Note,
    Posting,
    Principal,
    Project,
    RawItem,
    SearchText,
    Session,
    Term,
    TurnVector,
)
from recall.models import Calibration


@dataclass(frozen=True)
class Copied:
    """Rows of one table: these columns, in the order in which the query gives them."""

    table: str
    columns: Sequence[str]
    query: str
    parameters: Sequence[Any] = ()


def rows_seen_by(principal: Principal) -> list[Copied]:
    """Everything that `principal`'s recall reads."""
    notes = Note.objects.visible_to(principal)
    items = RawItem.objects.visible_to(principal)
    texts = SearchText.objects.visible_to(principal)
    members = Principal.groups.through.objects.all()
    mine: list[QuerySet[Any]] = [
        Principal.objects.all(),
        Group.objects.all(),
        members,
        Project.objects.all(),
        Session.objects.filter(owner=principal),
        items,
        TurnVector.objects.filter(raw_item__in=items.values("pk")),
        notes,
        Evidence.objects.filter(note__in=notes.values("pk")),
        DedupVerdict.objects.as_pipeline().filter(note__in=notes.values("pk")),
        texts,
        Posting.objects.filter(text_id__in=texts.values("pk")),
        Term.objects.filter(owner=principal),
        Collection.objects.filter(owner=principal),
        Feedback.objects.filter(principal=principal),
        Calibration.objects.all(),
    ]
    return [_copied(rows) for rows in mine]


def _copied(rows: QuerySet[Any]) -> Copied:
    model: type[models.Model] = rows.model
    columns = [str(field.column) for field in model._meta.concrete_fields]
    # By attribute and not by column: the two differ for foreign keys.
    picked = rows.order_by().values_list(*(field.attname for field in model._meta.concrete_fields))
    query, parameters = picked.query.sql_with_params()
    return Copied(model._meta.db_table, columns, query, parameters)
