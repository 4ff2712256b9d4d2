"""The predicates every read goes through, spelled once.

`visible_to` says who may see a row, `live` what counts as current, `believed` what was held true
when. A queryset of owned rows refuses to run until somebody said for whom it reads: forgetting
the predicate is an error, not a leak. Knows nothing about models, only about column names.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import datetime
from typing import Any, Self

from django.core.exceptions import FullResultSet
from django.db import connection, models
from django.db.models import Exists, OuterRef, Q
from django.db.models.expressions import RawSQL

#: A project (its id) with those that it was merged with, whichever of them is named: rows keep the
#: project that they were given. To stand behind WITH RECURSIVE.
# Why UNION: it ends whatever the table holds, a ring included.
FAMILY = """
family (id) AS (
    SELECT id FROM memory_project WHERE id = %s
  UNION
    SELECT kin.id FROM family CROSS JOIN LATERAL (
        SELECT below.id FROM memory_project below WHERE below.merged_into_id = family.id
      UNION ALL
        SELECT one.merged_into_id FROM memory_project one
        WHERE one.id = family.id AND one.merged_into_id IS NOT NULL
    ) kin
)
"""

#: The notes of which some words hold that somebody said: of each place the newest row, and places
#: that were merged are one. `among`: a join with the notes in question, if not all are. Parameters:
#: the principal, those of `among`, the principal, the words, how many of them at most.
CALLED = """
WITH RECURSIVE home (id, place) AS (
    SELECT project_id, project_id FROM memory_feedback
    WHERE principal_id = %s AND project_id IS NOT NULL
  UNION
    SELECT home.id, one.merged_into_id FROM home
    JOIN memory_project one ON one.id = home.place AND one.merged_into_id IS NOT NULL
)
SELECT said.note_id FROM memory_feedback said {among}
WHERE said.principal_id = %s AND said.verdict = ANY(%s)
  AND NOT EXISTS (
    SELECT 1 FROM memory_feedback newer
    WHERE newer.principal_id = said.principal_id AND newer.note_id = said.note_id
      AND newer.id > said.id
      AND (newer.project_id IS NOT DISTINCT FROM said.project_id OR EXISTS (
        SELECT 1 FROM home here JOIN home there USING (place)
        WHERE here.id = said.project_id AND there.id = newer.project_id)))
