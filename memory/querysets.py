"""The predicates every read goes through, spelled once.

`visible_to` says who may see a row, `live` what counts as current, `believed` what was held true
when. A queryset of owned rows refuses to run until somebody said for whom it reads: forgetting
the predicate is an error, not a leak. Knows nothing about models, only about column names.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, Self

from django.db import models
from django.db.models import Exists, OuterRef, Q


class Unscoped(RuntimeError):
    """A read of owned rows named no principal: call .visible_to(principal) or .as_pipeline()."""


class OwnerQuerySet(models.QuerySet[Any]):
    """Rows with an `owner`, who alone sees them; reads only after a scope was named."""

    _scoped = False

    def visible_to(self, principal: Any) -> Self:
        """Rows of the principal."""
        return self._open().filter(owner=_somebody(principal))

    def as_pipeline(self) -> Self:
        """Every owner's rows, for stages, which keep owners apart by the units they work on."""
        return self._open()

    def _open(self) -> Self:
        # Django asks subclasses to override these two and leaves them out of its stubs.
        opened: Self = self._chain()  # type: ignore[attr-defined]
        opened._scoped = True
        return opened

    def _clone(self) -> Self:
        clone: Self = super()._clone()  # type: ignore[misc]
        clone._scoped = self._scoped
        return clone

    def resolve_expression(self, *args: Any, **kwargs: Any) -> Any:
        """Inside another query, as in `note__in=rows`."""
        self._guard()
        return super().resolve_expression(*args, **kwargs)

    def _guard(self) -> None:
        if not self._scoped:
            raise Unscoped

    def _fetch_all(self) -> None:
        self._guard()
        super()._fetch_all()

    def iterator(self, *args: Any, **kwargs: Any) -> Iterator[Any]:
        self._guard()
        return super().iterator(*args, **kwargs)

    def count(self) -> int:
        self._guard()
        return super().count()

    def exists(self) -> bool:
        self._guard()
        return super().exists()

    def aggregate(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        self._guard()
        return super().aggregate(*args, **kwargs)

    def update(self, **kwargs: Any) -> int:
        self._guard()
        return super().update(**kwargs)

    def delete(self) -> tuple[int, dict[str, int]]:
        self._guard()
        return super().delete()


class OwnedQuerySet(OwnerQuerySet):
    """Rows with `owner` and `visibility`."""

    def visible_to(self, principal: Any) -> Self:
        """Rows of the principal, of people who share a group with it (team), and common ones."""
        mates = _mates(_somebody(principal))
        seen = Q(owner=principal) | Q(visibility="common") | Q(visibility="team", owner__in=mates)
        return self._open().filter(seen)

    def decidable_by(self, principal: Any) -> Self:
        """Rows whose fate the principal may settle: its own, and what people who share a group with
        it let others see. What strangers show to everybody is there to be read alone."""
        shared = Q(visibility__in=("team", "common"), owner__in=_mates(_somebody(principal)))
        return self._open().filter(Q(owner=principal) | shared)


def _somebody(principal: Any) -> Any:
    if principal is None or principal.pk is None:
        raise Unscoped
    return principal


def _mates(principal: Any) -> Any:
    # A subquery over two tiny tables, hashed once: a join would keep the planner off HNSW.
    return type(principal)._base_manager.filter(groups__members=principal).values("pk")


class NoteQuerySet(OwnedQuerySet):
    """The words in which the rest of the house speaks about notes."""

    def live(self, now: datetime) -> Self:
        """Not retired, already true and still true at `now`: the one definition of current."""
        return self.filter(
            Q(valid_to__isnull=True) | Q(valid_to__gt=now),
            deleted_at__isnull=True,
            valid_from__lte=now,
        )

    def believed(self, *, as_of: datetime, known_at: datetime) -> Self:
        """What Argus, knowing what it knew at `known_at`, held true about the moment `as_of`."""
        known = (
            Q(deleted_at__isnull=True) | Q(deleted_at__gt=known_at) | Q(retired_reason="superseded")
        )
        unended = Q(valid_to__isnull=True) | Q(valid_to__gt=as_of) | Q(invalidated_at__gt=known_at)
        return self.filter(known, unended, created_at__lte=known_at, valid_from__lte=as_of)

    def unembedded(self) -> Self:
        return self.filter(embedding__isnull=True)

    def of_model(self, name: str) -> Self:
        """Vectors of one embedder only: cosines across models mean nothing."""
        return self.filter(embedding_model=name)

    def undecided(self) -> Self:
        """Embedded notes that dedup has not judged yet."""
        return self.unjudged().filter(embedding__isnull=False)

    def older_than(self, note: Any) -> Self:
        """Notes made before this one; of those made at once the one said earlier is older, of twins
        the one with the lower id. `by_age` is the same order."""
        return self.filter(_older(note))

    def met_by(self, note: Any) -> Self:
        """Whom dedup holds this note against: all older ones, and those judged before it, which
        did not meet it when they were. So every two notes meet once."""
        verdicts = self.model._meta.get_field("verdicts").related_model._base_manager
        judged = Exists(verdicts.filter(note=OuterRef("pk")))
        return self.filter(_older(note) | judged).exclude(pk=note.pk)

    def unjudged(self) -> Self:
        return self.filter(verdicts__isnull=True)

    def by_age(self) -> Self:
        """Oldest first, as `older_than` has it."""
        return self.order_by("created_at", "valid_from", "pk")


def _older(note: Any) -> Q:
    said = Q(created_at=note.created_at, valid_from__lt=note.valid_from)
    twin = Q(created_at=note.created_at, valid_from=note.valid_from, pk__lt=note.pk)
    return Q(created_at__lt=note.created_at) | said | twin
