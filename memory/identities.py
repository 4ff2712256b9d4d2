"""Which raw items are stored already, by each of the identities that a raw item has.

Reads: raw_item. An identity is always one owner's: two owners may hold the same transcript.
"""

from __future__ import annotations

from collections.abc import Sequence

from django.db import connection

from memory.intake import Prepared
from memory.models import Principal

# Why one by one, behind OFFSET 0: a post asks for at most some hundred keys, of which most are new.
# Left to choose, the planner hashes all that the owner has for the record ids of one post, and
# where statistics are old or missing, as in a first import, reads all of it three times more.
FIND_SQL = """
SELECT r.* FROM unnest(%(dedup)s::text[]) AS w(key) CROSS JOIN LATERAL (
    SELECT id, dedup_key, copy_key, source, record_id, near_key, true FROM memory_rawitem
    WHERE owner_id = %(owner)s AND dedup_key = w.key OFFSET 0) r
UNION ALL
SELECT r.* FROM unnest(%(copy)s::text[]) AS w(key) CROSS JOIN LATERAL (
    SELECT id, dedup_key, copy_key, source, record_id, near_key, true FROM memory_rawitem
    WHERE owner_id = %(owner)s AND copy_key <> '' AND copy_key = w.key OFFSET 0) r
UNION ALL
SELECT r.* FROM unnest(%(source)s::text[], %(record)s::text[]) AS w(source, record)
CROSS JOIN LATERAL (
    SELECT id, dedup_key, copy_key, source, record_id, near_key, true FROM memory_rawitem
    WHERE owner_id = %(owner)s AND record_id <> '' AND source = w.source AND record_id = w.record
    OFFSET 0) r
UNION ALL
SELECT min(r.id), '', '', '', '', w.key, false FROM unnest(%(near)s::text[]) AS w(key)
CROSS JOIN LATERAL (
    SELECT id FROM memory_rawitem
    WHERE owner_id = %(owner)s AND near_key <> '' AND near_key = w.key OFFSET 0) r
GROUP BY w.key
"""


class Known:
    """Ids of what is stored already, by each of the identities of a raw item."""

    def __init__(self) -> None:
        self.identities: dict[tuple[str, ...], int] = {}
        self.near: dict[str, int] = {}

    def look_up(self, prepared: Sequence[Prepared], *, owner: Principal) -> None:
        """Read what the database has of these items (one round trip)."""
        records = [p.item for p in prepared if p.item.record_id]
        with connection.cursor() as cursor:
            cursor.execute(
                FIND_SQL,
                {
                    "owner": owner.pk,
                    "dedup": [p.dedup_key for p in prepared],
                    "copy": [p.copy_key for p in prepared if p.copy_key],
                    "source": [item.source for item in records],
                    "record": [item.record_id for item in records],
                    "near": [p.near_key for p in prepared if p.near_key],
                },
            )
            for id_, dedup, copy, source, record, near, identity in cursor.fetchall():
                if identity:
                    self._add(id_, dedup, copy, source, record)
                else:
                    self.near[near] = id_

    def add(self, id_: int, one: Prepared) -> None:
        """An item of this very post, so that its twin in the same post is known again."""
        self._add(id_, one.dedup_key, one.copy_key, one.item.source, one.item.record_id)
        if one.near_key:
            self.near.setdefault(one.near_key, id_)

    def _add(self, id_: int, dedup: str, copy: str, source: str, record: str) -> None:
        self.identities[("dedup", dedup)] = id_
        if copy:
            self.identities[("copy", copy)] = id_
        if record:
            self.identities[("record", source, record)] = id_

    def find(self, one: Prepared) -> int | None:
        for identity in (
            ("record", one.item.source, one.item.record_id),
            ("dedup", one.dedup_key),
            ("copy", one.copy_key),
        ):
            if (id_ := self.identities.get(identity)) is not None:
                return id_
        return None