ORDER BY said.id DESC LIMIT %s
"""

#: The notes that meet a condition, for CALLED.
# Why OFFSET 0: each word looks its note up. Else all notes may be read for the few words that
# anybody says.
AMONG = """CROSS JOIN LATERAL (
    SELECT 1 FROM memory_note WHERE memory_note.id = said.note_id AND ({where}) OFFSET 0
) there"""

#: The notes somebody asked never to see again, with those they were merged into since: a refinement
#: or a duplicate says the same. A note with a word of its own for the same place stands by that.
#: Parameters: the project that asks, the principal twice.
# Why SQL: it follows the merges step by step, and Django writes no recursive query.
SILENCED = f"""
WITH RECURSIVE {FAMILY}, silenced (note_id, project_id) AS (
    SELECT said.note_id, said.project_id FROM memory_feedback said
    WHERE said.principal_id = %s AND said.verdict = 'never'
      AND (said.project_id IS NULL OR said.project_id IN (SELECT id FROM family))
      AND NOT EXISTS (
        SELECT 1 FROM memory_feedback newer
        WHERE newer.principal_id = said.principal_id AND newer.note_id = said.note_id
          AND (newer.project_id IS NULL) = (said.project_id IS NULL)
          AND (newer.project_id IS NULL OR newer.project_id IN (SELECT id FROM family))
          AND newer.id > said.id)
  UNION
    SELECT heir.note_id, silenced.project_id FROM silenced
    CROSS JOIN LATERAL (
        SELECT merged.target_id AS note_id FROM memory_dedupverdict merged
        WHERE merged.note_id = silenced.note_id AND merged.verdict = 'duplicate'
          AND merged.status IN ('applied', 'approved')
      UNION ALL
        SELECT merged.note_id FROM memory_dedupverdict merged
        WHERE merged.target_id = silenced.note_id AND merged.verdict = 'refine'
          AND merged.status IN ('applied', 'approved')
    ) heir
    WHERE heir.note_id IS NOT NULL AND NOT EXISTS (
        SELECT 1 FROM memory_feedback own
        WHERE own.principal_id = %s AND own.note_id = heir.note_id
          AND (own.project_id IS NULL) = (silenced.project_id IS NULL)
          AND (own.project_id IS NULL OR own.project_id IN (SELECT id FROM family)))
)
SELECT note_id FROM silenced
"""


#: How far a row must be shown for those who share a group with its owner to settle its fate.
SETTLED_TOGETHER = ("team", "common")


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

    def visible_to(self, principal: Any, *, mates: Collection[int] | None = None) -> Self:
        """Rows of the principal, of people who share a group with it (team), and common ones.

        `mates` are the ids of those people where they are known already: a path that every prompt
        waits for looks them up once.
        """
        them = _mates(_somebody(principal)) if mates is None else mates
        seen = Q(owner=principal) | Q(visibility="common")
        if mates is None or mates:
            seen |= Q(visibility="team", owner__in=them)
        return self._open().filter(seen)

    def decidable_by(self, principal: Any, *, mates: Collection[int] | None = None) -> Self:
        """Rows whose fate the principal may settle: its own, and what people who share a group with
        it let others see. What strangers show to everybody is there to be read alone. `mates` as
        for `visible_to`, from `mates_of`: with their ids the planner knows what a row costs."""
        them = _mates(_somebody(principal)) if mates is None else mates
        shared = Q(visibility__in=SETTLED_TOGETHER, owner__in=them)
        return self._open().filter(Q(owner=principal) | shared)


def may_settle(owner: int, visibility: str, *, by: int, mates: Collection[int]) -> bool:
    """Whether the principal `by` may settle the fate of a row of this owner: `decidable_by`, of a
    row that was read already. `mates` from `mates_of`. Pure."""
    return owner == by or (visibility in SETTLED_TOGETHER and owner in mates)


def _somebody(principal: Any) -> Any:
    if principal is None or principal.pk is None:
        raise Unscoped
    return principal


def mates_of(principal: Any) -> tuple[int, ...]:
    """The ids of all who share a group with the principal, itself among them if it is in one."""
    # Why SQL: every page of decisions asks this, and a queryset takes longer to put together.
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT DISTINCT theirs.principal_id FROM memory_principal_groups mine"
            " JOIN memory_principal_groups theirs ON theirs.group_id = mine.group_id"
            " WHERE mine.principal_id = %s",
            [_somebody(principal).pk],
        )
        return tuple(pk for (pk,) in cursor.fetchall())


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

    def wanted_by(self, principal: Any, project: int | None) -> Self:
        """Without the notes that the principal asked never to see again, everywhere or in this
        project (its id); what every way to an agent goes through."""
        # Without correlation and without a join: hashed once, and HNSW stays in the plan.
        return self.exclude(pk__in=silenced(principal, project))

    def unembedded(self) -> Self:
        return self.filter(embedding__isnull=True)

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
        # By those that wait, which are few: a list of all verdicts is as long as that of the notes.
        waits = self.model._meta.get_field("waits").related_model._base_manager
        unjudged = waits.filter(note=OuterRef("pk"), lacks="verdict")
        return self.filter(_older(note) | ~Exists(unjudged)).exclude(pk=note.pk)

    def unjudged(self) -> Self:
        return self.filter(waits__lacks="verdict")

    def by_age(self) -> Self:
        """Oldest first, as `older_than` has it."""
        return self.order_by("created_at", "valid_from", "pk")


def silenced(principal: Any, project: int | None) -> RawSQL:
    """Ids of the notes that the principal asked never to see again, to stand behind `__in`."""
    me = _somebody(principal).pk
    return RawSQL(SILENCED, (project, me, me))


def called(
    principal: Any,
    words: Collection[str],
    *,
    among: OwnerQuerySet | None = None,
    most: int | None = None,
) -> RawSQL:
    """Ids of the notes that the principal called one of these words ("useful", "wrong", "outdated",
    "never") and did not take back, to stand behind `__in`. `among`: only of these notes, by a
    condition on their own columns. `most`: by so many of such words at most, those said last."""
    me = _somebody(principal).pk
    where, params = ("", []) if among is None else condition(among)
    sql = CALLED.format(among="" if among is None else AMONG.format(where=where))
    return RawSQL(sql, (me, *params, me, list(words), most))


def condition(rows: OwnerQuerySet) -> tuple[str, list[Any]]:
    """The WHERE of a queryset over one table, for hand-written SQL: (text, parameters). Columns are
    named with the table's name."""
    if (known := rows.__dict__.get("_condition")) is not None:
        sql, params = known
        return sql, list(params)
    rows._guard()
    query = rows.query
    if sum(1 for count in query.alias_refcount.values() if count) > 1:
        raise ValueError("only conditions of one table: a join has no place in another query")
    try:
        sql, params = query.get_compiler(connection=connection).compile(query.where)
    except FullResultSet:
        sql, params = "TRUE", []
    # Kept with the queryset, which never changes; a clone does not take it along.
    rows.__dict__["_condition"] = (sql, list(params))
    return sql, list(params)


def read(rows: OwnerQuerySet, sql: str, *params: Any) -> list[Any]:
    """Rows by hand-written SQL over the table of these, of which `{seen}` in it is the condition;
    behind that stand its own parameters. For pages of a dozen queries, each of which takes longer
    to put together than to ask."""
    seen, given = condition(rows)
    return list(rows.model._base_manager.raw(sql.format(seen=seen), [*given, *params]))


def _older(note: Any) -> Q:
    said = Q(created_at=note.created_at, valid_from__lt=note.valid_from)
    twin = Q(created_at=note.created_at, valid_from=note.valid_from, pk__lt=note.pk)
    return Q(created_at__lt=note.created_at) | said | twin
